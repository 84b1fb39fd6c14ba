"""Who started a job: the audit says so in the job's own transaction, once, for 30 days; code that has the store is not named."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from lateshift.clock import ManualClock
from lateshift.errors import KeyConflict
from lateshift.model.ids import new_job_id
from lateshift.model.job import Key, NewJob, Place
from lateshift.store.access_contract import AUDIT_TEXT_LIMIT
from lateshift.store.contract import Store
from lateshift.store.taking import STARTS_KEPT
from tests.store_contract.driving import HOUR, Supervisor, added, make_job, see


def first(job: NewJob) -> NewJob:
    """As callers send it: its id was never sent before."""
    return structs.replace(job, first=True)


KINDS: dict[str, Callable[[], NewJob]] = {
    "plain": lambda: first(make_job(by="ann")),
    "sent again": lambda: make_job(by="ann"),
    "traced": lambda: structs.replace(first(make_job(by="ann")), trace="00-1-2-01"),
    "later": lambda: first(make_job(by="ann", delay=HOUR)),
    "tagged": lambda: first(make_job(by="ann", tags=("eu",))),
    "guarded": lambda: first(make_job(by="ann", exclusive="till")),
    "in a session": lambda: first(make_job(by="ann", place=Place(session="user:7"))),
    "with a key": lambda: first(make_job(by="ann", key=Key("k", b"d" * 16, HOUR))),
    "of another job": lambda: first(make_job(by="ann", parent=new_job_id())),
}


def told(store: Store) -> list[tuple[str, str, str]]:
    return [(row.action, row.subject, row.actor) for row in store.audit.list(limit=100)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_audit_says_who_started_a_job(store: Store, kind: str) -> None:
    [id] = added(store, KINDS[kind]())

    assert told(store) == [("start", str(id), "ann")]
    assert see(store, id).id == id


def test_of_jobs_that_are_sent_together_each_has_its_line(store: Store) -> None:
    jobs = [first(make_job(by=f"token {n % 2}")) for n in range(5)]
    spec = jobs[0].spec
    added(store, *(structs.replace(job, spec=spec) for job in jobs))

    assert sorted(told(store)) == sorted(("start", str(job.id), job.by) for job in jobs)
    assert all(see(store, job.id) for job in jobs)


def test_of_those_that_code_sends_along_nothing_is_said(store: Store) -> None:
    spec = make_job().spec
    mine, other = (NewJob(new_job_id(), spec, b"[]", None, True, by=by) for by in ("ann", None))
    added(store, mine, other)
    added(store, make_job())

    assert told(store) == [("start", str(mine.id), "ann")]
    assert see(store, other.id).id == other.id


@pytest.mark.parametrize("kind", ["plain", "guarded", "with a key"])
def test_a_job_that_is_sent_again_was_started_once(store: Store, kind: str) -> None:
    job = KINDS[kind]()
    added(store, job)
    added(store, structs.replace(job, first=False))

    assert len(told(store)) == 1


def test_who_is_given_a_job_that_was_there_has_started_none(store: Store) -> None:
    added(store, make_job(by="ann", key=Key("k", b"d" * 16, HOUR)))
    [same] = store.jobs.enqueue([make_job(by="bob", key=Key("k", b"d" * 16, HOUR))])
    with pytest.raises(KeyConflict):
        store.jobs.enqueue([make_job(by="eve", key=Key("k", b"e" * 16, HOUR))])

    assert not same.created
    assert [actor for _, _, actor in told(store)] == ["ann"]


def test_a_long_name_is_cut_as_everywhere_in_the_audit(store: Store) -> None:
    added(store, first(make_job(by="a" * 1_000)))

    [(_, _, actor)] = told(store)
    assert len(actor) == AUDIT_TEXT_LIMIT


def test_a_listing_may_leave_them_out(store: Store) -> None:
    store.queues.pause("mail", by="ann")
    ids = added(store, *(first(make_job(by="ann")) for _ in range(30)))
    store.jobs.cancel(ids[:1], by="bob")

    def actions(**filters: Any) -> list[str]:
        return [row.action for row in store.audit.list(limit=10, starts=False, **filters)]

    assert actions() == ["cancel", "pause"]
    assert actions(actor="ann") == ["pause"]
    assert actions(subject=str(ids[0])) == ["cancel"]
    assert actions(action="start") == []
    newest = store.audit.list(limit=1)[0].number
    assert [row.action for row in store.audit.list(limit=10, before=newest, starts=False)] == ["pause"]
    assert len(store.audit.list(limit=100, action="start")) == 30


def test_they_are_kept_for_30_days_and_all_else_for_longer(
    store: Store, supervisor: Supervisor, clock: ManualClock
) -> None:
    store.queues.pause("mail", by="ann")
    added(store, *(make_job(by="ann") for _ in range(3)))
    clock.move(seconds=timedelta(days=1).total_seconds())
    [later] = added(store, make_job(by="bob"))
    clock.move(seconds=(STARTS_KEPT - HOUR).total_seconds())
    supervisor.purge()

    assert told(store) == [("start", str(later), "bob"), ("pause", "mail", "ann")]
