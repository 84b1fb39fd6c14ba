"""pgqueuer on PostgreSQL: asyncpg, batches of 100."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from bench.producer import Producer, main
from bench.record import Marks


@asynccontextmanager
async def factory() -> AsyncIterator[Any]:
    """What `pgq run bench.peers.pgqueuer:factory` calls."""
    marks = Marks.from_environment()
    connection = await asyncpg.connect(os.environ["BENCH_URL"])
    queuer = PgQueuer.from_asyncpg_connection(connection)

    @queuer.entrypoint("noop")
    async def noop(job: Any) -> None:
        marks.begin(int(job.payload))

    yield queuer


class Pgqueuer(Producer):
    asynchronous = True

    async def install(self) -> None:
        await self.open()
        await self._queries.install()
        await self.close()

    async def open(self) -> None:
        self._connection = await asyncpg.connect(os.environ["BENCH_URL"])
        self._queries = Queries(AsyncpgDriver(self._connection))

    async def close(self) -> None:
        await self._connection.close()

    async def asend(self, number: int) -> None:
        await self._queries.enqueue("noop", str(number).encode())

    async def send_many(self, numbers: Sequence[int]) -> None:
        payloads = [str(number).encode() for number in numbers]
        await self._queries.enqueue(["noop"] * len(payloads), payloads, [0] * len(payloads))


if __name__ == "__main__":
    main(Pgqueuer())
