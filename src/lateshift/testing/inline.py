"""Inline mode: whoever enqueues finds the job done."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from lateshift.app.app import Lateshift
from lateshift.batches.sending import Making
from lateshift.client import Client
from lateshift.handle import Job
from lateshift.model.batch import BatchId
from lateshift.task import Call
from lateshift.telemetry.context import running

R = TypeVar("R")


class InlineClient(Client):
    """Drains after each enqueue. A job's own enqueues are met by the drain that runs it."""

    def __init__(
        self, app: Lateshift, drain: Callable[[], Any], adrain: Callable[[], Coroutine[Any, Any, Any]]
    ) -> None:
        super().__init__(
            lambda: app.store, app.settings.key_window, app.queues, ring=app.ring, targets=app.client.targets
        )
        self.limits = app.client.limits
        self._drain = drain
        self._adrain = adrain
        self._one = threading.Lock()
        self._aone = asyncio.Lock()

    def send(self, call: Call[R], connection: object | None) -> Job[R]:
        job = super().send(call, connection)
        self._run()
        return job

    async def asend(self, call: Call[R], connection: object | None) -> Job[R]:
        job = await super().asend(call, connection)
        await self._arun()
        return job

    def send_many(self, calls: Iterable[Call[Any]]) -> int:
        made = super().send_many(calls)
        self._run()
        return made

    async def asend_many(self, calls: Iterable[Call[Any]]) -> int:
        made = await super().asend_many(calls)
        await self._arun()
        return made

    def send_batch(self, making: Making, calls: Iterable[Call[Any]]) -> BatchId:
        id = super().send_batch(making, calls)
        self._run()
        return id

    async def asend_batch(self, making: Making, calls: Iterable[Call[Any]]) -> BatchId:
        id = await super().asend_batch(making, calls)
        await self._arun()
        return id

    def _run(self) -> None:
        if running.get(None) is None:
            with self._one:
                self._drain()

    async def _arun(self) -> None:
        if running.get(None) is None:
            async with self._aone:
                await self._adrain()


@contextmanager
def sending_by(app: Lateshift, client: Client) -> Iterator[None]:
    """The app and its tasks enqueue by this client for a while."""
    before = app.client
    app.client = client
    for task in app.tasks.values():
        task.sender = client
    try:
        yield
    finally:
        app.client = before
        for task in app.tasks.values():
            task.sender = before
