"""The events of jobs: each is told with what makes it true, to whom the job's routes say, once and in order."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import psycopg
import pytest
from msgspec.structs import replace

from lateshift.clock import ManualClock
from lateshift.model.events import RESULT_TOLD, JobEvent
from lateshift.model.ids import new_member_id
from lateshift.model.job import (
    STRETCHES,
    AttemptRecord,
    JobFilter,
    Lane,
    Lease,
    Line,
    NewJob,
    Note,
    Progress,
    Spec,
)
from lateshift.model.outcome import Cancelled, Completed, DeadLettered, Later, Settlement
from lateshift.model.reply import Route, Target, mask, written
from lateshift.runtime.leadership import TTL
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from lateshift.store.postgres.replies import PUBLISH, TERM
from lateshift.store.replying import EVENTS_KEPT
from tests.store_contract.driving import DAY, DONE, GUARDED, SOLO, Supervisor, Worker, added, make_job

ALL = ("received", "started", "progress", "retrying", "completed", "cancelled", "failed")
HEARD = Spec(task="heard", queue="replies", lane=Lane.GUARDED_THREAD)
TO_TASK = Target(to="task:heard", spec=HEARD)
TO_CHANNEL = Target(to="channel:orders")


def replying(
    *targets: Target, on: tuple[str, ...] = ALL, correlation: str | None = None, **options: Any
) -> NewJob:
    routes = [
        Route(target=target, kinds=mask(on), correlation_id=correlation) for target in targets or [TO_CHANNEL]
    ]
    job = make_job(lane=Lane.GUARDED, **options)
    return replace(job, spec=replace(job.spec, reply=written(routes)))


class Courier:
    def __init__(self, store: Store) -> None:
        self._store = store
        grip = store.locks.acquire("courier", new_member_id(), TTL * 1000)
        assert grip is not None
        self.term = grip.fence
        self._at = 0

    def forward(self, limit: int = 100) -> int:
        return self._store.replies.forward(term=self.term, limit=limit)

    def read(self) -> list[JobEvent]:
        """What channels were told since the last time."""
        while self.forward():
            pass
        found = self._store.replies.published(self._at, 1000)
        self._at = found[-1].number if found else self._at
        return [msgspec.json.decode(message.told, type=JobEvent) for message in found]

    def kinds(self) -> list[str]:
        return [event.kind for event in self.read()]


@pytest.fixture
def courier(store: Store) -> Courier:
    return Courier(store)


def failed(lease: Lease, *, dead: bool = False) -> Later | DeadLettered:
    record = AttemptRecord(
        attempt=lease.attempt, fence=lease.fence, at=datetime(2026, 1, 1, tzinfo=UTC), reason="failed",
        error="ValueError", message="no paper",
    )  # fmt: skip
    history = msgspec.json.encode([record])
    return (
        DeadLettered("exhausted", history, DAY) if dead else Later(timedelta(0), counts=True, history=history)
    )


def test_each_step_of_a_life_is_told_in_order(store: Store, worker: Worker, courier: Courier) -> None:
    [id] = added(store, replying(correlation="order 7"))
    first = worker.lease_one(GUARDED)
    worker.settle(first, failed(first))
    second = worker.lease_one(GUARDED)
    store.jobs.save([Note(second, Progress(1, 2, "half"))])
    worker.settle(second, Completed(b'{"paid":true}', DAY))

    events = courier.read()

    assert [event.kind for event in events] == [
        "received",
        "started",
        "retrying",
        "started",
        "progress",
        "completed",
    ]
    assert {(event.job_id, event.correlation_id, event.task, event.queue) for event in events} == {
        (id, "order 7", "noop", "default")
    }
    assert [event.attempt for event in events] == [0, 1, 1, 2, 2, 2]
    assert events[2].error == "ValueError: no paper"
    assert events[4].progress == Progress(1, 2, "half")
    assert events[5].result == {"paid": True}
    assert len({event.id for event in events}) == len(events)


def test_a_job_without_a_reply_tells_nothing(store: Store, worker: Worker, courier: Courier) -> None:
    added(store, make_job(), make_job(lane=Lane.GUARDED))
    worker.settle(worker.lease_one())
    worker.settle(worker.lease_one(GUARDED))

    assert courier.read() == []


def test_only_what_was_asked_for_is_told(store: Store, worker: Worker, courier: Courier) -> None:
    added(store, replying(on=("completed",)))
    worker.settle(worker.lease_one(GUARDED))

    assert courier.kinds() == ["completed"]


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [(Completed(b"1", DAY), "completed"), (Cancelled("no need", DAY), "cancelled"), (None, "failed")],
)
def test_every_end_is_told(
    store: Store, worker: Worker, courier: Courier, outcome: Completed | Cancelled | None, kind: str
) -> None:
    added(store, replying(on=("completed", "cancelled", "failed")))
    lease = worker.lease_one(GUARDED)
    worker.settle(lease, outcome or failed(lease, dead=True))

    [event] = courier.read()

    assert event.kind == kind
    assert event.reason == {"completed": None, "cancelled": "no need", "failed": "exhausted"}[kind]


def test_many_that_end_together_are_each_told_of_once(store: Store, worker: Worker, courier: Courier) -> None:
    ids = added(store, *[replying(on=("completed",)) for _ in range(250)])
    leases = worker.lease(250, GUARDED)
    assert worker.settle_all(leases, DONE) == []
    assert worker.settle_all(leases, DONE) == []  # said again, as after a lost answer

    assert sorted(event.job_id for event in courier.read()) == sorted(ids)


def test_a_waiting_job_that_is_cancelled_or_shed_is_told_of(store: Store, courier: Courier) -> None:
    [cancelled, _] = added(store, replying(on=("cancelled",)), replying(on=("cancelled",)))
    store.jobs.cancel([cancelled], by="ada")
    store.jobs.shed("default", 1)

    assert [event.reason for event in courier.read()] == ["cancelled by ada", "shed"]


def test_a_job_that_was_handed_back_is_not_said_to_fail(
    store: Store, worker: Worker, courier: Courier
) -> None:
    added(store, replying())
    worker.settle(worker.lease_one(GUARDED), Later(timedelta(0), counts=False))
    worker.settle(worker.lease_one(GUARDED))

    assert courier.kinds() == ["received", "started", "started", "completed"]


def test_a_run_of_a_workflow_starts_once(store: Store, worker: Worker, courier: Courier) -> None:
    added(store, replying(attempts=STRETCHES))
    worker.settle(worker.lease_one(GUARDED), Later(timedelta(0), counts=False))
    worker.settle(worker.lease_one(GUARDED))

    assert courier.kinds() == ["received", "started", "completed"]


def test_what_the_supervisor_takes_back_is_told(
    store: Store, worker: Worker, supervisor: Supervisor, courier: Courier, clock: ManualClock
) -> None:
    added(store, replying(attempts=2))
    for line in (GUARDED, GUARDED):
        worker.lease_one(line)
        clock.move(hours=2)
        supervisor.sweep()
        worker = Worker(store)

    events = courier.read()

    assert [event.kind for event in events] == ["received", "started", "retrying", "started", "failed"]
    assert events[2].reason == events[4].reason


def test_a_suspect_that_runs_alone_is_told_of_too(
    store: Store, supervisor: Supervisor, courier: Courier, clock: ManualClock
) -> None:
    added(store, replying(on=("started", "completed"), attempts=9))
    for line in (GUARDED, GUARDED):
        doomed = Worker(store)
        doomed.lease_one(line)
        store.members.bury([doomed.id])
        supervisor.sweep()
    last = Worker(store)
    last.settle(last.lease_one(SOLO))

    assert courier.kinds() == ["started", "started", "started", "completed"]


def test_a_resubmitted_job_goes_on_telling(store: Store, worker: Worker, courier: Courier) -> None:
    [id] = added(store, replying())
    lease = worker.lease_one(GUARDED)
    worker.settle(lease, failed(lease, dead=True))
    store.jobs.resubmit([id], by="ada")
    worker.settle(worker.lease_one(GUARDED))

    assert courier.kinds() == ["received", "started", "failed", "started", "completed"]


@pytest.mark.parametrize("later", [None, timedelta(hours=1)], ids=["ready", "scheduled"])
def test_a_job_that_never_ran_is_received_once_however_often_it_is_resubmitted(
    store: Store, worker: Worker, courier: Courier, clock: ManualClock, later: timedelta | None
) -> None:
    jobs = [replying(TO_CHANNEL, TO_TASK, correlation=f"order {number}") for number in range(3)]
    ids = added(store, *jobs)
    for _ in range(2):
        store.jobs.cancel(ids, by="ada")
        assert store.jobs.resubmit(ids, by="ada", delays=dict.fromkeys(ids, later) if later else None) == ids
    clock.move(hours=2)
    store.jobs.promote(limit=10)
    for lease in worker.lease(3, GUARDED):
        worker.settle(lease)

    told = courier.read()
    for id, job in zip(ids, jobs, strict=True):
        mine = [event for event in told if event.job_id == id]
        assert [event.kind for event in mine] == [
            "received",
            "cancelled",
            "cancelled",
            "started",
            "completed",
        ]
        assert {event.correlation_id for event in mine} == {f"order {jobs.index(job)}"}
        assert [event.at for event in mine] == sorted(event.at for event in mine)


def test_an_enqueue_that_is_repeated_is_told_of_once(store: Store, worker: Worker, courier: Courier) -> None:
    job = replying()
    added(store, job)
    added(store, job)
    worker.settle(worker.lease_one(GUARDED))
    added(store, job)

    assert courier.kinds() == ["received", "started", "completed"]


def test_of_progress_that_was_not_sent_on_only_the_newest_is_told(
    store: Store, worker: Worker, courier: Courier
) -> None:
    added(store, replying(on=("progress",)))
    lease = worker.lease_one(GUARDED)
    for done in range(5):
        store.jobs.save([Note(lease, Progress(done))])
    store.jobs.save([Note(lease, None, b"checkpoint")])

    assert [event.progress for event in courier.read()] == [Progress(4)]


def test_the_progress_that_comes_with_an_end_is_told_before_it_and_once(
    store: Store, worker: Worker, courier: Courier
) -> None:
    added(store, replying(on=("progress", "completed")), replying(on=("progress", "completed")))
    known, fresh = worker.lease(2, GUARDED)
    store.jobs.save([Note(known, Progress(1), number=1)])
    ended = [
        Settlement(known, DONE, Note(known, Progress(1), number=1)),
        Settlement(fresh, DONE, Note(fresh, Progress(2), number=1)),
    ]
    for _ in range(2):  # said again, as after a lost answer
        assert store.jobs.exchange(worker.id, ended, []).lost == []

    events = courier.read()
    for lease, done in ((known, 1), (fresh, 2)):
        mine = [event for event in events if event.job_id == lease.id]
        assert [event.kind for event in mine] == ["progress", "completed"]
        assert mine[0].progress == Progress(done)


def test_a_late_settlement_tells_nothing(
    store: Store, worker: Worker, supervisor: Supervisor, courier: Courier, clock: ManualClock
) -> None:
    added(store, replying(on=("progress", "completed")))
    lease = worker.lease_one(GUARDED)
    clock.move(hours=2)
    supervisor.sweep()
    assert store.jobs.exchange(worker.id, [Settlement(lease, DONE, Note(lease, Progress(1)))], []).lost == [
        lease
    ]

    assert courier.read() == []


def test_a_large_result_is_left_out(store: Store, worker: Worker, courier: Courier) -> None:
    added(store, replying(on=("completed",)))
    worker.settle(worker.lease_one(GUARDED), Completed(msgspec.json.encode("x" * RESULT_TOLD), DAY))

    [event] = courier.read()

    assert event.result is None
    assert event.result_left_out


def test_an_event_becomes_one_job_of_its_receiver_and_these_run_in_order(
    store: Store, worker: Worker, courier: Courier
) -> None:
    added(store, replying(TO_TASK, on=("received", "started", "completed")))
    worker.settle(worker.lease_one(GUARDED))
    while courier.forward(limit=1):  # one transaction each
        pass
    replies = Line("replies", Lane.GUARDED_THREAD)

    heard = []
    while leases := worker.lease(10, replies):
        assert len(leases) == 1  # one after the other, whatever room there is
        heard.append(msgspec.json.decode(leases[0].payload)["event"]["kind"])
        worker.settle(leases[0])

    assert heard == ["received", "started", "completed"]


def test_each_receiver_of_a_job_is_told(store: Store, courier: Courier) -> None:
    url = Target(to="https://hooks.example.com/…", spec=HEARD, given={"url": "https://hooks.example.com/a"})
    added(store, replying(TO_TASK, url, TO_CHANNEL, on=("received",)))

    assert courier.kinds() == ["received"]
    jobs = store.reports.jobs(JobFilter(queue="replies"), 10)
    assert sorted(sorted(msgspec.json.decode(job.payload)) for job in jobs) == [["event"], ["event", "url"]]


def test_only_the_courier_of_the_present_term_sends_on(store: Store, courier: Courier) -> None:
    added(store, replying())

    assert store.replies.forward(term=courier.term + 1, limit=10) == 0
    assert store.replies.forward(term=courier.term - 1, limit=10) == 0
    assert courier.forward() == 1


def test_what_a_channel_was_told_goes_after_its_time_and_numbers_are_not_used_again(
    store: Store, supervisor: Supervisor, courier: Courier, clock: ManualClock
) -> None:
    added(store, replying())
    courier.read()
    newest = store.replies.newest()
    clock.move(seconds=EVENTS_KEPT.total_seconds() - 60)
    supervisor.purge()
    assert len(store.replies.published(0, 10)) == 1
    clock.move(minutes=2)
    supervisor.purge()
    assert store.replies.published(0, 10) == []
    assert store.replies.newest() == newest

    added(store, replying())
    courier.forward()

    assert [message.number for message in store.replies.published(newest, 10)] == [newest + 1]


def test_what_has_passed_its_time_is_not_told_though_nobody_has_purged_it(
    store: Store, courier: Courier, clock: ManualClock
) -> None:
    """As after a clock was set: how long it is kept does not depend on when somebody cleans up."""
    added(store, replying())
    courier.read()
    newest = store.replies.newest()
    clock.move(seconds=EVENTS_KEPT.total_seconds() + 1)
    assert store.replies.published(0, 10) == []
    added(store, replying())
    courier.forward()

    assert [message.number for message in store.replies.published(0, 10)] == [newest + 1]


def test_a_reply_that_cannot_be_read_holds_up_no_other(store: Store, courier: Courier) -> None:
    odd = replying()
    added(store, replace(odd, spec=replace(odd.spec, reply="{")), replying())

    assert courier.kinds() == ["received"]


def test_a_transaction_that_commits_late_is_heard_by_who_goes_on_after_others(
    postgres_url: str, clock: ManualClock
) -> None:
    """What it told has a lower number in the outbox; a channel's own numbers are given when it is known."""
    store = open_store(postgres_url, clock)
    courier = Courier(store)
    with psycopg.connect(postgres_url) as caller:
        [late] = store.enqueue_on(caller, [replying()])
        [early] = added(store, replying())
        assert [event.job_id for event in courier.read()] == [early]
        caller.commit()
    assert [event.job_id for event in courier.read()] == [late.id]
    store.close()


