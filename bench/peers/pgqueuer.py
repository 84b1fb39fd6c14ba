"""pgqueuer on PostgreSQL: asyncpg, uvloop as its own command does where it can, batches of 100."""

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Any

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from bench.producer import Producer, main
from bench.record import Marks

BATCH = 100


async def work() -> None:
    """What `pgq run --batch-size 100 --log-level WARNING` does."""
    marks = Marks.from_environment()
    connection = await asyncpg.connect(os.environ["BENCH_URL"])
    queuer = PgQueuer.from_asyncpg_connection(connection)

    @queuer.entrypoint("noop")
    async def noop(job: Any) -> None:
        marks.begin(int(job.payload))

    await queuer.run(batch_size=BATCH)


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
    if sys.argv[1:] == ["work"]:
        try:
            import uvloop

            uvloop.run(work())
        except ImportError:
            asyncio.run(work())
    else:
        main(Pgqueuer())
