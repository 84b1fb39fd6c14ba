"""`lateshift schedules`, as a user types it: sentences and tables for people, JSON for programs, exit codes for scripts."""

import asyncio
import signal
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lateshift import Lateshift
from lateshift.cli.options import operator
from lateshift.model.scheduling.plan import Plan
from lateshift.model.scheduling.schedule import NewSchedule
from lateshift.model.scheduling.timing import Timing
from lateshift.model.scheduling.zones import zone
from lateshift.scheduler.ticker import Ticker
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from tests.store_contract.driving import make_job
from tests.walks.commands import Cli, Said, completed

FILE = "scheduled_shop.py"
PROGRAM = """
from datetime import date

from lateshift import Lateshift

app = Lateshift("shop")


@app.task(queue="nights")
def report(region: str, pages: int = 1) -> None: ...


@app.task
def clean() -> None: ...


@app.task
def daily(day: date | None = None, until: str = "") -> None: ...
"""
FIELDS = {
    "name", "task", "queue", "arguments", "cron", "every_seconds", "at", "timezone", "start", "end", "words", "overlap",
    "catch_up", "most", "grace_seconds", "jitter_seconds", "tick_as", "app", "next_at", "paused", "paused_by", "paused_at",
    "created_at", "changed_at", "changed_by", "recent",
}  # fmt: skip


@pytest.fixture
def shop(cli: Cli, tmp_path: Path) -> str:
    (tmp_path / FILE).write_text(PROGRAM)
    sys.modules.pop(FILE.removesuffix(".py"), None)  # of another test, in another folder
    return FILE


@pytest.fixture
def store(cli: Cli, store_url: str) -> Iterator[Store]:
    store = open_store(store_url)
    store.ready()
    yield store
    store.close()


def added(cli: Cli, name: str, *more: str, task: str = "clean") -> Said:
    """With `--cron @daily`, unless something else is said."""
    when = () if {"--cron", "--every", "--at"} & {*more} else ("--cron", "@daily")
    return cli("schedules", "add", name, "--app", FILE, "--task", task, *when, *more)


def shown(cli: Cli, name: str) -> Any:
    return cli("schedules", "show", name, "--json").document


# -- list and show ------------------------------------------------------------------------------------------------


def test_list_says_so_when_there_are_none(cli: Cli) -> None:
    said = cli("schedules", "list")
    assert (said.code, said.out.startswith("No schedules. ")) == (0, True)
    assert cli("schedules", "list", "--json").document == {"schedules": [], "next_after": None}
    assert cli("schedules", "list", "--once").out == "No job waits for its time.\n"
    assert cli("schedules", "list", "--once", "--json").document == {"jobs": []}


def test_list_pages_by_name(cli: Cli, shop: str) -> None:
    for name in ("b", "c", "a"):
        added(cli, name)
    first = cli("schedules", "list", "--limit", "2", "--json").document
    assert [each["name"] for each in first["schedules"]] == ["a", "b"]
    rest = cli("schedules", "list", "--after", first["next_after"], "--json").document
    assert ([each["name"] for each in rest["schedules"]], rest["next_after"]) == (["c"], None)
    said = cli("schedules", "list", "--limit", "2").out
    assert "At 00:00 every day, UTC" in said
    assert "More: add --after 'b'" in said


def test_show_tells_the_plan_the_next_ticks_and_the_last_ones(cli: Cli, shop: str) -> None:
    added(
        cli,
        "nightly",
        "--cron",
        "30 2 * * *",
        "--timezone",
        "Asia/Tokyo",
        "--jitter",
        "5m",
        "--overlap",
        "queue",
    )
    cli("schedules", "fire", "nightly")

    said = cli("schedules", "show", "nightly").out
    for words in (
        "nightly: At 02:30 every day, Asia/Tokyo", "clean, in queue default", "5m 0s", "next, in Asia/Tokyo",
        "02:30:00 JST", "17:30:00", "one waits until the last job has ended", "fired by hand", operator(),
    ):  # fmt: skip
        assert words in said
    document = shown(cli, "nightly")
    assert document.keys() == FIELDS | {"upcoming"}
    assert len(document["upcoming"]) == 5
    assert document["next_at"] == document["upcoming"][0]
    assert (document["jitter_seconds"], document["overlap"], document["app"]) == (300, "queue", None)
    [tick] = document["recent"]
    assert (tick.keys(), tick["outcome"], tick["count"]) == ({"at", "outcome", "count", "job"}, "by hand", 1)


