"""Discard: dead letters that nobody wants any more go at once, as retention would take them, and nothing else ever does."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from lateshift.clock import ManualClock
from lateshift.model.discard import Kept
from lateshift.model.ids import JobId, new_job_id
from lateshift.model.job import STRETCHES, Holds, Line, NewJob, State
from lateshift.model.outcome import Cancelled, DeadLettered, Settlement
from lateshift.model.workflow.run import Advance
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from lateshift.store.taking import KEEP_LEAST
from tests.store_contract.driving import (
    DAY,
    DONE,
    HOUR,
    Worker,
    added,
    keyed,
    look,
    make_batch,
    make_job,
    only,
    query,
    see,
)
from tests.store_contract.test_concurrency import at_once
from tests.store_contract.test_logs import log
from tests.store_contract.test_mending import STEP, held, step_of
from tests.store_contract.test_sessions import in_session
from tests.store_contract.test_sessions import lease_one as lease_guarded

DEAD = DeadLettered("permanent", b"[]", DAY)


def buried(store: Store, worker: Worker, clock: ManualClock, *jobs: NewJob) -> list[JobId]:
    """Dead letters of these jobs, which nobody enqueues any more."""
    ids = added(store, *jobs)
    for lease in worker.lease(len(jobs)):
        worker.settle(lease, DEAD)
    clock.move(minutes=5)
    worker.beat()
    return ids


def audited(store: Store) -> list[tuple[str, str, str]]:
    return sorted((row.action, row.subject, row.actor) for row in store.audit.list(limit=100))


def test_a_dead_letter_is_gone_with_its_logs_tags_and_parents(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    parent = new_job_id()
    gone, stays = added(store, *[make_job(tags=("eu",), parent=parent) for _ in range(2)])
    for lease in worker.lease(2):
        store.jobs.exchange(worker.id, [Settlement(lease, DEAD)], [], [log(lease, "no")])
    clock.move(minutes=5)

    done = store.jobs.discard([gone], by="ana")

    assert (done.ids, done.kept) == ([gone], {})
    assert store.reports.job(gone) is None
    assert see(store, stays).state is State.DEAD
    assert query(store, "SELECT count(*) FROM {attempt_log}") == [(1,)]
    assert query(store, "SELECT count(*) FROM {job_tag}") == [(1,)]
    assert query(store, "SELECT count(*) FROM {job_parent}") == [(1,)]
    assert audited(store) == [("discard", str(gone), "ana")]
    assert store.upkeep.check() == []


def test_only_dead_letters_are_discarded(store: Store, worker: Worker, clock: ManualClock) -> None:
    dead, done, cancelled, running, ready, scheduled = added(
        store, *[make_job() for _ in range(5)], make_job(delay=HOUR)
    )
    for lease, end in zip(worker.lease(4), [DEAD, DONE, Cancelled("enough", DAY), None], strict=True):
        if end is not None:
            worker.settle(lease, end)
    clock.move(minutes=5)
    others = [done, cancelled, running, ready, scheduled]
    before = [see(store, id) for id in others]
    nowhere = new_job_id()

    assert store.reports.kept([dead, *others, nowhere]) == dict.fromkeys([*others, nowhere], Kept.OTHER)
    answer = store.jobs.discard([nowhere, *others, dead, dead], by="ana")

    assert answer.ids == [dead]
    assert answer.kept == dict.fromkeys([nowhere, *others], Kept.OTHER)
    assert [see(store, id) for id in others] == before
    assert audited(store) == [("discard", str(dead), "ana")]


def test_what_is_discarded_twice_is_discarded_once(store: Store, worker: Worker, clock: ManualClock) -> None:
    ids = buried(store, worker, clock, make_job(), make_job())
    assert store.jobs.discard(ids, by="ana").ids == ids
    assert store.jobs.discard(ids, by="bob").kept == dict.fromkeys(ids, Kept.OTHER)
    assert [row[2] for row in audited(store)] == ["ana", "ana"]
    assert store.jobs.discard([], by="ana").ids == []


def test_a_letter_that_was_resubmitted_meanwhile_is_not_discarded(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    [id] = buried(store, worker, clock, make_job())
    store.jobs.resubmit([id], by="ana")
    assert store.jobs.discard([id], by="bob").kept == {id: Kept.OTHER}
    assert worker.lease_one().id == id
    gone = buried(store, worker, clock, make_job())
    assert store.jobs.discard(gone, by="bob").ids == gone
    assert store.jobs.resubmit(gone, by="ana") == []


def test_a_repeat_of_its_enqueue_does_not_bring_it_back(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    """For as long as retention keeps a job at least, so that whoever lost the answer finds it."""
    job = make_job()
    store.jobs.enqueue([job])
    worker.settle(worker.lease_one(), DEAD)
    clock.move(seconds=KEEP_LEAST.total_seconds() - 1)
    assert store.reports.kept([job.id]) == {job.id: Kept.NEW}
    assert store.jobs.discard([job.id], by="ana").kept == {job.id: Kept.NEW}
    store.jobs.enqueue([job])
    assert see(store, job.id).state is State.DEAD
    clock.move(seconds=1)
    assert store.jobs.discard([job.id], by="ana").ids == [job.id]


def test_its_key_stays_for_its_window_and_starts_nothing(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    [first] = store.jobs.enqueue([keyed("order-1", window=DAY)])
    worker.settle(worker.lease_one(), DEAD)
    clock.move(minutes=5)
    assert store.jobs.discard([first.id], by="ana").ids == [first.id]

    [again] = store.jobs.enqueue([keyed("order-1", window=DAY)])
    assert (again.id, again.created) == (first.id, False)
    assert store.reports.job(first.id) is None
    clock.move(days=1)
    [new] = store.jobs.enqueue([keyed("order-1", window=DAY)])
    assert new.created


def test_a_duplicate_within_its_window_starts_nothing(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    def one() -> NewJob:
        return make_job(unique=only("user 7", window=DAY))

    [id] = buried(store, worker, clock, one())
    store.jobs.discard([id], by="ana")
    [same] = store.jobs.enqueue([one()])
    assert (same.id, same.created) == (id, False)
    clock.move(days=1)
    [new] = store.jobs.enqueue([one()])
    assert new.created


def test_a_batch_counts_it_as_before(store: Store, worker: Worker, clock: ManualClock) -> None:
    batch, jobs = make_batch(store, 2, then=False, on_failure=False)
    for lease in worker.lease(2):
        worker.settle(lease, DEAD)
    clock.move(minutes=5)
    before = look(store, batch)
    assert (before.failed, before.finished_at is not None) == (2, True)

    assert store.jobs.discard([jobs[0].id], by="ana").ids == [jobs[0].id]

    assert look(store, batch) == before
    assert store.batches.failed(batch.id, None, 5) == [jobs[1].id]
    assert store.upkeep.check() == []


def test_one_that_holds_its_session_stays_until_that_is_released(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    [id] = added(store, in_session(holds=Holds.ON_DEAD))
    worker.settle(lease_guarded(worker), DEAD)
    clock.move(minutes=5)
    assert store.reports.kept([id]) == {id: Kept.SESSION}
    assert store.jobs.discard([id], by="ana").kept == {id: Kept.SESSION}
    assert store.sessions.release("default", "s", by="ana")
    assert store.jobs.discard([id], by="ana").ids == [id]


def test_a_step_stays_until_its_workflow_has_ended(store: Store, worker: Worker, clock: ManualClock) -> None:
    added(store, make_job(attempts=STRETCHES, time_limit=None))
    run, job = worker.lease_one(), make_job()
    job = replace(job, spec=replace(job.spec, batch=run.id))
    step = replace(STEP, job=job.id)
    store.workflows.advance([Advance(lease=run, begin=("paying", "1"), steps=[step], jobs=[job])])
    worker.settle(worker.lease_one(), DEAD)
    clock.move(minutes=5)
    worker.beat()
    assert store.reports.kept([job.id]) == {job.id: Kept.STEP}
    assert store.jobs.discard([job.id], by="ana").kept == {job.id: Kept.STEP}
    worker.settle(run, DONE)
    assert store.jobs.discard([job.id], by="ana").ids == [job.id]
    assert store.workflows.view(run.id) is not None


def test_a_held_step_stays(store: Store, worker: Worker, clock: ManualClock) -> None:
    added(store, make_job(attempts=STRETCHES, time_limit=None))
    run = worker.lease_one()
    job = step_of(run.id)
    held(store, worker, job, run=run, line=Line("default", job.spec.lane))
    clock.move(minutes=5)
    assert store.jobs.discard([job.id], by="ana").kept == {job.id: Kept.STEP}
    assert store.workflows.mend(run.id, "00001", None, by="ann")


def test_a_workflow_goes_with_its_steps_and_signals_when_its_jobs_have_ended(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    added(store, make_job(attempts=STRETCHES, time_limit=None))
    run, job = worker.lease_one(), step_of(new_job_id())
    job = replace(job, spec=replace(job.spec, batch=run.id))
    step = replace(STEP, job=job.id)
    store.workflows.advance([Advance(lease=run, begin=("paying", "1"), steps=[step], jobs=[job])])
    store.workflows.signal(run.id, "paid", b"1", key=None, by="ana")
    worker.settle(run, DeadLettered("worker_lost", b"[]", DAY))
    clock.move(minutes=5)
    worker.beat()
    assert store.reports.kept([run.id]) == {run.id: Kept.RUN}
    assert store.jobs.discard([run.id], by="ana").kept == {run.id: Kept.RUN}
    worker.settle(worker.lease_one(Line("default", job.spec.lane)))
    store.batches.finish(limit=10)

    assert store.jobs.discard([run.id], by="ana").ids == [run.id]

    assert store.workflows.view(run.id) is None
    assert query(store, "SELECT count(*) FROM {step}") == [(0,)]
    assert query(store, "SELECT count(*) FROM {signal}") == [(0,)]
    assert see(store, job.id).state is State.COMPLETED


def test_each_letter_is_discarded_or_resubmitted_and_never_both_whoever_comes_at_once(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    ids = buried(store, worker, clock, *[make_job() for _ in range(30)])
    others = [open_store(store.url, clock) for _ in range(2)]

    first, second, revived = at_once(
        lambda: store.jobs.discard(ids, by="ana").ids,
        lambda: others[0].jobs.discard(ids[::-1], by="bob").ids,
        lambda: others[1].jobs.resubmit(ids[10:20] + ids[:10], by="eve"),
    )

    for other in others:
        other.close()
    assert sorted([*first, *second, *revived]) == sorted(ids)
    assert [id for id in ids if store.reports.job(id) is not None] == sorted(revived)
    told = {"ana": first, "bob": second, "eve": revived}
    assert sorted((subject, actor) for _, subject, actor in audited(store)) == sorted(
        (str(id), actor) for actor, done in told.items() for id in done
    )
    assert store.upkeep.check() == []


@pytest.mark.parametrize("why", list(Kept))
def test_each_reason_says_what_it_is(why: Kept) -> None:
    assert why.says
    assert timedelta(minutes=5) == KEEP_LEAST or why is not Kept.NEW  # which its words say
