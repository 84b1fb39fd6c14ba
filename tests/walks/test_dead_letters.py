"""Dead letters after a bad release: seen in groups, changed, tried on a few, and let go."""

import asyncio
import io
import signal
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import pytest

from lateshift import Lateshift, State
from lateshift.cli.stopping import stoppable
from lateshift.clock import ManualClock
from lateshift.dead_letters import dead_letters as letters_module
from lateshift.dead_letters import resubmission
from lateshift.dead_letters.resubmission import Course, Resubmission
from lateshift.errors import ArgumentsInvalid, OptionInvalid
from lateshift.model.ids import JobId
from lateshift.model.rate import Rate
from tests.store_contract.driving import DONE, FAILED, Worker, added, make_job, query, see
from tests.walks.burying import bury, named
from tests.walks.commands import Cli, eventually, interrupted, started

pytestmark = pytest.mark.anyio

PROGRAM = """
from lateshift import Lateshift
app = Lateshift("shop")

@app.task
async def pack(order: int, box: str = "small") -> None: ...
"""


@pytest.fixture
def shop(app: Lateshift) -> Lateshift:
    async def pack(order: int, box: str = "small") -> None: ...

    app.task(pack)
    return app


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "shop_program.py").write_text(PROGRAM)
    yield "shop_program.py"
    sys.modules.pop("shop_program", None)


def like(app: Lateshift, **narrowed: str) -> str:
    """The fingerprint of the largest group."""
    return app.dead_letters(**narrowed).groups().largest_first[0].fingerprint


# -- groups ------------------------------------------------------------------------------------------------------------


def test_those_that_died_of_the_same_are_one_group_the_largest_first(cli: Cli, app: Lateshift) -> None:
    for number in range(3):
        bury(app, b"{}", message=f"no order {number}")
    [late] = bury(app, b"{}", task="ship", error="TimeoutError", message="after 30 s", reason="permanent")

    document = cli("jobs", "dead", "--json").document

    assert [(group["task"], group["count"]) for group in document["groups"]] == [("pack", 3), ("ship", 1)]
    ship = document["groups"][1]
    assert (ship["reason"], ship["error"], ship["message"]) == ("permanent", "TimeoutError", "after 30 s")
    assert ship["example"] == str(late)
    assert document["groups"][0]["first"] < document["groups"][0]["last"] < ship["last"]
    assert (document["looked_at"], document["cut"], document["left_out"]) == (4, False, 0)


def test_groups_are_shown_in_a_table_with_what_to_do_next(cli: Cli, app: Lateshift) -> None:
    [dead] = bury(app, b"{}")
    said = cli("jobs", "dead").out
    assert "exhausted; ValueError: no order 7" in said
    assert f"…{str(dead)[-6:]}" in said
    assert f"lateshift jobs resubmit --like {like(app)} --show" in said


def test_no_dead_letters_is_said_so(cli: Cli, app: Lateshift) -> None:
    assert cli("jobs", "dead").out == "No dead letters.\n"
    assert cli("jobs", "dead", "--task", "x").out == "No such dead letters.\n"


def test_groups_are_narrowed_by_task_queue_reason_and_fingerprint(cli: Cli, app: Lateshift) -> None:
    bury(app, b"{}")
    bury(app, b"{}", task="ship", reason="permanent")
    for options, tasks in {
        ("--task", "ship"): ["ship"],
        ("--reason", "exhausted"): ["pack"],
        ("--queue", "default"): ["pack", "ship"],
        ("--queue", "other"): [],
        ("--like", like(app, task="ship")): ["ship"],
    }.items():
        groups = cli("jobs", "dead", *options, "--json").document["groups"]
        assert sorted(group["task"] for group in groups) == tasks, options


def test_no_more_than_the_newest_are_looked_at_and_that_is_said(
    cli: Cli, app: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letters_module, "DEAD_LOOKED_AT", 3)
    monkeypatch.setattr(letters_module, "PAGE", 2)
    bury(app, *[b"{}"] * 5)
    document = cli("jobs", "dead", "--json").document
    assert (document["looked_at"], document["cut"]) == (3, True)
    assert "were looked at" in cli("jobs", "dead").out
    assert len(list(app.dead_letters(like=like(app)))) == 3
    assert len(list(app.dead_letters())) == 5


# -- seen first --------------------------------------------------------------------------------------------------------


