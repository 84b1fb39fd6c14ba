"""Reports: what people and callers see, newest first."""

from typing import Any

import pytest
from msgspec.structs import asdict, replace

from lateshift.model.batch import NewBatch, job_id_at
from lateshift.model.ids import new_job_id
from lateshift.model.job import JobFilter, JobView, Lane, Line, Place, State
from lateshift.model.outcome import Cancelled, Completed, DeadLettered, Later
from lateshift.store import postgres, sqlite
from lateshift.store.contract import Store
from tests.store_contract.driving import DAY, DONE, GUARDED, HOUR, Worker, added, make_batch, make_job, see

DEAD = DeadLettered("exhausted", b"[]", DAY)
STOPPED = Cancelled("enough", DAY)


def listed(store: Store, wanted: JobFilter, limit: int = 100) -> list[object]:
    return [view.id for view in store.reports.jobs(wanted, limit)]


def test_an_unknown_job_is_nothing(store: Store) -> None:
    assert store.reports.job(new_job_id()) is None


def test_jobs_are_found_by_their_ids_in_the_order_in_which_they_are_asked_for(
    store: Store, worker: Worker
) -> None:
    ids = added(store, *[make_job() for _ in range(3)])
    [done, *_] = worker.lease(1)
    worker.settle(done)
    asked = [ids[2], new_job_id(), ids[0], ids[2]]

    assert store.reports.named(asked) == [store.reports.job(id) for id in asked]
    assert store.reports.named([]) == []


def test_jobs_are_listed_newest_first_wherever_they_stand(store: Store, worker: Worker) -> None:
    ids = added(store, *[make_job() for _ in range(6)])
    leases = worker.lease(3)
    worker.settle(leases[1])

    assert listed(store, JobFilter()) == ids[::-1]


def test_a_list_is_read_page_by_page(store: Store, worker: Worker) -> None:
    ids = added(store, *[make_job() for _ in range(7)])
    worker.settle_all(worker.lease(4))
    pages: list[JobView] = []
    before = None
    while page := store.reports.jobs(JobFilter(before=before), 3):
        pages += page
        before = page[-1].id

    assert [view.id for view in pages] == ids[::-1]


def test_jobs_are_listed_by_state(store: Store, worker: Worker) -> None:
    done, dead, cancelled, running, ready = added(store, *[make_job() for _ in range(5)])
    [later] = added(store, make_job(delay=HOUR))
    first, second, third, _ = worker.lease(4)
    worker.settle(first, Completed(None, DAY))
    worker.settle(second, DeadLettered("permanent", b"[]", DAY))
    worker.settle(third, Cancelled("enough", DAY))

    found = {state: listed(store, JobFilter(state=state)) for state in State}
    assert found == {
        State.SCHEDULED: [later],
        State.READY: [ready],
        State.RUNNING: [running],
        State.BLOCKED: [],
        State.COMPLETED: [done],
        State.CANCELLED: [cancelled],
        State.DEAD: [dead],
    }


def test_jobs_are_listed_by_queue_task_and_reason(store: Store, worker: Worker) -> None:
    mail, paint, other = added(
        store, make_job(task="mail"), make_job(task="paint"), make_job(task="mail", queue="other")
    )
    first, second = worker.lease(2)
    worker.settle(first, DeadLettered("permanent", b"[]", DAY))
    worker.settle(second, DeadLettered("exhausted", b"[]", DAY))

    assert listed(store, JobFilter(task="mail")) == [other, mail]
    assert listed(store, JobFilter(queue="default")) == [paint, mail]
    assert listed(store, JobFilter(task="mail", queue="other")) == [other]
    assert listed(store, JobFilter(reason="exhausted")) == [paint]
    assert listed(store, JobFilter(state=State.DEAD, reason="permanent")) == [mail]
    assert listed(store, JobFilter(state=State.DEAD, task="none")) == []


