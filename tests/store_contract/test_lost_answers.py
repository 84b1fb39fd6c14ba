"""PostgreSQL: the answer to a commit is lost, and the store tries again by itself. Nothing is done twice, and the
answer is as it would have been."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from msgspec import structs
from psycopg import errors as pg

from lateshift.clock import ManualClock
from lateshift.errors import StoreUnavailable, StoreUnsafe
from lateshift.model.access import new_token
from lateshift.model.discard import Kept
from lateshift.model.edit import Edit
from lateshift.model.job import Holds, JobFilter, Place, State
from lateshift.model.outcome import Completed, DeadLettered, Later, Settlement
from lateshift.model.workflow.run import Phase
from lateshift.model.workflow.step import StepState
from lateshift.store.contract import Want
from lateshift.store.open import open_store
from lateshift.store.postgres import PostgresStore, batches, database
from lateshift.store.workflow_contract import Told
from tests.store_contract.driving import (
    DAY,
    DONE,
    GUARDED,
    HOUR,
    LINE,
    TTL,
    Supervisor,
    Worker,
    added,
    callbacks,
    keyed,
    look,
    make_batch,
    make_job,
    only,
    query,
    see,
)
from tests.store_contract.test_schedules import hourly
from tests.store_contract.test_workflows import asleep

Injured = Callable[..., None]


@pytest.fixture
def store(postgres_url: str, clock: ManualClock) -> Iterator[PostgresStore]:
    store = open_store(postgres_url, clock)
    assert isinstance(store, PostgresStore)
    store.ready()
    yield store
    store.close()


@pytest.fixture
def lose_next_answer(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> Injured:
    """The next transaction (after `skip` others) is carried out, but its answer does not arrive; `meanwhile` happens before
    the next try."""

    def lose(meanwhile: Callable[[], object] = lambda: None, skip: int = 0) -> None:
        run = database.Database.run
        lost = False

        def run_and_lose(self: database.Database, transaction: Any, *args: Any, **kwargs: Any) -> Any:
            def injured(connection: Any, again: bool, *args: Any, **kwargs: Any) -> Any:
                nonlocal lost, skip
                answer = transaction(connection, again, *args, **kwargs)
                skip -= 1
                if not lost and skip < 0:
                    lost = True
                    meanwhile()
                    raise psycopg.OperationalError("server closed the connection unexpectedly")
                return answer

            return run(self, injured, *args, **kwargs)

        monkeypatch.setattr(database.Database, "run", run_and_lose)

    return lose


@pytest.mark.parametrize("size", [1, 3])
def test_an_enqueue_is_one_enqueue(store: PostgresStore, lose_next_answer: Injured, size: int) -> None:
    jobs = [make_job() for _ in range(size)]
    lose_next_answer()

    answers = store.jobs.enqueue(jobs)

    assert [(answer.id, answer.created) for answer in answers] == [(job.id, True) for job in jobs]
    assert len(store.reports.jobs(JobFilter(), 10)) == size


@pytest.mark.parametrize("size", [1, 3])
def test_that_jobs_were_started_is_told_once(
    store: PostgresStore, lose_next_answer: Injured, size: int
) -> None:
    jobs = [structs.replace(make_job(by="ann"), first=True) for _ in range(size)]
    lose_next_answer()

    store.jobs.enqueue(jobs)

    assert [row.subject for row in store.audit.list(limit=10)] == [str(job.id) for job in reversed(jobs)]


def test_a_keyed_enqueue_is_the_callers_own(store: PostgresStore, lose_next_answer: Injured) -> None:
    job = keyed("order-1")
    lose_next_answer()

    [answer] = store.jobs.enqueue([job])

    assert (answer.id, answer.created) == (job.id, True)
    assert len(store.reports.jobs(JobFilter(), 10)) == 1


@pytest.mark.parametrize("size", [1, 3])
def test_a_unique_enqueue_is_the_callers_own(
    store: PostgresStore, lose_next_answer: Injured, size: int
) -> None:
    jobs = [make_job(unique=only(f"{number}")) for number in range(size)]
    lose_next_answer()

    answers = store.jobs.enqueue(jobs)

    assert [(answer.id, answer.created) for answer in answers] == [(job.id, True) for job in jobs]
    assert len(store.reports.jobs(JobFilter(), 10)) == size
    assert not store.jobs.enqueue([make_job(unique=only("0"))])[0].created


def test_a_unique_enqueue_is_the_callers_own_though_another_came_after_it_had_run(
    store: PostgresStore, lose_next_answer: Injured
) -> None:
    worker = Worker(store)
    job, other = make_job(unique=only("0")), make_job(unique=only("0"))

    def run_and_come_again() -> None:
        worker.settle(worker.lease_one())
        assert store.jobs.enqueue([other])[0].created

    lose_next_answer(meanwhile=run_and_come_again)

    [answer] = store.jobs.enqueue([job])

    assert (answer.id, answer.created) == (job.id, True)
    assert see(store, job.id).state is State.COMPLETED
    assert [lease.id for lease in worker.lease(10)] == [other.id]
    assert store.upkeep.check() == []


@pytest.mark.parametrize("lost", [0, 1], ids=["looking", "shedding"])
def test_shedding_sheds_no_more_than_it_was_asked_to(
    store: PostgresStore, lose_next_answer: Injured, lost: int
) -> None:
    ids = added(store, *[make_job() for _ in range(5)])
    lose_next_answer(skip=lost)

    assert store.jobs.shed("default", 2) == ids[:2]
    assert len(store.reports.jobs(JobFilter(state=State.READY), 10)) == 3


@pytest.mark.parametrize("size", [1, 3])
def test_an_enqueue_does_not_bring_back_what_has_run_meanwhile(
    store: PostgresStore, lose_next_answer: Injured, size: int
) -> None:
    worker = Worker(store)
    jobs = [make_job() for _ in range(size)]
    lose_next_answer(meanwhile=lambda: worker.settle_all(worker.lease(size)))

    store.jobs.enqueue(jobs)

    assert {see(store, job.id).state for job in jobs} == {State.COMPLETED}
    assert worker.lease(10) == []
    assert store.upkeep.check() == []


@pytest.mark.parametrize("line", [LINE, GUARDED])
def test_a_claim_says_that_it_is_unsure_and_takes_no_more(
    store: PostgresStore, lose_next_answer: Injured, line: Any
) -> None:
    worker = Worker(store)
    ids = added(store, *[make_job(lane=line.lane) for _ in range(5)])
    lose_next_answer()

    answer = store.jobs.exchange(worker.id, [], [Want(line, 2)])

    assert (answer.leases, answer.lost, answer.unsure) == ([], [], True)
    assert {lease.id for lease in store.jobs.held(worker.id)} == set(ids[:2])
    assert len(store.reports.running(10)) == 2


def test_an_answer_that_arrives_is_not_unsure(store: PostgresStore) -> None:
    worker = Worker(store)
    added(store, make_job())

    assert store.jobs.exchange(worker.id, [], [Want(LINE, 2)]).unsure is False


@pytest.mark.parametrize("exclusive", [None, "k"])
def test_a_settlement_is_not_called_lost(
    store: PostgresStore, lose_next_answer: Injured, exclusive: str | None
) -> None:
    worker = Worker(store)
    [id] = added(store, make_job(exclusive=exclusive))
    lease = worker.lease_one(GUARDED if exclusive else LINE)
    lose_next_answer()

    answer = store.jobs.exchange(worker.id, [Settlement(lease, DONE)], [])

    assert (answer.lost, answer.unsure) == ([], False)
    assert see(store, id).state is State.COMPLETED


def test_a_retry_is_put_off_once(store: PostgresStore, lose_next_answer: Injured) -> None:
    worker = Worker(store)
    [id] = added(store, make_job())
    lease = worker.lease_one()
    lose_next_answer()

    store.jobs.exchange(worker.id, [Settlement(lease, Later(HOUR, counts=False))], [])

    assert (see(store, id).state, see(store, id).attempt) == (State.SCHEDULED, 0)


def test_cancel_gives_what_it_cancelled(store: PostgresStore, lose_next_answer: Injured) -> None:
    ids = added(store, make_job(), make_job())
    worker = Worker(store)
    worker.lease_one()
    lose_next_answer()

    assert store.jobs.cancel(ids, by="ana") == ids
    assert query(store, "SELECT count(DISTINCT subject) FROM {audit}") == [(2,)]


def test_resubmit_gives_what_it_resubmitted(store: PostgresStore, lose_next_answer: Injured) -> None:
    ids = added(store, make_job(), make_job())
    store.jobs.cancel(ids[:1], by="ana")
    lose_next_answer()

    assert store.jobs.resubmit(ids, by="bob") == ids[:1]
    assert len(Worker(store).lease(10)) == 2


def test_a_resubmission_for_later_is_done_once(store: PostgresStore, lose_next_answer: Injured) -> None:
    [id] = added(store, make_job())
    store.jobs.cancel([id], by="ana")
    lose_next_answer()

    assert store.jobs.resubmit([id], by="bob", delays={id: DAY}) == [id]
    assert see(store, id).state is State.SCHEDULED
    assert len(query(store, "SELECT 1 FROM {audit} WHERE action = 'resubmit'")) == 1


def test_discard_gives_what_it_discarded(
    store: PostgresStore, lose_next_answer: Injured, clock: ManualClock
) -> None:
    ids, worker = added(store, make_job(), make_job()), Worker(store)
    worker.settle(worker.lease_one(), DeadLettered("permanent", b"[]", DAY))
    clock.move(minutes=5)
    lose_next_answer()

    done = store.jobs.discard(ids, by="bob")

    assert (done.ids, done.kept) == (ids[:1], {ids[1]: Kept.OTHER})
    assert [(row.action, row.subject) for row in store.audit.list(limit=10)] == [("discard", str(ids[0]))]


def test_an_edit_is_written_once(store: PostgresStore, lose_next_answer: Injured) -> None:
    [id] = added(store, make_job(payload=b'{"a":1}'))
    store.jobs.cancel([id], by="ana")
    lose_next_answer()

    assert store.jobs.resubmit([id], by="bob", edits={id: Edit(b'{"a":1}', b'{"a":2}')}) == [id]
    assert see(store, id).payload == b'{"a":2}'
    assert [line.was for line in see(store, id).history] == [{"a": 1}]


def test_a_lock_is_taken_and_released_once(store: PostgresStore, lose_next_answer: Injured) -> None:
    worker = Worker(store)
    lose_next_answer()
    grip = store.locks.acquire("report", worker.id, TTL)
    assert grip is not None
    lose_next_answer()

    assert store.locks.release(grip) is True
    assert store.locks.release(grip) is False


def test_a_sweep_takes_each_job_once(store: PostgresStore, lose_next_answer: Injured) -> None:
    supervisor, worker = Supervisor(store), Worker(store)
    [id] = added(store, make_job())
    worker.lease_one()
    worker.die()
    lose_next_answer()
    supervisor.sweep()

    assert (see(store, id).state, see(store, id).losses) == (State.READY, 1)


@pytest.mark.parametrize("error", [pg.SerializationFailure, pg.DeadlockDetected, pg.AdminShutdown])
def test_a_conflict_is_tried_again(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    failures = [error("no")]
    run = store.jobs._enqueue

    def conflicted(*args: Any) -> Any:
        if failures:
            raise failures.pop()
        return run(*args)

    monkeypatch.setattr(store.jobs, "_enqueue", conflicted)
    [id] = added(store, make_job())

    assert see(store, id).state is State.READY


def test_connections_that_the_server_closed_are_replaced(store: PostgresStore) -> None:
    worker = Worker(store)
    [first] = added(store, make_job())
    with psycopg.connect(store.url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND datname = current_database()"
        )

    [second] = added(store, make_job())

    leases = store.jobs.exchange(worker.id, [], [Want(LINE, 5)]).leases
    assert [lease.id for lease in leases] == [first, second]


def twice(url: str) -> str:
    """The same server as two hosts."""
    named = psycopg.conninfo.conninfo_to_dict(url)
    host, port = named.get("host", "/var/run/postgresql"), named.get("port", 5432)
    who = f"&user={named['user']}" if "user" in named else ""
    return f"postgresql:///{named['dbname']}?host={host},{host}&port={port},{port}{who}"


def test_of_several_hosts_the_one_that_can_be_written_to_is_waited_for(
    store: PostgresStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([True, True])
    monkeypatch.setattr(database, "is_standby", lambda connection: next(looks, False))
    two = open_store(twice(store.url), clock)
    [id] = added(two, make_job())
    assert see(store, id).state is State.READY
    assert next(looks, None) is None
    two.close()


def test_a_standby_that_is_the_only_host_is_said_to_be_one_at_once(
    store: PostgresStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[bool] = []

    def standby(connection: object) -> bool:
        looks.append(True)
        return True

    monkeypatch.setattr(database, "is_standby", standby)
    alone = open_store(store.url, clock)
    with pytest.raises(StoreUnsafe, match=r"is a standby, which cannot be written to\. Name the primary"):
        alone.ready()
    assert looks == [True]


def test_a_store_that_stays_away_is_said_to_be_unavailable(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "GIVE_UP_SECONDS", 0.1)

    def away(*_: Any) -> None:
        raise psycopg.OperationalError("connection refused\nIs the server running?")

    monkeypatch.setattr(store.jobs, "_enqueue", away)

    with pytest.raises(StoreUnavailable, match=r"cannot be reached: connection refused\. Is it running"):
        store.jobs.enqueue([make_job()])


def test_a_batch_is_added_to_once(store: PostgresStore, lose_next_answer: Injured) -> None:
    batch, jobs = make_batch(store, 4, added=0)
    lose_next_answer()

    assert store.batches.add(batch.id, 0, jobs) == 4
    assert (look(store, batch).added, look(store, batch).sealed) == (4, True)
    assert len(store.reports.jobs(JobFilter(), 10)) == 4


def test_what_was_added_and_has_run_meanwhile_is_not_brought_back(
    store: PostgresStore, lose_next_answer: Injured
) -> None:
    worker = Worker(store)
    batch, jobs = make_batch(store, 2, added=0)
    lose_next_answer(meanwhile=lambda: worker.settle_all(worker.lease(2)))

    store.batches.add(batch.id, 0, jobs)

    assert (look(store, batch).completed, callbacks(store)) == (2, ["then"])
    assert [lease.queue for lease in worker.lease(5)] == []


def test_a_batch_counts_a_settlement_once_and_is_called_back_once(
    store: PostgresStore, lose_next_answer: Injured
) -> None:
    worker = Worker(store)
    batch, _ = make_batch(store, 1)
    lease = worker.lease_one()
    lose_next_answer()
    worker.settle(lease)
    assert look(store, batch).completed == 1
    lose_next_answer()

    store.batches.finish(limit=10)
    assert (look(store, batch).completed, callbacks(store)) == (1, ["then"])


def test_a_batch_that_was_cancelled_is_said_to_be(store: PostgresStore, lose_next_answer: Injured) -> None:
    batch, _ = make_batch(store, 2)
    lose_next_answer()
    assert store.batches.cancel(batch.id, by="ana") is True
    lose_next_answer()
    assert store.batches.cancel_jobs(batch.id, None, 10, by="ana") is None
    assert look(store, batch).cancelled == 2


def test_a_batch_that_was_sealed_is_said_to_be(store: PostgresStore, lose_next_answer: Injured) -> None:
    batch, _ = make_batch(store, 2, added=1)
    lose_next_answer()

    assert store.batches.seal(batch.id) is True
    assert look(store, batch).total == 1


def test_a_worker_whose_last_look_fails_has_settled_all_the_same(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker(store)
    batch, _ = make_batch(store, 1)
    lease = worker.lease_one()

    def away(*_: Any) -> None:
        raise StoreUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(store._database, "run_once", away)
        assert worker.settle(lease)
        assert callbacks(store) == []

    assert store.batches.finish(limit=10) == 1  # the supervisor, a second later
    assert (look(store, batch).finished, callbacks(store)) == (True, ["then"])


def test_lines_that_no_supervisor_adds_up_are_added_up_by_a_worker(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker(store)
    monkeypatch.setattr(
        batches,
        "IN_NEED",
        batches.IN_NEED.replace(f"line.number >= {batches.LINES_LEFT}", "line.number >= 5"),
    )
    batch, _ = make_batch(store, 20)
    for lease in worker.lease(18):
        worker.settle(lease)

    assert query(store, "SELECT count(*) FROM {batch_count}")[0][0] < 5
    view = store.batches.view(batch.id)
    assert view is not None
    assert view.completed == 18


def test_a_released_session_is_told_so(store: PostgresStore, lose_next_answer: Injured) -> None:
    added(store, make_job(place=Place("s", holds=Holds.ON_DEAD), time_limit=None))
    worker = Worker(store)
    worker.settle(worker.lease_one(GUARDED), DeadLettered("permanent", b"[]", HOUR))
    lose_next_answer()
    assert store.sessions.release("default", "s", by="ana")
    assert not store.sessions.release("default", "s", by="bob")


def test_what_a_session_keeps_is_not_set_back_by_the_second_try(
    store: PostgresStore, lose_next_answer: Injured
) -> None:
    first, second = added(store, *(make_job(place=Place("s"), time_limit=None) for _ in range(2)))
    worker, other = Worker(store), Worker(store)
    running = worker.lease_one(GUARDED)
    assert running.id == first

    def gone_on() -> None:
        lease = other.lease_one(GUARDED)
        assert (lease.id, lease.session_state) == (second, b"1")
        other.settle(lease, Completed(None, HOUR, b"2"))

    lose_next_answer(gone_on)
    assert worker.settle(running, Completed(None, HOUR, b"1"))
    view = store.sessions.get("default", "s")
    assert view is not None
    assert view.state == b"2"


def test_a_token_is_made_once_and_its_name_is_its_own(
    store: PostgresStore, lose_next_answer: Injured
) -> None:
    token, _ = new_token("ci", ["read"], [], at=store.clock.now(), by="ana")
    lose_next_answer()
    store.tokens.create(token)
    assert store.tokens.list(10) == [token]
    assert [row.action for row in store.audit.list(limit=10)] == ["create"]


def test_who_revoked_a_token_is_told_so_and_it_is_audited_once(
    store: PostgresStore, lose_next_answer: Injured
) -> None:
    token, _ = new_token("ci", ["read"], [], at=store.clock.now(), by="ana")
    store.tokens.create(token)
    lose_next_answer()
    assert store.tokens.revoke(token.id, by="bob") is True
    assert store.tokens.revoke(token.id, by="bob") is False
    assert [row.action for row in store.audit.list(limit=10)] == ["revoke", "create"]


@pytest.mark.parametrize("lost", [0, 1], ids=["looking at the clock", "writing"])
def test_what_is_recorded_stands_there_once_and_what_is_done_twice_twice(
    store: PostgresStore, lose_next_answer: Injured, lost: int
) -> None:
    store.audit.record("sign in", "dashboard", by="ana")
    lose_next_answer(skip=lost)
    store.audit.record("sign in", "dashboard", by="ana")
    assert len(store.audit.list(limit=10)) == 2


@pytest.mark.parametrize("key", [None, "k1"])
def test_a_run_is_told_something_once_and_who_did_it_is_told_so(
    store: PostgresStore, lose_next_answer: Injured, key: str | None
) -> None:
    id = asleep(store, StepState.RUNNING, phase=Phase.FORWARD)
    lose_next_answer()
    assert store.workflows.signal(id, "picked", b"7", key=key, by="ana") is Told.KEPT
    assert [(one.name, one.data) for one in store.workflows.told(id, 10)] == [("picked", b"7")]
    assert [row.action for row in store.audit.list(limit=10)] == ["signal"]
    if key is not None:
        lose_next_answer()
        assert store.workflows.signal(id, "picked", b"8", key=key, by="ana") is Told.CONFLICT


def test_a_queue_is_paused_and_resumed_once_and_who_did_it_is_told_so(
    store: PostgresStore, lose_next_answer: Injured
) -> None:
    for verb in (store.queues.pause, store.queues.resume):
        lose_next_answer()
        assert verb("images", by="ana") is True
        assert verb("images", by="ana") is False
    assert [row.action for row in store.audit.list(limit=10)] == ["resume", "pause"]


def test_a_pause_that_another_ended_meanwhile_is_not_made_again(
    store: PostgresStore, lose_next_answer: Injured
) -> None:
    lose_next_answer(meanwhile=lambda: store.queues.resume("images", by="bob"))
    assert store.queues.pause("images", by="ana") is True
    assert [view.paused_at for view in store.queues.list(of=["images"])] == [None]
    assert [row.actor for row in store.audit.list(limit=10)] == ["bob", "ana"]


@pytest.mark.parametrize("by_code", [False, True])
def test_a_schedule_is_edited_paused_resumed_and_removed_once_and_who_did_it_is_told_so(
    store: PostgresStore, lose_next_answer: Injured, by_code: bool
) -> None:
    begin = store.clock.now()
    if by_code:
        store.schedules.declare([hourly(begin)], app="shop")
    else:
        store.schedules.add(hourly(begin), by="bob")
    lose_next_answer()
    assert store.schedules.edit(hourly(begin + HOUR / 2), by="ana") is True
    for verb in (store.schedules.pause, store.schedules.resume, store.schedules.remove):
        lose_next_answer()
        assert verb("report", by="ana") is True
        assert verb("report", by="ana") is False
    done = [row.action for row in store.audit.list(limit=10, actor="ana")]
    assert done == ["remove", "resume", "pause", "edit"]
