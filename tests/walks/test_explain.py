"""`job.explain()` and `lateshift jobs explain`, on both stores: from the enqueue to the end of a job."""

import asyncio
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lateshift import Explanation, Lateshift, Limit, Permanent, Retry, State
from lateshift.errors import JobUnknown
from lateshift.model.guard import Rule
from lateshift.model.ids import JobId, new_job_id
from lateshift.model.job import Place
from tests.store_contract.driving import GUARDED, Worker, added, make_job
from tests.walks.commands import Cli, environment, eventually, interrupted, started
from tests.walks.waiting import until

pytestmark = pytest.mark.anyio

SOON = timedelta(seconds=20)


class Empty(Exception):
    retry_after = 3600


@pytest.fixture
def shop(store_url: str) -> Iterator[Lateshift]:
    app = Lateshift("shop", store=store_url, version="2.3.1")
    app.settings = replace(app.settings, threads=1, stop_time=timedelta(milliseconds=200))

    @app.task(queue="orders", retry=Retry(attempts=5))
    def pack(order: int) -> str:
        if order < 0:
            raise Permanent(f"no order {order}")
        if order == 0:
            raise Empty("an empty order")
        return f"packed {order}"

    @app.task(queue="orders", process=True)
    def shrink() -> None: ...

    yield app
    app.close()


def codes(explanation: Explanation) -> list[str]:
    return [reason.code for reason in explanation.reasons]


def enqueue(app: Lateshift, *args: Any, task: str = "pack", **options: Any) -> Any:
    return app.find_task(task).options(**options).enqueue(*args)


# -- from the program ------------------------------------------------------------------------------------------------


def test_a_job_that_several_things_hold_back_names_them_all(shop: Lateshift) -> None:
    job = enqueue(shop, 1, delay=timedelta(hours=1))
    shop.store.queues.pause("orders", by="ana")
    explanation = job.explain()

    assert codes(explanation) == ["no_worker", "queue_paused", "delayed"]
    assert explanation.reasons[1].by == "ana"
    assert explanation.not_before == job.view().due_at
    assert "Queue orders was paused by ana" in str(explanation)


async def test_async_code_asks_the_same(shop: Lateshift) -> None:
    job = enqueue(shop, 1)
    assert codes(await job.aexplain()) == ["no_worker"]


def test_a_job_that_is_gone_cannot_be_explained(shop: Lateshift) -> None:
    job = enqueue(shop, 1)
    job.cancel()
    shop.store.upkeep.erase([job.id])
    with pytest.raises(JobUnknown, match=str(job.id)):
        job.explain()


async def test_a_failed_attempt_and_a_dead_letter_are_explained(shop: Lateshift) -> None:
    again, dead = enqueue(shop, 0), enqueue(shop, -1)
    async with shop.running():
        await until(again.aview, lambda view: view.state is State.SCHEDULED)
        await until(dead.aview, lambda view: view.state is State.DEAD)
        [reason] = (await until(again.aexplain, lambda seen: codes(seen) == ["retry_wait"])).reasons
    assert "Attempt 1 of 5 failed" in reason.says
    assert "Empty: an empty order" in reason.says

    [reason] = dead.explain().reasons
    assert reason.code == "dead_letter"
    assert "Permanent: no order -1" in reason.says
    assert reason.do == f"lateshift jobs resubmit {dead.id}"


async def test_a_worker_says_what_it_runs_so_that_a_missing_task_is_explained_with_the_versions_alive(
    shop: Lateshift,
) -> None:
    [id] = added(shop.store, make_job(task="pakc", queue="orders"))
    job = shop.job(id)
    async with shop.running():
        explanation = await until(job.aexplain, lambda seen: "task_unknown" in codes(seen))
        [member] = shop.store.reports.members()
    assert member.serves is not None
    assert (member.serves.app, member.serves.version, member.serves.slots["thread"]) == ("shop", "2.3.1", 1)
    says = explanation.reasons[0].says
    assert "No live worker that serves queue orders knows the task pakc: there is shop 2.3.1." in says
    assert "Close to it: pack." in says


async def test_a_task_that_is_added_while_a_worker_runs_is_known_soon(shop: Lateshift) -> None:
    [id] = added(shop.store, make_job(task="late", queue="orders", delay=timedelta(hours=1)))
    job = shop.job(id)
    async with shop.running():
        await until(job.aexplain, lambda seen: "task_unknown" in codes(seen))

        @shop.task(name="late", queue="orders")
        async def late() -> None: ...

        await until(job.aexplain, lambda seen: codes(seen) == ["delayed"])


