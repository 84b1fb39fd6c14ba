"""A worker's whole life in one process: join, work, stop gracefully, leave."""

import asyncio
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from lateshift.clock import Clock
from lateshift.config import Settings
from lateshift.errors import StoreError
from lateshift.model.ids import MemberId
from lateshift.model.job import Lane, Line
from lateshift.model.member import Program
from lateshift.model.outcome import Stopped
from lateshift.runtime.aside import aside
from lateshift.runtime.log import log
from lateshift.runtime.loop import Part, drive
from lateshift.store.contract import MemberView, Store
from lateshift.task import Task
from lateshift.worker.control import Control
from lateshift.worker.executors.contract import Executor, Report
from lateshift.worker.introduction import Introduction
from lateshift.worker.worker import Worker

LAST_WORDS = timedelta(seconds=5)  # to interrupt what still runs, and to tell the store


def introduce(member: MemberId, kind: str, name: str, clock: Clock) -> MemberView:
    """This process, as a member."""
    now = clock.now()
    return MemberView(
        id=member, name=name, kind=kind, host=platform.node(), pid=os.getpid(), started_at=now, expires_at=now,
        dead=False, stats={},
    )  # fmt: skip


class Service:
    """Joined by whoever beats for it; `run` returns when it has stopped."""

    def __init__(
        self, store: Store, tasks: Mapping[str, Task[..., Any]], member: MemberId, settings: Settings, clock: Clock,
        processes: Callable[[Report], Executor] | None = None, program: Callable[[], Program] | None = None,
        beside: Sequence[Part] = (),
    ) -> None:  # fmt: skip
        """`beside`: other parts, turned while it works."""
        self._store = store
        self._beside = beside
        self._settings = settings
        self._clock = clock
        self.worker = Worker(store, tasks, member, settings, clock)
        if processes is not None:
            self.worker.use(Lane.PROCESS, processes(self.worker))
        introduction = Introduction(store.members, tasks, settings, program) if program else None
        self._control = Control(self.worker, store, clock, introduction)
        self._loop = asyncio.get_running_loop()

    async def run(self, stopping: asyncio.Event) -> None:
        ending = asyncio.Event()
        unlisten = await aside(self._store.wakes.listen, self._heard)
        parts: list[Part] = [self.worker, self._control, *self._beside]
        loops = [asyncio.create_task(drive(part, ending)) for part in parts]
        try:
            await stopping.wait()
            await self._stop()
        finally:
            ending.set()
            self.worker.wake()
            await asyncio.gather(*loops)
            await aside(unlisten)
            await self.worker.close()
        with suppress(StoreError):
            await self._control.tell()
            await aside(self._store.members.leave, [self.worker.member])

    def lose(self) -> None:
        """Our leases are not ours any more: stop every body; nothing is settled. Called on the loop."""
        log.error("this worker was declared dead: it stops what it runs")
        for attempt in list(self.worker.held):
            attempt.lost = True
            self.worker.cancel(attempt)

    def _heard(self, line: Line) -> None:
        with suppress(RuntimeError):  # the loop has closed
            self._loop.call_soon_threadsafe(self.worker.heard, line)

    async def _stop(self) -> None:
        """No new leases; what has not begun goes back at once; what runs gets the stop time, then goes back too."""
        worker = self.worker
        worker.stopping = True
        worker.hand_back_waiting()
        for attempt in worker.held:
            attempt.stopping = True
        log.info(
            "stopping: jobs that run (%d) have %g s",
            len(worker.held),
            self._settings.stop_time.total_seconds(),
        )
        await self._until(lambda: not worker.held, self._settings.stop_time)
        for attempt in list(worker.held):
            worker.cancel(attempt)
        await self._until(lambda: not worker.held, timedelta(seconds=1) if worker.held else timedelta(0))
        for attempt in list(
            worker.held
        ):  # threads that do not listen, processes: theirs goes back all the same
            worker.ended(attempt, Stopped())
        await self._until(lambda: worker.quiet, LAST_WORDS)

    async def _until(self, done: Callable[[], bool], limit: timedelta) -> None:
        end = self._clock.monotonic() + limit.total_seconds()
        while not done() and self._clock.monotonic() < end:
            self.worker.wake()
            await asyncio.sleep(0.01)
