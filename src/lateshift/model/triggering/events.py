"""What a trigger saw, as a task may ask for it: `def load(file: FileChange)`. A task that does not gets the content alone:
the message's body, the file's path, the row, the event's data."""

from datetime import datetime
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from lateshift.errors import EventInvalid
from lateshift.model.depth import JSON_DEPTH, depth_of

FORM = "application/x-www-form-urlencoded"


class Message(Struct, frozen=True, kw_only=True):
    """A message of a broker, with its body as it came."""

    body: bytes
    id: str | None = None  # the publisher's, or the broker's own; the same when it is delivered again
    headers: dict[str, Any] = {}
    content_type: str | None = None
    queue: str = ""

    @property
    def content(self) -> Any:
        if depth_of(self.body) > JSON_DEPTH:
            raise EventInvalid(
                f"the body has objects or lists more than {JSON_DEPTH} deep inside one another."
            )
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise EventInvalid(f"the body is {self._written}: {error}.") from error

    @property
    def _written(self) -> str:
        if (self.content_type or "").partition(";")[0].strip().lower() == FORM:
            return "a form's, and is to be JSON; have its sender send application/json, or read `body`"
        return "no JSON"

    @property
    def raw(self) -> bytes:
        return self.body


class FileChange(Struct, frozen=True, kw_only=True):
    """A file or a blob that is new or has changed. `etag`: its version."""

    path: str  # of a file, absolute; of a blob, its URL
    size: int
    modified: datetime
    etag: str

    @property
    def content(self) -> Any:
        return self.path

    @property
    def raw(self) -> bytes:
        return msgspec.json.encode(self)


class RowChange(Struct, frozen=True, kw_only=True):
    """A row that is new or has changed."""

    table: str
    row: dict[str, Any]

    @property
    def content(self) -> Any:
        return self.row

    @property
    def raw(self) -> bytes:
        return msgspec.json.encode(self)


class Event(Struct, frozen=True, kw_only=True):
    """What the application told with `app.emit`."""

    name: str
    data: Any
    at: datetime

    @property
    def content(self) -> Any:
        return self.data

    @property
    def raw(self) -> bytes:
        return msgspec.json.encode(self)


Seen: TypeAlias = Message | FileChange | RowChange | Event
KINDS: tuple[type[Seen], ...] = (Message, FileChange, RowChange, Event)