def test_show_says_what_would_change_and_writes_nothing(cli: Cli, app: Lateshift, program: str) -> None:
    ids = bury(app, *[b'{"order":%d}' % number for number in range(8)])
    before = [see(app.store, id) for id in ids]
    change = ["--like", like(app), "--app", program, "--set", 'box="large"', "--set", "order=5", "--show"]

    document = cli("jobs", "resubmit", *change, "--json").document
    assert (document["would_resubmit"], document["would_edit"]) == (8, 8)
    assert document["examples"][0]["before"] == {"order": 7}
    assert document["examples"][0]["after"] == {"order": 5, "box": "large"}
    said = cli("jobs", "resubmit", *change).out
    assert "8 jobs would be resubmitted: 8 with other arguments. Nothing was written." in said
    assert "(none)" in said
    assert '"large"' in said
    assert [see(app.store, id) for id in ids] == before


def test_show_without_a_change_lists_what_would_run_again(cli: Cli, app: Lateshift) -> None:
    bury(app, b'{"order":1}')
    said = cli("jobs", "resubmit", "--all", "--show").out
    assert '{"order":1}' in said
    assert "1 job would be resubmitted. Nothing was written." in said


# -- changed -----------------------------------------------------------------------------------------------------------


def test_dead_letters_are_resubmitted_with_other_arguments(cli: Cli, app: Lateshift, program: str) -> None:
    bad = bury(app, b'{"order":1,"size":2}', b'{"order":2,"size":3}')
    [other] = bury(app, b'{"order":3}', message="the printer is on fire")
    [alike] = [g.fingerprint for g in app.dead_letters().groups().largest_first if g.count == 2]

    said = cli(
        "jobs", "resubmit", "--like", alike, "--app", program, "--unset", "size", "--set", 'box="m"', "--yes", "--json"
    )  # fmt: skip

    assert said.code == 0
    assert sorted(said.document["resubmitted"]) == sorted(named(bad))
    assert (said.document["edited"], said.document["stopped"]) == (2, None)
    assert [see(app.store, id).payload for id in bad] == [b'{"order":1,"box":"m"}', b'{"order":2,"box":"m"}']
    assert see(app.store, other).state is State.DEAD
    assert see(app.store, bad[0]).history[-1].was == {"size": 2}
    assert "with other arguments: size 2 → nothing" in cli("jobs", "show", str(bad[0])).out
    assert len(query(app.store, "SELECT 1 FROM {audit} WHERE action = 'resubmit'")) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--set", "ordre=1"], "unknown argument 'ordre'"),
        (["--set", 'order="one"'], "argument 'order': expected `int`, got `str`"),
        (["--set", "box=large"], """--set 'box="large"'"""),
        (["--set", "box"], "is not NAME=JSON"),
        (["--unset", "sise"], "None of the jobs has an argument 'sise'"),
        (["--unset", "order"], "lacks 'order'. It takes (order, "),
        (["--unset", "box", "--set", 'box="s"'], "not both"),
        (["--rate", "fast"], "is no rate"),
    ],
)
def test_a_change_that_does_not_fit_is_refused_before_anything_is_written(
    cli: Cli, app: Lateshift, program: str, options: list[str], said: str
) -> None:
    ids = bury(app, b'{"order":1}', b'{"order":2}')
    answer = cli("jobs", "resubmit", "--all", "--app", program, *options, "--yes")
    assert answer.code == 2
    assert said in answer.err
    assert {see(app.store, id).state for id in ids} == {State.DEAD}


def test_one_that_does_not_fit_keeps_all_from_being_resubmitted(
    cli: Cli, app: Lateshift, program: str
) -> None:
    ids = [*bury(app, b'{"order":"one"}'), *bury(app, *[b'{"order":2}'] * 3), *bury(app, b"{}", task="gone")]
    answer = cli("jobs", "resubmit", "--all", "--app", program, "--yes")
    assert answer.code == 2
    assert "2 of 5 cannot be resubmitted so, nothing was written" in answer.err
    assert "no task 'gone'" in answer.err
    assert {see(app.store, id).state for id in ids} == {State.DEAD}


def test_a_change_wants_the_program_whose_types_check_it(cli: Cli, app: Lateshift) -> None:
    said = cli("jobs", "resubmit", "--all", "--set", "order=1", "--yes")
    assert said.code == 2
    assert "need --app PROGRAM" in said.err


