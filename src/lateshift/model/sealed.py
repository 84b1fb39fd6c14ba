"""What a sealed value looks like, and what is shown of a job: nothing of what a sensitive queue holds, sealed or not, and of a webhook not
where on its host it leads, which may be a secret. Nothing here can open anything: see lateshift.sealing.

A sealed value is a JSON string, `"sealed:1:KEY:FIELD:…"`, so that it stands wherever JSON does. A job is sealed if its payload is."""

import re
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import structs

from lateshift.model import frames
from lateshift.model.attempt_log import AttemptLog, LogLine
from lateshift.model.history import latest
from lateshift.model.job import RESUBMITTED, WITH_OTHERS, AttemptRecord, JobView, Progress, State

MASK = "[sealed]"
START = "sealed:1:"
NOT_SEALED = "not_sealed"  # why a job is a dead letter: a sensitive queue takes sealed payloads only
SEAL_BROKEN = "seal_broken"  # why a job is a dead letter: its payload was changed, or is another job's
REFUSED = (NOT_SEALED, SEAL_BROKEN)
WEBHOOK = "lateshift.reply_webhook."  # how the tasks begin that deliver to a webhook

KEY_ID = re.compile(r"[A-Za-z0-9_.-]{1,40}")
HEAD = re.compile(rb"sealed:1:([A-Za-z0-9_.-]{1,40}):([a-z_]{1,20})")
HEAD_LIMIT = 80  # bytes of a sealed value that have its head
LEFT = 1_000  # bytes of larger arguments that are read of a job that is one of many
TOKEN = re.compile(HEAD.pattern + rb":([A-Za-z0-9+/]+={0,2})")

_ENGINE = "lateshift"  # the logger
_ID = r"[0-9a-f-]{36}"
_OF_A_STEP = re.compile(
    rf"workflow {_ID} is held: step |workflow .{{1,200}}? {_ID} failed: |step .{{0,200}}? of workflow {_ID} cannot be undone: "
)
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
    if view.sensitive:
        return _hidden(view)
    if view.task.startswith(WEBHOOK):
        history = [_without_was(record) for record in view.history]
        return structs.replace(view, payload=shown_payload(view, view.payload), history=history)
    if not is_sealed(view.payload):
        return view
    return structs.replace(
        view, payload=_MASKED, result=masked(view.result), checkpoint=masked(view.checkpoint),
        progress=masked_progress(view.progress), history=[masked_record(record) for record in view.history],
    )  # fmt: skip


def slim(view: JobView) -> JobView:
    """One of many that are looked at together, of which a store reads no result, no checkpoint, and no more than LEFT + 1 bytes of the
    arguments: of larger ones it has their beginning, as a text. Of its history it has the latest, and of a traceback the frames that tell
    faults apart. It is masked as the whole would be."""
    payload = view.payload
    if is_sealed(payload):
        payload = payload[:HEAD_LIMIT]
    elif len(payload) > LEFT and not view.task.startswith(WEBHOOK):
        payload = (
            _MASKED if view.sensitive else msgspec.json.encode(payload[:LEFT].decode(errors="ignore") + "…")
        )
    return structs.replace(view, payload=payload, history=[_slim(record) for record in latest(view.history)])


def _slim(record: AttemptRecord) -> AttemptRecord:
    if record.reason == RESUBMITTED:
        return structs.replace(record, message=who_resubmitted(record), was=None)
    trace = _without_rest(record.traceback)
    if trace is not None and not trace.startswith(START):
        trace = frames.cut(trace)
    return structs.replace(record, message=_without_rest(record.message), traceback=trace)


def _without_rest(text: str | None) -> str | None:
    """Of a sealed one, its head."""
    return text[:HEAD_LIMIT] if text is not None and text.startswith(START) else text


def shown_payload(view: JobView, payload: bytes) -> bytes:
    """What such a job is given, or would be, as everybody may see it."""
    if view.sensitive or is_sealed(payload):
        return _MASKED
    return without_path(payload) if view.task.startswith(WEBHOOK) else payload


def _hidden(view: JobView) -> JobView:
    """Whatever it holds: it may have come before its queue was sensitive, or from a program that does not know."""
    return structs.replace(
        view, payload=_MASKED, result=hidden(view.result), checkpoint=hidden(view.checkpoint),
        progress=masked_progress(view.progress, hide=True), history=[hidden_record(record) for record in view.history],
        reason=hidden_text(view.reason) if view.state is State.CANCELLED and not is_sealed(view.payload) else view.reason,
    )  # fmt: skip


def hidden(kept: bytes | None) -> bytes | None:
    """As JSON, to be shown."""
    return None if kept is None else _MASKED


def hidden_text(text: str | None) -> str | None:
    return None if text is None else MASK


def masked_progress(progress: Progress | None, *, hide: bool = False) -> Progress | None:
    if progress is None or progress.note is None:
        return progress
    return structs.replace(progress, note=MASK if hide else masked_text(progress.note))


def masked_record(record: AttemptRecord) -> AttemptRecord:
    changed: dict[str, Any] = {
        "message": masked_text(record.message),
        "traceback": masked_text(record.traceback),
    }
    return structs.replace(record, **changed)


def hidden_record(record: AttemptRecord) -> AttemptRecord:
    """Its type of error is the code's, and stays; so does what the gatekeeper says itself."""
    if record.reason in REFUSED:
        return record
    was = None if record.was is None else dict.fromkeys(record.was, MASK)
    message = who_resubmitted(record) if record.reason == RESUBMITTED else hidden_text(record.message)
    return structs.replace(record, message=message, traceback=hidden_text(record.traceback), was=was)


def who_resubmitted(record: AttemptRecord) -> str:
    """That somebody did, and whether with other arguments, without a word of what they were."""
    who, said, _ = (record.message or "").partition(WITH_OTHERS)
    return f"{who}{said}" if said or (record.was is None and who.startswith("by ")) else MASK


def masked_log(log: AttemptLog, *, hide: bool = False) -> AttemptLog:
    """`hide`: whatever its lines say, as its job is of a sensitive queue."""
    lines = [
        structs.replace(line, message=MASK if hide else masked_text(line.message) or "") for line in log.lines
    ]
    return structs.replace(log, lines=lines)


def without_steps(log: AttemptLog, mark: str) -> AttemptLog:
    """The log of a run, with the mark for what its steps raised, which older releases wrote there."""
    lines = [structs.replace(line, message=mark) if _tells_of_a_step(line) else line for line in log.lines]
    return structs.replace(log, lines=lines)


def _tells_of_a_step(line: LogLine) -> bool:
    return line.logger == _ENGINE and _OF_A_STEP.match(line.message) is not None


def without_path(payload: bytes) -> bytes:
    """The arguments of a delivery, with no more of its URL than its scheme and host."""
    try:
        given = msgspec.json.decode(payload, type=dict[str, Any])
        origin = urlsplit(str(given["url"]))
    except (msgspec.DecodeError, KeyError, ValueError, RecursionError):
        return _MASKED
    return msgspec.json.encode({**given, "url": f"{origin.scheme}://{origin.netloc.rpartition('@')[2]}/…"})


def _without_was(record: AttemptRecord) -> AttemptRecord:
    """What a delivery was given before somebody changed it, and the line that tells of the change, may have another such URL."""
    if record.was is None:
        return record
    message = who_resubmitted(record) if record.reason == RESUBMITTED else MASK
    return structs.replace(record, message=message, was=dict.fromkeys(record.was, MASK))
