"""Crash-at-every-step: what a task does twice or never is found, at the step where it happens."""

import asyncio
import logging
from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from lateshift import (
    NO_RETRY,
    Lateshift,
    LeaseLost,
    Permanent,
    Retry,
    Snooze,
    State,
    Task,
    acheckpoint,
    checkpoint,
    current,
    last_checkpoint,
)
from lateshift.errors import CrashUnsafe, OptionInvalid, UsageError
from lateshift.testing import Effects, Report, crash_everywhere, survives_crashes


@pytest.fixture
def app() -> Iterator[Lateshift]:
    app = Lateshift("shop", store="memory://")
    yield app
    app.close()


@pytest.fixture
def effects() -> Effects:
    return Effects()


class Bank:
    """Knows a token again, as banks do."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._tokens: set[object] = set()

    def charge(self, order: int, token: object) -> None:
        if token not in self._tokens:
            self._tokens.add(token)
            self._effects.note("charged", order)

    def forget(self) -> None:
        self._tokens.clear()


def points(report: Report) -> dict[str, str]:
    return {str(run.point): "; ".join(report.faults(run)) for run in report.runs}


def refused(*args: Any, **options: Any) -> str:
    with pytest.raises(CrashUnsafe) as failure:
        survives_crashes(*args, **options)
    return str(failure.value)


def faulty(table: str) -> list[str]:
    """The points that the table marks."""
    return [line[1:].split("  ")[1].strip() for line in table.splitlines() if line.startswith("!")]


# What is found


@pytest.mark.parametrize("kind", ["thread", "process", "async"])
def test_a_task_that_is_safe_is_killed_at_every_step_and_passes(
    app: Lateshift, effects: Effects, kind: str
) -> None:
    bank = Bank(effects)

    @app.task
    def pack(order: int) -> None: ...

    def in_plain(order: int) -> str:
        bank.charge(order, current().job_id)
        checkpoint("charged")
        pack.options(key=f"pack {order}").enqueue(order)
        return "ok"

    async def in_async(order: int) -> str:
        bank.charge(order, current().job_id)
        await acheckpoint("charged")
        await pack.options(key=f"pack {order}").aenqueue(order)
        return "ok"

    charge: Task[[int], str] = app.task(name="charge", process=kind == "process")(in_plain)
    if kind == "async":
        charge = app.task(name="acharge")(in_async)
    report = survives_crashes(charge, 7, effects=effects, before=bank.forget)
    assert report.safe
    assert all(run.reached for run in report.runs)
    assert [each.replace("acharge", "charge") for each in points(report)] == [
        "killed after lease 1 of charge",
        "delivered twice at lease 1 of charge",
        "killed before checkpoint 1 of charge",
        "delivered twice at checkpoint 1 of charge",
        "killed after checkpoint 1 of charge",
        "killed before enqueue 1 of pack",
        "delivered twice at enqueue 1 of pack",
        "killed after enqueue 1 of pack",
        "killed before settlement 1 of charge (completed)",
        "delivered twice at settlement 1 of charge (completed)",
        "killed after settlement 1 of charge (completed)",
        "no answer to settlement 1 of charge (completed)",
    ]
    assert report.unharmed.effects == {"charged(7)": 1, "enqueue of pack(order=7)": 1}


def test_a_side_effect_before_its_checkpoint_is_found_twice_at_the_step_between(
    app: Lateshift, effects: Effects
) -> None:
    @app.task
    def import_rows() -> None:
        for row in range(last_checkpoint(0), 2):
            effects.note("stored", row)
            checkpoint(row + 1)

    table = refused(import_rows, effects=effects)
    assert table.splitlines()[0] == "import_rows() is not safe at 5 of 12 points."
    assert faulty(table) == [
        "delivered twice at lease 1 of import_rows",
        "killed before checkpoint 1 of import_rows",
        "delivered twice at checkpoint 1 of import_rows",
        "killed before checkpoint 2 of import_rows",
        "delivered twice at checkpoint 2 of import_rows",
    ]
    [row] = [line for line in table.splitlines() if "killed before checkpoint 2" in line]
    assert "stored(1) twice" in row
    assert "stored(0)" not in row


def test_a_side_effect_after_its_checkpoint_is_found_missing(app: Lateshift, effects: Effects) -> None:
    @app.task
    async def send(number: int) -> None:
        if last_checkpoint(False):
            return
        await acheckpoint(True)
        effects.note("sent", number)

    table = refused(send, 3, effects=effects)
    [row] = [line for line in table.splitlines() if "killed after checkpoint 1" in line]
    assert "sent(3) never" in row
    assert "killed before checkpoint 1 of send" not in faulty(table)


def test_a_child_that_is_enqueued_without_a_key_is_found_twice(app: Lateshift, effects: Effects) -> None:
    @app.task
    def child(number: int) -> None: ...

    @app.task
    def parent() -> None:
        child.enqueue(1)

    table = refused(parent, effects=effects)
    assert "enqueue of child(number=1) twice" in table
    assert "killed after enqueue 1 of child" in faulty(table)
    assert "killed before enqueue 1 of child" not in faulty(table)


def test_a_task_that_may_not_run_twice_is_found_dead_unless_that_is_meant(
    app: Lateshift, effects: Effects
) -> None:
    @app.task(retry=NO_RETRY)
    def once() -> None:
        effects.note("done")

    table = refused(once, effects=effects)
    assert "killed after lease 1 of once" in faulty(table)
    assert "dead (worker_lost)" in table
    assert "done never" in table
    assert survives_crashes(once, effects=effects, at_most_once=True).safe


def test_children_run_too_where_that_is_asked_for(app: Lateshift, effects: Effects) -> None:
    @app.task
    async def child(number: int) -> None:
        effects.note("child", number)

    @app.task
    def parent() -> None:
        child.options(key="one").enqueue(1)

    assert survives_crashes(parent, effects=effects).unharmed.effects == {"enqueue of child(number=1)": 1}
    table = refused(parent, effects=effects, children=True)
    assert "killed before settlement 1 of child (completed)" in faulty(table)


def test_retries_and_snoozes_are_steps_of_the_same_job(app: Lateshift, effects: Effects) -> None:
    done: set[object] = set()

    @app.task(retry=Retry(attempts=9, base=timedelta(hours=1)))
    def bumpy() -> None:
        if current().attempt == 1:
            raise ConnectionError("at first")
        if last_checkpoint() is None:
            checkpoint("slept")
            raise Snooze(timedelta(days=1))
        if current().job_id not in done:
            done.add(current().job_id)
            effects.note("done")

    report = survives_crashes(bumpy, effects=effects, before=done.clear)
    assert {
        "killed after lease 3 of bumpy",
        "killed before settlement 1 of bumpy (failed)",
        "killed after settlement 1 of bumpy (snoozed)",
        "no answer to settlement 1 of bumpy (completed)",
    } <= points(report).keys()


def test_a_lock_is_a_step_and_is_free_again_for_the_next_attempt(app: Lateshift, effects: Effects) -> None:
    done: set[object] = set()

    @app.task(singleton=True)
    def careful() -> None:
        with app.lock("stock", ttl=timedelta(minutes=10)):
            if current().job_id not in done:
                done.add(current().job_id)
                effects.note("moved")

    report = survives_crashes(careful, effects=effects, before=done.clear)
    assert {"killed after lock 1 of stock", "killed before unlock 1 of stock"} <= points(report).keys()


# How it is killed


@pytest.mark.parametrize("kind", ["thread", "async"])
def test_death_cannot_be_swallowed_and_what_the_dead_do_counts_for_nothing(
    app: Lateshift, effects: Effects, kind: str
) -> None:
    started: set[object] = set()

    def begin() -> None:
        if current().job_id not in started:
            started.add(current().job_id)
            effects.note("begun")

    @app.task
    def plain() -> None:
        begin()
        try:
            checkpoint(1)
        except LeaseLost:
            return
        except BaseException:
            effects.note("mopped up")  # a killed process does no such thing
        finally:
            if current().attempt > 5:
                effects.note("never")

    @app.task
    async def waiting() -> None:
        begin()
        try:
            await acheckpoint(1)
        except LeaseLost:
            return
        except BaseException:
            effects.note("mopped up")

    task = plain if kind == "thread" else waiting
    report = survives_crashes(task, effects=effects, before=started.clear)
    assert report.unharmed.effects == {"begun": 1}


def test_the_log_is_quiet_meanwhile_and_as_before_afterwards(
    app: Lateshift, effects: Effects, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task
    def work() -> None:
        effects.note("done")

    level = logging.getLogger("lateshift").level
    refused(work, effects=effects)
    assert caplog.records == []
    assert logging.getLogger("lateshift").level == level


# Side effects


def test_a_fake_can_be_watched_and_is_as_before_afterwards(effects: Effects) -> None:
    class Mail:
        def send(self, to: str, *, text: str = "") -> str:
            return to

    async def post(url: str) -> str:
        return url

    mail, web = Mail(), SimpleNamespace(post=post)
    with effects.watch(mail, "send"), effects.watch(web, "post", "posted"):
        assert mail.send("ana", text="hello") == "ana"
        assert mail.send("ana", text="hello") == "ana"
        assert asyncio.run(web.post("/")) == "/"
    assert mail.send("ben") == "ben"
    assert web.post is post
    assert vars(mail) == {}
    assert effects.counts() == {"send('ana', 'hello')": 2, "posted('/')": 1}


# The decorator

shop = Lateshift("shop", store="memory://")
tokens: set[object] = set()
stage: list[str] = []


@shop.task
def charge(order: int) -> None:
    if current().job_id not in tokens:
        tokens.add(current().job_id)
        recorder.note("charged", order)


recorder = Effects()


@pytest.fixture
def props() -> str:
    return "props"


@crash_everywhere(shop, effects=recorder)
def test_a_decorated_test_is_run_for_each_step_with_its_fixtures(props: str) -> None:
    assert props == "props"
    stage.append(props)
    charge.enqueue(1)
    charge.enqueue(2)


@crash_everywhere(shop, effects=recorder)
async def test_a_decorated_test_may_be_async(props: str) -> None:
    await charge.aenqueue(3)


def test_a_decorated_test_that_is_not_safe_fails_with_the_report(app: Lateshift) -> None:
    seen: list[Effects] = []

    @app.task
    def twice(number: int) -> None:
        seen[-1].note("did", number)

    @crash_everywhere(app)
    def test(effects: Effects) -> None:
        seen.append(effects)
        twice.enqueue(1)

    with pytest.raises(CrashUnsafe, match=r"twice\(number=1\) is not safe at 3 of 6 points"):
        test()
    assert len(seen) == 7


@pytest.mark.parametrize("by_id", [False, True])
def test_what_follows_a_batch_is_one_effect_in_every_run(app: Lateshift, by_id: bool) -> None:
    charged: set[int] = set()

    @app.task
    def line(number: int) -> None:
        charged.add(number)

    @app.task
    def total(batch: str) -> None: ...

    @crash_everywhere(app)
    def test(effects: Effects) -> None:
        effects.note("asked")
        then = (lambda id: total.call(str(id))) if by_id else total.call("all")
        app.batch([line.call(1)], then=then)

    test()


# Misuse


def test_what_cannot_be_judged_is_refused(app: Lateshift, effects: Effects) -> None:
    @app.task
    def silent() -> None: ...

    @app.task(retry=NO_RETRY)
    def broken() -> None:
        raise Permanent("always")

    @app.task
    def long() -> None:
        effects.note("begun")
        for number in range(10):
            checkpoint(number)

    with pytest.raises(UsageError, match=r"No side effect.*effects\.note"):
        survives_crashes(silent, effects=effects)
    with pytest.raises(CrashUnsafe, match=r"even when nothing is killed.*dead \(permanent\).*always"):
        survives_crashes(broken, effects=effects)
    with pytest.raises(UsageError, match=r"36 points.*limit of 20 runs"):
        survives_crashes(long, effects=effects, runs=20)
    with pytest.raises(UsageError, match="enqueued no job"):
        crash_everywhere(app)(lambda effects: None)()
    with pytest.raises(OptionInvalid, match="a parameter `effects`"):
        crash_everywhere(app)(lambda: None)


def test_the_app_is_as_before_afterwards(app: Lateshift, effects: Effects) -> None:
    @app.task
    def work() -> None:
        effects.note("done")

    job = work.enqueue()
    refused(work, effects=effects)
    assert job.state is State.READY
