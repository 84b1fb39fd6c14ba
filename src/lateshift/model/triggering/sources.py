"""Where a trigger looks. Plain data: opening one is for lateshift.triggers."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from msgspec import Struct

from lateshift.model.triggering.events import Message

MESSAGE_WINDOW = timedelta(days=7)  # for so long a message that is delivered again makes no second job
SETTLE = timedelta(seconds=2)  # a file that has not changed for so long is whole
SCAN_EVERY = timedelta(seconds=30)  # what nobody told of is found by then
POLL_EVERY = timedelta(seconds=1)
ROWS_BEHIND = 1000  # numbers behind the newest that are looked at again, for commits that come late
TIME_BEHIND = timedelta(seconds=60)

Verify: TypeAlias = Callable[[Mapping[str, str], bytes, datetime], str]
"""Of the headers (names in small letters), the body as it came and the time now: the id of the delivery. Raises SignatureInvalid."""


class MessageSource(Struct, frozen=True, kw_only=True):
    """A queue of a broker. `url`: as kombu has it. `options`: of its transport. `key`: what a message is known by, if not by
    its id: a field of its body, or a function of the Message."""

    url: str
    queue: str
    key: str | Callable[[Message], str] | None = None
    prefetch: int = 100
    window: timedelta = MESSAGE_WINDOW
    options: dict[str, Any] = {}


class FileSource(Struct, frozen=True, kw_only=True):
    """Files that match a pattern: `inbox/**/*.csv`. `renamed`: they come whole, by a rename, and need not settle."""

    pattern: str
    settle: timedelta = SETTLE
    renamed: bool = False
    every: timedelta = SCAN_EVERY


class BlobSource(Struct, frozen=True, kw_only=True):
    """Blobs under a URL that obstore opens (s3://, az://, gs://) whose path matches a pattern."""

    url: str
    pattern: str
    every: timedelta = SCAN_EVERY
    options: dict[str, str] = {}


class RowSource(Struct, frozen=True, kw_only=True):
    """Rows of a table, found by a column that only grows. `by`: "polling", or in PostgreSQL by a trigger of the "database"."""

    url: str
    table: str
    cursor: str
    key: str
    behind: int | timedelta | None = None
    every: timedelta = POLL_EVERY
    by: str = "polling"
    from_start: bool = False


class WebhookSource(Struct, frozen=True, kw_only=True):
    """What others post to `/hooks/NAME`. `verify`: says that a delivery is genuine, and what it is known by."""

    verify: Verify
    window: timedelta = MESSAGE_WINDOW


class EventSource(Struct, frozen=True, kw_only=True):
    """What the application emits under a name: `order.*`."""

    pattern: str


Source: TypeAlias = MessageSource | FileSource | BlobSource | RowSource | EventSource | WebhookSource
KIND_NAMES: dict[type[Source], str] = {
    MessageSource: "message", FileSource: "file", BlobSource: "blob", RowSource: "row", EventSource: "event",
    WebhookSource: "webhook",
}  # fmt: skip
