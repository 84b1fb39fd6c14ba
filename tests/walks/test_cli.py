"""Every command on both stores: tables for people, JSON for programs, exit codes that scripts can use."""

import asyncio
import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lateshift import Lateshift, Permanent, State
from lateshift.cli.missing import REASONS
from lateshift.cli.output import print_table
from lateshift.cli.plain_console import PlainConsole
from lateshift.errors import JobNotCompleted
from lateshift.model.ids import new_job_id
from lateshift.model.job import Lane, Line
from lateshift.model.outcome import Cancelled
from tests.store_contract.driving import DAY, Worker
from tests.walks.commands import Cli, command, completed, environment, eventually, interrupted, started

pytestmark = pytest.mark.anyio


@pytest.fixture
def shop(store_url: str) -> Iterator[Lateshift]:
    app = Lateshift("shop", store=store_url)

    @app.task(queue="warehouse", retry=None)
    async def pack(order: int) -> str:
        if order < 0:
            raise Permanent(f"no order {order}")
        return f"packed {order}"

    yield app
    app.close()


async def ended(app: Lateshift, *orders: int) -> list[str]:
    """Jobs of these orders, run to their end."""
    task = app.find_task("pack")
    jobs = [task.enqueue(order) for order in orders]
    async with app.running():
        for job in jobs:
            with contextlib.suppress(JobNotCompleted):
                await job.aresult(timeout=timedelta(seconds=20))
    return [str(job.id) for job in jobs]


# -- jobs ----------------------------------------------------------------------------------------------------------


def test_jobs_list_says_so_when_there_are_none(cli: Cli) -> None:
    assert cli("jobs", "list").out == "No jobs.\n"
    assert cli("jobs", "list", "--json").document == {"jobs": [], "next_before": None, "cut": False}
    assert cli("jobs", "list", "--task", "x", "--state", "dead").out == "No jobs with task x, state dead.\n"


def test_jobs_list_pages_from_the_newest_to_the_oldest(cli: Cli, shop: Lateshift) -> None:
    ids = [str(shop.find_task("pack").enqueue(order).id) for order in range(5)]
    first = cli("jobs", "list", "--limit", "3", "--json").document
    assert [job["id"] for job in first["jobs"]] == ids[:1:-1]
    rest = cli("jobs", "list", "--limit", "3", "--before", first["next_before"], "--json").document
    assert [job["id"] for job in rest["jobs"]] == ids[1::-1]
    assert rest["next_before"] is None


def test_jobs_list_narrows_by_queue_task_state_and_reason(cli: Cli, shop: Lateshift) -> None:
    task = shop.find_task("pack")
    here, there = task.enqueue(1), task.options(queue="other").enqueue(2)
    there.cancel()
    for arguments, found in {
        ("--queue", "warehouse"): [here],
        ("--queue", "nowhere"): [],
        ("--task", "pack"): [there, here],
        ("--state", "ready"): [here],
        ("--state", "cancelled"): [there],
    }.items():
        listed = cli("jobs", "list", *arguments, "--json").document["jobs"]
        assert [job["id"] for job in listed] == [str(job.id) for job in found], arguments


async def test_a_dead_letter_is_listed_shown_and_resubmitted(cli: Cli, shop: Lateshift) -> None:
    good, bad = await ended(shop, 1, -1)

    table = cli("jobs", "list")
    assert good in table.out
    assert bad in table.out
    assert '{"order": 1}' in table.out  # of what has nothing to be told, what it was given
    assert "permanent; Permanent: no order -1" in table.out

    shown = cli("jobs", "show", bad)
    assert "pack is dead (permanent)" in shown.out
    assert '{"order": -1}' in shown.out
    assert "attempt 1 permanent after" in shown.out
    assert "raise Permanent" in cli("jobs", "show", bad, "--json").document["history"][0]["traceback"]

    assert cli("jobs", "show", good, "--json").document["result"] == "packed 1"
    assert cli("jobs", "resubmit", bad).out == "1 job ready again.\n"
    assert cli("jobs", "show", bad, "--json").document["state"] == "ready"


