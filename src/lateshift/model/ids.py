"""Ids made by the client, so that an enqueue whose answer was lost can be repeated: same id, same job."""

import os
from random import Random
from time import time_ns
from typing import TypeAlias
from uuid import UUID, SafeUUID, uuid4

JobId: TypeAlias = UUID
MemberId: TypeAlias = UUID

_random = Random()  # seeded by the system; ids must differ, not be secret
_bits = _random.getrandbits
_last = 0


def new_job_id() -> JobId:
    """A UUIDv7: milliseconds, then a counter that keeps the ids of one thread in the order they were made."""
    global _last
    # 48 bits of milliseconds and 12 of a counter (RFC 9562, method 1). Two threads may meet in one tick: the 62 random
    # bits tell their ids apart, and no order between them was promised.
    ticks = (time_ns() // 1_000_000) << 12
    if ticks <= _last:
        ticks = _last + 1
    _last = ticks
    return quick_uuid((ticks >> 12) << 80 | (ticks & 0xFFF) << 64 | _VERSION_AND_VARIANT | _bits(62))


_VERSION_AND_VARIANT = 0x7 << 76 | 0x2 << 62


def quick_uuid(number: int) -> UUID:
    """A UUID of a number known to be in range: what UUID(int=…) does, less its checks (a third of the time)."""
    made = _new(UUID)
    _put(made, "int", number)
    _put(made, "is_safe", _UNKNOWN)
    return made


_new = object.__new__
_put = object.__setattr__
_UNKNOWN = SafeUUID.unknown


def new_member_id() -> MemberId:
    """Random per start of a process; never a host name or a pid, which come again."""
    return uuid4()


os.register_at_fork(after_in_child=_random.seed)
