"""Between a worker process and its host: when each loop of the worker last turned, on the clock that both have. The host tells it on with its
heartbeats, which costs no write of its own, and knows also of a worker whose event loop a body blocks: that one could not tell."""

import socket
from contextlib import suppress
from datetime import timedelta

import msgspec

from lateshift.clock import SYSTEM
from lateshift.model.member import Loops
from lateshift.telemetry.liveness import ages_of, turns

EVERY = timedelta(seconds=1)
LOOPS_TOLD = 20  # of one process
_KEPT = 65_536  # bytes of what has not been read to its end

_decode = msgspec.json.Decoder(Loops).decode


def loops_of(told: Loops, now: float | None = None) -> Loops:
    """How old each is now, of when it last turned."""
    return {it.loop: (round(it.age, 3), round(it.interval, 3)) for it in ages_of(told, now)[:LOOPS_TOLD]}


def own_loops() -> Loops:
    """Of this process."""
    return loops_of(turns())


class Telling:
    """A part of a worker process. Whoever does not listen is not waited for."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    async def turn(self) -> timedelta:
        with suppress(OSError):
            self._end.send(msgspec.json.encode(turns()) + b"\n", socket.MSG_DONTWAIT)
        return EVERY


class Hearing:
    """The host's end, read where the heartbeat is: what comes in between waits in the system, where the newest is as good as all."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._end = end
        self._rest = b""
        self._told: Loops = {}

    def loops(self) -> Loops:
        """As they are now; none, as long as the worker has told of none."""
        with suppress(OSError):  # nothing more, or closed
            while part := self._end.recv(_KEPT):
                self._rest = (self._rest + part)[-2 * _KEPT :]
        *lines, self._rest = self._rest.split(b"\n")
        for line in reversed(lines):
            with suppress(msgspec.MsgspecError):  # cut short by a full pipe
                self._told = _decode(line)
                break
        return loops_of(self._told, SYSTEM.monotonic())
