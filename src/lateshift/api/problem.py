"""What goes wrong, as problem details (RFC 9457): one table says which status each error of Lateshift has."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from lateshift import errors
from lateshift.api.bounds import PROBLEM_LIMIT
from lateshift.model.words import shortened

PROBLEM = "application/problem+json"
RETRY_AFTER = 1  # seconds, for what may be tried again
# Of every answer, so that no page can do anything with it.
ALWAYS = {
    "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}  # fmt: skip
NO_HEADERS: Mapping[str, str] = MappingProxyType({})

STATUSES: tuple[tuple[type[errors.LateshiftError], int], ...] = (
    (errors.SignatureInvalid, 401),
    (errors.TaskUnknown, 404),
    (errors.JobUnknown, 404),
    (errors.BatchUnknown, 404),
    (errors.ScheduleUnknown, 404),
    (errors.TriggerUnknown, 404),
    (errors.RunUnknown, 404),
    (errors.PipelineUnknown, 404),
    (errors.BreakerUnknown, 404),
    (errors.RunEnded, 409),
    (errors.KeyConflict, 409),
    (errors.SequenceUsed, 409),
    (errors.BatchClosed, 409),
    (errors.TokenNameTaken, 409),
    (errors.TokenRevoked, 401),
    (errors.PayloadTooLarge, 413),
    (errors.QueueFull, 429),
    (errors.SealKeyMissing, 503),
    (errors.UsageError, 422),  # all others: the request was understood, and cannot be done so
    (errors.WebhookClosed, 503),
    (errors.StoreError, 503),
)
"""The first that fits counts. An error that is none of these is a fault: 500."""

# To a client; what to do about it is for whoever has the server.
LACKS_KEY = "This server lacks the key {}; its log says more. Nothing was done."
TRY_AGAIN = (429, 503)  # of these it is said when
_WRITTEN = {"json": "JSON", "id": "ID", "ids": "IDs", "url": "URL"}  # in titles


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a request was not done. `type` is for programs and stays the same, `detail` says what to do; `field`: which part of
    the request is wrong; `fault`: what to look for in the log of the server."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    fault: str | None = None


class Refused(Exception):
    """Raised while a request is looked at: it is answered with this problem, and nothing was done. When it may be tried again is
    said of what may be, unless `headers` say it better."""

    def __init__(
        self, status: int, kind: str, detail: str, *, field: str | None = None, headers: Mapping[str, str] = NO_HEADERS
    ) -> None:  # fmt: skip
        super().__init__(detail)
        words = " ".join(_WRITTEN.get(word, word) for word in kind.split("-"))
        title = words[0].upper() + words[1:]
        detail, field = shortened(detail, PROBLEM_LIMIT), field and shortened(field, PROBLEM_LIMIT)
        self.problem = Problem(
            type=f"urn:lateshift:problem:{kind}",
            title=title,
            status=status,
            detail=detail,
            field=field,
        )
        again = {"Retry-After": str(RETRY_AFTER)} if status in TRY_AGAIN else NO_HEADERS
        self.headers: Mapping[str, str] = {**again, **headers}


def refused_by(error: errors.LateshiftError) -> Refused | None:
    """What an error of Lateshift comes to; None if it is a fault."""
    status = next((status for kind, status in STATUSES if isinstance(error, kind)), None)
    if status is None:
        return None
    said = LACKS_KEY.format(error.key) if isinstance(error, errors.SealKeyMissing) else str(error)
    return Refused(status, kind_of(type(error)), said, field=getattr(error, "field", None))


def kind_of(error: type[Exception]) -> str:
    """ArgumentsInvalid is arguments-invalid."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", error.__name__).lower()


def fault(id: str) -> Problem:
    """Nothing is told of what happened but where to look for it."""
    return Problem(
        type="urn:lateshift:problem:fault", title="Fault", status=500, fault=id,
        detail=f"A fault in the server. Its log says more, under {id}. What was asked may have been done; look before asking again.",
    )  # fmt: skip
