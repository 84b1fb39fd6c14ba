"""A worker and a supervisor inside the program's own process: beside a web application, in a script, in a test."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from lateshift.clock import Clock
from lateshift.config import Settings
from lateshift.errors import StoreError
from lateshift.model.ids import new_member_id
from lateshift.model.member import Program
from lateshift.runtime.aside import aside
from lateshift.runtime.heartbeat import Heartbeat
from lateshift.runtime.log import log
from lateshift.runtime.loop import Part, drive, resign
from lateshift.runtime.patience import patiently, pause
from lateshift.runtime.wire import own_loops
from lateshift.store.contract import MemberView, Store
from lateshift.supervisor.losses import Losses
from lateshift.supervisor.sweep import Sweep
from lateshift.task import Task
from lateshift.worker.executors.contract import Executor, Report
from lateshift.worker.gatekeeper import warn_of_no_key
from lateshift.worker.service import Service, introduce

AFTER_A_FAULT = 1.0  # seconds


class Embedded:
    """Works under one member id after another: one that was declared dead is never used again."""

    def __init__(
        self, store: Store, tasks: Mapping[str, Task[..., Any]], settings: Settings, clock: Clock,
        processes: Callable[[Report], Executor] | None, program: Callable[[], Program] | None,
    ) -> None:  # fmt: skip
        self._store = store
        self._tasks = tasks
        self._settings = settings
        self._clock = clock
        self._processes = processes
        self._program = program
        self._loop = asyncio.get_running_loop()
        self._heartbeat = Heartbeat(store.members, settings.heartbeat, one_machine=store.one_machine)
        self._life_over = asyncio.Event()
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        self._heartbeat.start()
        try:
            while not self._stopping.is_set():
                self._life_over = asyncio.Event()
                try:
                    await self._live()
                except Exception:
                    log.exception("the worker failed; another begins in %s s", AFTER_A_FAULT)
                    await pause(AFTER_A_FAULT, self._stopping)
        finally:
            await aside(self._heartbeat.stop)

    def stop(self) -> None:
        self._stopping.set()
        self._life_over.set()

    async def _live(self) -> None:
        member = new_member_id()
        introduction = introduce(member, "worker", "embedded", self._clock)
        if not await self._join(introduction):
            return
        warn_of_no_key(self._tasks, self._settings)
        service = Service(
            self._store, self._tasks, member, self._settings, self._clock, self._processes, self._program
        )
        over = self._life_over

        def lost() -> None:
            service.lose()
            over.set()

        def told() -> None:
            self._loop.call_soon_threadsafe(lost)

        self._heartbeat.add(member, alive=lambda: True, lost=told, loops=own_loops)
        try:
            await service.run(over)
        finally:
            self._heartbeat.remove(member)

    async def _join(self, introduction: MemberView) -> bool:
        """As soon as the store can be reached; False if told to stop before."""
        while not self._stopping.is_set():
            try:
                join = aside(self._store.members.join, introduction, self._settings.heartbeat)
                await patiently(join, self._stopping)
            except TimeoutError:
                break
            except StoreError as error:
                log.warning("the worker cannot join yet: %s", error)
                await pause(AFTER_A_FAULT, self._stopping)
            else:
                return True
        return False


@asynccontextmanager
async def running(
    store: Store, tasks: Mapping[str, Task[..., Any]], settings: Settings, clock: Clock,
    processes: Callable[[Report], Executor] | None = None, program: Callable[[], Program] | None = None,
    beside: Sequence[Part] = (), losses: Losses | None = None,
) -> AsyncIterator[None]:  # fmt: skip
    """Work and supervise until the block ends, then stop gracefully. `beside`: other parts, turned meanwhile. `losses`: who is told of
    lost workers."""
    embedded = Embedded(store, tasks, settings, clock, processes, program)
    sweep = Sweep(store, new_member_id(), clock, heartbeat=settings.heartbeat, losses=losses)
    ending = asyncio.Event()
    parts = [asyncio.create_task(embedded.run())]
    parts += [asyncio.create_task(drive(part, ending)) for part in (sweep, *beside)]
    try:
        yield
    finally:
        embedded.stop()
        ending.set()
        sweep.wake()
        await asyncio.gather(*parts)
        await resign(sweep, *beside)
