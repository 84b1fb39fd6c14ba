"""huey on SQLite as it comes (WAL, synchronous=FULL): one worker thread."""

import os
import sys
from importlib import import_module

from huey import SqliteHuey

from bench.producer import Producer, main
from bench.record import Marks

queue = SqliteHuey("bench", filename=os.environ["BENCH_URL"].removeprefix("sqlite:///"))
_marks: list[Marks] = []


@queue.task()
def noop(number: int) -> None:
    if not _marks:
        _marks.append(Marks.from_environment())
    _marks[0].begin(number)


class Huey(Producer):
    def send(self, number: int) -> None:
        noop(number)


def consume() -> None:
    queue.create_consumer(workers=1, worker_type="thread").run()


if __name__ == "__main__":
    # Under its own name, not as __main__: a job carries the name of its task's module.
    itself = import_module("bench.peers.huey")
    if sys.argv[1:] == ["work"]:
        itself.consume()
    else:
        main(itself.Huey())
