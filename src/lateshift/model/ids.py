"""Ids made by the client, so that an enqueue whose answer was lost can be repeated: same id, same job."""

import os
from datetime import UTC, datetime, timedelta
from random import Random
from struct import Struct
from threading import local
from time import time_ns
from typing import TypeAlias
from uuid import UUID, SafeUUID, uuid4

from lateshift.errors import OptionInvalid

JobId: TypeAlias = UUID
MemberId: TypeAlias = UUID

_random = Random()  # seeded by the system; ids must differ, not be secret
_bits = _random.getrandbits


class _Here(local):
    last = 0


_here = _Here()


def new_job_id() -> JobId:
    """A UUIDv7: milliseconds, then a counter that keeps the ids of one thread in the order they were made."""
    # 48 bits of milliseconds and 12 of a counter (RFC 9562, method 1). Two threads may meet in one tick: the 62 random
    # bits tell their ids apart, and no order between them was promised.
    ticks = (time_ns() // 1_000_000) << 12
    if ticks <= _here.last:
        ticks = _here.last + 1
    _here.last = ticks
    return _made((ticks >> 12) << 80 | (ticks & 0xFFF) << 64 | _VERSION_AND_VARIANT | _bits(62))


def new_job_ids(count: int) -> list[bytes]:
    """So many at once, as stores keep them: several times as fast as one by one."""
    first = max((time_ns() // 1_000_000) << 12, _here.last + 1)
    _here.last = first + count - 1
    return [
        _halves((ticks >> 12) << 16 | _VERSION | ticks & 0xFFF, _VARIANT | _bits(62))
        for ticks in range(first, first + count)
    ]


def job_id_of(kept: bytes) -> JobId:
    """The id that a store has kept as 16 bytes."""
    return _made(int.from_bytes(kept, "big"))


def first_id_at(at: datetime) -> JobId:
    """No id that was made from this instant on is lower, and every one that was made before is."""
    ticks = max(0, (at - _EPOCH) // timedelta(milliseconds=1))
    return UUID(int=min(ticks, 2**48 - 1) << 80)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _made(number: int) -> UUID:
    """What UUID(int=…) does, less its checks of a number known to be in range: a third of the time."""
    made = _new(UUID)
    _put_int(made, number)
    _put_safe(made, _UNKNOWN)
    return made


_new = object.__new__
_put_int = UUID.int.__set__  # type: ignore[attr-defined, misc]
_put_safe = UUID.is_safe.__set__  # type: ignore[attr-defined, misc]
_UNKNOWN = SafeUUID.unknown
_VERSION, _VARIANT = 0x7 << 12, 0x2 << 62  # each in its half of the id
_VERSION_AND_VARIANT = _VERSION << 64 | _VARIANT
_halves = Struct(">QQ").pack


def new_member_id() -> MemberId:
    """Random per start of a process; never a host name or a pid, which come again."""
    return uuid4()


os.register_at_fork(after_in_child=_random.seed)


def id_of(id: UUID | str, kind: str) -> UUID:
    """An id as callers give it. Raises OptionInvalid if it is none."""
    try:
        return id if isinstance(id, UUID) else UUID(id)
    except (ValueError, AttributeError) as error:
        raise OptionInvalid(f"{id!r} is no {kind} id, such as {new_job_id()}.") from error