def test_named_jobs_are_changed_too_also_cancelled_ones(cli: Cli, app: Lateshift, program: str) -> None:
    [id] = added(app.store, make_job(task="pack", payload=b'{"order":1}'))
    app.store.jobs.cancel([id], by="ana")
    said = cli("jobs", "resubmit", str(id)[-8:], "--app", program, "--set", "order=2")
    assert said.out == "1 job ready again, 1 of them with other arguments.\n"
    assert see(app.store, id).payload == b'{"order":2}'


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (["--task", "pakc"], "There are some with task pack."),
        (["--reason", "exhaust"], "There are some with reason exhausted."),
        (["--queue", "defualt"], "There are some with queue default."),
        (["--like", "00000000"], "There are some with like"),
    ],
)
def test_a_filter_that_finds_nothing_says_what_there_is(
    cli: Cli, app: Lateshift, options: list[str], hint: str
) -> None:
    bury(app, b"{}")
    said = cli("jobs", "resubmit", *options, "--yes")
    assert said.code == 4
    assert hint in said.err


def test_what_is_no_fingerprint_is_exit_code_2(cli: Cli, app: Lateshift) -> None:
    for verb in ("dead", "resubmit"):
        said = cli("jobs", verb, "--like", "pack")
        assert said.code == 2
        assert "is no fingerprint" in said.err


