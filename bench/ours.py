"""Lateshift's producer: the public API, as a program would call it."""

from collections.abc import Sequence

from bench.producer import Producer, main
from bench.program import app, noop, noop_on_a_thread


class Ours(Producer):
    async def install(self) -> None:
        app.store.ready()

    async def close(self) -> None:
        app.close()

    def send(self, number: int) -> None:
        noop.enqueue(number)

    async def asend(self, number: int) -> None:
        await noop.aenqueue(number)

    async def send_many(self, numbers: Sequence[int]) -> None:
        app.enqueue_many(noop.call(number) for number in numbers)

    async def fill(self, jobs: int, kind: str) -> None:
        if kind == "threads":
            app.enqueue_many(noop_on_a_thread.call(number) for number in range(jobs))
        else:
            app.enqueue_many(noop.call(number) for number in range(jobs))


if __name__ == "__main__":
    main(Ours())
