"""One child process, as its worker sees it: started, spoken to, killed, buried. What it is to do, and what its end
means, is decided in `processes`."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress

from lateshift.model.outcome import Ended
from lateshift.worker.attempt import Attempt
from lateshift.worker.executors.pipe import Answer, Order, Told, framed, read_answer

CHILD = "lateshift.worker.executors.child"
NOTHING_TOLD = Told()
BURIAL = 0.005  # seconds between looks whether a process that has closed its pipe is dead


class Process:
    """Has a process group of its own, so that a kill also ends what the body has started. Raises OSError where none
    can be started. Started from the loop's thread: on Linux it dies with that thread."""

    def __init__(self, program: str, member: str = "") -> None:
        self.attempt: Attempt | None = None
        self.ready = False
        self.trouble: str | None = None  # why it could not start
        self.verdict: Ended | None = None  # how its attempt ended, if we kill it
        self.timer: asyncio.TimerHandle | None = None  # to kill it
        self.life: asyncio.Task[None] | None = None
        self.saving: asyncio.Task[None] | None = None
        self._told = NOTHING_TOLD
        self._writer: asyncio.StreamWriter | None = None
        self._socket, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", CHILD, program, str(theirs.fileno()), str(os.getpid()), member],
                stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], process_group=0,
            )  # fmt: skip
        except BaseException:
            self._socket.close()
            raise
        finally:
            theirs.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    async def answers(self) -> AsyncIterator[Answer]:
        """What it says, until it closes the pipe: in general by its death."""
        reader, self._writer = await asyncio.open_unix_connection(sock=self._socket)
        while (answer := await read_answer(reader)) is not None:
            yield answer

    def send(self, order: Order) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(framed(order))

    def tell(self) -> None:
        """What its attempt should know, and does not yet."""
        if self.attempt is not None:
            told = Told(self.attempt.cancelled_by, self.attempt.lost, self.attempt.stopping)
            if told != self._told:
                self._told = told
                self.send(told)

    def release(self) -> None:
        """Its attempt has ended, or is taken from it."""
        self.attempt = None
        self._told = NOTHING_TOLD
        self.unset_timer()

    def set_timer(self, call: asyncio.TimerHandle) -> None:
        """The sooner of two stays."""
        if self.timer is not None and self.timer.when() <= call.when():
            call.cancel()
        else:
            self.unset_timer()
            self.timer = call

    def unset_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def kill(self) -> None:
        if self._process.returncode is None:  # not reaped: the number is still its own
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def bury(self) -> int:
        """After the last of its answers. Gives its exit status, negative for a signal."""
        self.unset_timer()
        if self._writer is not None:
            self._writer.transport.abort()
        else:
            self._socket.close()
        # Its end may be under way, and keeps its status. The rest of its group, and a child that only closed the
        # pipe, end by this.
        self.kill()
        while (status := self._process.poll()) is None:  # noqa: ASYNC110 - nobody sets an event when it is dead
            await asyncio.sleep(BURIAL)
        return status


def in_words(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:  # a real-time signal
        return f"died with signal {-status}"
    return f"died with signal {-status} ({name})"
