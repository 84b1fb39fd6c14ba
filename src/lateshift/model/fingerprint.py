"""Which dead letters died of the same: what differs from job to job is blanked, the rest is told apart. Pure."""

import re
from hashlib import blake2b

from lateshift.model import frames
from lateshift.model.history import attempts
from lateshift.model.job import AttemptRecord, JobView
from lateshift.model.sealed import masked_view

FINGERPRINT = re.compile(r"[0-9a-f]{8}")
COMPARED = 300  # characters of a blanked message that count

_BLANK = "#"
# In this order: what stands in quotes may hold any of the others.
_DIFFERS = re.compile(
    r"""(?<!\w)[bru]{0,2}(?P<quote>['"]).*?(?:(?P=quote)(?!\w)|\Z)  # 'text', also one that was cut off
    | \b[a-z][a-z0-9+.-]*://\S+                                     # an address
    | (?<!\w)(?:[a-z]:)?(?:[/\\][\w.~@%+-]+)+[/\\]?                 # /a/path, C:\a\path
    | (?:[\w.~-]+/){2,}[\w.~-]*                                     # a/path/below
    | [-+]?\b\w*\d\w*(?:[.,:-]\w*\d\w*)*                            # 12, 0x1f, order-7, 10:30, a UUID
    | \b[0-9a-f]{8,}\b                                              # hex that happens to have no digit
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_RUN = re.compile(rf"{_BLANK}(?:[\s,;:&|-]*{_BLANK})+")  # a list of three and a list of four are the same


def blanked(text: str) -> str:
    """Without numbers, ids, hex, quoted text, paths and addresses."""
    return " ".join(_RUN.sub(_BLANK, _DIFFERS.sub(_BLANK, text)).split())


def last_failure(view: JobView) -> AttemptRecord | None:
    """The attempt that a dead letter died of."""
    return next(reversed(attempts(view.history)), None)


def fingerprint(view: JobView) -> str:
    """Eight hexadecimal digits, the same for the same task, reason, type of error, blanked message and place in the
    code. Line numbers do not count: they move with every release; nor how deep a function had called itself."""
    record = last_failure(masked_view(view))
    parts = [view.task, view.reason or ""]
    if record is not None:
        parts += [record.error or "", blanked(record.message or "")[:COMPARED]]
        parts += frames.names(record.traceback or "")
    return blake2b("\0".join(parts).encode(), digest_size=4).hexdigest()