def test_the_newest_message_is_one_that_can_be_read(postgres_url: str, clock: ManualClock) -> None:
    """Else who goes on after it would miss what a courier has written, and not yet committed."""
    store = open_store(postgres_url, clock)
    added(store, replying())
    Courier(store).read()
    newest = store.replies.newest()
    with psycopg.connect(postgres_url) as caller:
        caller.execute(PUBLISH, (EVENTS_KEPT, ["orders"], ["default"], [b"{}"]))
        assert store.replies.newest() == newest
        caller.commit()
    assert [message.number for message in store.replies.published(newest, 10)] == [store.replies.newest()]
    assert store.replies.newest() > newest
    store.close()


def test_a_new_courier_waits_for_what_the_last_one_has_begun(postgres_url: str, clock: ManualClock) -> None:
    """Else numbers could appear out of order, and who goes on after the highest would miss one."""
    store = open_store(postgres_url, clock)
    courier = Courier(store)
    with ThreadPoolExecutor() as threads, psycopg.connect(postgres_url) as old:
        old.execute(TERM, (courier.term,))
        clock.move(days=1)
        taking = threads.submit(store.locks.acquire, "courier", new_member_id(), TTL)
        with pytest.raises(TimeoutError):
            taking.result(timeout=0.3)
        old.commit()
        grip = taking.result(timeout=20)
    assert grip is not None
    assert grip.fence > courier.term
    store.close()
