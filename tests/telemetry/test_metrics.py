"""Metrics, of a store in which something goes on, and of a process."""

import asyncio
import re
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from lateshift import Breaker, Flow, Lateshift, Permanent
from lateshift.clock import SYSTEM
from lateshift.errors import JobDead
from lateshift.model.ids import new_member_id
from lateshift.operating.queues import empty
from lateshift.runtime.loop import drive
from lateshift.store.contract import MemberView
from lateshift.telemetry import liveness, looking, measures, metrics
from lateshift.telemetry.liveness import LATE_AFTER, LEAST_INTERVAL, ages, living
from lateshift.telemetry.looking import look
from lateshift.telemetry.measures import BUCKETS, OTHERS, TASKS_COUNTED, Histogram, Measures, Process
from lateshift.telemetry.metrics import exposition, text_of
from lateshift.testing import Kit
from lateshift.worker import worker
from lateshift.worker.service import introduce
from tests.clocks import midway
from tests.telemetry.reading import of, read
from tests.walks.commands import Cli

SOON = timedelta(seconds=20)
DOCS = Path(__file__).parents[2] / "docs"


def test_of_more_than_so_many_the_first_are_told_of_and_that_there_are_more(
    app: Lateshift, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "SEEN_MOST", 2)
    for name in ("a", "c"):
        app.store.queues.pause(name, by="somebody")

    @app.task(queue="b", breaker=Breaker())
    def ready() -> None: ...

    @app.task(queue="d")
    def other() -> None: ...

    kit.drain()
    found = read(exposition(app.store))
    assert of(found, "lateshift_cut", of="queues") == 0
    ready.enqueue()
    other.enqueue()
    found = read(exposition(app.store))
    assert of(found, "lateshift_jobs", queue="b", state="ready") == 1
    assert 'queue="c"' not in exposition(app.store)
    cut = {
        of_what: of(found, "lateshift_cut", of=of_what)
        for of_what in ("queues", "members", "breakers", "triggers")
    }
    assert cut == {"queues": 1, "members": 0, "breakers": 0, "triggers": 0}
    assert [view.name for view in app.store.queues.list(limit=3)] == ["a", "b", "c"]
    assert [view.name for view in app.store.queues.list(limit=2)] == ["b", "d"]  # that have ready jobs
    assert app.store.triggers.all(0) == []
    assert app.store.reports.members(0) == []


def test_queues_breakers_schedules_and_batches_are_told_of(app: Lateshift, kit: Kit) -> None:
    @app.task(queue="images", breaker=Breaker())
    def thumbnail(path: str) -> None: ...

    @app.task(queue="mail")
    def send() -> None: ...

    @app.task(queue="dead")
    def fails() -> None:
        raise Permanent("no")

    dead = fails.enqueue()
    kit.drain()
    for _ in range(3):
        thumbnail.enqueue("cat.png")
    send.options(delay=timedelta(hours=1)).enqueue()
    app.batch(send.call() for _ in range(5))
    app.store.queues.pause("mail", by="somebody")
    kit.clock.move(minutes=2)

    found = read(exposition(app.store))

    assert dead.view().reason == "permanent"
    assert of(found, "lateshift_jobs", queue="images", state="ready") == 3
    assert of(found, "lateshift_jobs", queue="mail", state="scheduled") == 1
    assert of(found, "lateshift_jobs", queue="dead", state="dead") == 1
    assert 120 <= of(found, "lateshift_oldest_ready_seconds", queue="images") < 180
    assert of(found, "lateshift_queue_paused", queue="mail") == 1
    assert of(found, "lateshift_batches_open") == 1
    assert of(found, "lateshift_batch_jobs_left") == 5
    assert of(found, "lateshift_schedules") == 0


def test_an_open_breaker_and_what_it_parks_are_told_of(app: Lateshift, kit: Kit) -> None:
    @app.task(breaker=Breaker())
    def bank() -> None: ...

    bank.enqueue()
    kit.drain()
    app.store.breakers.open("bank", by="somebody")
    for _ in range(3):
        bank.enqueue()
    kit.drain()

    found = read(exposition(app.store))

    assert of(found, "lateshift_breaker_state", breaker="bank", state="open") == 1
    assert of(found, "lateshift_breaker_state", breaker="bank", state="closed") == 0
    assert of(found, "lateshift_breaker_parked", breaker="bank") == 3


