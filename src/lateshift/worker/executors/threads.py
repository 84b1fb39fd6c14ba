"""Sync tasks, on threads. Idle threads take from one line of attempts and put results into one basket, so that quick
jobs cost no hand-over each: the loop is woken once for all that has ended since it last looked."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any

from lateshift.errors import Cancel, LeaseLost
from lateshift.model.outcome import Called, Ended, Failed, Killed, Stopped
from lateshift.runtime.log import log
from lateshift.telemetry.context import running
from lateshift.worker.attempt import Attempt
from lateshift.worker.executors.contract import Report

Start = Callable[[Callable[[], None], str], None]


class Threads:
    """See contract.Executor. Threads are made when they are first needed, and are daemons: a body that cannot be
    stopped does not keep a stopping worker alive."""

    def __init__(
        self, slots: int, report: Report, now: Callable[[], float], start: Start | None = None
    ) -> None:
        """`start` lets a thread run what it is given until that returns; without it, a new daemon does."""
        self._slots = slots
        self._start = start or _as_daemon
        self._report = report
        self._now = now
        self._loop = asyncio.get_running_loop()
        self._waiting: SimpleQueue[Attempt | None] = SimpleQueue()
        self._threads = 0
        self._stuck = 0  # threads whose body runs on after its complete-by
        self._done: deque[tuple[Attempt, Any, Ended | None]] = deque()
        self._told = False
        self._closed = False

    def submit(self, attempts: list[Attempt]) -> None:
        for attempt in attempts:
            self._waiting.put(attempt)
        for _ in range(min(len(attempts), self._slots - self._threads)):
            self._start_thread()

    def cancel(self, attempt: Attempt) -> None:
        """A thread cannot be stopped from outside: the body sees `should_stop`, or progress() and checkpoint() raise."""

    def overdue(self, attempt: Attempt) -> None:
        """The job goes on without it. So may the body, which cannot be killed; another thread takes its place."""
        if attempt.ended:
            return
        self._report.ended(
            attempt, Killed("complete_by", "it ran past its complete-by on a thread, and goes on")
        )
        attempt.lost = True  # its progress and checkpoints are refused from now on, and it should stop
        self._stuck += 1
        if self._stuck <= self._slots:
            self._start_thread()
        else:
            log.error(
                "%d threads run on after their complete-by: this worker has no room for more", self._stuck
            )

    def give_back(self, older_than: float | None) -> list[Attempt]:
        given: list[Attempt] = []
        for _ in range(self._waiting.qsize()):
            try:
                attempt = self._waiting.get_nowait()
            except Empty:  # the threads were quicker
                break
            if attempt is not None and (older_than is None or attempt.received < older_than):
                given.append(attempt)
            else:
                self._waiting.put(attempt)
        return given

    async def close(self) -> None:
        self._closed = True
        for _ in range(self._threads):
            self._waiting.put(None)

    def _start_thread(self) -> None:
        self._threads += 1
        self._start(self._work, f"lateshift-job-{self._threads}")

    def _work(self) -> None:
        while (attempt := self._waiting.get()) is not None:
            result, how = copy_context().run(self._run, attempt)
            self._done.append((attempt, result, how))
            if not self._told and not self._closed:
                self._told = True
                with suppress(RuntimeError):  # the loop has closed
                    self._loop.call_soon_threadsafe(self._collect)

    def _run(self, attempt: Attempt) -> tuple[Any, Ended | None]:
        running.set(attempt)
        if not attempt.begin(self._now()):
            return None, Stopped()
        if attempt.span is not None:
            attempt.span.enter()
        try:
            return attempt.task.function(*attempt.args, **attempt.kwargs), None
        except Cancel as error:
            by = attempt.cancelled_by
            return None, Called(by) if by is not None else Failed(error)
        except LeaseLost as error:
            return None, Stopped() if attempt.lost else Failed(error)
        except BaseException as error:
            return None, Failed(error)
        finally:
            attempt.finished = self._now()  # the loop hears of it when it comes to that

    def _collect(self) -> None:
        self._told = False  # before the look: what comes after it tells again
        while self._done:
            attempt, result, how = self._done.popleft()
            if attempt.ended:  # its complete-by had passed, and it was reported then: one thread too many now
                if attempt.lost:
                    self._stuck -= 1
                    self._threads -= 1
                    self._waiting.put(None)
                continue
            if how is None:
                self._report.returned(attempt, result)
            else:
                self._report.ended(attempt, how)


def _as_daemon(work: Callable[[], None], name: str) -> None:
    threading.Thread(target=work, name=name, daemon=True).start()
