"""Several workers, operators and supervisors at the same breakers at once: nobody waits in a circle, and nobody stays parked."""

import random
import threading
from datetime import timedelta

import psycopg
import pytest

from lateshift.clock import Clock
from lateshift.model.breaker import Breaker
from lateshift.model.gate import Gate
from lateshift.model.job import Lane, Lease, Line, Place, State
from lateshift.model.outcome import Later, Settlement
from lateshift.store.contract import Store, Want
from lateshift.store.open import open_store
from tests.store_contract.driving import DAY, DONE, HOUR, Supervisor, Worker, added, make_job

TASKS = ["a", "b", "c"]
LINES = [Line("x", Lane.GUARDED), Line("y", Lane.GUARDED)]
WORKERS, ROUNDS = 3, 60
FAILED, PROBED = (Later(timedelta(0), counts, b"[]") for counts in (True, False))


def declare(store: Store) -> None:
    breakers = {task: Breaker(failures=2, open_for=timedelta(milliseconds=20)) for task in TASKS}
    store.breakers.declare(breakers, [Gate(task, task) for task in TASKS], tasks=TASKS, by="shop")


def opened(url: str) -> Store:
    store = open_store(url, Clock())
    store.ready()
    return store


def work(url: str, seed: int) -> None:
    store, chance = opened(url), random.Random(seed)
    worker = Worker(store, DAY)
    held: list[Lease] = []
    for _ in range(ROUNDS):
        added(
            store,
            *(
                make_job(
                    place=Place(),
                    task=chance.choice(TASKS),
                    queue=chance.choice("xy"),
                    attempts=1000,
                    time_limit=HOUR,
                )
                for _ in range(3)
            ),
        )
        ends = [
            Settlement(lease, DONE if chance.random() < 0.5 else PROBED if lease.probe else FAILED)
            for lease in held
        ]
        wants = [Want(line, 5, False) for line in chance.sample(LINES, 2)]
        answer = store.jobs.exchange(worker.id, ends, wants)
        held = store.jobs.held(worker.id) if answer.unsure else answer.leases
    store.jobs.exchange(worker.id, [Settlement(lease, DONE) for lease in held], [])
    store.close()


def operate(url: str) -> None:
    store, chance = opened(url), random.Random(9)
    for number in range(ROUNDS):
        task = chance.choice(TASKS)
        store.breakers.open(task, by="ann")
        store.breakers.close(task, by="ann")
        if number % 10 == 0:
            store.breakers.declare({}, [], tasks=["c"], by="shop")
            declare(store)
    store.close()


def supervise(url: str, over: threading.Event) -> None:
    store = opened(url)
    supervisor = Supervisor(store)
    while not over.wait(0.02):
        supervisor.release_waiting()
        supervisor.unblock()
    store.close()


def deadlocks(url: str) -> int:
    with psycopg.connect(url) as connection:
        connection.execute("SELECT pg_stat_clear_snapshot()")
        [(count,)] = connection.execute(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        ).fetchall()
    return int(count)


@pytest.mark.timeout(120)
def test_many_at_the_same_breakers_wait_in_no_circle_and_leave_nobody_parked(store_url: str) -> None:
    store = opened(store_url)
    declare(store)
    before = deadlocks(store_url) if store_url.startswith("postgresql") else 0
    over = threading.Event()
    others = [threading.Thread(target=supervise, args=(store_url, over))]
    busy = [threading.Thread(target=work, args=(store_url, seed)) for seed in range(WORKERS)]
    busy.append(threading.Thread(target=operate, args=(store_url,)))
    for thread in (*others, *busy):
        thread.start()
    for thread in busy:
        thread.join()
    over.set()
    for thread in others:
        thread.join()
    for task in TASKS:
        store.breakers.close(task, by="ann")
    worker = Worker(store, DAY)
    for _ in range(200):
        leases = [lease for line in LINES for lease in worker.lease(100, line)]
        worker.settle_all(leases)
        if not leases:
            break
    assert [view for view in store.reports.unsettled(None, 1000) if view.state is not State.RUNNING] == []
    if store_url.startswith("postgresql"):
        assert deadlocks(store_url) == before
    store.close()