def test_a_schedule_whose_tick_nobody_decides_is_late(app: Lateshift, kit: Kit) -> None:
    @app.task
    def report() -> None: ...

    midway(kit.clock)
    app.schedule(report, every=timedelta(minutes=10), name="often")
    app.schedule(report, every=timedelta(days=30), name="seldom")
    kit.drain()
    asyncio.run(app.ticker().turn())
    kit.clock.move(minutes=15)  # nobody turns a ticker

    found = read(exposition(app.store))

    assert of(found, "lateshift_schedules") == 2
    assert of(found, "lateshift_schedules_late") == 1
    assert of(found, "lateshift_schedule_lateness_seconds") >= 300


def test_events_of_jobs_that_nobody_sends_on_are_told_of(app: Lateshift, kit: Kit) -> None:
    @app.task
    def charge() -> None: ...

    found = read(exposition(app.store))
    assert of(found, "lateshift_replies_waiting") == 0
    assert of(found, "lateshift_oldest_reply_seconds") == 0
    for _ in range(2):
        charge.options(reply_to="channel:orders").enqueue()
        kit.clock.move(minutes=2)

    found = read(exposition(app.store))

    assert of(found, "lateshift_replies_waiting") == 2
    assert 230 < of(found, "lateshift_oldest_reply_seconds") < 300


def test_a_workflow_that_is_held_is_told_of(app: Lateshift, kit: Kit) -> None:
    @app.task
    def charge() -> None:
        raise Permanent("no money")

    @app.workflow(on_failure="hold")
    async def fulfil(flow: Flow) -> None:
        await flow.step(charge)

    fulfil.enqueue()
    kit.drain()

    assert of(read(exposition(app.store)), "lateshift_workflows_held") == 1