def everywhere(store: Store, worker: Worker) -> list[JobView]:
    """Jobs of two sessions, two tenants and a batch, in two queues and in every state; the newest first."""
    places = [Place(session=session, tenant=tenant) for session in ("s", "t", None) for tenant in ("a", "b")]
    for queue in ("default", "other"):
        line = Line(queue, Lane.GUARDED)
        for outcome in (DONE, DEAD, STOPPED, Later(HOUR, counts=True, history=b"[]"), None):
            added(store, *[make_job(queue=queue, place=place) for place in places])
            for lease in worker.lease(100, line):
                if outcome is not None:
                    worker.settle(lease, outcome)
        added(store, *[make_job(queue=queue, place=place, delay=HOUR) for place in places])
        added(store, *[make_job(queue=queue, place=place, task="mail") for place in places])
    id = make_batch(store, 4)[0].id
    done, dead = worker.lease(2)
    worker.settle(done)
    worker.settle(dead, DEAD)
    batch = NewBatch(id=new_job_id(), total=len(places))
    store.batches.open(batch)
    jobs = [make_job(place=place) for place in places]
    own = [
        replace(job, id=job_id_at(batch.id, place), spec=replace(job.spec, batch=batch.id))
        for place, job in enumerate(jobs)
    ]
    store.batches.add(batch.id, 0, own)
    found = store.reports.jobs(JobFilter(), 1000)
    assert {view.state for view in found} == set(State)
    assert {view.batch for view in found} == {None, id, batch.id}
    return found


def pages(store: Store, wanted: JobFilter, limit: int) -> list[JobView]:
    found: list[JobView] = []
    while page := store.reports.jobs(replace(wanted, before=found[-1].id if found else None), limit):
        found += page
        assert len(page) == limit or not store.reports.jobs(replace(wanted, before=page[-1].id), limit)
    return found


@pytest.mark.parametrize("all_are_many", [False, True])
def test_jobs_are_listed_by_session_tenant_and_batch_with_any_other_filter(
    store: Store, worker: Worker, monkeypatch: pytest.MonkeyPatch, all_are_many: bool
) -> None:
    there = everywhere(store, worker)
    if all_are_many:
        for listing in (sqlite.listing, postgres.listing):
            for name in ("MANY_OF_SESSION", "MANY_OF_TENANT"):
                some = getattr(listing, name).replace(f"count(*) >= {listing.MANY}", "count(*) >= 0")
                monkeypatch.setattr(listing, name, some)
    batches = sorted({view.batch for view in there if view.batch is not None})
    filters = [
        JobFilter(session=session, tenant=tenant, batch=batch, **more)
        for session in (None, "s", "nobody")
        for tenant in (None, "a")
        for batch in (None, *batches)
        for more in OTHERS
    ]
    for wanted in filters:
        fits = [view for view in there if all(getattr(view, name) == value for name, value in given(wanted))]
        assert pages(store, wanted, 7) == fits, wanted


OTHERS: list[dict[str, Any]] = [
    {}, {"queue": "other"}, {"task": "mail"}, {"reason": "exhausted"}, *({"state": state} for state in State),
    {"queue": "default", "state": State.DEAD}, {"queue": "nowhere"},
]  # fmt: skip


def given(wanted: JobFilter) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in asdict(wanted).items() if value is not None]


def test_a_job_that_waits_for_another_try_stands_in_its_session_once(store: Store, worker: Worker) -> None:
    """It is in the line and scheduled as well, but takes one place of a page."""
    later, tried = added(
        store, make_job(place=Place(session="s"), delay=HOUR), make_job(place=Place(session="s"))
    )
    worker.settle(worker.lease_one(GUARDED), Later(HOUR, counts=True, history=b"[]"))

    assert listed(store, JobFilter(session="s"), 2) == [tried, later]


def test_a_filter_holds_no_sql(store: Store) -> None:
    added(store, make_job())

    for name in ("queue", "task", "reason", "session", "tenant"):
        wanted: dict[str, Any] = {name: "' OR 1=1 --"}
        assert listed(store, JobFilter(**wanted)) == []


def test_the_unsettled_are_listed_page_by_page_whatever_has_ended(store: Store, worker: Worker) -> None:
    ids = added(store, *[make_job() for _ in range(6)])
    [later] = added(store, make_job(delay=HOUR))
    leases = worker.lease(3)
    worker.settle(leases[0])
    worker.settle(leases[2], DeadLettered("permanent", b"[]", DAY))

    pages: list[JobView] = []
    while page := store.reports.unsettled(pages[-1].id if pages else None, 2):
        pages += page

    assert [view.id for view in pages] == [later, *ids[:2:-1], ids[1]]


