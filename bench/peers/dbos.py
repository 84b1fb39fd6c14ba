"""DBOS on SQLite and, for workflows, on PostgreSQL: one queue, polled every 50 ms."""

import os
import sys
import time

from dbos import DBOS, DBOSClient

from bench.producer import Producer, main
from bench.record import Marks

POLL_SECONDS = 0.05

_marks: list[Marks] = []


def noop_begins(number: int) -> None:
    if not _marks:
        _marks.append(Marks.from_environment())
    _marks[0].begin(number)


@DBOS.workflow(name="noop")
def noop(number: int) -> None:
    noop_begins(number)


@DBOS.step()
async def step(number: int) -> int:
    return number


@DBOS.workflow(name="ten steps")
async def ten_steps(number: int) -> None:
    noop_begins(number)
    for each in range(10):
        await step(each)


def url() -> str:
    return os.environ["BENCH_URL"].replace("postgresql://", "postgresql+psycopg://")


def launch() -> None:
    DBOS(
        config={
            "name": "bench", "system_database_url": url(), "log_level": "WARNING",
            "application_version": "1", "run_admin_server": False,
        }
    )  # fmt: skip
    DBOS.launch()
    DBOS.register_queue("bench", polling_interval_sec=POLL_SECONDS)


class Dbos(Producer):
    async def open(self) -> None:
        self._client = DBOSClient(system_database_url=url())

    async def close(self) -> None:
        self._client.destroy()

    async def fill(self, jobs: int, kind: str) -> None:
        if kind == "workflows":
            for number in range(jobs):
                self._client.enqueue({"workflow_name": "ten steps", "queue_name": "bench"}, number)
        else:
            await super().fill(jobs, kind)

    def send(self, number: int) -> None:
        self._client.enqueue({"workflow_name": "noop", "queue_name": "bench"}, number)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["install"]:  # it refuses to register a queue on an event loop
            launch()
            DBOS.destroy()
            print("{}")
        case ["work"]:
            launch()
            while True:
                time.sleep(60)
        case _:
            main(Dbos())
