"""Single statements without a thread, on a connection that an event loop has for itself. A thread gives the interpreter's lock back four
times for one statement, and waits for it as often while the loop is busy: for what requests of a server wait for, that is most of its time.

Nothing waits for this connection to come, or to come back: while it is not there, and whenever a statement on it fails, whoever asks does it
on a thread, where a store that is away is waited for, and where what may have been committed is done once."""

import asyncio
import os
from contextlib import suppress
from typing import Any, Self, TypeAlias

import psycopg

from lateshift.store.postgres.database import CALL_SECONDS, Database
from lateshift.store.postgres.watchdog import shut_down

AGAIN_SECONDS = 1.0  # after a connection that failed
LEAVE_SECONDS = 5.0  # that what is under way has when the loop is left
READ_SECONDS = 3.0  # that a read has; then it is done on a thread, which has longer

Connection: TypeAlias = psycopg.AsyncConnection[tuple[Any, ...]]
Cursor: TypeAlias = psycopg.AsyncCursor[tuple[Any, ...]]


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
        # What is cut may still be done: whoever repeated it at once would be done with it before.
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS), self._turn:
                pass
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
            if (cursor := await self._executed(query, parameters, READ_SECONDS)) is None:
                return None
            return await cursor.fetchall()

    async def commit(self, query: str, parameters: tuple[Any, ...]) -> bool | None:
        """One statement that is a transaction by itself. None if it was not sent, False if nobody knows what became of it."""
        async with self._turn:
            if self._connection is None:
                self._connect_aside()
                return None
            return await self._executed(query, parameters, CALL_SECONDS) is not None

    async def _executed(self, query: str, parameters: tuple[Any, ...], seconds: float) -> Cursor | None:
        connection = self._connection
        if connection is None:
            self._connect_aside()
            return None
        late = asyncio.get_running_loop().call_later(seconds, shut_down, connection)
        try:
            return await connection.execute(query.encode(), parameters)
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