async def test_a_process_task_is_explained_where_only_threads_and_coroutines_run(shop: Lateshift) -> None:
    job = enqueue(shop, task="shrink")
    async with shop.running():
        explanation = await until(job.aexplain, lambda seen: "executor_missing" in codes(seen))
    assert "Its task needs processes" in explanation.reasons[0].says


async def test_a_full_worker_and_the_line_before_a_job_are_explained_and_who_runs_says_so(
    shop: Lateshift,
) -> None:
    gate = threading.Event()

    @shop.task(queue="orders")
    def hold() -> None:
        gate.wait(30)

    first, second, third = (hold.enqueue() for _ in range(3))
    try:
        async with shop.running():
            waiting = await until(
                third.aexplain,
                lambda seen: codes(seen) == ["no_room", "in_line"] and State.READY is seen.state,
            )
            runs = await until(first.aexplain, lambda seen: "shop 2.3.1" in str(seen))
            assert codes(runs) == ["running"]
            assert "1 of 1 threads are taken" in waiting.reasons[0].says
            assert "1 ready job of queue orders stands before it" in waiting.reasons[1].says
            gate.set()
            await asyncio.gather(*(job.aresult(timeout=SOON) for job in (first, second, third)))
    finally:
        gate.set()
    assert codes(third.explain()) == ["completed"]


async def test_what_sessions_and_limits_hold_back_is_explained_while_a_worker_runs(shop: Lateshift) -> None:
    gate = asyncio.Event()
    shop.limit("vendor", Limit(concurrency=1))
    shop.limit("caller", Limit(rate="1/h"))

    @shop.task(queue="calls")
    async def call() -> None:
        await gate.wait()

    def enqueued(**options: Any) -> Any:
        return call.options(**options).enqueue()

    async def codes_of(job: Any) -> list[str]:
        return codes(await job.aexplain())

    acme, waits = enqueued(limit_key="vendor:acme"), enqueued(limit_key="vendor:acme")
    head, behind = enqueued(session="user:7"), enqueued(session="user:7")
    numbered = enqueued(session="user:8", sequence=2, gap_after=timedelta(hours=1))
    first, rated = enqueued(limit_key="caller:7"), enqueued(limit_key="caller:7")
    async with shop.running():
        for job, expected in {
            acme: "running", waits: "limit_reached", head: "running", behind: "session_busy", numbered: "sequence_gap",
            first: "running", rated: "rate_limit",
        }.items():  # fmt: skip
            await until(lambda job=job: codes_of(job), lambda seen, expected=expected: seen == [expected])  # type: ignore[misc]
        [reason] = (await waits.aexplain()).reasons
        assert reason.jobs == [acme.id]
        assert reason.says.startswith(
            f"Limit vendor:acme, set by the code of {shop.name}, is at 1 of 1 job at once: "
        )
        assert (await behind.aexplain()).reasons[0].jobs == [head.id]
        gate.set()
        await asyncio.gather(*(job.aresult(timeout=SOON) for job in (acme, waits, head, behind, first)))


# -- from the command line -------------------------------------------------------------------------------------------


def test_the_command_prints_every_reason_with_what_to_do(cli: Cli, shop: Lateshift) -> None:
    job = enqueue(shop, 1, delay=timedelta(hours=1))
    shop.store.queues.pause("orders", by="ana")
    said = cli("jobs", "explain", str(job.id)[-8:])

    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].split() == ["pack", "is", "scheduled", f"{job.id},", "queue", "orders"]
    assert lines[1] == "3 things hold it back."
    for text in ("no_worker", "queue_paused", "delayed", "$ lateshift queues resume orders", "not before"):
        assert text in said.out, text


def test_the_command_prints_a_document_for_programs(cli: Cli, shop: Lateshift) -> None:
    job = enqueue(shop, 1, at=datetime(2100, 1, 1, tzinfo=UTC))
    document = cli("jobs", "explain", str(job.id), "--json").document
    assert {name: document[name] for name in ("id", "task", "queue", "state", "clears_at", "not_before", "estimated")} == {
        "id": str(job.id), "task": "pack", "queue": "orders", "state": "scheduled", "clears_at": None,
        "not_before": "2100-01-01T00:00:00Z", "estimated": False,
    }  # fmt: skip
    assert [reason["code"] for reason in document["reasons"]] == ["no_worker", "delayed"]
    assert set(document["reasons"][0]) == {
        "code", "says", "holds", "jobs", "by", "since", "clears_at", "clears_when", "estimated", "do",
    }  # fmt: skip