def test_the_question_says_what_will_be_done(
    cli: Cli, app: Lateshift, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bury(app, b'{"order":1}', b'{"order":2}')
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    said = cli(
        "jobs", "resubmit", "--all", "--app", program, "--set", "order=2", "--first", "1", "--rate", "5/s"
    )
    assert "Resubmit 2 dead letters, 1 of them with other arguments, 1 of them first, at 5/s?" in said.err
    assert "Nothing was resubmitted." in said.out


def test_what_the_question_was_about_is_resubmitted_and_nothing_that_died_while_it_was_open(
    cli: Cli, app: Lateshift, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = bury(app, b'{"order":1}', b'{"order":2}')
    since: list[JobId] = []

    def answered(said: str, **how: Any) -> bool:
        since.extend(bury(app, b'{"order":3}'))
        return True

    monkeypatch.setattr(click, "confirm", answered)
    said = cli("jobs", "resubmit", "--all", "--app", program, "--set", "order=4", "--json")
    assert sorted(said.document["resubmitted"]) == sorted(named(seen))
    assert see(app.store, since[0]).state is State.DEAD


def test_what_was_checked_is_changed_and_nothing_that_died_meanwhile(shop: Lateshift) -> None:
    seen = bury(shop, b'{"order":1}', b'{"order":2}')
    since: list[JobId] = []

    def change(was: dict[str, Any]) -> dict[str, Any]:
        if not since:
            since.extend(bury(shop, b'{"order":3}'))
        return was | {"order": 4}

    done = shop.dead_letters(task="pack").resubmit(change)
    assert sorted(done.ids) == sorted(seen)
    assert see(shop.store, since[0]).state is State.DEAD


# -- a few first, and how fast ----------------------------------------------------------------------------------------


class Passing:
    """Time that passes when somebody sleeps, and what happens meanwhile."""

    def __init__(self, *happens: Any) -> None:
        self.clock = ManualClock()
        self.slept: list[float] = []
        self._happens = list(happens)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.move(seconds=seconds)
        if self._happens:
            self._happens.pop(0)()


def go(app: Lateshift, passing: Passing, course: Course, **more: Any) -> Any:
    resubmission = Resubmission(app.store, by="ana")
    return resubmission.carry_out(app.dead_letters(), course, passing.clock, sleep=passing.sleep, **more)


def test_the_rest_goes_when_the_first_have_completed(app: Lateshift) -> None:
    ids = bury(app, *[b"{}"] * 6)
    worker = Worker(app.store)

    def work() -> None:
        leases = worker.lease(10)
        assert {lease.id for lease in leases} == set(ids[4:])
        worker.settle_all(leases, DONE)

    done = go(app, Passing(work), Course(first=2))

    assert (len(done.ids), done.stopped) == (6, None)
    assert {see(app.store, id).state for id in ids[:4]} == {State.READY}


def test_one_failed_attempt_of_the_first_leaves_the_rest_alone(app: Lateshift) -> None:
    ids = bury(app, *[b"{}"] * 4)
    [_, failing] = ids[2:]
    worker = Worker(app.store)

    def work() -> None:
        for lease in worker.lease(10):
            record = b'[{"attempt":1,"fence":2,"at":"2026-01-01T00:00:00Z","reason":"failed"}]'
            worker.settle(lease, DONE if lease.id != failing else type(FAILED)(FAILED.delay, True, record))

    done = go(app, Passing(work), Course(first=2))

    assert (len(done.ids), done.stopped, done.failed) == (2, "failed", [failing])
    assert {see(app.store, id).state for id in ids[:2]} == {State.DEAD}


def test_the_first_are_not_waited_for_forever(app: Lateshift) -> None:
    bury(app, *[b"{}"] * 3)
    passing = Passing()
    begun = passing.clock.monotonic()

    done = go(app, passing, Course(first=1, wait=timedelta(seconds=30)))

    assert (len(done.ids), done.stopped) == (1, "waited")
    assert passing.clock.monotonic() - begun >= 30
    assert sum(passing.slept) < 31


def test_a_rate_spreads_them_over_time_and_nobody_waits(app: Lateshift) -> None:
    ids = bury(app, *[b"{}"] * 21)[::-1]
    passing = Passing()

    done = go(app, passing, Course(rate=Rate.read("10/s")))

    assert (done.ids, done.spread, passing.slept) == (ids, timedelta(seconds=2), [])
    views = [see(app.store, id) for id in ids]
    assert [view.state for view in views] == [State.READY] + [State.SCHEDULED] * 20
    waits = [(view.due_at - views[0].due_at).total_seconds() for view in views]
    assert waits == pytest.approx([number / 10 for number in range(21)], abs=0.05)


def test_a_rate_is_kept_from_one_batch_to_the_next(app: Lateshift, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resubmission, "BATCH", 2)
    ids = bury(app, *[b"{}"] * 5)[::-1]

    go(app, Passing(), Course(rate=Rate.read("1/min")))

    due = [see(app.store, id).due_at for id in ids]
    waits = [(each - due[0]).total_seconds() for each in due]
    assert waits == pytest.approx([0, 60, 120, 180, 240], abs=5)
    assert waits[1:] == sorted(waits[1:])


def test_the_first_do_not_wait_for_the_rate(app: Lateshift) -> None:
    ids = bury(app, *[b"{}"] * 4)[::-1]
    worker = Worker(app.store)

    def work() -> None:
        leases = worker.lease(10)
        assert {lease.id for lease in leases} == set(ids[:2])
        worker.settle_all(leases, DONE)

    done = go(app, Passing(work), Course(first=2, rate=Rate.read("1/min")))

    assert (done.ids, done.spread) == (ids, timedelta(minutes=1))
    assert [see(app.store, id).state for id in ids[2:]] == [State.READY, State.SCHEDULED]


def test_one_that_waits_for_its_time_by_a_rate_says_so(cli: Cli, app: Lateshift) -> None:
    ids = bury(app, b"{}", b"{}")
    said = cli("jobs", "resubmit", "--all", "--yes", "--rate", "1/h")
    assert said.out == "2 jobs ready again, the last due in 1h 0m.\n"
    assert "resubmitted for later" in " ".join(cli("jobs", "explain", str(ids[0])).out.split())


def test_whoever_stops_it_is_told_what_was_done(app: Lateshift, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resubmission, "BATCH", 2)
    ids = bury(app, *[b"{}"] * 10)
    stops = iter([False] * 3 + [True] * 100)

    done = go(app, Passing(), Course(), stopping=lambda: next(stops))

    assert done.stopped == "interrupted"
    assert len(done.ids) == 6
    assert [see(app.store, id).state for id in done.ids] == [State.READY] * 6
    assert sum(see(app.store, id).state is State.DEAD for id in ids) == 4


def test_ctrl_c_is_heard_once_and_then_is_itself_again() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stoppable() as stopping:
        assert not stopping()
        signal.raise_signal(signal.SIGINT)
        assert stopping()
        assert signal.getsignal(signal.SIGINT) is before
    assert signal.getsignal(signal.SIGINT) is before


def test_the_first_that_do_not_complete_are_exit_code_1(cli: Cli, app: Lateshift) -> None:
    bury(app, b"{}", b"{}", b"{}")
    said = cli("jobs", "resubmit", "--all", "--yes", "--first", "1", "--wait", "0")
    assert said.code == 1
    assert said.out == "1 job ready again.\n"
    assert "stopped, 2 jobs left as they were" in said.err
    assert "Is a worker running?" in said.err


async def test_on_live_workers_the_first_complete_and_the_rest_follows(cli: Cli, shop: Lateshift) -> None:
    ids = bury(shop, *[b'{"order":1}'] * 4)
    async with shop.running():
        said = await asyncio.to_thread(cli, "jobs", "resubmit", "--all", "--yes", "--first", "2", "--json")
        assert (said.code, said.document["stopped"], len(said.document["resubmitted"])) == (0, None, 4)
        for id in ids:
            await shop.job(id).aresult(timeout=timedelta(seconds=20))


def test_ctrl_c_ends_the_wait_for_the_first_and_leaves_the_rest(
    app: Lateshift, store_url: str, tmp_path: Path
) -> None:
    ids = bury(app, *[b"{}"] * 10)

    def ready() -> int:
        return sum(view.state is State.READY for view in app.store.reports.unsettled(None, 200))

    with started(
        "jobs", "resubmit", "--all", "--yes", "--first", "2", "--rate", "2/s", "--store", store_url, cwd=tmp_path
    ) as process:  # fmt: skip
        eventually(lambda: ready() == 2, "the first are resubmitted")
        assert interrupted(process, 15) == 130
    said = (tmp_path / "output").read_text()
    assert "2 jobs ready again." in said
    assert f"stopped, {len(ids) - 2} jobs left as they were: interrupted." in said


# -- the same in Python ------------------------------------------------------------------------------------------------


def test_a_program_changes_and_resubmits_its_dead_letters(shop: Lateshift) -> None:
    ids = bury(shop, *[b'{"order":%d,"size":1}' % number for number in range(3)])
    dead = shop.dead_letters(task="pack", like=like(shop))

    def without_size(old: dict[str, Any]) -> dict[str, Any]:
        return {"order": old["order"], "box": f"size {old['size']}"}

    plan = dead.plan(without_size)
    assert (plan.count, plan.edited, plan.changed) == (3, 3, {"size", "box"})
    done = dead.resubmit(without_size, by="ana")

    assert done.ids == ids[::-1]
    assert see(shop.store, ids[2]).payload == b'{"order":2,"box":"size 1"}'
    assert query(shop.store, "SELECT DISTINCT actor FROM {audit} WHERE action = 'resubmit'") == [("ana",)]


def test_a_program_resubmits_some_as_they_are(shop: Lateshift) -> None:
    ids = bury(shop, *[b'{"order":1}'] * 5)

    assert shop.dead_letters().resubmit(limit=2, rate="1000/s").ids == ids[:2:-1]
    assert len(list(shop.dead_letters())) == 3


def test_a_change_is_checked_for_all_before_the_first_is_written(shop: Lateshift) -> None:
    bury(shop, b'{"order":1}', b'{"order":"x"}')
    with pytest.raises(ArgumentsInvalid, match="1 of 2 cannot be resubmitted so"):
        shop.dead_letters().resubmit({"box": "large"})
    with pytest.raises(ArgumentsInvalid, match="pack: KeyError"):
        shop.dead_letters().resubmit(lambda old: {"order": old["nothing"]})
    with pytest.raises(OptionInvalid, match="is no fingerprint"):
        shop.dead_letters(like="x")
    assert len(list(shop.dead_letters())) == 2


def test_a_type_of_the_users_own_that_raises_is_a_problem_and_no_crash(app: Lateshift) -> None:
    class Strange:
        @classmethod
        def model_validate(cls, value: Any) -> "Strange":
            raise LookupError("no such thing")

    async def pack(order: Strange) -> None: ...

    app.task(pack)
    bury(app, b'{"order":1}')

    plan = Resubmission(app.store, by="ana", tasks=app.tasks).plan(app.dead_letters())
    assert [*plan.problems] == ["pack: LookupError: no such thing."]


def test_one_that_somebody_else_resubmitted_meanwhile_is_skipped(shop: Lateshift) -> None:
    first, second = bury(shop, b'{"order":1}', b'{"order":2}')
    views = list(shop.dead_letters())
    shop.store.jobs.resubmit([first], by="bob")

    done = Resubmission(shop.store, by="ana").carry_out(views, Course(), shop.clock)

    assert (done.ids, done.skipped) == ([second], [first])
