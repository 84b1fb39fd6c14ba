"""dramatiq on Redis: one process of eight threads."""

import os
from collections.abc import Sequence

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.producer import Producer, main
from bench.record import Marks

dramatiq.set_broker(RedisBroker(url=os.environ["BENCH_URL"]))
_marks: list[Marks] = []


@dramatiq.actor(actor_name="noop")
def noop(number: int) -> None:
    if not _marks:
        _marks.append(Marks.from_environment())
    _marks[0].begin(number)


class Dramatiq(Producer):
    def send(self, number: int) -> None:
        noop.send(number)

    async def send_many(self, numbers: Sequence[int]) -> None:
        dramatiq.group([noop.message(number) for number in numbers]).run()


if __name__ == "__main__":
    main(Dramatiq())
