"""Of those who resubmit one job at once on PostgreSQL, whoever comes second waits, and finds it gone: nobody is told that an edit was made
which somebody else then writes over."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from lateshift.clock import ManualClock
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from lateshift.store.postgres import PostgresStore
from tests.store_contract.driving import Worker, make_job, query, see
from tests.store_contract.test_editing import EDIT, SMALL, bury
from tests.store_contract.test_lost_deeds import until_they_wait

UNDONE = """INSERT INTO {step} (run, path, kind, name, state, failures, started_at, undo_state, undo_failures)
 VALUES ({}, '00001', 0, 'do', 2, 0, now(), 3, 1)"""
HOLD = "SELECT run FROM lateshift.step FOR UPDATE"  # who resubmits the run has looked at all jobs by then


@pytest.fixture
def stores(postgres_url: str, clock: ManualClock) -> Iterator[list[Store]]:
    """The same store opened twice, as two processes would."""
    stores = [open_store(postgres_url, clock) for _ in range(2)]
    yield stores
    for store in stores:
        store.close()


def test_an_edit_waits_for_whoever_has_looked_at_the_job_and_finds_it_gone(
    postgres_url: str, stores: list[Store]
) -> None:
    store, other = stores
    assert isinstance(store, PostgresStore)
    run, dead = bury(store, Worker(store), *[make_job(payload=SMALL) for _ in range(2)])
    query(store, UNDONE, run)
    with ThreadPoolExecutor(2) as threads, psycopg.connect(postgres_url) as holder:
        holder.execute(HOLD)
        first = threads.submit(store.jobs.resubmit, [run, dead], by="bob")
        until_they_wait(store, first, 1)
        second = threads.submit(other.jobs.resubmit, [dead], by="ann", edits={dead: EDIT})
        until_they_wait(store, second, 2)
        holder.commit()
        assert (first.result(timeout=30), second.result(timeout=30)) == ([run, dead], [])

    view = see(store, dead)
    assert (view.payload, [line.message for line in view.history]) == (SMALL, ["by bob"])
