"""Sealed values, as those who rotate keys find and replace them."""

import pytest
from msgspec.structs import replace

from lateshift.model.attempt_log import AttemptLog, LogLine
from lateshift.model.job import NewJob
from lateshift.store.contract import Store
from lateshift.store.seal_contract import Part, Row
from tests.store_contract.driving import Worker, make_job

SEALED = b'"sealed:1:old:payload:AAAA"'


def sealed() -> NewJob:
    return make_job(payload=SEALED)


def test_only_what_is_sealed_is_given_and_pages_follow_each_other(store: Store) -> None:
    jobs = [sealed() if number % 3 == 0 else make_job() for number in range(10)]
    store.jobs.enqueue(jobs)
    found: list[Row] = []
    after = None
    while page := store.seals.look(Part.JOBS, after, 4):
        found += page
        after = page[-1].key
    assert [row.key[0] for row in found] == sorted(job.id for job in jobs)
    assert {row.key[0] for row in found if row.values[0] == SEALED} == {job.id for job in jobs[::3]}
    assert all(row.values == (None,) * 4 for row in found if row.values[0] != SEALED)


def test_values_are_replaced_where_they_are_still_the_same(store: Store) -> None:
    first, second = sealed(), sealed()
    store.jobs.enqueue([first, second])
    rows = {row.key[0]: row for row in store.seals.look(Part.JOBS, None, 10)}
    changed = replace(rows[second.id], values=(b"something else", None, None, None))
    new = (b"new", None, None, None)
    assert store.seals.renew(Part.JOBS, [(rows[first.id], new), (changed, new)]) == 1
    views = [store.reports.job(each.id) for each in (first, second)]
    assert [view.payload for view in views if view] == [b"new", SEALED]


def test_a_job_that_was_leased_meanwhile_is_replaced_and_settles_all_the_same(
    store: Store, worker: Worker
) -> None:
    store.jobs.enqueue([sealed()])
    [row] = store.seals.look(Part.JOBS, None, 10)
    [lease] = worker.lease()
    assert store.seals.renew(Part.JOBS, [(row, (b"new", None, None, None))]) == 1
    assert worker.settle(lease)
    [settled] = store.seals.look(Part.SETTLED, None, 10)
    assert settled.key == (lease.id,)
    view = store.reports.job(lease.id)
    assert view is not None
    assert (view.payload, view.state.label) == (b"new", "completed")


def test_logs_of_attempts_are_found_by_what_is_in_them(store: Store, worker: Worker) -> None:
    store.jobs.enqueue([sealed(), make_job()])
    leases = worker.lease(2)
    for lease, text in zip(leases, ("sealed:1:old:log:AAAA", "plain"), strict=True):
        line = LogLine(store.clock.now(), "INFO", "x", text)
        store.logs.keep([AttemptLog(job=lease.id, attempt=1, fence=lease.fence, lines=[line], logged=1)])
    rows = store.seals.look(Part.LOGS, None, 10)
    assert len(rows) == 2
    [row] = [row for row in rows if row.values[0] is not None]
    assert store.seals.renew(Part.LOGS, [(row, ((row.values[0] or b"").replace(b"old", b"new"),))]) == 1
    [log] = store.logs.of(row.key[0])
    assert log.lines[0].message == "sealed:1:new:log:AAAA"


@pytest.mark.parametrize("part", Part)
def test_an_empty_store_has_nothing_sealed(store: Store, part: Part) -> None:
    assert store.seals.look(part, None, 10) == []
    assert store.seals.renew(part, []) == 0
