"""A worker and a supervisor inside the program's own process: beside a web application, in a script, in a test."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from lateshift.clock import Clock
from lateshift.config import Settings
from lateshift.model.ids import new_member_id
from lateshift.runtime.aside import aside
from lateshift.runtime.heartbeat import Heartbeat
from lateshift.runtime.loop import drive
from lateshift.store.contract import Store
from lateshift.supervisor.sweep import Sweep
from lateshift.task import Task
from lateshift.worker.executors.contract import Executor, Report
from lateshift.worker.service import Service, introduce


class Embedded:
    """Works under one member id after another: one that was declared dead is never used again."""

    def __init__(
        self, store: Store, tasks: Mapping[str, Task[..., Any]], settings: Settings, clock: Clock,
        processes: Callable[[Report], Executor] | None,
    ) -> None:  # fmt: skip
        self._store = store
        self._tasks = tasks
        self._settings = settings
        self._clock = clock
        self._processes = processes
        self._loop = asyncio.get_running_loop()
        self._heartbeat = Heartbeat(store.members, settings.heartbeat)
        self._life_over = asyncio.Event()
        self._stopping = False

    async def run(self) -> None:
        self._heartbeat.start()
        try:
            while not self._stopping:
                self._life_over = asyncio.Event()
                await self._live()
        finally:
            await aside(self._heartbeat.stop)

    def stop(self) -> None:
        self._stopping = True
        self._life_over.set()

    async def _live(self) -> None:
        member = new_member_id()
        introduction = introduce(member, "worker", "embedded", self._clock)
        await aside(self._store.members.join, introduction, self._settings.heartbeat)
        service = Service(self._store, self._tasks, member, self._settings, self._clock, self._processes)
        over = self._life_over

        def lost() -> None:
            service.lose()
            over.set()

        def told() -> None:
            self._loop.call_soon_threadsafe(lost)

        self._heartbeat.add(member, alive=lambda: True, lost=told)
        try:
            await service.run(over)
        finally:
            self._heartbeat.remove(member)


@asynccontextmanager
async def running(
    store: Store, tasks: Mapping[str, Task[..., Any]], settings: Settings, clock: Clock,
    processes: Callable[[Report], Executor] | None = None,
) -> AsyncIterator[None]:  # fmt: skip
    """Work and supervise until the block ends, then stop gracefully."""
    embedded = Embedded(store, tasks, settings, clock, processes)
    sweep = Sweep(store, new_member_id(), clock, heartbeat=settings.heartbeat)
    ending = asyncio.Event()
    parts = [asyncio.create_task(embedded.run()), asyncio.create_task(drive(sweep, ending))]
    try:
        yield
    finally:
        embedded.stop()
        ending.set()
        sweep.wake()
        await asyncio.gather(*parts)
        await aside(sweep.resign)
