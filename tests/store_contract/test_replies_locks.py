"""Who sends on what jobs have told, and who writes newer progress, take rows of the outbox in one order on PostgreSQL: no deadlocks."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from lateshift.clock import ManualClock
from lateshift.model.job import Lease, Note, Progress
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from lateshift.store.postgres.settling import SAVE
from tests.store_contract.driving import GUARDED, Worker, added, query
from tests.store_contract.test_replies import Courier, replying

HOLD = "SELECT number FROM lateshift.outbox WHERE job = %s AND kind = 2 FOR UPDATE"
WAITS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.fixture
def store(postgres_url: str, clock: ManualClock) -> Iterator[Store]:
    store = open_store(postgres_url, clock)
    yield store
    store.close()


@pytest.fixture
def courier(store: Store) -> Courier:
    return Courier(store)


@pytest.fixture
def leases(store: Store, courier: Courier) -> list[Lease]:
    """Two jobs with a reply, by their ids. The progress of the second was told first."""
    added(store, replying(on=("progress",)), replying(on=("progress",)))
    leases = sorted(Worker(store).lease(2, GUARDED), key=lambda lease: lease.id)
    assert courier.read() == []
    for lease in reversed(leases):
        store.jobs.save([Note(lease, Progress(1))])
    return leases


def test_a_courier_and_a_writer_of_progress_never_wait_for_each_other(
    postgres_url: str, store: Store, courier: Courier, leases: list[Lease]
) -> None:
    with psycopg.connect(postgres_url) as writer, ThreadPoolExecutor(1) as thread:
        writer.execute("SET lock_timeout = '300ms'")  # a deadlock is noticed after a second: this comes first
        _progress(writer, leases[0])
        sending = thread.submit(courier.forward)
        _waits(store, sending)
        _progress(writer, leases[1])
        writer.commit()
        assert sending.result(timeout=30) == 0

    assert [event.progress for event in courier.read()] == [Progress(2), Progress(2)]


def test_progress_of_several_jobs_is_written_in_the_order_in_which_a_courier_takes_it(
    postgres_url: str, store: Store, leases: list[Lease]
) -> None:
    first, second = leases
    with psycopg.connect(postgres_url) as courier, ThreadPoolExecutor(1) as thread:
        courier.execute("SET lock_timeout = '300ms'")
        courier.execute(HOLD, (first.id,))
        saving = thread.submit(store.jobs.save, [Note(second, Progress(2)), Note(first, Progress(2))])
        _waits(store, saving)
        courier.execute(HOLD, (second.id,))
        courier.commit()
        assert saving.result(timeout=30) == []


def _progress(writer: psycopg.Connection[Any], lease: Lease) -> None:
    said = {"checkpoint": None, "same": None, "begun": b'{"done":2,"at":', "ago": "0 s"}
    mine = {"id": lease.id, "fence": lease.fence, "skew": "0 s"}
    assert writer.execute(SAVE, said | mine).fetchall()


def _waits(store: Store, working: "Future[Any]") -> None:
    """Until it waits for a lock, in this database."""
    while not query(store, WAITS):
        assert not working.done()
