"""Under whose key a deed is done. While somebody who holds a request with an Idempotency-Key carries it out, every deed of his thread is fenced:
the transaction that does it, and tells the audit of it, looks whether the request is still held by this turn. If not, others may
have been told that nobody knows whether it was done, and may have done it under another key: the deed changes nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from lateshift.errors import BegunLate


@dataclass(slots=True)
class Hold:
    """A request that is held; see answer_contract. `deeds`: how many were done under it, or may have been."""

    id: bytes
    turn: int
    deeds: int = 0


_held: ContextVar[Hold | None] = ContextVar("held", default=None)


@contextmanager
def under(hold: Hold) -> Iterator[None]:
    """What this thread does meanwhile is done under this hold, or not at all."""
    before = _held.set(hold)
    try:
        yield
    finally:
        _held.reset(before)


def held() -> Hold | None:
    return _held.get()


def begun_late() -> BegunLate:
    return BegunLate("It was to begin too late, so nothing was done. Ask again.")