@pytest.mark.parametrize("command", ["show", "next", "pause", "resume", "fire", "remove", "edit", "backfill"])
def test_a_schedule_that_is_not_there_is_exit_code_4(cli: Cli, shop: str, command: str) -> None:
    more = {"edit": ["--cron", "@daily"], "backfill": ["--from", "2026-01-01", "--to", "2026-01-02"]}
    said = cli("schedules", command, "nightly", *more.get(command, []))
    assert (said.code, said.err.startswith("lateshift: There is no schedule 'nightly' in the store.")) == (
        4,
        True,
    )
    added(cli, "nightly report")
    said = cli("schedules", command, "nightly repotr", *more.get(command, []))
    assert said.code == 4
    if command != "edit":
        assert "Did you mean nightly report?" in said.err


# -- next ---------------------------------------------------------------------------------------------------------


def test_next_tries_an_expression_that_is_no_schedule_yet(cli: Cli) -> None:
    said = cli("schedules", "next", "--cron", "0 9 * * mon", "--timezone", "Asia/Tokyo", "--count", "2")
    assert said.out.startswith("At 09:00 on Monday, Asia/Tokyo\n")
    assert said.out.count("Mon ") == 2
    document = cli("schedules", "next", "--every", "90s", "--count", "3", "--json").document
    assert document.keys() == {"words", "timezone", "next", "next_local"}
    ticks = [datetime.fromisoformat(each) for each in document["next"]]
    assert [later - earlier for earlier, later in pairwise(ticks)] == [timedelta(seconds=90)] * 2
    assert document["words"] == "Every 90 s"


def test_next_of_a_schedule_is_what_show_says(cli: Cli, shop: str) -> None:
    added(cli, "nightly", "--timezone", "Europe/Madrid", "--start", "2999-01-01")  # not between two days
    document = cli("schedules", "next", "nightly", "--json").document
    assert document["next"] == shown(cli, "nightly")["upcoming"]
    assert all("T00:00:00" in each for each in document["next_local"])
    assert "next, in Europe/Madrid" in cli("schedules", "next", "nightly").out


