"""What every store does about answers to requests that carry an Idempotency-Key. See contract.py for what holds of all verbs.

An answer is written after what it tells of was done, in a commit of its own: who is killed between the two leaves a request of
which nobody knows whether it was done. It is never begun again: who asks is told so. A deed that is done under a key (holding.under) is
done only while its request is held, in the same transaction: once somebody was told that nobody knows, what the tables say stays so."""

from datetime import timedelta
from typing import Protocol

from msgspec import Struct

ANSWER_KEPT = timedelta(days=1)  # how long a request with the same key is answered as the first was
ANSWER_LIMIT = 256 * 1024  # bytes of its body; of a larger one it is kept that the request was done
ANSWER_WITHIN = timedelta(seconds=60)  # after which nobody holds a request that was not answered


class Answered(Struct, frozen=True, kw_only=True, array_like=True):
    """What was answered, to be answered again."""

    status: int
    headers: dict[str, str]
    body: bytes


class Begun(Struct, frozen=True, kw_only=True):
    """What a request with a key has met: its own `answer` of before, `another` request that has the key, one like it that is `under_way`,
    or that ended without an answer and may have been done (`unknown`); or none of these: then it is to be done."""

    answer: Answered | None = None
    another: bool = False
    under_way: bool = False
    unknown: bool = False

    @property
    def first(self) -> bool:
        return self == Begun()


class Answers(Protocol):
    """`id` says whose key it is and for what, `request` all that was asked, `turn` who does it: any number that nobody else has."""

    def begin(self, id: bytes, request: bytes, *, turn: int) -> Begun:
        """Only one is the first, until it gives up or ANSWER_KEPT has passed. When nobody has held it for ANSWER_WITHIN, it is unknown."""

    def hold(self, id: bytes, *, turn: int) -> bool:
        """It is under way for ANSWER_WITHIN from now. False if that time is over: others may have been told that it is unknown."""

    def keep(self, id: bytes, answer: Answered, *, turn: int) -> bool:
        """False if another's turn has begun."""

    def give_up(self, id: bytes, *, turn: int) -> bool:
        """Nothing was done: the key is free. False if another's turn has begun."""
