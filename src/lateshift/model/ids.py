"""Ids made by the client, so that an enqueue whose answer was lost can be repeated: same id, same job."""

import os
import threading
import time
from typing import TypeAlias
from uuid import UUID, uuid4

JobId: TypeAlias = UUID
MemberId: TypeAlias = UUID

_lock = threading.Lock()
_last = 0
_random = bytearray()


def new_job_id() -> JobId:
    """A UUIDv7: milliseconds, then a counter that keeps the ids of one process in the order they were made."""
    global _last
    with _lock:
        # 48 bits of milliseconds and 12 of a counter (RFC 9562, method 1): never equal, never back.
        _last = max(_last + 1, (time.time_ns() // 1_000_000) << 12)
        ticks = _last
        if len(_random) < 8:
            _random.extend(os.urandom(4096))
        tail = int.from_bytes(_random[-8:], "big")
        del _random[-8:]
    return UUID(int=(ticks >> 12) << 80 | 0x7 << 76 | (ticks & 0xFFF) << 64 | 0x2 << 62 | tail >> 2)


def new_member_id() -> MemberId:
    """Random per start of a process; never a host name or a pid, which come again."""
    return uuid4()


def _forget_inherited() -> None:
    """After a fork the child must not hand out the parent's random bytes again."""
    global _lock
    _lock = threading.Lock()
    _random.clear()


os.register_at_fork(after_in_child=_forget_inherited)
