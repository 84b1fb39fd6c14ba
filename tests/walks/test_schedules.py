"""Schedules as a program makes them: whole lives, from the code through a scheduler to the jobs, on both stores."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from lateshift import JobFilter, Lateshift, Schedule, State
from lateshift.errors import LateshiftError, OptionInvalid, ScheduleInvalid, ScheduleUnknown
from lateshift.model.scheduling.zones import zone
from lateshift.runtime.aside import aside
from lateshift.scheduler.ticker import Ticker
from lateshift.store.schedule_contract import Fired
from lateshift.testing import testing
from lateshift.testing.kit import Kit
from tests.clocks import midway
from tests.walks.waiting import until

SOON = 20
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


@pytest.fixture
def kit(app: Lateshift, store_url: str) -> Iterator[Kit]:
    """The app with a clock that the test moves and a worker that it turns."""
    with testing(app, store=store_url) as kit:
        midway(kit.clock)
        yield kit


def ticker(app: Lateshift) -> Ticker:
    """A scheduler of the app, as its start makes one."""
    return Ticker(app.store, app.name, lambda: list(app.schedules.values()))


def turn(app: Lateshift) -> None:
    """A scheduler starts, and does one round."""
    asyncio.run(ticker(app).turn())


def to_the_next_tick(kit: Kit, schedule: Schedule) -> datetime:
    """Moves the clock there, and fires it."""
    tick = schedule.view().next_at
    assert tick is not None
    kit.clock.move_to(tick)
    turn(kit.app)
    return tick


def outcomes(schedule: Schedule) -> list[str]:
    """Of its ticks, the oldest first."""
    return [tick.outcome.label for tick in reversed(schedule.view().recent)]


# -- firing -------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_running_app_fires_its_schedules_and_tells_the_task_the_time_of_the_tick(
    app: Lateshift,
) -> None:
    ticks: list[datetime] = []
    two = asyncio.Event()

    @app.task
    async def beat(at: datetime) -> None:
        ticks.append(at)
        if len(ticks) >= 2:
            two.set()

    app.schedule(beat, every=SECOND, overlap="allow", tick_as="at")
    async with asyncio.timeout(SOON), app.running():
        await two.wait()
    first, second = sorted(ticks)[:2]
    assert first.tzinfo is not None
    assert (second - first) % SECOND == timedelta(0)
    assert first.microsecond == 0  # counted from 1970, not from the start of the app


@pytest.mark.anyio
async def test_a_schedule_with_overlap_cancel_stops_its_old_job_and_starts_the_next(app: Lateshift) -> None:
    started: asyncio.Queue[datetime] = asyncio.Queue()
    stopped: list[datetime] = []

    @app.task
    async def mirror(at: datetime) -> None:
        await started.put(at)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append(at)
            raise

    schedule = app.schedule(mirror, every=SECOND, overlap="cancel", tick_as="at")
    async with asyncio.timeout(SOON), app.running():
        first = await started.get()
        second = await started.get()
        assert stopped[0] == first < second
        views = await until(
            lambda: aside(app.store.reports.jobs, JobFilter(state=State.CANCELLED), 10),
            bool,
        )
        assert views[0].task == "mirror"
        await aside(schedule.pause)


def test_turned_by_hand_a_tick_cancels_the_job_of_the_last_one(app: Lateshift, kit: Kit) -> None:
    @app.task
    def mirror() -> None: ...

    schedule = app.schedule(mirror, every=HOUR, overlap="cancel")
    turn(app)
    for _ in range(3):
        to_the_next_tick(kit, schedule)
    states = [
        app.store.reports.job(tick.job).state  # type: ignore[union-attr]
        for tick in reversed(schedule.view().recent)
        if tick.job is not None
    ]
    assert states[:2] == [State.CANCELLED, State.CANCELLED]
    assert states[2] in (State.READY, State.BLOCKED)
    assert len(kit.drain()) == 1


def test_a_scheduler_that_finds_all_that_is_due_in_the_hands_of_another_rests_a_moment(
    app: Lateshift, store_url: str
) -> None:
    def around(verb: str, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return Fired(0, timedelta(0)) if verb == "schedules.fire" else call(*args, **kwargs)

    with Kit(app, store=store_url, around=around):
        assert timedelta(0) < asyncio.run(ticker(app).turn()) < SECOND


def test_a_scheduler_fires_many_with_more_than_one_hand_and_each_once(
    app: Lateshift, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lateshift.scheduler.ticker.AT_ONCE", 10)

    @app.task
    def work() -> None: ...

    for number in range(95):
        app.schedule(work, every=HOUR, name=f"s{number}")
    mine = ticker(app)
    mine.round()
    kit.clock.move(hours=1)
    counts = []
    while fired := mine.fire().count:
        counts.append(fired)
    assert sum(counts) == 95
    assert counts[0] == 10
    assert max(counts) == (10 if app.store.one_machine else 20)
    assert len(kit.drain()) == 95


def test_arguments_options_and_calls_are_those_of_the_jobs(app: Lateshift, kit: Kit) -> None:
    ran: list[tuple[Any, ...]] = []

    @app.task
    def report(region: str, day: datetime, pages: int = 1) -> None:
        ran.append((region, day, pages))

    plain = app.schedule(
        report, cron="0 0 * * *", args=("eu",), kwargs={"pages": 2}, tick_as="day", name="plain"
    )
    app.schedule(
        report.options(queue="low", priority=5), cron="@daily", args=["us"], tick_as="day", name="low"
    )
    app.schedule(report.call("uk", datetime(2000, 1, 1, tzinfo=UTC), 3), cron="@daily", name="call")
    turn(app)
    tick = to_the_next_tick(kit, plain)
    kit.drain()
    assert sorted(ran) == [
        ("eu", tick, 2),
        ("uk", datetime(2000, 1, 1, tzinfo=UTC), 3),
        ("us", tick, 1),
    ]
    [low] = app.store.reports.jobs(JobFilter(queue="low"), 10)
    assert low.priority == 5


def test_a_tick_is_skipped_while_the_last_job_has_not_ended_and_the_next_one_after_it_fires(
    app: Lateshift, kit: Kit
) -> None:
    @app.task
    def slow() -> None: ...

    schedule = app.schedule(slow, every=HOUR)
    turn(app)
    to_the_next_tick(kit, schedule)
    to_the_next_tick(kit, schedule)
    kit.drain()
    to_the_next_tick(kit, schedule)
    assert outcomes(schedule) == ["fired", "overlap", "fired"]


def test_jitter_makes_a_job_wait_a_little_after_its_tick(app: Lateshift, kit: Kit) -> None:
    @app.task
    def spread() -> None: ...

    schedule = app.schedule(spread, every=HOUR, jitter=timedelta(minutes=30))
    turn(app)
    tick = to_the_next_tick(kit, schedule)
    [job] = app.store.reports.jobs(JobFilter(task="spread"), 10)
    assert tick < job.due_at < tick + timedelta(minutes=30)
    assert kit.drain() == []
    assert len(kit.travel(minutes=30)) == 1


def test_two_schedulers_of_an_app_fire_each_tick_once(app: Lateshift, kit: Kit) -> None:
    @app.task
    def once() -> None: ...

    schedule = app.schedule(once, every=HOUR, overlap="allow")
    turn(app)
    for _ in range(3):
        to_the_next_tick(kit, schedule)
        turn(app)
    assert (outcomes(schedule), len(kit.drain())) == (["fired"] * 3, 3)


# -- deploys ------------------------------------------------------------------------------------------------------


def of_code(name: str, store_url: str, **plan: Any) -> Lateshift:
    """A release of the shop whose code has one schedule, or none."""
    app = Lateshift("shop", store=store_url)

    @app.task
    def work() -> None: ...

    if plan:
        app.schedule(work, name=name, **plan)
    return app


def released(app: Lateshift) -> list[str]:
    """Its scheduler starts. Which schedules are there then."""
    try:
        turn(app)
        return [view.name for view in app.store.schedules.list(None, 10)]
    finally:
        app.close()


def test_a_schedule_that_the_code_gives_up_goes_when_the_next_release_starts(store_url: str) -> None:
    assert released(of_code("a", store_url, every=HOUR)) == ["a"]
    assert released(of_code("a", store_url, every=HOUR)) == ["a"]
    assert released(of_code("b", store_url, every=HOUR)) == ["b"]
    assert released(of_code("", store_url)) == []


def test_what_operators_did_to_a_schedule_of_code_stays_until_the_code_changes_it(store_url: str) -> None:
    released(of_code("a", store_url, every=HOUR))
    same = of_code("a", store_url, every=HOUR)
    same.find_schedule("a").remove(by="ana")
    assert released(same) == []
    assert released(of_code("a", store_url, every=2 * HOUR)) == ["a"]


def test_a_schedule_is_in_the_store_when_a_scheduler_has_started(app: Lateshift, kit: Kit) -> None:
    @app.task
    def work() -> None: ...

    schedule = app.schedule(work, every=HOUR, name="hourly")
    assert list(app.schedules) == ["hourly"]
    with pytest.raises(ScheduleUnknown, match="no schedule 'hourly' in the store"):
        schedule.view()
    with pytest.raises(LookupError):
        app.find_schedule("hourly")
    turn(app)
    assert app.find_schedule("hourly").view().app == app.name


# -- by hand ------------------------------------------------------------------------------------------------------


def test_a_pause_skips_ticks_and_what_is_upcoming_is_never_past(app: Lateshift, kit: Kit) -> None:
    @app.task
    def work() -> None: ...

    schedule = app.schedule(work, every=HOUR)
    turn(app)
    assert schedule.pause()
    assert not schedule.pause()
    kit.clock.move(hours=3)
    turn(app)
    assert schedule.upcoming(1)[0] > kit.clock.now()
    assert schedule.resume()
    assert not schedule.resume()
    [missed] = schedule.view().recent
    assert (missed.outcome.label, missed.count) == ("paused", 3)
    to_the_next_tick(kit, schedule)
    assert outcomes(schedule) == ["paused", "fired"]


def test_fired_by_hand_at_the_instant_of_a_tick_it_is_in_the_way_of_none(app: Lateshift, kit: Kit) -> None:
    """The clock of a test stands still, and what is written of a tick stands under its instant."""

    @app.task
    def work(at: datetime) -> None: ...

    schedule = app.schedule(work, every=HOUR, overlap="allow", tick_as="at")
    turn(app)
    tick = schedule.view().next_at
    assert tick is not None
    kit.clock.move_to(tick)
    made = {schedule.fire(), schedule.fire()}
    turn(app)
    turn(app)
    assert (len(made), outcomes(schedule)) == (2, ["by hand", "by hand", "fired"])
    assert len(kit.drain()) == 3


def test_a_removed_schedule_cannot_be_used(app: Lateshift, kit: Kit) -> None:
    @app.task
    def work() -> None: ...

    schedule = app.schedule(work, every=HOUR)
    turn(app)
    schedule.remove()
    for use in (
        schedule.view,
        schedule.upcoming,
        schedule.pause,
        schedule.resume,
        schedule.remove,
        schedule.fire,
    ):
        with pytest.raises(ScheduleUnknown, match="work"):
            use()


# -- backfill -----------------------------------------------------------------------------------------------------

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("overlap", ["skip", "allow"])
def test_a_backfill_is_a_batch_of_jobs_that_have_the_times_of_the_ticks(
    app: Lateshift, kit: Kit, overlap: Any
) -> None:
    ran: list[datetime] = []

    @app.task
    def report(region: str, day: datetime) -> None:
        assert region == "eu"
        ran.append(day)

    schedule = app.schedule(report, cron="@daily", args=("eu",), tick_as="day", overlap=overlap)
    turn(app)
    told: list[int] = []
    assert [schedule.count(BEGIN, BEGIN + timedelta(days=9), most) for most in (100, 10, 4)] == [10, 10, 4]
    batch = schedule.backfill(BEGIN, BEGIN + timedelta(days=9), told.append)
    assert app.find_batch(batch).progress().total == 10
    assert sum(told) == 10
    again = asyncio.run(schedule.abackfill(BEGIN, BEGIN + timedelta(days=9)))
    assert again == batch
    assert schedule.backfill(BEGIN, BEGIN + timedelta(days=8)) != batch
    app.find_batch(batch).job_id(9)
    kit.drain()
    assert app.find_batch(batch).progress().completed == 10
    days = [BEGIN + timedelta(days=number) for number in range(10)]
    assert sorted(set(ran)) == days
    assert ran.count(days[9]) == 1
    assert outcomes(schedule) == []  # it is no tick, and does not skip one


def test_a_backfill_of_a_unique_task_has_a_job_for_each_tick_and_ends(app: Lateshift, kit: Kit) -> None:
    @app.task(unique=True)
    def clean() -> None: ...

    schedule = app.schedule(clean, cron="@daily")
    turn(app)
    batch = schedule.backfill(BEGIN, BEGIN + timedelta(days=2))
    kit.drain()
    assert app.find_batch(batch).progress().finished


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [
        (BEGIN, BEGIN - HOUR, "from the earlier time to the later"),
        (BEGIN + HOUR, BEGIN + 2 * HOUR, "no tick from 2026-01-01 01:00 to 2026-01-01 02:00"),
        (BEGIN, datetime(2999, 1, 1, tzinfo=UTC), "of the past"),
        (BEGIN.replace(tzinfo=None), BEGIN, "start is a datetime with a time zone"),
        (BEGIN, "tomorrow", "end is a datetime with a time zone"),
    ],
)
def test_a_backfill_that_cannot_be_is_refused(
    app: Lateshift, kit: Kit, start: datetime, end: Any, said: str
) -> None:
    @app.task
    def work() -> None: ...

    schedule = app.schedule(work, cron="@daily")
    turn(app)
    with pytest.raises(OptionInvalid, match=said):
        schedule.backfill(start, end)
    assert kit.enqueued() == []


# -- wrong calls --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda app, work: app.schedule(work), "one of cron, every and at"),
        (lambda app, work: app.schedule(work, cron="61 * * * *"), "minute that cannot be: '61'"),
        (lambda app, work: app.schedule(work, cron="@daily", timezone="Madrid"), "Did you mean Europe/Madrid"),
        (lambda app, work: app.schedule(work, every=SECOND / 2), "at least 1 s"),
        (lambda app, work: app.schedule(work, every=60), "every is a timedelta"),
        (lambda app, work: app.schedule(work, cron="@daily", overlap="no"), "allow, skip, queue, cancel"),
        (lambda app, work: app.schedule(work, cron="@daily", catch_up="some"), "none, last, all"),
        (lambda app, work: app.schedule(work, cron="@daily", catch_up="all"), 'Say overlap="allow" to have them all'),
        (lambda app, work: app.schedule(work, cron="@daily", catch_up="all", overlap="cancel"), 'or catch_up="last" for one'),
        (lambda app, work: app.schedule(work, cron="@daily", most=0), "from 1 to 1,000"),
        (lambda app, work: app.schedule(work, cron="@daily", grace=timedelta(0)), "longer than nothing"),
        (lambda app, work: app.schedule(work, cron="@daily", jitter=-SECOND), "jitter"),
        (lambda app, work: app.schedule(work, cron="@daily", name=""), "1 to 200 characters"),
        (lambda app, work: app.schedule(work.options(key="k"), cron="@daily"), "Leave key= out"),
        (lambda app, work: app.schedule(work.options(delay=HOUR), cron="@daily"), "leave delay= and at= out"),
        (
            lambda app, work: app.schedule(work.options(session="s", sequence=1), cron="@daily"),
            "Leave sequence= out",
        ),
        (lambda app, work: app.schedule(work, cron="@daily", tick_as="day"), "no parameter of that name. It has: number"),
        (lambda app, work: app.schedule(work, cron="@daily", tick_as="number"), "number"),
        (lambda app, work: app.schedule(work.options(unique=True), cron="@daily", tick_as="number"), "number"),
        (lambda app, work: app.schedule(work, cron="@daily", args=("x",)), "argument 'number': expected `int`"),
        (lambda app, work: app.schedule(work, cron="@daily", kwargs={"other": 1}), "other"),
        (lambda app, work: app.schedule(work, cron="@daily", args=5), "args is a list"),
        (lambda app, work: app.schedule(work, cron="@daily", args="ab"), "args is a list"),
        (lambda app, work: app.schedule(work, cron="@daily", kwargs=[1]), "kwargs is a dict"),
        (lambda app, work: app.schedule(work.call(1), cron="@daily", args=(1,)), "A call has its arguments"),
        (lambda app, work: app.schedule(print, cron="@daily"), "takes a task"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_refused_where_it_is_made_and_leaves_nothing(
    app: Lateshift, wrong: Callable[[Lateshift, Any], Schedule], said: str
) -> None:
    @app.task
    def work(number: int = 0) -> None: ...

    with pytest.raises(LateshiftError, match=said):
        wrong(app, work)
    assert dict(app.schedules) == {}


def test_a_task_of_another_app_and_a_name_that_is_taken_are_refused(app: Lateshift) -> None:
    other = Lateshift("other", store=app.settings.store)

    @other.task
    def elsewhere() -> None: ...

    @app.task
    def work() -> None: ...

    with pytest.raises(LateshiftError, match="'elsewhere' is not one of this app"):
        app.schedule(elsewhere, cron="@daily")
    app.schedule(work, cron="@daily")
    with pytest.raises(
        ScheduleInvalid, match=r"two schedules 'work' in this app. Give one of them another name="
    ):
        app.schedule(work, cron="@hourly")
    app.schedule(work, cron="@hourly", name="more work")
    assert sorted(app.schedules) == ["more work", "work"]


def test_a_tick_is_told_as_its_parameter_takes_it(app: Lateshift, kit: Kit) -> None:
    """Half past midnight in Madrid is the evening before in UTC."""
    ran: dict[str, Any] = {}

    @app.task
    def instant(day: datetime) -> None:
        ran["instant"] = day

    @app.task
    def text(day: str, more: int = 0) -> None:
        ran["text"] = day

    @app.task
    def local(day: date) -> None:
        ran["local"] = day

    @app.task
    def maybe(region: str, day: date | None = None) -> None:
        ran["maybe"] = day

    when: dict[str, Any] = {"cron": "30 0 * * *", "timezone": "Europe/Madrid", "tick_as": "day"}
    first = app.schedule(instant, **when)
    app.schedule(text, **when)
    app.schedule(local, **when)
    app.schedule(maybe.call("eu"), **when)
    turn(app)
    tick = to_the_next_tick(kit, first)
    kit.drain()
    day = tick.astimezone(zone("Europe/Madrid")).date()
    assert day != tick.date()
    assert ran == {"instant": tick, "text": f"{tick:%Y-%m-%dT%H:%M:%SZ}", "local": day, "maybe": day}
    app.find_schedule("local").fire()
    batch = app.find_schedule("local").backfill(tick - timedelta(hours=25), tick)  # a day, however long
    kit.drain()
    assert app.find_batch(batch).progress().completed == 2
    assert ran["local"] == day


def test_a_parameter_that_takes_no_tick_is_refused(app: Lateshift) -> None:
    @app.task
    def report(day: int) -> None: ...

    @app.task(unique=True)
    def once(at: datetime) -> None: ...

    with pytest.raises(ScheduleInvalid, match="a tick is a datetime in UTC, or a date"):
        app.schedule(report.call(1), cron="@daily", tick_as="day")
    with pytest.raises(LateshiftError, match="argument 'day'"):
        app.schedule(report, cron="@daily", tick_as="day")
    with pytest.raises(ScheduleInvalid, match="unique= has no say"):
        app.schedule(once, cron="@daily", tick_as="at")


def test_a_program_with_a_time_that_has_passed_starts_and_the_log_says_that_it_never_fires(
    app: Lateshift, kit: Kit, caplog: pytest.LogCaptureFixture
) -> None:
    """What has fired stands in the code still, and must not stop the next release from starting."""

    @app.task
    def work() -> None: ...

    app.schedule(work, at=datetime(2020, 1, 1, tzinfo=UTC), name="long ago")
    app.schedule(work, every=HOUR, name="hourly")
    turn(app)
    assert (
        "schedule long ago never fires: its time has passed. Name a time to come, or take it out"
        in caplog.text
    )
    assert "schedule hourly never" not in caplog.text
    caplog.clear()
    turn(app)
    assert "never fires" not in caplog.text
