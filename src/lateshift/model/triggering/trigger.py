"""A trigger as code declares it, what arrives by it, and how it is shown. Plain data."""

from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from msgspec import Struct

from lateshift.model.job import NewJob, Place, Spec
from lateshift.model.outcome import plain

TRIGGER_NAME_LIMIT = 200  # characters
ERROR_LIMIT = 2000  # characters of a trigger's last error, and of why an event was refused
REFUSED_LIMIT = 2**20  # bytes that are kept of an event that was refused; and of what came with it
RATE_WINDOW = 60.0  # seconds over which a trigger's rate is counted
SILENCE = timedelta(minutes=1)  # a reader says more often that it looks
REFUSED_COUNTED = 1000  # what a trigger refused and nobody has looked at is counted so far
BY_DATABASE = ", by the database"  # how `about` ends where the database itself writes the jobs

EVENT_LIMIT = 1000  # bytes of what an event is known by; what is longer is kept as its beginning and a digest
_SHORTENED = "… sha256:"


def known_by(text: str) -> str:
    """What an event is known by in the store, of any text. Equal for equal texts only."""
    text = plain(text)
    if len(text.encode()) <= EVENT_LIMIT:
        return text
    beginning = text.encode()[: EVENT_LIMIT - 100].decode(errors="ignore")
    return f"{beginning}{_SHORTENED}{sha256(text.encode()).hexdigest()}"


def is_whole(event: str) -> bool:
    """Whether it is the text itself, not its beginning and a digest."""
    return _SHORTENED not in event


class Subscription(Struct, frozen=True, array_like=True):
    """What an event becomes: a job with this spec, whose one argument is the data, or the whole event."""

    pattern: str
    spec: Spec
    parameter: str
    whole: bool
    place: Place | None = None
    tags: tuple[str, ...] = ()


class NewTrigger(Struct, frozen=True, kw_only=True):
    """As the code of an app has it. `about`: where it looks, in words, without passwords."""

    name: str
    kind: str
    about: str
    task: str
    subscription: Subscription | None = None


class Refused(Struct, frozen=True, kw_only=True):
    """An event that no job can be made of: as it came, and why. `rest`: what came with it, as JSON: its `kind`, what was `seen`
    beside the raw, the `queue` it was for, `how` the raw is read, whether it was `cut`, and whether the reason is `ours` to tell its sender."""

    id: UUID
    raw: bytes
    rest: bytes
    reason: str


class Arrival(Struct, frozen=True, kw_only=True):
    """One event: what it is known by, which version of it this is, and what becomes of it: a job, a refusal, or neither where
    the program passes it over."""

    event: str
    mark: str = ""
    job: NewJob | None = None
    refused: Refused | None = None


class RefusedView(Struct, frozen=True, kw_only=True):
    id: UUID
    trigger: str
    event: str
    mark: str
    at: datetime
    raw: bytes
    rest: bytes
    reason: str


class TriggerView(Struct, frozen=True, kw_only=True):
    """A trigger, as operators see it. `lag`: events that wait, as far as its source can tell and somebody asks it. `rate`: jobs in a
    second, of late. `error`: what keeps it from reading now; `last_error`: what did so last, at `error_at`; `failing_since`: when
    it was first told of, without a look in between at which all was well. `refused`: all that it
    ever refused; `refused_now`: what of it is still there, up to REFUSED_COUNTED. `read_now`: whether somebody holds its term; of a webhook,
    whether a server is there that takes its deliveries. What a server says keeps it from that is forgotten where it says so no more."""

    name: str
    app: str
    kind: str
    about: str
    task: str
    position: Any
    made: int
    repeated: int
    refused: int
    rate: float
    lag: int | None
    last_at: datetime | None
    looked_at: datetime | None
    error: str | None
    last_error: str | None
    error_at: datetime | None
    failing_since: datetime | None = None
    paused_at: datetime | None
    paused_by: str | None
    refused_now: int
    read_now: bool

    @property
    def by_database(self) -> bool:
        """Whether the database itself writes its jobs: then nobody reads, and nobody counts."""
        return self.kind == "row" and self.about.endswith(BY_DATABASE)
