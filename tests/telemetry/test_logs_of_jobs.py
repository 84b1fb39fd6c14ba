"""What the bodies of tasks log is found with their jobs: from coroutines, threads, processes and workflows."""

import asyncio
import logging
import os
import signal
import threading
from contextvars import copy_context
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lateshift import Flow, Lateshift, Retry, State
from lateshift.errors import JobDead, JobUnknown
from lateshift.model.ids import new_job_id
from lateshift.testing import Kit
from lateshift.worker import control
from lateshift.worker.control import Control
from lateshift.worker.service import introduce
from lateshift.worker.worker import Worker
from tests.store_contract.driving import TTL
from tests.walks.commands import Cli, eventually, started

SOON = timedelta(seconds=20)


def said(job: Any) -> list[list[str]]:
    """What each of its attempts logged."""
    return [[line.message for line in log.lines] for log in job.logs()]


def test_a_coroutine_and_a_thread_keep_what_they_log(app: Lateshift, kit: Kit, log: logging.Logger) -> None:
    @app.task
    async def pack(order: int) -> None:
        log.info("packing %d", order)
        await asyncio.sleep(0)
        log.warning("packed %d", order)

    @app.task
    def ship(order: int) -> None:
        log.info("shipping %d", order)

    packed, shipped = [pack.enqueue(n) for n in range(10)], [ship.enqueue(n) for n in range(10)]
    kit.drain()

    assert [said(job) for job in packed] == [[[f"packing {n}", f"packed {n}"]] for n in range(10)]
    assert [said(job) for job in shipped] == [[[f"shipping {n}"]] for n in range(10)]
    [found] = packed[3].logs()
    assert (found.job, found.attempt, found.dropped) == (packed[3].id, 1, 0)
    assert [(line.level, line.logger) for line in found.lines] == [
        ("INFO", "shop.orders"),
        ("WARNING", "shop.orders"),
    ]


def test_what_a_body_starts_logs_for_the_same_job(app: Lateshift, kit: Kit, log: logging.Logger) -> None:
    @app.task
    async def pack() -> None:
        async def part(name: str) -> None:
            log.info(name)

        async with asyncio.TaskGroup() as parts:
            parts.create_task(part("a task"))
        await asyncio.to_thread(log.info, "a thread of asyncio")
        thread = threading.Thread(target=copy_context().run, args=(log.info, "a thread with its context"))
        thread.start()
        thread.join()

    job = pack.enqueue()
    kit.drain()

    assert said(job) == [["a task", "a thread of asyncio", "a thread with its context"]]


def test_each_attempt_keeps_its_own_and_a_dead_letter_all_of_them(
    app: Lateshift, kit: Kit, log: logging.Logger
) -> None:
    @app.task(retry=Retry(attempts=2))
    def pack() -> None:
        log.info("trying")
        raise ValueError("no box")

    job = pack.enqueue()
    kit.drain()
    kit.travel(days=1)
    kit.drain()

    with pytest.raises(JobDead):
        kit.result(job)
    assert [(it.attempt, len(it.lines)) for it in job.logs()] == [(1, 1), (2, 1)]


def test_a_job_that_logs_nothing_has_no_logs_and_an_unknown_one_is_an_error(
    app: Lateshift, kit: Kit, log: logging.Logger
) -> None:
    @app.task
    def pack() -> None:
        log.debug("not kept")

    job = pack.enqueue()
    kit.drain()

    assert job.logs() == []
    assert asyncio.run(job.alogs()) == []
    job.id = new_job_id()
    with pytest.raises(JobUnknown):
        job.logs()


def test_a_workflow_keeps_what_it_logs_at_each_of_its_passes(
    app: Lateshift, kit: Kit, log: logging.Logger
) -> None:
    @app.task
    def pack() -> str:
        log.info("packing")
        return "packed"

    @app.workflow
    async def fulfil(flow: Flow) -> None:
        log.info("begun")
        await flow.sleep(timedelta(hours=1))
        log.info(await flow.step(pack))

    job = fulfil.enqueue()
    kit.drain()
    assert said(job) == [["begun"]]  # it sleeps, and its lease is given up
    kit.travel(hours=2)
    kit.drain()

    assert job.state is State.COMPLETED
    assert [line for attempt in said(job) for line in attempt][-1] == "packed"