def test_an_id_is_found_by_its_beginning_and_by_its_ending_wherever_it_stands(
    store: Store, worker: Worker
) -> None:
    ids = added(store, *[make_job() for _ in range(4)])
    done, dead, _ = worker.lease(3)
    worker.settle(done)
    worker.settle(dead, DeadLettered("permanent", b"[]", DAY))

    for id in ids:
        assert store.reports.find(id.hex[-10:], 10) == [id]
        assert store.reports.find(id.hex[:24], 10) == [id]
        assert store.reports.find(id.hex, 10) == [id]
    assert store.reports.find(new_job_id().hex[-10:], 10) == []


def test_an_id_is_found_by_an_odd_number_of_digits(store: Store) -> None:
    [id] = added(store, make_job())

    assert store.reports.find(id.hex[:7], 10) == [id]
    assert store.reports.find(id.hex[-7:], 10) == [id]


def test_no_more_ids_are_found_than_are_wanted_the_newest_first(store: Store, worker: Worker) -> None:
    ids = added(store, *[make_job() for _ in range(5)])
    worker.settle(worker.lease_one())

    assert store.reports.find(ids[0].hex[:4], 10) == ids[::-1]
    assert len(store.reports.find(ids[0].hex[:4], 2)) == 2


def test_running_gives_what_runs(store: Store, worker: Worker) -> None:
    added(store, *[make_job() for _ in range(4)])
    leases = worker.lease(3)

    assert {view.id for view in store.reports.running(10)} == {lease.id for lease in leases}
    assert len(store.reports.running(2)) == 2
    assert see(store, leases[0].id) in store.reports.running(10)


def test_times_are_told_with_their_zone(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job())
    lease = worker.lease_one()
    running = see(store, id)
    worker.settle(lease)
    settled = see(store, id)

    for instant in (
        running.created_at,
        running.due_at,
        running.started_at,
        running.complete_by,
        settled.settled_at,
    ):
        assert instant is not None
        assert instant.utcoffset() is not None


def test_a_look_at_queues_counts_no_further_than_it_is_asked_to(store: Store) -> None:
    added(store, *(make_job(queue="mail") for _ in range(5)), make_job(queue="images"))

    assert {view.name: view.ready for view in store.queues.list(3)} == {"images": 1, "mail": 3}
    assert {view.name: view.ready for view in store.queues.list()} == {"images": 1, "mail": 5}


def test_a_huge_queue_takes_nothing_from_what_is_counted_in_a_small_one(store: Store) -> None:
    """Each state of each queue is counted up to the limit, whatever stands in the others, and in whatever order."""

    def fill(queue: str, dead: int, scheduled: int, blocked: int) -> None:
        letters = added(store, *(make_job(queue=queue) for _ in range(dead)))
        worker = Worker(store)
        for lease in worker.lease(len(letters), Line(queue, Lane.COROUTINE)):
            worker.settle(lease, DEAD)
        added(store, *(make_job(queue=queue, delay=DAY) for _ in range(scheduled)))
        added(store, *(make_job(queue=queue, place=Place("s")) for _ in range(blocked + 1)))

    fill("huge", 8, 8, 8)
    fill("small", 3, 4, 2)
    fill("a small one", 1, 2, 1)

    found = {view.name: (view.dead, view.scheduled, view.blocked) for view in store.queues.list(5)}
    assert found == {"huge": (5, 5, 5), "small": (3, 4, 2), "a small one": (1, 2, 1)}
    [small] = store.queues.list(5, of=["small"])
    assert (small.dead, small.scheduled, small.blocked) == (3, 4, 2)
    assert [view.name for view in store.queues.list(5, limit=2)] == ["a small one", "huge"]
    assert {*store.queues.names()} == {"huge", "small", "a small one"}


def test_dead_letters_are_counted_so_far_but_for_runs_that_were_undone(store: Store, worker: Worker) -> None:
    assert store.reports.count_dead(3) == (0, False)
    for reason in ("permanent", "undone", "exhausted"):
        added(store, make_job())
        worker.settle(worker.lease_one(), DeadLettered(reason, b"[]", DAY))
    assert store.reports.count_dead(4) == (2, False)
    assert store.reports.count_dead(2) == (1, True)
