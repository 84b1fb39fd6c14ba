"""Rows 30, 31 and 33 of the catalogue: PostgreSQL goes away under load, and answers are lost."""

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.checker import COMPLETED, READY
from tests.crash.conftest import played
from tests.crash.proxy import Proxy
from tests.crash.scene import Scene, until
from tests.postgres_server import PostgresServer

INSERT = "INSERT INTO lateshift.job "
SETTLE = "INSERT INTO lateshift.settled"
LEASE = "UPDATE lateshift.job SET state = 2"


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """One that may be killed."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def own(tmp_path: Path, server: PostgresServer) -> Iterator[Scene]:
    scene = Scene(tmp_path, server.create_database("jobs"))
    yield from played(scene)


class Load:
    """Enqueues on a thread, one after the other, until it is told to stop."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(0.005):
            self._scene.send("quick")
            self._scene.send("slow_sync", 0.01)


@pytest.mark.parametrize("how", ["fast", "immediate", "kill"])
def test_postgres_restarts_under_load_and_work_goes_on_within_five_seconds(
    own: Scene, server: PostgresServer, how: str
) -> None:
    """Rows 30 and 31. Nothing runs twice either: no lease was lost, and settlements were repeated, not made anew."""
    host = own.host(2)
    workers = set(host.workers())
    with Load(own):
        for _ in range(2):
            started = len(own.lines("start"))
            until(lambda: len(own.lines("start")) > started + 20, "there is load")  # noqa: B023
            if how == "kill":
                server.kill()
                server.start()
            else:
                server.restart("fast" if how == "fast" else "immediate")
            back = time.time()
            until(lambda: own.lines("start")[-1].at > back, "work goes on")  # noqa: B023
            assert own.lines("start")[-1].at - back <= 5.0
    own.until_settled()
    assert not host.ended
    assert set(host.workers()) == workers
    assert {row.state for row in own.rows().values()} == {COMPLETED}
    counts = own.check()
    assert counts.told["accepted"] == counts.told["enqueues attempted"]


@pytest.fixture
def postgres(tmp_path: Path, postgres_url: str) -> Iterator[Scene]:
    scene = Scene(tmp_path, postgres_url)
    yield from played(scene)


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    with Proxy(postgres_url) as proxy:
        yield proxy


@pytest.mark.parametrize("key", [None, "order-7"])
def test_an_enqueue_whose_answer_was_lost_has_made_one_job(
    postgres: Scene, proxy: Proxy, key: str | None
) -> None:
    """Row 33. The worker may have run the job before the enqueue is repeated."""
    postgres.host()
    lost = proxy.lose_answer(INSERT)
    assert postgres.caller(key=key, url=proxy.url).wait() == 0
    assert lost.done.wait(10)
    postgres.until_settled()
    assert len(postgres.rows()) == 1
    counts = postgres.check()
    assert (counts.told["accepted"], counts.told["executions"]) == (1, 1)


def test_a_settlement_whose_answer_was_lost_is_recognised_when_it_is_repeated(
    postgres: Scene, proxy: Proxy
) -> None:
    """Row 33."""
    host = postgres.host(url=proxy.url)
    lost = proxy.lose_answer(SETTLE)
    jobs = postgres.send("slow", 0.2, count=5)
    postgres.until_settled()
    assert lost.done.wait(10)
    after = postgres.send("quick", count=5)
    postgres.until_settled()
    rows = postgres.rows()
    assert {(rows[job].state, rows[job].fence) for job in jobs + after} == {(COMPLETED, 1)}
    assert not host.says("came too late")
    postgres.check()


def test_leases_whose_answer_was_lost_are_found_and_run(postgres: Scene, proxy: Proxy) -> None:
    """Row 33. They are this worker's own, and it lives: nobody else will ever take them."""
    jobs = postgres.send("quick", count=5)
    lost = proxy.lose_answer(LEASE)
    postgres.host(url=proxy.url)
    postgres.until_settled(seconds=10)
    assert lost.done.wait(10)
    rows = postgres.rows()
    assert {(rows[job].state, rows[job].attempt) for job in jobs} == {(COMPLETED, 1)}
    postgres.check()


def test_a_settlement_that_also_leased_loses_its_answer_and_neither_half_is_forgotten(
    postgres: Scene, proxy: Proxy
) -> None:
    """Row 33, for the exchange that does both in one commit."""
    postgres.host(url=proxy.url)
    first = postgres.send("slow", 0.3)
    postgres.until_started(*first)
    lost = proxy.lose_answer(SETTLE)
    jobs = [job for _ in range(20) for job in postgres.send("slow", 0.05)]
    postgres.until_settled(seconds=15)
    assert lost.done.wait(10)
    assert {postgres.rows()[job].state for job in first + jobs} == {COMPLETED}
    postgres.check()


def test_leases_that_are_answered_after_the_worker_was_told_to_stop_go_back_uncounted(
    postgres: Scene, proxy: Proxy
) -> None:
    """Row 17, the race inside one process: the claim was asked for before, the answer comes after."""
    held = proxy.hold_answer(LEASE)
    host = postgres.host(url=proxy.url)
    jobs = postgres.send("slow", 30.0, count=3)
    assert held.done.wait(30)
    host.send(signal.SIGTERM)
    until(lambda: host.says("stopping: jobs that run (0)"), "its worker stops")
    held.let_go.set()
    assert host.wait() == 0
    rows = postgres.rows()
    assert {(rows[job].state, rows[job].attempt, rows[job].losses) for job in jobs} == {(READY, 0, 0)}
    assert not postgres.lines("start")
