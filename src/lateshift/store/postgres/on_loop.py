"""Reads without a thread, on a connection that an event loop has for itself. A thread gives the interpreter's lock back four times for one
statement, and waits for it as often while the loop is busy: for what every request of a server waits for, that is most of its time.

Nothing waits for this connection to come, or to come back: while it is not there, and whenever a read on it fails, whoever asks does it
on a thread, where a store that is away is waited for."""

import asyncio
import os
from typing import Any, Self, TypeAlias

import psycopg

from lateshift.store.postgres.database import Database
from lateshift.store.postgres.watchdog import shut_down

AGAIN_SECONDS = 1.0  # after a connection that failed
READ_SECONDS = 3.0  # that a read has; then it is done on a thread, which has longer

Connection: TypeAlias = psycopg.AsyncConnection[tuple[Any, ...]]


class OnLoop:
    """Of the running loop, while it is entered."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: Connection | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._turn = asyncio.Lock()
        self._left = not _may(database)

    async def __aenter__(self) -> Self:
        self._connect_aside()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._left = True
        if self._connection is not None:
            shut_down(self._connection)  # what is under way on it ends
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait({self._connecting})
        async with self._turn:
            await self._drop()

    async def read(self, query: str, parameters: tuple[Any, ...]) -> list[tuple[Any, ...]] | None:
        """What one statement reads, as it is when that begins. None if it cannot be said now."""
        async with self._turn:
            connection = self._connection
            if connection is None:
                self._connect_aside()
                return None
            loop = asyncio.get_running_loop()
            late = loop.call_later(READ_SECONDS, shut_down, connection)
            try:
                return await (await connection.execute(query.encode(), parameters)).fetchall()
            except Exception:  # whoever does it on a thread hears what it is
                await self._drop()
                return None
            except BaseException:  # cancelled, as a rule: who knows what the next would read as its answer
                await self._drop()
                raise
            finally:
                late.cancel()

    def _connect_aside(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._left and self._connecting is None and loop.time() >= self._not_before:
            self._connecting = loop.create_task(self._connect())
            self._connecting.add_done_callback(self._connected)

    async def _connect(self) -> None:
        self._connection = await self._database.aconnect()

    def _connected(self, connecting: asyncio.Task[None]) -> None:
        self._connecting = None
        if not connecting.cancelled() and connecting.exception() is not None:
            self._pause()

    async def _drop(self) -> None:
        self._pause()
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    def _pause(self) -> None:
        self._not_before = asyncio.get_running_loop().time() + AGAIN_SECONDS


def _may(database: Database) -> bool:
    """Where a service file names the host, libpq resolves its name by itself, and the loop would stand still meanwhile. Behind a pooler in
    transaction mode each read may be another server's."""
    named = psycopg.conninfo.conninfo_to_dict(database.address)
    return not database.pooled and "PGSERVICE" not in os.environ and "service" not in named
