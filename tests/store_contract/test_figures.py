"""Figures: what went on is counted once, in each grain, whoever is killed and whoever leads."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from lateshift.clock import ManualClock
from lateshift.model.figures import ALL, Figures, Grain, together
from lateshift.model.ids import new_member_id
from lateshift.store import postgres, sqlite
from lateshift.store.contract import Store
from tests.store_contract.driving import SOLO, Supervisor, Worker, added, make_job

LONG_AGO = timedelta(days=60)


def busy_minute(completed: int = 1, ran: float = 0.5) -> Figures:
    return Figures(
        started=completed, completed=completed, waited=0.2 * completed, longest=0.2, ran=ran, waits=[0, 0, completed, 0, 0, 0, 0]
    )  # fmt: skip


def total(store: Store, queue: str, grain: Grain = Grain.MINUTE) -> Figures:
    samples = store.figures.of(queue, grain, store.clock.now() - LONG_AGO)
    return together(sample.figures for sample in samples)


@pytest.mark.parametrize("grain", Grain)
def test_what_a_member_counted_stands_in_each_grain_and_in_the_sum(
    store: Store, worker: Worker, grain: Grain
) -> None:
    told = {"mail": busy_minute(2), "images": busy_minute(3, ran=7.5)}

    assert store.figures.add(worker.id, 1, told, busy=4.0)

    assert total(store, "mail", grain) == told["mail"]
    assert total(store, "images", grain) == told["images"]
    everything = total(store, ALL, grain)
    assert (everything.completed, everything.ran, everything.busy) == (5, 8.0, 4.0)


def test_what_is_told_twice_is_counted_once(store: Store, worker: Worker) -> None:
    assert store.figures.add(worker.id, 1, {"mail": busy_minute()}, busy=1.0)
    assert not store.figures.add(worker.id, 1, {"mail": busy_minute()}, busy=1.0)
    assert store.figures.add(worker.id, 2, {"mail": busy_minute()}, busy=1.0)

    assert total(store, "mail").completed == 2
    assert total(store, ALL).busy == 2.0


@pytest.mark.parametrize("survived", range(3))
def test_one_who_is_killed_while_it_tells_has_told_nothing_and_may_tell_it_again(
    store: Store, worker: Worker, monkeypatch: pytest.MonkeyPatch, survived: int
) -> None:
    told = {"mail": busy_minute(2), "images": busy_minute(3)}
    passes: list[str] = []

    def kill(point: str) -> None:
        passes.append(point)
        if len(passes) > survived:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        for module in (sqlite.figures, postgres.figures):
            patched.setattr(module, "crashpoint", kill)
        with pytest.raises(KeyboardInterrupt):
            store.figures.add(worker.id, 1, told, busy=4.0)
    before = [total(store, ALL, grain) for grain in Grain]

    assert before == [Figures()] * 3
    assert store.figures.add(worker.id, 1, told, busy=4.0)
    assert [total(store, ALL, grain).completed for grain in Grain] == [5, 5, 5]


def test_members_that_tell_of_the_same_queue_add_up(
    store: Store, worker: Worker, other_worker: Worker
) -> None:
    store.figures.add(worker.id, 1, {"mail": busy_minute(2)}, busy=1.0)
    store.figures.add(other_worker.id, 1, {"mail": busy_minute(40)}, busy=1.0)

    assert total(store, "mail").completed == 42


def test_a_member_that_is_not_known_adds_nothing(store: Store) -> None:
    assert not store.figures.add(new_member_id(), 1, {"mail": busy_minute()}, busy=1.0)
    assert total(store, ALL) == Figures()


def test_a_member_that_was_declared_dead_may_still_tell_what_it_did(store: Store, worker: Worker) -> None:
    worker.die()

    assert store.figures.add(worker.id, 1, {"mail": busy_minute()}, busy=1.0)
    assert total(store, "mail").completed == 1


def test_minutes_are_kept_apart_and_the_longest_wait_of_all_is_known(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    store.figures.add(worker.id, 1, {"mail": busy_minute(1)}, busy=1.0)
    clock.move(minutes=2)
    store.figures.add(worker.id, 2, {"mail": Figures(started=1, waited=9.0, longest=9.0)}, busy=1.0)

    minutes = store.figures.of("mail", Grain.MINUTE, clock.now() - timedelta(hours=1))

    assert [(it.figures.started, it.figures.longest) for it in minutes] == [(1, 0.2), (1, 9.0)]
    assert minutes[1].at - minutes[0].at in (timedelta(minutes=2), timedelta(minutes=3))
    assert minutes[0].at == Grain.MINUTE.begins(minutes[0].at)
    assert total(store, "mail", Grain.HOUR).longest == 9.0


def test_only_what_was_asked_for_is_given(store: Store, worker: Worker, clock: ManualClock) -> None:
    store.figures.add(worker.id, 1, {"mail": busy_minute(1)}, busy=1.0)
    clock.move(minutes=30)

    assert store.figures.of("mail", Grain.MINUTE, clock.now() - timedelta(minutes=20)) == []
    assert store.figures.by_queue(Grain.MINUTE, clock.now() - timedelta(minutes=20), 10) == {}


def test_the_backlog_and_the_workers_are_sampled_once_in_a_minute(
    store: Store, supervisor: Supervisor, clock: ManualClock
) -> None:
    clock.move(seconds=60 - clock.now().second)  # so that no minute ends in the middle

    assert store.figures.sample(term=supervisor.term, backlog={"mail": 7, "images": 0}, workers=3)
    assert not store.figures.sample(term=supervisor.term, backlog={"mail": 9}, workers=3)
    clock.move(minutes=1)
    assert store.figures.sample(term=supervisor.term, backlog={"mail": 2}, workers=3)

    assert total(store, ALL, Grain.HOUR).present >= 180.0
    assert total(store, ALL).present == 360.0
    assert total(store, "mail").backlog == total(store, ALL).backlog == 7
    assert total(store, "images") == Figures()


def test_a_server_samples_what_no_supervisor_has_and_nothing_twice(
    store: Store, supervisor: Supervisor, clock: ManualClock
) -> None:
    clock.move(seconds=60 - clock.now().second)

    assert store.figures.sample(term=None, backlog={"mail": 7}, workers=0)
    assert not store.figures.sample(term=None, backlog={"mail": 9}, workers=1)
    assert not store.figures.sample(term=supervisor.term, backlog={"mail": 9}, workers=1)
    assert (total(store, ALL).backlog, total(store, ALL).present) == (7, 0.0)


@pytest.mark.parametrize("grain", Grain)
def test_it_is_known_in_which_periods_somebody_told_what_waits(
    store: Store, worker: Worker, clock: ManualClock, grain: Grain
) -> None:
    clock.move(seconds=60 - clock.now().second)
    began = clock.now()
    store.figures.sample(term=None, backlog={}, workers=0)
    clock.move(hours=2)
    store.figures.add(worker.id, 1, {"mail": busy_minute()}, busy=1.0)

    assert store.figures.sampled(grain, grain.begins(began)) == {grain.begins(began)}
    assert store.figures.sampled(grain, began + timedelta(hours=1)) == set()


def test_of_many_that_sample_at_once_one_does(store: Store, clock: ManualClock) -> None:
    clock.move(seconds=60 - clock.now().second)
    with ThreadPoolExecutor(4) as pool:
        done = [
            pool.submit(store.figures.sample, term=None, backlog={"mail": 7}, workers=1) for _ in range(8)
        ]

    assert sorted(it.result() for it in done) == [False] * 7 + [True]
    assert total(store, ALL).present == 60.0


def test_a_supervisor_whose_term_is_over_samples_nothing(store: Store, supervisor: Supervisor) -> None:
    assert not store.figures.sample(term=supervisor.term + 1, backlog={"mail": 7}, workers=3)
    assert total(store, ALL) == Figures()


def test_the_queues_that_ran_longest_come_first(store: Store, worker: Worker, clock: ManualClock) -> None:
    told = {"a": busy_minute(9, ran=1.0), "b": busy_minute(1, ran=30.0), "c": busy_minute(1, ran=2.0)}
    store.figures.add(worker.id, 1, told, busy=1.0)

    found = store.figures.by_queue(Grain.HOUR, clock.now() - timedelta(hours=2), 2)

    assert list(found) == ["b", "c"]
    assert found["b"] == told["b"]


def test_each_grain_is_kept_for_its_time(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    store.figures.add(worker.id, 1, {"mail": busy_minute()}, busy=1.0)
    left = []
    for grain in Grain:
        clock.move(seconds=(grain.kept + grain.step).total_seconds())
        supervisor.purge()
        left.append([bool(store.figures.of("mail", it, clock.now() - LONG_AGO)) for it in Grain])

    assert left == [[False, True, True], [False, False, True], [False, False, False]]


def test_attempts_that_the_supervisor_took_back_are_counted_with_it(
    store: Store, worker: Worker, supervisor: Supervisor
) -> None:
    added(store, make_job(queue="default"))
    for _ in range(3):
        taker = Worker(store)
        leases = taker.lease() or taker.lease(line=SOLO)
        assert leases
        taker.die()
        supervisor.sweep()

    counted = total(store, "default")
    assert (counted.retried, counted.dead) == (2, 1)


def test_a_lease_says_how_long_its_job_has_waited(store: Store, worker: Worker, clock: ManualClock) -> None:
    added(store, make_job(), make_job(delay=timedelta(minutes=2)))
    clock.move(minutes=1)
    at_once = worker.lease_one()
    clock.move(minutes=2)
    store.jobs.promote(10)
    delayed = worker.lease_one()

    assert 60 <= at_once.waited < 90
    assert 60 <= delayed.waited < 90
