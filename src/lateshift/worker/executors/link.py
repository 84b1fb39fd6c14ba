"""The child's end of the pipe: two threads beside the body, one that hears what the worker says, one that passes on
progress, at most ten times a second however often the body reports."""

import asyncio
import os
import signal
import socket
import threading
import time
from contextlib import suppress
from queue import SimpleQueue
from typing import NoReturn

from lateshift.clock import SYSTEM
from lateshift.errors import StoreUnavailable
from lateshift.model.job import Lease, Progress
from lateshift.runtime.log import log
from lateshift.telemetry.attempt_log import Log
from lateshift.worker.executors.pipe import Answer, Logged, Run, Said, Save, Saved, Told, framed, read_order

PROGRESS_EVERY = 0.1  # seconds
STACK = 256 * 1024  # of each of the two threads: it counts as reserved memory


class ChildAttempt:
    """The attempt that runs in this process. See current.Running."""

    def __init__(self, order: Run, desk: "Link") -> None:
        self.lease = order.lease
        self.sealed = order.sealed
        self.desk = desk
        self.deadline = None if order.time_left is None else desk.now() + order.time_left
        self.checkpoint = order.lease.checkpoint
        self.session_state: bytes | None = None
        self.cancelled_by: str | None = None
        self.lost = False
        self.stopping = False
        self._progress: Progress | None = None
        self.told: Progress | None = None  # of its progress, to the worker
        self.log: Log | None = Log(desk.has_news)

    @property
    def progress(self) -> Progress | None:
        return self._progress

    @progress.setter
    def progress(self, progress: Progress | None) -> None:
        self._progress = progress
        self.desk.has_news()


class Link:
    """To the worker. See current.Desk."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._attempts: SimpleQueue[ChildAttempt] = SimpleQueue()
        self._saved: SimpleQueue[Saved] = SimpleQueue()
        self._attempt: ChildAttempt | None = None
        self._running: ChildAttempt | None = None
        self._sending = threading.Lock()
        self._asking = threading.Lock()
        self._news = threading.Event()

    def open(self) -> None:
        usual = threading.stack_size(STACK)
        for target in (self._hear, self._tell):
            threading.Thread(target=target, name=f"lateshift{target.__name__}", daemon=True).start()
        threading.stack_size(usual)

    def next_attempt(self) -> ChildAttempt:
        attempt = self._attempts.get()
        self._running = attempt
        return attempt

    def send(self, answer: Answer) -> None:
        data = framed(answer)
        with self._sending:
            self._connection.sendall(data)

    def end(self, answer: Answer) -> None:
        """The attempt's last word: nothing is said of its progress after it."""
        data = framed(answer)
        with self._sending:
            if self._running is not None:
                data = _news_of(self._running) + _last_words(self._running) + data
            self._running = None
            self._connection.sendall(data)

    def has_news(self) -> None:
        if not self._news.is_set():
            self._news.set()

    def save_checkpoint(self, lease: Lease, state: bytes) -> bool:
        with self._asking:
            self.send(Save(state))
            answer = self._saved.get()
        if answer.trouble is not None:
            raise StoreUnavailable(answer.trouble)
        return answer.kept

    async def asave_checkpoint(self, lease: Lease, state: bytes) -> bool:
        return await asyncio.to_thread(self.save_checkpoint, lease, state)

    def now(self) -> float:
        return SYSTEM.monotonic()

    def _hear(self) -> None:
        try:
            while (order := read_order(self._connection)) is not None:
                match order:
                    case Run():
                        self._attempt = ChildAttempt(order, self)
                        self._attempts.put(self._attempt)
                    case Told(cancelled_by, lost, stopping):
                        if (attempt := self._attempt) is not None:
                            attempt.cancelled_by, attempt.lost, attempt.stopping = (
                                cancelled_by,
                                lost,
                                stopping,
                            )
                    case Saved():
                        self._saved.put(order)
        finally:
            _die()

    def _tell(self) -> None:
        while self._news.wait():
            self._news.clear()  # before the look: what comes after it is news again
            with self._sending:
                attempt = self._running
                if attempt is not None:
                    try:
                        self._connection.sendall(_news_of(attempt))
                        self._connection.sendall(_last_words(attempt))
                    except OSError:
                        return  # the worker is gone, and so will this process be
            time.sleep(PROGRESS_EVERY)


def _news_of(attempt: ChildAttempt) -> bytes:
    """What its body has logged since the last time."""
    lines, dropped = attempt.log.take() if attempt.log is not None else ([], 0)
    return framed(Logged(lines, dropped)) if lines else b""


def _last_words(attempt: ChildAttempt) -> bytes:
    """How far it says it is, if it has not been told so."""
    progress = attempt.progress
    if progress is None or progress is attempt.told:
        return b""
    attempt.told = progress
    try:
        return framed(Said(progress))
    except Exception as error:
        log.warning("progress of the job %s cannot be shown: %s", attempt.lease.id, error)
        return b""


def _die() -> NoReturn:
    """The worker is gone: end at once, with all that the body has started."""
    with suppress(OSError):
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)
