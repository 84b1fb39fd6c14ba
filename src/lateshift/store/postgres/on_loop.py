"""Reads without a thread, on a connection that an event loop has for itself. A thread gives the interpreter's lock back four times for one
statement, and waits for it as often while the loop is busy: for what every request of a server waits for, that is most of its time.

Nothing waits for this connection to come, or to come back: while it is not there, and whenever a read on it fails, whoever asks does it
on a thread, where a store that is away is waited for."""

import asyncio
from contextlib import suppress
from typing import Any, Self

import psycopg

from lateshift.store.postgres.database import Database

AGAIN_SECONDS = 1.0  # after a try to connect that failed


class OnLoop:
    """Of the running loop, while it is entered."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: psycopg.AsyncConnection[tuple[Any, ...]] | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._turn = asyncio.Lock()  # the watchdog knows one call of a connection

    async def __aenter__(self) -> Self:
        self._connect_aside()
        return self

    async def __aexit__(self, *_: object) -> None:
        connecting, self._connecting = self._connecting, None
        if connecting is not None:
            connecting.cancel()
            with suppress(asyncio.CancelledError):
                await connecting
        await self._drop()

    async def read(self, query: str, parameters: tuple[Any, ...]) -> list[tuple[Any, ...]] | None:
        """What one statement reads, as it is when that begins. None if it cannot be said now."""
        async with self._turn:
            connection = self._connection
            if connection is None:
                self._connect_aside()
                return None
            try:
                self._database.watchdog.begin(connection)
                try:
                    return await (await connection.execute(query.encode(), parameters)).fetchall()
                finally:
                    self._database.watchdog.end(connection)
            except psycopg.Error:
                await self._drop()
                return None
            except BaseException:  # cancelled, as a rule: who knows what the next would read as its answer
                await self._drop()
                raise

    def _connect_aside(self) -> None:
        loop = asyncio.get_running_loop()
        if self._connecting is None and loop.time() >= self._not_before:
            self._connecting = loop.create_task(self._connect())

    async def _connect(self) -> None:
        try:
            self._connection = await self._database.aconnect()
        except (psycopg.Error, OSError):
            self._not_before = asyncio.get_running_loop().time() + AGAIN_SECONDS
        finally:
            self._connecting = None

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                await connection.close()
