"""What a source of events does. All of it blocks, and runs on one thread at a time."""

from datetime import timedelta
from typing import Any, Protocol

from msgspec import Struct

from lateshift.model.triggering.events import Seen


class SourceAway(Exception):
    """The source does not answer, or refuses us: tried again after a while. The message is shown to operators."""


class Incoming(Struct, frozen=True):
    """One event: what it is known by in the receipts, its version, what was seen, and what the source needs to acknowledge it.
    `old`: it was there before the trigger, and makes nothing. `wrong`: why no job can be made of it. `raw`: as it came, where
    what was seen is made of it, and `how`, as refusing.py needs it to do so again."""

    event: str
    seen: Seen
    mark: str = ""
    receipt: Any = None
    old: bool = False
    wrong: str | None = None
    raw: bytes | None = None
    how: dict[str, Any] | None = None


class Read(Struct, frozen=True):
    """What a look has found. `position`: how far the source has read once all of these are stored; None if that has not
    changed. `more`: look again at once. `pause`: else how long until the next look. `waits`: why nothing can come yet."""

    events: list[Incoming]
    position: bytes | None = None
    more: bool = False
    pause: timedelta = timedelta(seconds=1)
    lag: int | None = None
    waits: str | None = None


class Receipts(Protocol):
    """What a source may ask of the store about its own receipts, under the term of its reader."""

    def unseen(self, events: list[tuple[str, str]]) -> list[bool]: ...

    def after(self, event: str, limit: int) -> list[str]: ...

    def forget(self, events: list[str], *, before: str | None = None) -> int: ...


class Source(Protocol):
    """Opened by the one reader that holds the term, closed when it loses it. Raises SourceAway when what it reads does not
    answer; it is then closed, and opened again later."""

    keep: timedelta | None  # how long receipts of its events are kept; None: until the source forgets them

    def open(self, position: bytes | None, receipts: Receipts) -> None: ...

    def read(self, limit: int, wait: float) -> Read:
        """Up to `limit` events; blocks for at most about `wait` seconds if there are none."""

    def done(self, events: list[Incoming]) -> None:
        """They are durably stored, or had been before: acknowledge them."""

    def close(self) -> None:
        """What was read and is not done goes back to where it came from. Never raises."""