def test_the_limit_that_holds_a_job_is_named_with_the_jobs_that_fill_it(cli: Cli, shop: Lateshift) -> None:
    shop.store.rules.declare([Rule("key", "tenant", 1)], by="ana")
    worker, place = Worker(shop.store), Place(limit_key="tenant:7")
    running, waiting = added(shop.store, make_job(place=place), make_job(place=place))
    assert [lease.id for lease in worker.lease(10, GUARDED)] == [running]
    document = cli("jobs", "explain", str(waiting), "--json").document
    [reason] = [each for each in document["reasons"] if each["code"] == "limit_reached"]

    assert reason["says"].startswith("Limit tenant:7, set by the code of ana, is at 1 of 1 job at once: ")
    assert (reason["jobs"], reason["by"]) == ([str(running)], "ana")


def test_a_session_a_gap_and_a_rate_are_explained(cli: Cli, shop: Lateshift) -> None:
    shop.store.rules.declare([Rule("key", "tenant", None, 1, timedelta(hours=1), 1)], by="ana")
    places = [Place("s"), Place("s"), Place("t", 2), Place(limit_key="tenant:7"), Place(limit_key="tenant:7")]
    head, second, numbered, first, rated = added(shop.store, *[make_job(place=place) for place in places])
    worker = Worker(shop.store)
    assert {lease.id for lease in worker.lease(10, GUARDED)} == {head, first}

    def told(id: JobId) -> dict[str, Any]:
        reasons = cli("jobs", "explain", str(id), "--json").document["reasons"]
        return {reason["code"]: reason for reason in reasons}

    assert told(second)["session_busy"]["jobs"] == [str(head)]
    assert "number 1 has not come" in told(numbered)["sequence_gap"]["says"]
    assert told(numbered)["sequence_gap"]["clears_at"] is not None
    due = shop.job(rated).view().due_at
    assert datetime.fromisoformat(told(rated)["rate_limit"]["clears_at"]) == due
    assert "lets 1 start in 1h 0m" in told(rated)["rate_limit"]["says"]


def test_an_id_that_is_not_there_is_said_so_with_those_that_are_close(cli: Cli, shop: Lateshift) -> None:
    job = enqueue(shop, 1)
    text = str(job.id)
    wrong = text[:-1] + ("0" if text[-1] != "0" else "1")
    said = cli("jobs", "explain", wrong)
    assert said.code == 4
    assert f"There is no job {wrong}" in said.err
    assert f"Did you mean {job.id} (pack, ready)?" in said.err
    assert cli("jobs", "explain", wrong[-6:]).code == 4
    assert cli("jobs", "explain", str(new_job_id())).code == 4
    assert cli("jobs", "explain", "order-7").code == 2


def test_a_narrow_terminal_gets_the_reason_below_its_code(
    cli: Cli, shop: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rich.console import Console

    job = enqueue(shop, 1)
    monkeypatch.setattr("lateshift.cli.explain.console", lambda: Console(width=50))
    lines = cli("jobs", "explain", str(job.id)).out.splitlines()
    assert "no_worker" in [line.strip() for line in lines]
    assert all(len(line) <= 50 for line in lines)


def test_the_program_in_the_documents_does_what_it_says(store_url: str, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "explain.md").read_text()
    [program] = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    (tmp_path / "stuck.py").write_text(program)
    said = subprocess.run(
        [sys.executable, "stuck.py"], cwd=tmp_path, env=environment(LATESHIFT_STORE=store_url), capture_output=True,
        text=True, timeout=60, check=True,
    )  # fmt: skip
    lines = said.stdout.splitlines()
    assert lines[0].endswith("is scheduled. 2 things hold it back.")
    assert "no_worker when a worker is started" in lines
    assert any(line.startswith("delayed 20") for line in lines)
    assert lines[-1].startswith("not before 20")


PROGRAM = """
from lateshift import Lateshift

app = Lateshift("farm", version="7")


@app.task(queue="field")
def sow() -> None: ...
"""


def test_a_worker_process_says_what_it_serves(cli: Cli, store_url: str, tmp_path: Path) -> None:
    (tmp_path / "farm.py").write_text(PROGRAM)
    variables = {"LATESHIFT_STORE": store_url, "LATESHIFT_QUEUES": "field,barn.*"}

    def told() -> list[Any]:
        return [
            each["serves"] for each in cli("members", "list", "--json").document["members"] if each["serves"]
        ]

    with started("work", "farm.py", cwd=tmp_path, **variables) as worker:
        eventually(lambda: bool(told()), "a worker that says what it serves")
        [serves] = told()
        assert (serves["app"], serves["version"], serves["queues"]) == ("farm", "7", ["field", "barn.*"])
        assert {"coroutine", "thread", "process"} <= set(serves["slots"])
        assert "farm 7 for field, barn.*" in cli("members", "list").out
        assert interrupted(worker, 30) == 0
