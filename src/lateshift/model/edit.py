"""Other arguments for a job that has ended; and the line in its history that says who resubmitted it, and what they were before."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw, Struct

from lateshift.model.depth import shown
from lateshift.model.job import RESUBMITTED, WITH_OTHERS, AttemptRecord
from lateshift.model.outcome import MESSAGE_LIMIT, clip
from lateshift.model.sealed import is_sealed

WAS_LIMIT = 16 * 1024  # of old values kept in the history of a job, encoded
SHOWN = 60  # characters of a value in the line's message

_raw = msgspec.json.Decoder(dict[str, Raw])


class Edit(Struct, frozen=True):
    """A payload instead of another. A job that has other arguments than `before` is left alone: somebody else was
    there in the meantime."""

    before: bytes
    after: bytes

    @property
    def size(self) -> int:
        """Bytes, as a store is given it."""
        return len(self.before) + len(self.after)


class Changed(Struct, frozen=True):
    """One argument that an edit changes; None where there was none, or is none any more."""

    name: str
    old: bytes | None
    new: bytes | None


def changes(edit: Edit) -> list[Changed]:
    """Which arguments differ, in the order of the call. Values are JSON."""
    old, new = named(edit.before), named(edit.after)
    return [
        Changed(name, old.get(name), new.get(name))
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    ]


def line_of(edit: Edit | None, *, by: str, attempt: int, fence: int, at: datetime) -> AttemptRecord:
    """What the job's history says about its resubmission: who; and of an edit what, and the old values."""
    if edit is None:
        message = clip(f"by {by}", MESSAGE_LIMIT)
        return AttemptRecord(attempt=attempt, fence=fence, at=at, reason=RESUBMITTED, message=message)
    if is_sealed(edit.after):
        message = clip(f"by {by}{WITH_OTHERS}, which are sealed", MESSAGE_LIMIT)
        return AttemptRecord(attempt=attempt, fence=fence, at=at, reason=RESUBMITTED, message=message)
    changed = changes(edit)
    said = ", ".join(f"{each.name} {_short(each.old)} → {_short(each.new)}" for each in changed)
    return AttemptRecord(
        attempt=attempt, fence=fence, at=at, reason=RESUBMITTED,
        message=clip(f"by {by}{WITH_OTHERS}: {said}", MESSAGE_LIMIT), was=_was(changed),
    )  # fmt: skip


def named(payload: bytes) -> dict[str, bytes]:
    """The arguments by name, each as the JSON it is written in. Empty if the payload is no JSON object, or one that nobody can read."""
    try:
        return {name: bytes(value) for name, value in _raw.decode(payload).items()}
    except (msgspec.DecodeError, RecursionError):
        return {}


def written(arguments: dict[str, bytes]) -> bytes:
    """The other way: a payload of arguments that are JSON already."""
    return msgspec.json.encode({name: Raw(value) for name, value in arguments.items()})


def _was(changed: list[Changed]) -> dict[str, Any]:
    """The old values. Where they are too large for a history, the beginning of each."""
    old = {each.name: each.old for each in changed if each.old is not None}
    if sum(map(len, old.values())) <= WAS_LIMIT:
        return {name: shown(value) for name, value in old.items()}
    each = WAS_LIMIT // len(old)
    return {name: clip(value.decode(), each) for name, value in old.items()}


def _short(value: bytes | None) -> str:
    return "nothing" if value is None else clip(value.decode(), SHOWN)
