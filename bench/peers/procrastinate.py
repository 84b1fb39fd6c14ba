"""procrastinate on PostgreSQL: 30 jobs at once over 20 connections, finished jobs deleted."""

import os
from collections.abc import Sequence

import procrastinate

from bench.producer import Producer, main
from bench.record import Marks

app = procrastinate.App(
    connector=procrastinate.PsycopgConnector(conninfo=os.environ["BENCH_URL"], max_size=20)
)
_marks: list[Marks] = []


@app.task(name="noop")
async def noop(number: int) -> None:
    if not _marks:
        _marks.append(Marks.from_environment())
    _marks[0].begin(number)


class Procrastinate(Producer):
    asynchronous = True

    async def install(self) -> None:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    async def open(self) -> None:
        await app.open_async()

    async def close(self) -> None:
        await app.close_async()

    async def asend(self, number: int) -> None:
        await noop.defer_async(number=number)

    async def send_many(self, numbers: Sequence[int]) -> None:
        await noop.batch_defer_async(*({"number": number} for number in numbers))


if __name__ == "__main__":
    main(Procrastinate())