def test_the_fields_of_a_job_in_json_are_these(cli: Cli, shop: Lateshift) -> None:
    job = shop.find_task("pack").enqueue(7)
    brief = [
        "id", "task", "queue", "state", "reason", "priority", "attempt", "attempts", "created_at", "due_at",
        "started_at", "complete_by", "settled_at", "cancel_requested", "progress", "tags",
    ]  # fmt: skip
    more = [
        "fence",
        "losses",
        "holder",
        "exclusive",
        "session",
        "sequence",
        "tenant",
        "limit_key",
        "batch",
        "workflow",
        "parent",
        "arguments",
        "result",
        "checkpoint",
        "history",
    ]
    assert list(cli("jobs", "list", "--json").document["jobs"][0]) == brief
    shown = cli("jobs", "show", str(job.id), "--json").document
    assert list(shown) == brief + more
    assert shown["arguments"] == {"order": 7}


async def test_cancelling_says_what_it_could_not_cancel(cli: Cli, shop: Lateshift) -> None:
    [done] = await ended(shop, 1)
    waiting, missing = str(shop.find_task("pack").enqueue(2).id), str(new_job_id())
    assert cli("jobs", "cancel", waiting, "--json").document == {"cancelled": [waiting], "unchanged": []}
    said = cli("jobs", "cancel", done, missing)
    assert said.code == 4
    assert f"job {done} is completed and stays so" in said.err
    assert f"job {missing} is not in the store" in said.err