def test_next_of_one_that_has_had_its_last_tick_says_so(cli: Cli, shop: str, store: Store) -> None:
    plan = Plan(timing=Timing(at=datetime(2020, 1, 1, tzinfo=UTC)))
    store.schedules.add(NewSchedule(name="past", plan=plan, job=make_job()), by="ana")
    assert "It does not fire again." in cli("schedules", "next", "past").out
    assert "never again" in cli("schedules", "list").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Give the NAME of a schedule, or try --cron or --every."),
        (["a", "--cron", "@daily"], "Give the NAME of a schedule, or try --cron or --every."),
        (["--cron", "@daily", "--every", "5m"], "one of cron, every and at"),
        (["--cron", "0 0 31 2 *"], "never fires"),
        (["--cron", "* * *"], "3 fields"),
        (["--cron", "@daily", "--timezone", "Tokyo"], "Did you mean Asia/Tokyo?"),
        (["--every", "5 fortnights"], "no duration, such as 90s, 15m, 1h30m or 2d"),
        (["--every", "100ms"], "no duration"),
        (["--cron", "@daily", "--count", "0"], "--count"),
    ],
)
def test_next_of_what_cannot_be_is_exit_code_2(cli: Cli, arguments: list[str], said: str) -> None:
    answer = cli("schedules", "next", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


# -- add and edit -------------------------------------------------------------------------------------------------


def test_add_makes_a_schedule_and_says_when_it_fires_next(cli: Cli, shop: str) -> None:
    said = added(cli, "a", "--cron", "0 12 * * *", "--timezone", "Europe/Madrid")
    assert said.code == 0
    assert said.out.startswith("a is added: At 12:00 every day, Europe/Madrid. Next: ")
    assert said.out.endswith(" UTC).\n")
    document = added(
        cli, "b", "--every", "1h30m", "--start", "2030-01-01T09:00+01:00", "--end", "2031-01-01", "--args",
        '{"region": "eu", "pages": 3}', "--catch-up", "all", "--overlap", "allow", "--most", "9", "--grace", "2m", "--priority", "7", "--json",
        task="report",
    ).document  # fmt: skip
    assert document.keys() == FIELDS
    expected = {
        "task": "report", "queue": "nights", "arguments": {"region": "eu", "pages": 3}, "every_seconds": 5400,
        "start": "2030-01-01T08:00:00Z", "end": "2031-01-01T00:00:00Z", "next_at": "2030-01-01T08:00:00Z",
        "catch_up": "all", "most": 9, "grace_seconds": 120, "changed_by": operator(), "cron": None, "words": "Every 90 min",
    }  # fmt: skip
    assert {name: document[name] for name in expected} == expected
    added(cli, "c", "--queue", "other")
    assert shown(cli, "c")["queue"] == "other"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["x", "--task", "clean"], "one of cron, every and at"),
        (["x", "--task", "nix", "--cron", "@daily"], "has no task 'nix'"),
        (["x", "--task", "report", "--cron", "@daily"], "region"),
        (["x", "--task", "report", "--cron", "@daily", "--args", '{"region": 5}'], "argument 'region'"),
        (["x", "--task", "report", "--cron", "@daily", "--args", "[1]"], "is no JSON object"),
        (["x", "--task", "report", "--cron", "@daily", "--args", "{"], "is no JSON object"),
        (["x", "--task", "clean", "--cron", "61 * * * *"], "minute that cannot be: '61'"),
        (["x", "--task", "clean", "--cron", "@daily", "--timezone", "Mars"], "no time zone 'Mars'"),
        (["x", "--task", "clean", "--at", "tomorrow"], "is no date, such as"),
        (["x", "--task", "clean", "--at", "2020-01-01"], "It never fires: 2020-01-01 00:00 UTC has passed."),
        (
            ["x", "--task", "clean", "--cron", "@daily", "--end", "2020-01-01"],
            "2020-01-01 00:00 UTC has passed.",
        ),
        (["x", "--task", "clean", "--cron", "@daily", "--catch-up", "all"], 'Say overlap="allow"'),
        (
            ["x", "--task", "clean", "--cron", "@daily", "--tick-as", "day"],
            "clean has no parameter of that name",
        ),
        (
            ["x", "--task", "report", "--cron", "@daily", "--tick-as", "pages", "--args", '{"region": "eu"}'],
            "argument 'pages'",
        ),
        (["x", "--task", "clean", "--cron", "@daily", "--overlap", "no"], "allow, skip, queue, cancel"),
        (["x", "--task", "clean", "--cron", "@daily", "--catch-up", "no"], "none, last, all"),
        (["x", "--task", "clean", "--cron", "@daily", "--most", "0"], "from 1 to 1,000"),
        (["x", "--task", "clean", "--cron", "@daily", "--priority", "1000"], "priority"),
        (["x" * 201, "--task", "clean", "--cron", "@daily"], "1 to 200 characters"),
        (["x", "--cron", "@daily"], "Missing option '--task'"),
    ],
)
def test_add_of_what_cannot_be_is_exit_code_2_and_adds_nothing(
    cli: Cli, shop: str, arguments: list[str], said: str
) -> None:
    name, *rest = arguments
    answer = cli("schedules", "add", name, "--app", shop, *rest)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert cli("schedules", "list", "--json").document["schedules"] == []


def test_add_of_a_name_that_is_taken_is_refused(cli: Cli, shop: str) -> None:
    added(cli, "a")
    said = added(cli, "a", "--cron", "@hourly")
    assert said.code == 2
    assert "There is a schedule 'a' already. `lateshift schedules edit` changes it." in said.err
    assert shown(cli, "a")["cron"] == "@daily"


