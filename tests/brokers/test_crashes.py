"""A reader dies, by kill -9, between receiving and storing or between storing and acknowledging, again and again: no message
is lost, and none makes two jobs."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Self

import msgspec
import pytest

from lateshift.model.job import JobFilter
from lateshift.store.open import open_store
from tests.brokers.conftest import lend_queue
from tests.brokers.queues import Queue
from tests.crash.scene import PATH, ROOT

EACH = 3  # messages, before each death
PATIENCE = 60.0  # seconds
POINTS = ["trigger.after_read", "trigger.before_commit", "trigger.after_commit"]
OFTEN = int(
    os.environ.get("LATESHIFT_TEST_DEATHS", "100")
)  # on the brokers that are nearest to what they are in production
SOME = max(1, OFTEN // 10)


class Readers:
    """Starts processes that read the queue, one after the other. Use it in a `with` block."""

    def __init__(self, store: str, queue: Queue, log: Path) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LATESHIFT_")}
        environment |= {
            "PYTHONPATH": PATH,
            "LATESHIFT_STORE": store,
            "TEST_QUEUE": json.dumps({"url": queue.url, "name": queue.name, "options": queue.options}),
        }
        self.log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.brokers.reading"], cwd=ROOT, env=environment, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=errors, text=True, bufsize=1,
            )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=PATIENCE)

    def run(self, crash: str = "") -> int:
        """One that reads until nothing comes, or until it dies; gives how it ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{crash}\n")
        return int(self._process.stdout.readline())


def orders(url: str) -> Counter[int]:
    store = open_store(url)
    try:
        jobs = store.reports.jobs(JobFilter(), 100_000)
        return Counter(msgspec.json.decode(job.payload)["order"]["n"] for job in jobs)
    finally:
        store.close()


def die_and_count(store: str, queue: Queue, point: str, deaths: int, log: Path) -> None:
    sent = 0
    with Readers(store, queue, log) as readers:
        for _ in range(deaths):
            for _ in range(EACH):
                queue.send(b'{"n":%d}' % sent, id=f"order-{sent}")
                sent += 1
            assert readers.run(point) == -9, log.read_text()[-3000:]
        end = time.monotonic() + PATIENCE
        while True:  # what a dead reader held comes back after a while, on some brokers
            assert readers.run() == 0, log.read_text()[-3000:]
            made = orders(store)
            if queue.left() == 0 and len(made) == sent:
                break
            assert time.monotonic() < end, (
                f"lost: {sorted(set(range(sent)) - set(made))}, left: {queue.left()}"
            )
    doubled = {number: times for number, times in made.items() if times > 1}
    assert (doubled, sorted(made)) == ({}, list(range(sent)))


@pytest.mark.timeout(900)
@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("kind", ["rabbitmq", "redis"])
def test_none_is_lost_and_none_is_doubled_however_often_the_reader_dies(
    migrated_sqlite_url: str, kind: str, point: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with lend_queue(kind, request) as queue:
        die_and_count(migrated_sqlite_url, queue, point, OFTEN, tmp_path / "log")


@pytest.mark.timeout(300)
@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_nor_on_any_other_broker_and_store(
    postgres_url: str, queue: Queue, point: str, tmp_path: Path
) -> None:
    die_and_count(postgres_url, queue, point, SOME, tmp_path / "log")