@pytest.mark.anyio
async def test_what_a_running_attempt_logs_is_kept_while_it_runs(
    app: Lateshift, log: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    going_on = asyncio.Event()

    @app.task
    async def pack() -> None:
        log.info("begun")
        await going_on.wait()
        log.info("done")

    monkeypatch.setattr(control, "LIVE_LOG_EVERY", 0.0)
    job = await pack.aenqueue()
    me = introduce(new_job_id(), "worker", "test", app.clock)
    app.store.members.join(me, TTL)
    worker = Worker(app.store, app.tasks, me.id, app.settings, app.clock)
    looking = Control(worker, app.store, app.clock)
    while not worker.held:
        await worker.turn()
    await asyncio.sleep(0)
    for _ in range(control.STORE_EVERY):
        await looking.turn()

    assert [line.message for log in await job.alogs() for line in log.lines] == ["begun"]
    assert (await job.aview()).state is State.RUNNING
    going_on.set()
    while not worker.quiet:
        await worker.turn()
        await asyncio.sleep(0)
    assert [line.message for log in await job.alogs() for line in log.lines] == ["begun", "done"]
    app.close()


def test_the_command_shows_the_lines_and_forges_none(
    app: Lateshift, kit: Kit, cli: Cli, log: logging.Logger
) -> None:
    @app.task(retry=Retry(attempts=2))
    def pack() -> None:
        log.error("a box\x1b[31m\nERROR forged: line")
        raise ValueError("no box")

    job = pack.enqueue()
    kit.drain()
    kit.travel(days=1)
    kit.drain()

    shown = cli("jobs", "logs", str(job.id))
    assert shown.code == 0
    assert shown.out.count("ERROR shop.orders: a box\\x1b[31m\n    ERROR forged: line\n") == 2
    assert "attempt 1, fence 1" in shown.out
    document = cli("jobs", "logs", str(job.id), "--attempt", "2", "--json").document
    assert document["job"] == str(job.id)
    [kept] = document["logs"]
    assert (kept["attempt"], kept["fence"], kept["dropped"]) == (2, 2, 0)
    assert kept["lines"][0]["message"] == "a box\x1b[31m\nERROR forged: line"
    assert kept["lines"][0].keys() == {"at", "level", "logger", "message"}
    assert "logged nothing" in cli("jobs", "logs", str(job.id), "--attempt", "9").out
    assert f"2 lines logged: lateshift jobs logs {job.id}" in cli("jobs", "show", str(job.id)).out
    assert cli("jobs", "logs", str(new_job_id())).code == 4


PROGRAM = """
import logging
import os
import signal
from pathlib import Path

from lateshift import Lateshift, Retry

app = Lateshift("shop")
log = logging.getLogger("shop")

@app.task(process=True)
def in_a_process(count: int) -> int:
    for number in range(count):
        log.info("line %d", number)
    return count

@app.task(process=True, retry=Retry(attempts=1))
def killed() -> None:
    Path("pid").write_text(str(os.getpid()))
    log.info("last words")
    signal.pause()

@app.task
async def in_the_worker() -> None:
    log.info("here %s", "too")
"""


@pytest.mark.parametrize("log_format", ["plain", "json"])
def test_real_workers_keep_what_processes_log_also_of_one_that_was_killed(
    tmp_path: Path, store_url: str, log_format: str
) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)
    app = Lateshift("shop", store=store_url)

    @app.task(process=True)
    def in_a_process(count: int) -> int: ...  # type: ignore[empty-body]
    @app.task(process=True, retry=Retry(attempts=1))
    def killed() -> None: ...
    @app.task
    async def in_the_worker() -> None: ...

    jobs: list[Any] = [in_a_process.enqueue(1200), killed.enqueue(), in_the_worker.enqueue()]
    variables = {"LATESHIFT_STORE": store_url, "LATESHIFT_LOG_FORMAT": log_format, "LATESHIFT_LOG": "WARNING"}
    with started("work", "shop.py", cwd=tmp_path, **variables):
        eventually(lambda: bool(jobs[1].logs()), "its line has come over the pipe")
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        eventually(lambda: all(job.state.settled for job in jobs), "the jobs end")

    many, dead, one = [job.logs() for job in jobs]
    assert [(log.logged, log.lines[-1].message) for log in many] == [(1200, "line 1199")]
    assert [line.message for line in dead[0].lines] == ["last words"]
    assert [line.message for line in one[0].lines] == ["here too"]
    output = (tmp_path / "output").read_text()
    assert "line 1199" not in output  # what is written stays as LATESHIFT_LOG says
    assert "is a dead letter (process_died)" in output
    assert output.lstrip().startswith("{") == (log_format == "json")
    app.close()