def test_edit_changes_what_is_said_and_nothing_else(cli: Cli, shop: str) -> None:
    added(cli, "a", "--args", '{"region": "eu"}', "--jitter", "1m", "--timezone", "Asia/Tokyo", task="report")
    before = shown(cli, "a")
    said = cli("schedules", "edit", "a", "--cron", "@hourly")
    assert (said.code, said.out.startswith("a is changed: ")) == (0, True)
    document = cli("schedules", "edit", "a", "--args", '{"region": "us"}', "--app", shop, "--json").document
    assert (document["cron"], document["arguments"]["region"]) == ("@hourly", "us")
    kept = ("jitter_seconds", "timezone", "overlap", "catch_up", "grace_seconds", "queue", "created_at")
    assert {name: document[name] for name in kept} == {name: before[name] for name in kept}
    assert cli("schedules", "edit", "a", "--every", "2h", "--json").document["cron"] is None


def test_edit_takes_away_the_first_and_the_last_moment(cli: Cli, shop: str) -> None:
    added(cli, "a", "--start", "2030-01-01", "--end", "2031-01-01", "--jitter", "1m")
    document = cli("schedules", "edit", "a", "--no-start", "--json").document
    assert (document["start"], document["end"], document["jitter_seconds"]) == (
        None,
        "2031-01-01T00:00:00Z",
        60,
    )
    assert document["next_at"] < "2030"
    document = cli("schedules", "edit", "a", "--no-end", "--start", "2032-01-01", "--json").document
    assert (document["start"], document["end"]) == ("2032-01-01T00:00:00Z", None)
    document = cli("schedules", "edit", "a", "--at", "2040-01-01", "--no-start", "--json").document
    assert (document["at"], document["cron"]) == ("2040-01-01T00:00:00Z", None)


def test_the_parameter_that_is_given_the_tick_is_named_changed_and_taken_away(
    cli: Cli, shop: str, store: Store
) -> None:
    added(cli, "a", "--tick-as", "day", "--timezone", "Asia/Tokyo", task="daily")
    assert (shown(cli, "a")["tick_as"], shown(cli, "a")["arguments"]) == ("day", {})
    assert "1970" not in cli("schedules", "show", "a").out

    def told() -> Any:
        job = store.schedules.fire_now("a", by="ana")
        assert job is not None
        view = store.reports.job(job)
        assert view is not None
        return msgspec.json.decode(view.payload)

    def today() -> Any:
        return {"day": datetime.now(zone("Asia/Tokyo")).date().isoformat()}

    for _ in range(2):
        before, said = today(), told()
        assert said in (before, today())  # midnight may fall between
        cli("schedules", "edit", "a", "--jitter", "1m")
    document = cli("schedules", "edit", "a", "--tick-as", "until", "--app", shop, "--json").document
    assert document["tick_as"] == "until"
    assert told().keys() == {"until"}
    document = cli("schedules", "edit", "a", "--no-tick-as", "--app", shop, "--json").document
    assert (document["tick_as"], document["arguments"]) == (None, {})