@pytest.mark.anyio
async def test_members_tell_of_their_attempts_and_the_process_of_its_own(
    app: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = Process()  # one in which other tests have run would count this task among the others
    monkeypatch.setattr(worker, "PROCESS", new)
    monkeypatch.setattr(metrics, "PROCESS", new)

    @app.task
    async def pack(order: int) -> None:
        if order < 0:
            raise Permanent("no order")

    async with app.running():
        jobs = [await pack.aenqueue(number) for number in (1, 2, -1)]
        await jobs[1].aresult(SOON)
        with suppress(JobDead):
            await jobs[2].aresult(SOON)
        while True:  # twice a second, members tell
            text = await asyncio.to_thread(exposition, app.store)
            if re.search(r'^lateshift_attempts_total.*"dead"', text, flags=re.MULTILINE):
                break
            await asyncio.sleep(0.05)
    found = read(text)

    [member] = {dict(labels)["member"] for name, labels in found if name == "lateshift_attempts_total"}
    assert (
        of(
            found,
            "lateshift_attempts_total",
            member=member,
            queue="default",
            task="pack",
            outcome="completed",
        )
        == 2
    )
    assert (
        of(found, "lateshift_attempts_total", member=member, queue="default", task="pack", outcome="dead")
        == 1
    )
    own = of(found, "lateshift_process_attempts_total", queue="default", task="pack", outcome="completed")
    assert own == 2
    assert of(found, "lateshift_start_seconds_count", member=member, queue="default") == 3
    assert of(found, "lateshift_attempt_seconds_count", member=member, queue="default") == 3
    assert of(found, "lateshift_members", state="alive") == 1
    assert of(found, "lateshift_lease_seconds_count") >= 1
    assert of(found, "lateshift_settle_seconds_bucket", le="+Inf") == of(
        found, "lateshift_settle_seconds_count"
    )
    loops = {dict(labels)["loop"] for name, labels in found if name == "lateshift_loop_age_seconds"}
    assert loops >= {"Worker", "Control", "Sweep", "Heartbeat"}
    assert all(of(found, "lateshift_loop_late", loop=loop) == 0 for loop in loops)
    app.close()


def test_the_command_prints_them_in_both_formats(cli: Cli) -> None:
    plain = cli("metrics")
    assert plain.code == 0
    assert of(read(plain.out), "lateshift_members", state="alive") == 0
    assert cli("metrics", "--openmetrics").out.endswith("# EOF\n")


def test_a_look_is_bounded(app: Lateshift, kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    @app.task
    def report() -> None: ...

    for number in range(5):
        app.schedule(report, every=timedelta(hours=1), name=f"s{number}")
        app.batch([report.call()])
    kit.drain()
    asyncio.run(app.ticker().turn())
    assert look(app.store).schedules == 5
    monkeypatch.setattr(looking, "SCHEDULES_LOOKED_AT", 4)
    monkeypatch.setattr(looking, "BATCHES_LOOKED_AT", 3)
    app.batch([report.call()])

    seen = look(app.store)

    assert seen.schedules == 4
    assert seen.batches_open == 1


def test_every_metric_is_documented(app: Lateshift, kit: Kit) -> None:
    code = (Path(measures.__file__).parent / "metrics.py").read_text() + '"lateshift_series_dropped"'
    names = set(re.findall(r'"(lateshift_[a-z_]+)"', code))
    told = (DOCS / "telemetry.md").read_text()

    assert len(names) > 20
    assert sorted(name for name in names if f"`{name}`" not in told) == []


# -- counting ------------------------------------------------------------------------------------------------------


def test_a_histogram_counts_up_to_each_bound() -> None:
    histogram = Histogram()
    for seconds in (0.0005, 0.001, 0.3, 99.0):
        histogram.observe(seconds)
    counted = Measures()
    counted.lease.add(histogram)

    found = read(text_of(EMPTY, counted, []))

    assert of(found, "lateshift_lease_seconds_bucket", le="0.001") == 2
    assert of(found, "lateshift_lease_seconds_bucket", le="0.5") == 3
    assert of(found, "lateshift_lease_seconds_bucket", le=repr(BUCKETS[-1])) == 3
    assert of(found, "lateshift_lease_seconds_bucket", le="+Inf") == 4
    assert of(found, "lateshift_lease_seconds_sum") == pytest.approx(99.3015)


def test_so_many_tasks_have_counts_of_their_own_and_the_rest_one_together() -> None:
    counted = Measures()
    for number in range(TASKS_COUNTED + 3):
        counted.completed["mail", f"task{number:03}"] += 100 - number
        counted.others[("mail", f"task{number:03}"), "dead"] += 1

    told = counted.by_queue()

    assert len(told["mail"]) == TASKS_COUNTED
    assert told[OTHERS] == {OTHERS: {"completed": 50 + 49 + 48, "dead": 3}}


def test_no_count_that_was_told_goes_down_whichever_task_becomes_the_busiest() -> None:
    process = Process()
    first, second = process.begin(), process.begin()
    for number in range(TASKS_COUNTED):
        first.completed["mail", f"task{number:03}"] += 1
    process.total().by_queue()
    second.others[("mail", "late"), "dead"] += 90
    before = process.total().by_queue()
    second.completed["mail", "late"] += 1_000
    process.retire(first)

    after = process.total().by_queue()

    assert before[OTHERS] == {OTHERS: {"dead": 90}}
    assert after[OTHERS] == {OTHERS: {"dead": 90, "completed": 1_000}}
    assert after["mail"] == before["mail"]


def test_what_left_each_queue_and_what_completed_of_all_is_counted() -> None:
    counted = Measures()
    counted.completed["mail", "send"] += 5
    counted.completed["images", "draw"] += 2
    for outcome in ("dead", "cancelled", "retried", "snoozed", "lost"):
        counted.others[("mail", "send"), outcome] += 1

    assert counted.ended() == {"mail": 7, "images": 2, "": 7}


def test_what_a_process_has_counted_never_goes_down() -> None:
    process = Process()
    first, second = process.begin(), process.begin()
    first.completed["mail", "pack"] += 2
    second.completed["mail", "pack"] += 3

    process.retire(first)
    process.retire(first)

    assert process.total().completed == {("mail", "pack"): 5}


EMPTY = looking.Look(
    at=SYSTEM.now(), queues=[], members=[], breakers=[], triggers=[], cut=frozenset(), schedules=0, schedules_paused=0, schedules_late=0,
    latest_tick=timedelta(0), runs_held=0, runs_undoing=0, batches_open=0, batch_jobs_left=0, replies_waiting=0,
    oldest_reply=timedelta(0), without_key=0,
)  # fmt: skip


def worker_of(**stats: Any) -> MemberView:
    return structs.replace(introduce(new_member_id(), "worker", "w", SYSTEM), stats=stats)


def test_how_long_jobs_waited_and_ran_is_told_of_each_member_and_queue() -> None:
    one = worker_of(
        starts={"mail": [1, 0, 1, 0, 0, 1, 0, 90.5]}, runs={"mail": [0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 4.0]}
    )
    odd = worker_of(starts={"mail": [1, 2.0]}, runs={})  # of a release with other bounds

    found = read(text_of(structs.replace(EMPTY, members=[one, odd]), Measures(), []))

    mail = {"member": str(one.id), "queue": "mail"}
    assert [
        of(found, "lateshift_start_seconds_bucket", le=le, **mail) for le in ("0.01", "1.0", "600.0", "+Inf")
    ] == [1, 2, 3, 3]
    assert of(found, "lateshift_start_seconds_sum", **mail) == 90.5
    assert of(found, "lateshift_attempt_seconds_bucket", le="1.0", **mail) == 0
    assert (
        of(found, "lateshift_attempt_seconds_bucket", le="5.0", **mail)
        == of(found, "lateshift_attempt_seconds_count", **mail)
        == 2
    )
    assert not any(dict(labels).get("member") == str(odd.id) for name, labels in found if "_seconds_" in name)


def test_when_a_queue_will_be_empty_is_told_where_it_is_known() -> None:
    mail, still, slow = (
        structs.replace(empty(name), ready=30, paused_at=SYSTEM.now() if name == "still" else None)
        for name in ("mail", "still", "slow")
    )
    slow = structs.replace(slow, ready=0, blocked=30, rationed=30)
    told = structs.replace(
        EMPTY, queues=[mail, still, slow, empty("idle")], limits={"slow": 0.5}, members=[worker_of(drains={"mail": 2.0, "still": 2.0})]
    )  # fmt: skip

    def drains(seen: looking.Look) -> dict[str, float]:
        found = read(text_of(seen, Measures(), []))
        return {
            dict(labels)["queue"]: value
            for (name, labels), value in found.items()
            if name == "lateshift_drain_seconds"
        }

    assert drains(told) == {"mail": 15.0, "slow": 60.0, "idle": 0.0}
    older = worker_of(completed=3)  # a release that does not tell how many it ends
    assert drains(structs.replace(told, members=[*told.members, older])) == {"slow": 60.0, "idle": 0.0}


def test_a_loop_that_does_not_turn_grows_old_and_late() -> None:
    with living("Stuck") as loop, living("Stuck") as other:
        loop.has_turned(10.0)
        other.has_turned(0.0)
        now = loop.turned

        [fresh] = [age for age in ages(now + 30) if age.loop == "Stuck"]
        [late] = [age for age in ages(now + 31) if age.loop == "Stuck"]

        assert not liveness.Age("Stuck", LATE_AFTER * LEAST_INTERVAL, 0.0).is_late
        assert (fresh.interval, fresh.is_late) == (0.0, True)  # of two, the one that is most behind
        found = read(text_of(EMPTY, Measures(), [late]))
        assert of(found, "lateshift_loop_late", loop="Stuck") == 1
        assert 30.9 < of(found, "lateshift_loop_age_seconds", loop="Stuck") < 31.1
    assert [age for age in ages() if age.loop == "Stuck"] == []


@pytest.mark.anyio
async def test_a_loop_whose_turn_hangs_grows_old(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, stopping = asyncio.Event(), asyncio.Event()

    class Hanging:
        async def turn(self) -> timedelta:
            begun.set()
            await stopping.wait()
            return timedelta(seconds=1)

    driving = asyncio.create_task(drive(Hanging(), stopping))
    await begun.wait()

    [age] = [age for age in ages(SYSTEM.monotonic() + 100) if age.loop == "Hanging"]

    assert age.is_late
    assert age.age >= 100
    stopping.set()
    await driving
