"""DBOS on SQLite: one queue, polled every 50 ms."""

import os
import sys
import time

from dbos import DBOS, DBOSClient

from bench.producer import Producer, main
from bench.record import Marks

POLL_SECONDS = 0.05

_marks: list[Marks] = []


@DBOS.workflow(name="noop")
def noop(number: int) -> None:
    if not _marks:
        _marks.append(Marks.from_environment())
    _marks[0].begin(number)


def launch() -> None:
    DBOS(
        config={
            "name": "bench", "system_database_url": os.environ["BENCH_URL"], "log_level": "WARNING",
            "application_version": "1", "run_admin_server": False,
        }
    )  # fmt: skip
    DBOS.launch()
    DBOS.register_queue("bench", polling_interval_sec=POLL_SECONDS)


class Dbos(Producer):
    async def open(self) -> None:
        self._client = DBOSClient(system_database_url=os.environ["BENCH_URL"])

    async def close(self) -> None:
        self._client.destroy()

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