def test_edit_of_the_overlap_rule_decides_whether_its_jobs_wait_for_each_other(
    cli: Cli, shop: str, store: Store
) -> None:
    added(cli, "a", "--overlap", "queue")
    seen = []
    for rule in ("allow", "cancel", "skip"):
        cli("schedules", "edit", "a", "--overlap", rule)
        view = store.schedules.get("a")
        assert view is not None
        seen.append(view.job.spec.exclusive)
    assert seen == [None, "schedule:a", None]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Say what to change."),
        (["--args", "{}"], "give --app PROGRAM too"),
        (["--args", '{"region": 1}', "--app", FILE], "argument 'region'"),
        (["--cron", "nix"], "has 1 field:"),
        (["--jitter", "-5s"], "no duration"),
        (["--at", "2020-01-01"], "2020-01-01 00:00 UTC has passed"),
        (["--end", "2020-01-01"], "2020-01-01 00:00 UTC has passed"),
        (["--start", "2030-01-01", "--no-start"], "--start and --no-start: say one of them"),
        (["--tick-as", "pages"], "give --app PROGRAM too"),
        (["--no-tick-as"], "give --app PROGRAM too"),
        (["--tick-as", "region", "--args", "{}"], "give --app PROGRAM too"),
        (["--catch-up", "all"], 'Say overlap="allow"'),
    ],
)
def test_edit_of_what_cannot_be_is_exit_code_2(cli: Cli, shop: str, arguments: list[str], said: str) -> None:
    def kept() -> Any:
        return shown(cli, "a") | {"upcoming": None}  # which hangs on the time of day

    added(cli, "a", "--args", '{"region": "eu"}', task="report")
    before = kept()
    answer = cli("schedules", "edit", "a", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert kept() == before


# -- pause, resume, fire, remove ----------------------------------------------------------------------------------


def test_pause_and_resume_say_what_they_did(cli: Cli, shop: str) -> None:
    added(cli, "a")
    assert cli("schedules", "pause", "a").out == "a is paused.\n"
    assert cli("schedules", "pause", "a").out == "a was paused before.\n"
    assert cli("schedules", "pause", "a", "--json").document == {"schedule": "a", "paused": False}
    assert f"paused by {operator()}" in cli("schedules", "list").out
    document = shown(cli, "a")
    assert (document["paused"], document["paused_by"]) == (True, operator())
    assert cli("schedules", "resume", "a", "--json").document == {"schedule": "a", "resumed": True}
    assert cli("schedules", "resume", "a").out == "a was not paused.\n"
    assert shown(cli, "a")["paused"] is False


def test_fire_makes_a_job_now(cli: Cli, shop: str) -> None:
    added(cli, "a", "--args", '{"region": "eu"}', task="report")
    said = cli("schedules", "fire", "a")
    id = said.out.removeprefix("Job ").removesuffix(" is enqueued.\n")
    job = cli("jobs", "show", id, "--json").document
    assert (job["state"], job["queue"], job["arguments"]["region"]) == ("ready", "nights", "eu")
    document = cli("schedules", "fire", "a", "--json").document
    assert (document["schedule"], len(document["job"])) == ("a", 36)
    assert "fired by hand" in cli("schedules", "list").out


def test_remove_takes_a_schedule_away_and_leaves_its_jobs(cli: Cli, shop: str) -> None:
    added(cli, "a")
    job = cli("schedules", "fire", "a", "--json").document["job"]
    assert cli("schedules", "remove", "a").out == "a is removed.\n"
    assert cli("schedules", "remove", "a").code == 4
    assert cli("jobs", "show", job, "--json").document["state"] == "ready"
    added(cli, "b")
    assert cli("schedules", "remove", "b", "--json").document == {"schedule": "b", "removed": True}


def test_remove_of_one_that_code_has_says_that_it_stays_away(cli: Cli, store_url: str) -> None:
    app = Lateshift("shop", store=store_url)

    @app.task
    def clean() -> None: ...

    app.schedule(clean, cron="@daily")
    asyncio.run(Ticker(app.store, app.name, lambda: list(app.schedules.values())).turn())
    app.close()
    assert "made by" in cli("schedules", "show", "clean").out
    assert shown(cli, "clean")["app"] == "shop"
    assert cli("schedules", "remove", "clean").out == (
        "clean is removed. The code of app shop has it still: it stays away until that changes it.\n"
    )
    assert cli("schedules", "list", "--json").document["schedules"] == []


def test_jobs_that_wait_for_their_time_are_listed_and_removed_by_their_ids(cli: Cli, store_url: str) -> None:
    app = Lateshift("shop", store=store_url)

    @app.task
    def remind(number: int) -> None: ...

    late, soon = (remind.options(delay=timedelta(hours=hours)).enqueue(hours) for hours in (2, 1))
    now = remind.enqueue(0)
    listed = cli("schedules", "list", "--once", "--json").document["jobs"]
    assert [each["id"] for each in listed] == [str(soon.id), str(late.id)]
    table = cli("schedules", "list", "--once", "--limit", "1").out
    assert soon.id.hex[-6:] in table
    assert late.id.hex[-6:] not in table
    assert "remind" in table

    said = cli("schedules", "remove", soon.id.hex[-8:])
    assert (said.code, said.out) == (0, f"The job {soon.id.hex[-8:]} is cancelled.\n")
    said = cli("schedules", "remove", str(late.id), "--json")
    assert said.document == {"schedule": str(late.id), "cancelled": True}
    assert cli("schedules", "list", "--once", "--json").document == {"jobs": []}
    assert cli("schedules", "remove", str(late.id)).code == 4
    assert cli("schedules", "remove", str(now.id)).code == 4  # it does not wait for its time
    assert cli("jobs", "show", str(now.id), "--json").document["state"] == "ready"
    app.close()


# -- backfill -----------------------------------------------------------------------------------------------------


def test_backfill_makes_a_batch_and_says_so_when_it_was_made_before(cli: Cli, shop: str) -> None:
    added(cli, "a", "--cron", "0 2 * * *", "--timezone", "Europe/Madrid")
    week = ("--from", "2026-11-02", "--to", "2026-11-08T02:00")
    said = cli("schedules", "backfill", "a", *week)
    assert said.out.startswith("7 ticks, each with its job, in batch ")
    again = cli("schedules", "backfill", "a", *week)
    assert again.out.startswith(
        "Nothing is made twice: 7 ticks of this range had their jobs before, in batch "
    )
    range = "The range was Mon 2026-11-02 00:00:00 CET to Sun 2026-11-08 02:00:00 CET, both included.\n"
    assert said.out.endswith(range)
    assert again.out.endswith(range)
    document = cli("schedules", "backfill", "a", *week, "--json").document
    assert document.pop("made") == 0
    assert (document.pop("from"), document.pop("to")) == ("2026-11-01T23:00:00Z", "2026-11-08T01:00:00Z")
    assert (document["name"], document["total"], document["added"]) == ("backfill of a", 7, 7)
    assert document["id"] in said.out
    assert document["id"] in again.out
    assert cli("batches", "show", document["id"], "--json").document == document
    same = cli(
        "schedules", "backfill", "a", "--from", "2026-11-01T23:00Z", "--to", "2026-11-08T01:00Z", "--json"
    )
    assert same.document["id"] == document["id"]  # the schedule's zone, unless it has one
    shorter = cli(
        "schedules", "backfill", "a", "--from", "2026-11-02", "--to", "2026-11-08", "--json"
    ).document
    assert (shorter["total"], shorter["made"]) == (6, 6)


@pytest.mark.parametrize(
    ("point", "there"), [("batch.before_commit:3", 2000), ("batch.after_commit:1", 1000)]
)
def test_a_backfill_that_is_killed_half_way_goes_on_and_makes_nothing_twice(
    cli: Cli, shop: str, store: Store, store_url: str, tmp_path: Path, point: str, there: int
) -> None:
    added(cli, "a", "--every", "1h")
    hours = ("schedules", "backfill", "a", "--from", "2026-01-01T01:00Z", "--to", "2026-05-01T00:00Z")
    killed = completed(*hours, cwd=tmp_path, LATESHIFT_STORE=store_url, LATESHIFT_CRASH=point)
    assert killed.code == -signal.SIGKILL
    ticks = 120 * 24
    said = cli(*hours).out
    assert said.startswith(
        f"It went on where it was interrupted: {there:,} ticks had their jobs, {ticks - there:,} more"
    )
    [batch] = cli("batches", "list", "--json").document["batches"]
    assert (batch["total"], batch["added"]) == (ticks, ticks)
    [queue] = cli("queues", "list", "--json").document["queues"]
    assert sum(queue[state] for state in ("ready", "blocked", "scheduled")) == ticks
    assert cli(*hours).out.startswith(f"Nothing is made twice: {ticks:,} ticks")


@pytest.mark.parametrize(
    ("begin", "end", "said"),
    [
        ("2026-01-02", "2026-01-01", "from the earlier time to the later"),
        ("2026-01-01T01:00", "2026-01-01T02:00", "The schedule a has no tick from 2026-01-01 01:00"),
        ("2026-01-01", f"{datetime.now(UTC).year + 1}-12-31", "A backfill is of the past"),
        ("monday", "2026-01-01", "'monday' is no date, such as 2026-11-30"),
    ],
)
def test_a_backfill_that_cannot_be_is_exit_code_2(
    cli: Cli, shop: str, begin: str, end: str, said: str
) -> None:
    added(cli, "a")
    answer = cli("schedules", "backfill", "a", "--from", begin, "--to", end)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert cli("batches", "list", "--json").document["batches"] == []


def test_without_a_store_it_says_so(cli: Cli, tmp_path: Path) -> None:
    said = cli("schedules", "list", "--store", f"sqlite:///{tmp_path}/none.db")
    assert (said.code, "There is no store" in said.err) == (3, True)
