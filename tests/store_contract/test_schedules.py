"""Schedules: each tick is decided once, and makes the job that its plan says, whoever looks and whenever."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from lateshift.clock import ManualClock
from lateshift.model.ids import JobId
from lateshift.model.job import NewJob, Place, State
from lateshift.model.scheduling.plan import Outcome, Plan
from lateshift.model.scheduling.schedule import NewSchedule, ScheduleView, Tick
from lateshift.model.scheduling.timing import Timing
from lateshift.schedules import one_at_a_time
from lateshift.store import postgres, sqlite
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from lateshift.store.postgres import PostgresStore
from lateshift.store.schedule_contract import ScheduleTally
from tests.store_contract.driving import GUARDED, Supervisor, Worker, make_job, only, query, see

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def begin(clock: ManualClock) -> datetime:
    """Half an hour from now; hourly ticks are counted from it."""
    return (clock.now() + HOUR / 2).replace(microsecond=0)


def hourly(begin: datetime, name: str = "report", job: NewJob | None = None, **plan: Any) -> NewSchedule:
    timing = Timing(every=HOUR, start=begin)
    return NewSchedule(name=name, plan=Plan(timing=timing, **plan), job=job or make_job())


def fire(store: Store) -> int:
    """Until nothing is due any more. Gives how many schedules were."""
    count = 0
    while (fired := store.schedules.fire(100)).count:
        count += fired.count
    return count


def seen(store: Store, name: str = "report") -> ScheduleView:
    view = store.schedules.get(name)
    assert view is not None
    return view


def outcomes(store: Store, name: str = "report") -> list[Outcome]:
    """Of its ticks, the oldest first."""
    return [tick.outcome for tick in reversed(seen(store, name).recent)]


def jobs(store: Store, name: str = "report") -> list[JobId]:
    return [tick.job for tick in reversed(seen(store, name).recent) if tick.job is not None]


def test_a_tick_makes_one_job_however_often_it_is_looked_for(
    store: Store, worker: Worker, clock: ManualClock, begin: datetime
) -> None:
    store.schedules.add(hourly(begin), by="ana")
    assert fire(store) == 0
    clock.move(minutes=30)
    assert (fire(store), fire(store)) == (1, 0)
    [tick] = seen(store).recent
    assert (tick.at, tick.outcome, tick.count) == (begin, Outcome.FIRED, 1)
    [lease] = worker.lease(10)
    assert lease.id == tick.job


def test_until_the_next_tick_it_says_how_long_that_is(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    assert store.schedules.fire(10).next_in is None
    store.schedules.add(hourly(begin), by="ana")
    waits = store.schedules.fire(10).next_in
    assert waits is not None
    assert HOUR / 2 - MINUTE < waits <= HOUR / 2
    clock.move(minutes=30)
    fire(store)
    waits = store.schedules.fire(10).next_in
    assert waits is not None
    assert HOUR - MINUTE < waits <= HOUR


def test_the_jobs_of_many_schedules_are_made_in_one_commit_each_as_its_own_call_says(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    for number in range(30):
        job = make_job(task=f"task {number % 3}", payload=b'{"n":%d}' % number)
        store.schedules.add(hourly(begin, f"s{number:02}", job), by="ana")
    clock.move(minutes=30)
    assert store.schedules.fire(100).count == 30
    for number in range(30):
        [job_id] = jobs(store, f"s{number:02}")
        view = see(store, job_id)
        assert (view.task, view.payload) == (f"task {number % 3}", b'{"n":%d}' % number)


def test_of_hundreds_each_goes_on_by_its_own_plan_with_its_own_job(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    """Plain ones, some that start at random, some that know their tick, some that something guards, in two queues."""
    plans: list[dict[str, Any]] = [{}, {"jitter": 50 * MINUTE}, {"tick_as": "n"}, {"overlap": "allow"}]
    sessions = [Place(session="s") if number % 50 == 9 else None for number in range(530)]
    told = [
        hourly(
            begin,
            f"s{number:03}",
            make_job(queue=f"q{number % 2}", payload=b'{"n":%d}' % number, place=place),
            **plans[number % 4],
        )
        for number, place in enumerate(sessions)
    ]
    store.schedules.declare(told, app="shop")
    clock.move(minutes=30)
    assert fire(store) == 530
    tick = b'{"n":"%s"}' % begin.strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    for number, new in enumerate(told):
        view = seen(store, new.name)
        assert (view.cursor, view.next_at) == (begin, begin + HOUR)
        [job] = jobs(store, new.name)
        made = see(store, job)
        assert made.payload == (tick if number % 4 == 2 else new.job.payload)
        assert (made.queue, made.session) == (f"q{number % 2}", "s" if sessions[number] else None)
        assert (made.due_at > made.created_at) == (made.state is State.SCHEDULED)
    clock.move(hours=1)
    assert fire(store) == 530
    for number, new in enumerate(told):
        again = Outcome.FIRED if number % 4 == 3 else Outcome.OVERLAP
        assert outcomes(store, new.name) == [Outcome.FIRED, again]
    rows = store.schedules.ticks(begin, 2000)
    assert len({(row.at, row.schedule, row.generation) for row in rows}) == len(rows) == 1060
    assert {row.job for row in rows} - {None} == {job for new in told for job in jobs(store, new.name)}


@pytest.mark.parametrize(
    ("periods", "jitter"),
    [([HOUR], timedelta(0)), ([HOUR], 50 * MINUTE), ([HOUR, 2 * HOUR], timedelta(0))],
    ids=["alike", "at random", "of two periods"],
)
def test_of_hundreds_in_one_commit_nothing_changes_but_their_ticks(
    store: Store, clock: ManualClock, begin: datetime, periods: list[timedelta], jitter: timedelta
) -> None:
    told = []
    for number in range(230):
        timing = Timing(every=periods[number % len(periods)], start=begin)
        plan = Plan(timing=timing, overlap="allow", jitter=jitter)
        told.append(NewSchedule(name=f"s{number:03}", plan=plan, job=make_job(payload=b"[%d]" % number)))
    store.schedules.declare(told, app="shop")
    before = store.schedules.list(None, 2000)
    clock.move(minutes=30)
    assert store.schedules.fire(2000).count == 230
    after = store.schedules.list(None, 2000)
    assert len(after) == 230
    for old, view, new in zip(before, after, told, strict=True):
        [tick] = view.recent
        every = periods[int(view.name[1:]) % len(periods)]
        job = structs.replace(old.job, id=view.job.id)  # which means nothing
        assert view == structs.replace(old, job=job, cursor=begin, next_at=begin + every, recent=[tick])
        assert tick == Tick(at=begin, outcome=Outcome.FIRED, job=tick.job)
        assert tick.job is not None
        made = see(store, tick.job)
        assert (made.task, made.payload) == (new.job.spec.task, new.job.payload)
        assert made.state is (State.SCHEDULED if made.due_at > made.created_at else State.READY)
        assert begin <= made.due_at <= max(made.created_at, begin + jitter)
    rows = store.schedules.ticks(begin, 2000)
    assert [(row.at, row.until, row.count, row.outcome) for row in rows] == [
        (begin, begin, 1, Outcome.FIRED)
    ] * 230
    assert {(row.schedule, row.generation, row.job) for row in rows} == {
        (view.name, view.generation, view.recent[0].job) for view in after
    }
    clock.move(hours=2)
    assert store.schedules.fire(2000).count == 230
    for old, view in zip(after, store.schedules.list(None, 2000), strict=True):
        assert view.recent[-1:] == old.recent
        assert view.cursor == begin + 2 * HOUR


def test_no_more_schedules_are_decided_at_once_than_asked_for(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    for number in range(5):
        store.schedules.add(hourly(begin, f"s{number}"), by="ana")
    clock.move(minutes=30)
    assert [store.schedules.fire(2).count for _ in range(4)] == [2, 2, 1, 0]


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("allow", [Outcome.FIRED, Outcome.FIRED, Outcome.FIRED]),
        ("skip", [Outcome.FIRED, Outcome.OVERLAP, Outcome.OVERLAP]),
        ("queue", [Outcome.FIRED, Outcome.FIRED, Outcome.OVERLAP]),
        ("cancel", [Outcome.FIRED, Outcome.FIRED, Outcome.FIRED]),
    ],
)
def test_a_run_longer_than_its_period_is_met_as_the_overlap_rule_says(
    store: Store, clock: ManualClock, begin: datetime, overlap: str, expected: list[Outcome]
) -> None:
    store.schedules.add(hourly(begin, overlap=overlap), by="ana")
    clock.move(minutes=-30)
    for _ in range(3):
        clock.move(hours=1)
        fire(store)
    assert outcomes(store) == expected


def test_when_the_last_job_has_ended_the_next_tick_fires(
    store: Store, worker: Worker, clock: ManualClock, begin: datetime
) -> None:
    store.schedules.add(hourly(begin, overlap="skip"), by="ana")
    clock.move(minutes=30)
    fire(store)
    [running] = worker.lease(10)
    worker.settle(running)
    clock.move(hours=1)
    fire(store)
    assert outcomes(store) == [Outcome.FIRED, Outcome.FIRED]


def cancelling(begin: datetime, name: str = "report") -> NewSchedule:
    """As `app.schedule` makes it: its jobs never run beside each other."""
    job = one_at_a_time(make_job(time_limit=None), name)
    return hourly(begin, name, job, overlap="cancel")


def test_the_commit_that_makes_the_next_job_cancels_one_that_waits(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    store.schedules.add(cancelling(begin), by="ana")
    store.schedules.add(hourly(begin, "other", overlap="skip"), by="ana")
    clock.move(minutes=30)
    fire(store)
    clock.move(hours=1)
    assert store.schedules.fire(100).count == 2
    first, second = jobs(store)
    [other] = jobs(store, "other")
    states = [see(store, job).state for job in (first, second, other)]
    assert states == [State.CANCELLED, State.READY, State.READY]
    assert see(store, first).reason == "cancelled by the next tick of its schedule"
    [[subject]] = query(store, "SELECT subject FROM {audit} WHERE action = {}", "cancel")
    assert subject == str(first)


def test_the_commit_that_makes_the_next_job_tells_one_that_runs_to_stop(
    store: Store, worker: Worker, clock: ManualClock, begin: datetime
) -> None:
    store.schedules.add(cancelling(begin), by="ana")
    clock.move(minutes=30)
    fire(store)
    [running] = worker.lease(10, GUARDED)
    for waiting in (1, 2):  # the second tick finds two of its jobs
        clock.move(hours=1)
        fire(store)
        assert see(store, running.id).cancel_requested
        assert [order.id for order in store.jobs.stop_orders(worker.id)] == [running.id]
        assert worker.lease(10, GUARDED) == []
        states = [see(store, job).state for job in jobs(store)[1:]]
        assert states[:-1] == [State.CANCELLED] * (waiting - 1)
        assert not states[-1].settled
    worker.settle(running)
    assert [lease.id for lease in worker.lease(10, GUARDED)] == [jobs(store)[-1]]


def test_a_job_that_has_ended_is_not_cancelled_by_the_next_tick(
    store: Store, worker: Worker, clock: ManualClock, begin: datetime
) -> None:
    store.schedules.add(cancelling(begin), by="ana")
    clock.move(minutes=30)
    fire(store)
    [running] = worker.lease(10, GUARDED)
    worker.settle(running)
    clock.move(hours=1)
    fire(store)
    assert see(store, running.id).state is State.COMPLETED
    assert query(store, "SELECT 1 FROM {audit} WHERE action = {}", "cancel") == []


def test_if_the_commit_fails_the_old_job_is_not_cancelled_and_there_is_no_new_one(
    store: Store, clock: ManualClock, begin: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(point: str) -> None:
        if point == "schedule.before_commit":
            raise RuntimeError(point)

    store.schedules.add(cancelling(begin), by="ana")
    clock.move(minutes=30)
    fire(store)
    clock.move(hours=1)
    for schedules in (sqlite.schedules, postgres.schedules):
        monkeypatch.setattr(schedules, "crashpoint", die)
    with pytest.raises(RuntimeError):
        store.schedules.fire(100)
    [only] = jobs(store)
    assert see(store, only).state is State.READY
    monkeypatch.undo()
    assert fire(store) == 1
    assert see(store, only).state is State.CANCELLED


def test_what_guards_a_job_that_a_tick_cancels_is_given_on(
    store: Store, worker: Worker, clock: ManualClock, begin: datetime
) -> None:
    place = Place(session="shop")
    job = one_at_a_time(make_job(place=place), "report")
    store.schedules.add(hourly(begin, job=job, overlap="cancel"), by="ana")
    clock.move(minutes=30)
    fire(store)
    follower = make_job(place=place)
    store.jobs.enqueue([follower])
    clock.move(hours=1)
    fire(store)
    first, second = jobs(store)
    assert see(store, first).state is State.CANCELLED
    assert [lease.id for lease in worker.lease(10, GUARDED)] == [follower.id]
    assert not see(store, second).state.settled


@pytest.mark.parametrize(
    ("catch_up", "fired", "skipped"),
    [("none", 0, 10), ("last", 1, 9), ("all", 4, 6)],
)
def test_ticks_that_nobody_was_there_for_are_caught_up_as_the_plan_says_and_the_rest_is_recorded(
    store: Store, clock: ManualClock, begin: datetime, catch_up: str, fired: int, skipped: int
) -> None:
    store.schedules.add(hourly(begin, overlap="allow", catch_up=catch_up, most=4), by="ana")
    clock.move(hours=10, minutes=15)  # the last tick was three quarters of an hour ago
    fire(store)
    recent = seen(store).recent
    assert sum(tick.count for tick in recent if tick.outcome is Outcome.FIRED) == fired
    [late] = [tick for tick in recent if tick.outcome is Outcome.TOO_LATE]
    assert (late.at, late.count) == (begin, skipped)
    assert fire(store) == 0
    rows = store.schedules.ticks(begin, 100)
    assert sum(row.count for row in rows) == 10
    assert {row.schedule for row in rows} == {"report"}


def test_a_tick_within_its_grace_is_not_late(store: Store, clock: ManualClock, begin: datetime) -> None:
    store.schedules.add(hourly(begin, catch_up="none", grace=timedelta(minutes=20)), by="ana")
    clock.move(minutes=45)
    fire(store)
    assert outcomes(store) == [Outcome.FIRED]


def test_a_clock_that_goes_back_fires_nothing_twice(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    store.schedules.add(hourly(begin, overlap="allow"), by="ana")
    clock.move(minutes=30)
    fire(store)
    clock.move(hours=-1)
    assert fire(store) == 0
    clock.move(hours=1)
    assert fire(store) == 0
    clock.move(hours=1)
    fire(store)
    assert [tick.at for tick in reversed(seen(store).recent)] == [begin, begin + HOUR]


def test_a_paused_schedule_fires_nothing_and_what_it_missed_is_recorded_when_it_is_resumed(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    store.schedules.add(hourly(begin, catch_up="all"), by="ana")
    assert store.schedules.pause("report", by="bo")
    assert not store.schedules.pause("report", by="bo")
    assert seen(store).paused_by == "bo"
    clock.move(hours=3)
    assert fire(store) == 0
    assert store.schedules.resume("report", by="bo")
    assert not store.schedules.resume("report", by="bo")
    [missed] = seen(store).recent
    assert (missed.outcome, missed.count, missed.at) == (Outcome.PAUSED, 3, begin)
    assert fire(store) == 0
    clock.move(minutes=30)
    fire(store)
    assert outcomes(store) == [Outcome.PAUSED, Outcome.FIRED]


def test_a_removed_schedule_is_gone_and_one_of_the_same_name_begins_anew(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    store.schedules.add(hourly(begin), by="ana")
    clock.move(minutes=30)
    assert store.schedules.remove("report", by="bo")
    assert not store.schedules.remove("report", by="bo")
    assert (store.schedules.get("report"), store.schedules.list(None, 10), fire(store)) == (None, [], 0)
    assert store.schedules.add(hourly(begin), by="ana")
    assert fire(store) == 0
    clock.move(hours=1)
    fire(store)
    assert outcomes(store) == [Outcome.FIRED]


def test_a_name_is_taken_once(store: Store, begin: datetime) -> None:
    assert store.schedules.add(hourly(begin), by="ana")
    assert not store.schedules.add(hourly(begin), by="bo")
    assert seen(store).changed_by == "ana"


def test_fired_by_hand_it_makes_a_job_now_besides_its_ticks(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    store.schedules.add(hourly(begin), by="ana")
    job = store.schedules.fire_now("report", by="bo")
    assert job is not None
    assert see(store, job).state is State.READY
    clock.move(minutes=30)
    fire(store)
    assert outcomes(store) == [Outcome.BY_HAND, Outcome.OVERLAP]
    assert store.schedules.fire_now("nobody", by="bo") is None


def test_what_operators_do_to_schedules_is_written_down(store: Store, begin: datetime) -> None:
    schedules = store.schedules
    schedules.add(hourly(begin), by="ana")
    schedules.edit(hourly(begin, overlap="allow"), by="bo")
    schedules.pause("report", by="cy")
    schedules.resume("report", by="di")
    schedules.fire_now("report", by="ed")
    schedules.remove("report", by="fi")
    actors = {
        action: actor for action, actor, subject in query(store, "SELECT action, actor, subject FROM {audit}")
    }
    assert actors == {"add": "ana", "edit": "bo", "pause": "cy", "resume": "di", "fire": "ed", "remove": "fi"}


def test_what_code_declares_is_added_changed_and_removed_as_the_code_is(
    store: Store, begin: datetime
) -> None:
    declare = store.schedules.declare
    told = declare([hourly(begin, "a"), hourly(begin, "b")], app="shop")
    assert (told.added, told.changed, told.removed) == (["a", "b"], [], [])
    told = declare([hourly(begin, "a"), hourly(begin, "b")], app="shop")
    assert (told.added, told.changed, told.removed) == ([], [], [])
    told = declare([hourly(begin, "a", overlap="allow"), hourly(begin, "c")], app="shop")
    assert (told.added, told.changed, told.removed) == (["c"], ["a"], ["b"])
    assert [view.name for view in store.schedules.list(None, 10)] == ["a", "c"]
    assert seen(store, "a").plan.overlap == "allow"


def test_a_program_may_have_more_than_a_thousand(store: Store, begin: datetime) -> None:
    names = [f"s{number:04}" for number in range(1050)]
    told = store.schedules.declare([hourly(begin, name) for name in names], app="shop")
    assert told.added == names
    generations = {view.name: view.generation for view in store.schedules.list(None, 2000)}
    assert list(generations) == names
    later = [hourly(begin, name, overlap="allow") for name in names[10:]]
    told = store.schedules.declare(later, app="shop")
    assert (told.added, told.changed, sorted(told.removed)) == ([], names[10:], names[:10])
    views = store.schedules.list(None, 2000)
    assert {view.plan.overlap for view in views} == {"allow"}
    assert {view.name: view.generation for view in views} == {name: generations[name] for name in names[10:]}


def test_one_app_does_not_remove_what_another_or_an_operator_has_made(store: Store, begin: datetime) -> None:
    store.schedules.add(hourly(begin, "by hand"), by="ana")
    store.schedules.declare([hourly(begin, "a")], app="shop")
    store.schedules.declare([hourly(begin, "b")], app="office")
    store.schedules.declare([], app="office")
    assert [view.name for view in store.schedules.list(None, 10)] == ["a", "by hand"]


def test_a_restart_keeps_what_operators_have_done_until_the_code_changes(
    store: Store, begin: datetime
) -> None:
    declared = [hourly(begin, "a"), hourly(begin, "b"), hourly(begin, "c")]
    store.schedules.declare(declared, app="shop")
    store.schedules.pause("a", by="ana")
    store.schedules.edit(hourly(begin, "b", overlap="queue"), by="ana")
    store.schedules.remove("c", by="ana")
    store.schedules.declare(declared, app="shop")
    assert (seen(store, "a").paused_by, seen(store, "b").plan.overlap) == ("ana", "queue")
    assert store.schedules.get("c") is None
    store.schedules.declare([hourly(begin, name, overlap="allow") for name in "abc"], app="shop")
    assert {seen(store, name).plan.overlap for name in "abc"} == {"allow"}
    assert seen(store, "a").paused_by == "ana"


def test_one_that_was_removed_while_it_was_paused_comes_back_unpaused_and_without_its_past(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    store.schedules.declare([hourly(begin)], app="shop")
    for again in (
        lambda: store.schedules.add(hourly(begin), by="ana"),
        lambda: store.schedules.declare([hourly(begin, overlap="allow")], app="shop"),
    ):
        store.schedules.fire_now("report", by="ana")
        store.schedules.pause("report", by="ana")
        store.schedules.remove("report", by="ana")
        again()
        assert (seen(store).paused_at, seen(store).paused_by, seen(store).recent) == (None, None, [])
    clock.move(minutes=30)
    fire(store)
    assert outcomes(store) == [Outcome.FIRED]


def test_a_release_that_changes_the_job_and_not_the_timing_loses_no_tick(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    store.schedules.declare([hourly(begin)], app="shop")
    clock.move(hours=1)
    store.schedules.declare([hourly(begin, job=make_job(payload=b'{"n":2}'))], app="shop")
    fire(store)
    [job] = jobs(store)
    assert see(store, job).payload == b'{"n":2}'


def test_another_timing_begins_anew_and_its_ticks_are_of_another_generation(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    store.schedules.declare([hourly(begin)], app="shop")
    before = seen(store).generation
    clock.move(hours=1)
    store.schedules.declare(
        [NewSchedule(name="report", plan=Plan(timing=Timing(every=2 * HOUR, start=begin)), job=make_job())],
        app="shop",
    )
    assert fire(store) == 0
    assert (seen(store).generation, seen(store).next_at) == (before + 1, begin + 2 * HOUR)


def test_a_schedule_that_has_had_its_last_tick_stays_to_be_seen(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    once = NewSchedule(name="once", plan=Plan(timing=Timing(at=begin)), job=make_job())
    store.schedules.add(once, by="ana")
    clock.move(minutes=30)
    fire(store)
    assert (seen(store, "once").next_at, outcomes(store, "once")) == (None, [Outcome.FIRED])


def test_a_tick_whose_call_is_unique_and_there_already_is_recorded_so(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    job = structs.replace(make_job(), unique=only("x"))
    store.schedules.add(hourly(begin, job=job, overlap="allow"), by="ana")
    clock.move(hours=1)
    fire(store)
    clock.move(hours=1)
    fire(store)
    assert outcomes(store) == [Outcome.FIRED, Outcome.DUPLICATE]
    assert len(set(jobs(store))) == 1


def test_the_time_of_the_tick_is_given_to_the_parameter_that_is_named(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    job = make_job(payload=b'{"shop":"x","day":"1970-01-01T00:00:00Z"}')
    store.schedules.add(hourly(begin, job=job, tick_as="day"), by="ana")
    clock.move(minutes=30)
    fire(store)
    [made] = jobs(store)
    assert (
        see(store, made).payload == b'{"shop":"x","day":"%s"}' % begin.strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    )


def test_jitter_spreads_the_starts_and_each_tick_always_has_the_same(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    for number in range(20):
        store.schedules.add(hourly(begin, f"s{number}", jitter=timedelta(minutes=50)), by="ana")
    clock.move(minutes=30)
    fire(store)
    starts = [see(store, job).due_at for number in range(20) for job in jobs(store, f"s{number}")]
    assert all(begin <= start < begin + timedelta(minutes=51) for start in starts)
    assert len(set(starts)) > 15


def test_several_schedulers_at_once_fire_each_tick_once(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    for number in range(50):
        store.schedules.add(hourly(begin, f"s{number:02}"), by="ana")
    clock.move(minutes=30)
    others = [open_store(store.url, clock) for _ in range(3)] if "memory" not in store.url else [store] * 3
    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(fire, [store, *others]))
    for other in others:
        if other is not store:
            other.close()
    assert sum(counts) == 50
    assert all(len(jobs(store, f"s{number:02}")) == 1 for number in range(50))


def test_new_rules_for_time_zones_move_the_next_tick_and_none_that_was(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    store.schedules.add(hourly(begin), by="ana")
    assert store.schedules.refresh(10) == 0
    wrong = begin + timedelta(days=3)
    kept = wrong if isinstance(store, PostgresStore) else int(wrong.timestamp() * 1_000_000)
    query(store, "UPDATE {schedule} SET zones = {}, next_at = {}", "1999a", kept)
    assert (store.schedules.refresh(10), store.schedules.refresh(10)) == (1, 0)
    assert seen(store).next_at == begin


def test_ticks_are_forgotten_after_their_time_and_the_newest_of_a_schedule_are_not(
    store: Store, supervisor: Supervisor, clock: ManualClock, begin: datetime
) -> None:
    store.schedules.add(hourly(begin), by="ana")
    clock.move(minutes=30)
    fire(store)
    clock.move(days=8)
    store.upkeep.purge(term=supervisor.term, limit=100)
    assert store.schedules.ticks(datetime(2000, 1, 1, tzinfo=UTC), 10) == []
    assert outcomes(store) == [Outcome.FIRED]


def test_schedules_are_counted_in_the_store_up_to_a_bound(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    assert store.schedules.tally(MINUTE, 10) == ScheduleTally(0, 0, 0, timedelta(0))
    for number in range(3):
        store.schedules.add(hourly(begin, f"each-{number}"), by="test")
    store.schedules.add(hourly(begin + 10 * HOUR, "later"), by="test")
    store.schedules.pause("each-2", by="test")
    first = store.schedules.get("each-0")
    assert first is not None
    assert first.next_at is not None
    clock.move(seconds=(first.next_at - clock.now()).total_seconds() + 120)

    tally = store.schedules.tally(MINUTE, 10)
    assert (tally.count, tally.paused, tally.late) == (4, 1, 2)
    assert timedelta(seconds=119) <= tally.latest <= timedelta(seconds=180)
    assert store.schedules.tally(3 * MINUTE, 10).late == 0
    assert store.schedules.tally(MINUTE, 1).count == 1
    assert store.schedules.tally(MINUTE, 1).late == 1


def test_a_schedule_is_late_while_nobody_decides_its_tick(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    store.schedules.add(hourly(begin), by="test")
    store.schedules.add(hourly(begin + 10 * HOUR, "later"), by="test")
    store.schedules.add(hourly(begin, "paused"), by="test")
    store.schedules.pause("paused", by="test")
    clock.move(minutes=31)

    assert store.schedules.late(2 * MINUTE, 10) == []
    clock.move(minutes=2)
    assert [view.name for view in store.schedules.late(2 * MINUTE, 10)] == ["report"]
    fire(store)
    assert store.schedules.late(2 * MINUTE, 10) == []


def missed(store: Store, since: datetime, limit: int = 10) -> list[tuple[str, int]]:
    """Which schedules, and how many ticks."""
    return [(view.name, view.recent[0].count) for view in store.schedules.missed(since, limit)]


def test_a_schedule_whose_last_ticks_were_found_too_late_has_missed_them_until_it_fires_again(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    for name, rule in (("report", "none"), ("cured", "last")):
        store.schedules.add(hourly(begin, name, grace=MINUTE, catch_up=rule), by="test")
    fire(store)
    assert missed(store, begin - HOUR) == []
    clock.move(
        hours=5, minutes=45
    )  # its first tick was half an hour after the begin; the last one a quarter ago
    fire(store)

    assert missed(store, begin - HOUR) == [("report", 6)]
    assert missed(store, clock.now() - timedelta(minutes=20)) == [("report", 6)]  # the last of them counts
    assert missed(store, clock.now() - timedelta(minutes=10)) == []

    clock.move(minutes=45)
    fire(store)
    assert missed(store, begin - HOUR) == []


def test_one_that_was_fired_by_hand_paused_or_removed_has_missed_nothing(
    store: Store, clock: ManualClock, begin: datetime
) -> None:
    for name in ("by hand", "paused", "removed", "left"):
        store.schedules.add(hourly(begin, name, grace=MINUTE, catch_up="none"), by="test")
    clock.move(hours=2, minutes=45)
    fire(store)
    assert len(missed(store, begin)) == 4

    store.schedules.fire_now("by hand", by="ann")
    store.schedules.pause("paused", by="ann")
    store.schedules.remove("removed", by="ann")

    assert missed(store, begin) == [("left", 3)]
    store.schedules.resume("paused", by="ann")
    assert missed(store, begin, limit=1) == [("paused", 3)]  # the newest first: it goes on from now