async def test_resubmitting_by_filter_asks_first(
    cli: Cli, shop: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = await ended(shop, -1, -2, -3)
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    assert "Nothing was resubmitted." in cli("jobs", "resubmit", "--all").out
    unanswered = cli("jobs", "resubmit", "--all")
    assert unanswered.code == 2
    assert "Resubmit 3 dead letters?" in unanswered.err
    assert "add --yes" in unanswered.err
    assert cli("jobs", "resubmit", "--task", "other", "--yes", "--json").document["resubmitted"] == []
    assert (
        len(
            cli("jobs", "resubmit", "--task", "pack", "--limit", "2", "--yes", "--json").document[
                "resubmitted"
            ]
        )
        == 2
    )
    left = cli("jobs", "resubmit", "--reason", "permanent", "--queue", "warehouse", "--yes", "--json")
    assert len(left.document["resubmitted"]) == 1
    assert {shop.job(job).state for job in dead} == {State.READY}


def test_resubmit_wants_ids_or_a_filter_but_not_both(cli: Cli) -> None:
    for arguments in ([], ["--all", "--task", "pack"], [str(new_job_id()), "--all"]):
        said = cli("jobs", "resubmit", *arguments)
        assert said.code == 2
        assert "Give job ids, or a filter" in said.err


def test_a_job_that_is_not_there_is_exit_code_4(cli: Cli) -> None:
    for arguments in (["show"], ["cancel"], ["resubmit"]):
        said = cli("jobs", *arguments, str(new_job_id()))
        assert said.code == 4
        assert "retention" in said.err


# -- queues, members, store ----------------------------------------------------------------------------------------


def test_queues_are_paused_resumed_and_listed(cli: Cli, shop: Lateshift) -> None:
    assert cli("queues", "list").out == "No queue has a job, and no worker that is alive declares one.\n"
    shop.find_task("pack").enqueue(1)
    assert cli("queues", "pause", "warehouse", "--json").document == {"queue": "warehouse", "paused": True}
    [queue] = cli("queues", "list", "--json").document["queues"]
    assert queue["paused"]
    assert queue["paused_by"]
    assert queue["ready"] == 1
    assert "by " in cli("queues", "list").out
    assert "goes on" in cli("queues", "resume", "warehouse").out
    assert "was not paused" in cli("queues", "resume", "warehouse").out
    assert cli("queues", "pause", "a queue?").code == 2


async def test_queues_without_jobs_are_listed_while_a_worker_whose_code_declares_them_lives(
    cli: Cli, shop: Lateshift
) -> None:
    shop.queue("tight", max_ready=3)
    async with shop.running():
        while not (queues := cli("queues", "list", "--json").document["queues"]):  # noqa: ASYNC110 - in a database
            await asyncio.sleep(0.01)
    assert [(queue["name"], queue["ready"], queue["paused"]) for queue in queues] == [
        ("tight", 0, False),
        ("warehouse", 0, False),
    ]


async def test_members_are_listed(cli: Cli, shop: Lateshift) -> None:
    assert cli("members", "list").out == "No process works on this store.\n"
    async with shop.running():
        while not (found := cli("members", "list", "--json").document["members"]):  # noqa: ASYNC110 - in a database
            await asyncio.sleep(0.01)
        [member] = found
        assert member["kind"] == "worker"
        assert not member["dead"]
        assert "alive" in cli("members", "list").out


def test_the_store_is_migrated_checked_and_backed_up(cli: Cli, shop: Lateshift, tmp_path: Path) -> None:
    shop.find_task("pack").enqueue(1)
    assert cli("store", "migrate", "--json").document["applied"] == []
    assert "up to date" in cli("store", "migrate").out
    assert cli("store", "check", "--json").document["found"] == []
    assert "nothing wrong" in cli("store", "check").out

    copy = tmp_path / "copy"
    said = cli("store", "backup", str(copy), "--json")
    if said.code == 3:  # PostgreSQL is backed up by its own program, which may not be on this machine
        assert "pg_dump" in said.err
        return
    assert said.document == {"file": str(copy), "bytes": copy.stat().st_size}
    again = cli("store", "backup", str(copy))
    assert again.code == 2
    assert "never overwrites" in again.err
    [line] = shop.store.audit.list(limit=10, action="backup")
    assert line.subject == f"store to {copy}"


def test_an_empty_postgres_database_is_migrated(
    capsys: pytest.CaptureFixture[str], empty_postgres_url: str
) -> None:
    said = Cli(capsys)("store", "migrate", "--store", empty_postgres_url, "--json")
    assert said.document["applied"]


def test_store_check_with_something_found_is_exit_code_1(
    cli: Cli, shop: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        type(shop.store.upkeep), "check", lambda self: ["3 jobs are both waiting and settled"]
    )
    assert cli("store", "check").code == 1
    assert cli("store", "check", "--json").document["found"] == ["3 jobs are both waiting and settled"]


def test_bench_measures_and_leaves_nothing_behind(cli: Cli, shop: Lateshift, tmp_path: Path) -> None:
    _ = shop.store
    before = sorted(tmp_path.iterdir())
    figures = cli("bench", "--jobs", "200", "--json").document
    assert figures["enqueue_bulk"] > figures["enqueue_one"] > 0
    assert figures["drain"] > 0
    assert 0 < figures["start_p50"] <= figures["start_p95"] <= figures["start_p99"]
    assert cli("jobs", "list", "--json").document["jobs"] == []
    assert [path for path in sorted(tmp_path.iterdir()) if path not in before] == []


# -- the options that all commands share ------------------------------------------------------------------------------


def test_the_option_store_comes_before_the_environment(
    cli: Cli, shop: Lateshift, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.find_task("pack").enqueue(1)
    monkeypatch.setenv("LATESHIFT_STORE", "nonsense")
    assert len(cli("jobs", "list", "--store", store_url, "--json").document["jobs"]) == 1
    assert len(cli("--store", store_url, "jobs", "list", "--json").document["jobs"]) == 1


def test_the_file_lateshift_toml_names_the_store(
    cli: Cli, shop: Lateshift, store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.find_task("pack").enqueue(1)
    monkeypatch.delenv("LATESHIFT_STORE")
    (tmp_path / "lateshift.toml").write_text(f"store = {json.dumps(store_url)}\n")
    assert len(cli("jobs", "list", "--json").document["jobs"]) == 1


def test_debug_shows_where_an_error_came_from(capsys: pytest.CaptureFixture[str]) -> None:
    from lateshift.cli.main import run

    assert run(["jobs", "list", "--store", "nonsense", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_help_is_quick_because_it_loads_no_driver_and_no_terminal_library(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom lateshift.cli.main import run\nassert run(['--help']) == 0\n"
        "print([name for name in ('apsw', 'psycopg', 'rich', 'psutil') if name in sys.modules])"
    )
    python = command()[0]
    done = subprocess.run(
        [python, "-c", script], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("[]\n")
    for noun in ("up", "work", "check", "jobs", "queues", "members", "store", "bench"):
        assert f"\n  {noun}" in done.stdout


def test_a_reader_that_goes_away_is_no_error_to_see(
    cli: Cli, shop: Lateshift, store_url: str, tmp_path: Path
) -> None:
    shop.enqueue_many(shop.find_task("pack").call(order) for order in range(3000))
    listing = subprocess.Popen(
        command("jobs", "list", "--limit", "3000", "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(LATESHIFT_STORE=store_url), cwd=tmp_path,
    )  # fmt: skip
    assert listing.stdout is not None
    assert listing.stderr is not None
    with listing:
        listing.stdout.read(10)
        listing.stdout.close()
        assert listing.stderr.read() == b""
    assert listing.returncode == 141


# -- up and work -------------------------------------------------------------------------------------------------------

PROGRAM = """
from lateshift import Lateshift
app = Lateshift("small")

@app.task
async def greet(name: str) -> str:
    return f"hello {name}"

@app.on_start
async def begin() -> None:
    await greet.options(key="first").aenqueue("you")
"""


@pytest.mark.parametrize("verb", ["up", "work"])
def test_a_program_is_run_until_ctrl_c(verb: str, cli: Cli, store_url: str, tmp_path: Path) -> None:
    (tmp_path / "small.py").write_text(PROGRAM)
    options = [
        "--processes",
        "2",
        "--concurrency",
        "5",
        "--threads",
        "2",
        "--queues",
        "default",
        "--stop-time",
        "3",
    ]
    with started(verb, "small.py", *options, "--store", store_url, cwd=tmp_path) as process:

        def results() -> list[str]:
            done = cli("jobs", "list", "--state", "completed", "--json").document["jobs"]
            return [cli("jobs", "show", job["id"], "--json").document["result"] for job in done]

        eventually(lambda: results() == ["hello you"], "the job of on_start")
        eventually(lambda: [it["kind"] for it in living(cli)].count("worker") == 2, "two workers")
        assert interrupted(process, 15) == 0
    assert "stopped after" in (tmp_path / "output").read_text()
    assert living(cli) == []


def living(cli: Cli) -> list[Any]:
    members: list[Any] = cli("members", "list", "--json").document["members"]
    return [member for member in members if not member["dead"]]


def test_a_program_that_names_its_store_does_not_take_another(store_url: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(PROGRAM.replace('"small"', '"own", store="sqlite:///own.db"'))
    said = completed("work", "own.py", "--store", store_url, cwd=tmp_path)
    assert said.code == 2
    assert "own.py names its store itself" in said.err


def test_looking_around_in_a_folder_without_a_store_makes_none(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("LATESHIFT_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    said = cli("jobs", "list")
    assert said.code == 3
    assert "There is no store sqlite:///lateshift.db yet" in said.err
    assert not (tmp_path / "lateshift.db").exists()


def test_a_long_message_leaves_the_other_columns_of_a_listing_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lateshift.cli.output.console", lambda: PlainConsole(width=160, highlight=False))
    print_table(("job", "task", "state", "what"), [("id-1", "thumbnail", "dead", "x" * 500)], "")
    [_, _, row] = capsys.readouterr().out.splitlines()
    assert row.split()[:3] == ["id-1", "thumbnail", "dead"]
    assert row.rstrip().endswith("…")


def test_a_queue_that_no_job_is_in_may_be_misspelt(cli: Cli, shop: Lateshift) -> None:
    shop.find_task("pack").enqueue(7)
    assert (
        "No job is in queue warhouse; there are some in warehouse." in cli("queues", "pause", "warhouse").out
    )
    assert "there are some in warehouse" in cli("jobs", "list", "--queue", "warhouse").out
    assert "there are some" not in cli("queues", "pause", "warehouse").out
    assert "No job is in queue" not in cli("queues", "pause", "warhouse").out, (
        "it is paused: it is known by now"
    )


def test_a_reason_that_nothing_has_may_be_misspelt(cli: Cli, shop: Lateshift) -> None:
    shop.find_task("pack").enqueue(7)
    for more in ([], ["--json"]):
        said = cli("jobs", "list", "--reason", "permnent", *more).err
        assert said.startswith(
            "lateshift: permnent is no reason that Lateshift gives. Did you mean permanent? "
        )
        assert all(reason in said for reason in REASONS)
    assert cli("jobs", "list", "--reason", "permnent", "--json").document["jobs"] == []
    for known in (*REASONS, "cancelled by ana"):
        assert cli("jobs", "list", "--reason", known).err == ""


def test_a_reason_that_a_task_gave_is_not_taken_for_misspelt(cli: Cli, shop: Lateshift) -> None:
    job = shop.find_task("pack").enqueue(7)
    worker = Worker(shop.store)
    worker.settle(worker.lease_one(Line("warehouse", Lane.COROUTINE)), Cancelled("permnent", DAY))
    said = cli("jobs", "list", "--reason", "permnent", "--json")
    assert ([each["id"] for each in said.document["jobs"]], said.err) == ([str(job.id)], "")


def test_help_says_whole_what_each_command_does(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for asked in ([], ["jobs"], ["workflows"], ["tokens"]):
        said = cli(*asked, "--help").out
        assert "Commands:" in said
        assert "..." not in said.partition("Commands:")[2], asked
