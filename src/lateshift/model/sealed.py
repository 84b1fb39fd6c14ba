"""What a sealed value looks like, and what is shown of one. Nothing here can open it: see lateshift.sealing.

A sealed value is a JSON string, `"sealed:1:KEY:FIELD:…"`, so that it stands wherever JSON does. A job is sealed if its payload is."""

import re
from typing import Any

import msgspec
from msgspec import structs

from lateshift.model.attempt_log import AttemptLog
from lateshift.model.job import AttemptRecord, JobView, Progress

MASK = "[sealed]"
START = "sealed:1:"
NOT_SEALED = "not_sealed"  # why a job is a dead letter: a sensitive queue takes sealed payloads only
SEAL_BROKEN = "seal_broken"  # why a job is a dead letter: its payload was changed, or is another job's
REFUSED = (NOT_SEALED, SEAL_BROKEN)

KEY_ID = re.compile(r"[A-Za-z0-9_.-]{1,40}")
HEAD = re.compile(rb"sealed:1:([A-Za-z0-9_.-]{1,40}):([a-z_]{1,20})")
TOKEN = re.compile(HEAD.pattern + rb":([A-Za-z0-9+/]+={0,2})")

_PREFIX = b'"' + START.encode()
_MASKED = msgspec.json.encode(MASK)


def is_sealed(kept: bytes | None) -> bool:
    return kept is not None and kept.startswith(_PREFIX)


def key_of(kept: bytes) -> str | None:
    """The id of the key that opens it; None if it is not sealed."""
    found = HEAD.match(kept, 1) if kept.startswith(_PREFIX) else None
    return None if found is None else found[1].decode()


def masked(kept: bytes | None) -> bytes | None:
    """As JSON, to be shown."""
    return _MASKED if is_sealed(kept) else kept


def masked_text(text: str | None) -> str | None:
    return MASK if text is not None and text.startswith(START) else text


def masked_view(view: JobView) -> JobView:
    """The job as everybody may see it, in the dashboard, the API and the command line."""
    if not is_sealed(view.payload):
        return view
    return structs.replace(
        view, payload=_MASKED, result=masked(view.result), checkpoint=masked(view.checkpoint),
        progress=masked_progress(view.progress), history=[masked_record(record) for record in view.history],
    )  # fmt: skip


def masked_progress(progress: Progress | None) -> Progress | None:
    if progress is None or progress.note is None:
        return progress
    return structs.replace(progress, note=masked_text(progress.note))


def masked_record(record: AttemptRecord) -> AttemptRecord:
    changed: dict[str, Any] = {
        "message": masked_text(record.message),
        "traceback": masked_text(record.traceback),
    }
    return structs.replace(record, **changed)


def masked_log(log: AttemptLog) -> AttemptLog:
    lines = [structs.replace(line, message=masked_text(line.message) or "") for line in log.lines]
    return structs.replace(log, lines=lines)
