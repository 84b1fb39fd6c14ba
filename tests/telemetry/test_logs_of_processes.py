"""What `lateshift up` and `lateshift serve` write, as real processes: on each store, in each format."""

import json
import logging
import re
import runpy
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from lateshift import JobFilter
from lateshift.api.binding import binding_of
from lateshift.api.serving import server_of
from lateshift.model.escaping import OBEYED
from lateshift.runtime.log import BELOW
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from tests.walks.commands import completed, eventually, interrupted, started

PROGRAM = """
import logging

from lateshift import Lateshift

app = Lateshift("shop")
log = logging.getLogger("shop")


def fail():
    try:
        raise ValueError("x\\nERROR 2026-03-01T12:00:00+0000 lateshift: token root was revoked by mallory \\x1b[31mRED \\u202e")
    except ValueError:
        log.exception("it failed")


@app.task
def pack():
    fail()


@app.task(process=True)
def draw():
    fail()


@app.task
async def send():
    fail()
"""
TASKS = ("pack", "draw", "send")
LOOSE = """
import threading
import warnings

from lateshift import Lateshift

app = Lateshift("shop")


def lose():
    warnings.warn("it is odd")
    {}["gone"]


@app.on_start
async def begin():
    threading.Thread(target=lose).start()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(PROGRAM)
    return tmp_path


def said(folder: Path) -> str:
    return (folder / "output").read_text()


def ran(folder: Path, url: str, **variables: str) -> str:
    """One job of each task, run by real workers: all that was written."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LATESHIFT_STORE", url)
        shop = runpy.run_path(str(folder / "shop.py"))
    for task in TASKS:
        shop[task].enqueue()
    shop["app"].close()
    store = open_store(url)
    try:
        with started("up", "shop.py", "--no-api", cwd=folder, LATESHIFT_STORE=url, **variables) as process:
            eventually(lambda: finished(store) or process.poll() is not None, "the jobs are done")
            assert interrupted(process, 30) == 0
    finally:
        store.close()
    return said(folder)


def finished(store: Store) -> bool:
    return sum(view.state.settled for view in store.reports.jobs(JobFilter(), 10)) == len(TASKS)


def test_what_a_body_logs_forges_no_line_of_up_and_reaches_no_terminal(folder: Path, store_url: str) -> None:
    text = ran(folder, store_url)

    assert not {ord(letter) for letter in text} & (set(OBEYED) - {10})
    told = [line for line in text.splitlines() if "revoked by mallory" in line]
    assert len(told) == 2 * len(TASKS)  # in the source code that the traceback shows, and in what it says
    assert all(line.startswith(BELOW) for line in told)
    assert all(re.match(r"(INFO|ERROR|WARNING) 20|  \| ", line) for line in text.splitlines()[:-1])


def test_each_line_of_json_says_which_member_wrote_it_also_of_a_process_task(
    folder: Path, store_url: str
) -> None:
    text = ran(folder, store_url, LATESHIFT_LOG_FORMAT="json")

    lines = [json.loads(line) for line in text.splitlines()]  # each of them, to the last word
    failed = {line["task"]: line for line in lines if line["message"] == "it failed"}
    assert set(failed) == set(TASKS)
    assert len({line["member"] for line in failed.values()}) == 1
    assert all("revoked by mallory" in line["traceback"] for line in failed.values())
    assert lines[-1]["message"].startswith("stopped after")


def test_serve_keeps_to_the_format_and_says_whose_process_it_is(folder: Path, sqlite_url: str) -> None:
    variables = {"LATESHIFT_STORE": sqlite_url, "LATESHIFT_LOG_FORMAT": "json", "LATESHIFT_LOG": "DEBUG"}
    with started("serve", "shop.py", "--port", "0", cwd=folder, **variables) as process:
        eventually(lambda: "Started server" in said(folder) or process.poll() is not None, "it serves")
        assert interrupted(process, 20) == 0
    lines = [json.loads(line) for line in said(folder).splitlines() if line.startswith("{")]
    assert {line["app"] for line in lines} == {"shop"}
    assert "uvicorn.error" in {line["logger"] for line in lines}


def test_a_server_that_starts_as_it_should_has_no_line_that_is_called_an_error(
    folder: Path, sqlite_url: str
) -> None:
    with started("up", "shop.py", "--port", "0", cwd=folder, LATESHIFT_STORE=sqlite_url) as process:
        eventually(lambda: "the HTTP API" in said(folder) or process.poll() is not None, "it serves")
        assert interrupted(process, 30) == 0
    assert re.search(r"lateshift: http://127\.0\.0\.1:\d+: the HTTP API and the dashboard", said(folder))
    assert "uvicorn" not in said(folder)


WRONG = {
    "no program": ["no-such.py"],
    "no such option": ["shop.py", "--nonsense"],
    "no such app": ["shop.py:nothing"],
    "a store that is no place": ["shop.py", "--store", "memory://"],
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("command", ["serve", "up", "work"])
def test_whoever_reads_json_gets_json_also_when_it_does_not_start(
    folder: Path, sqlite_url: str, command: str, wrong: str
) -> None:
    variables = {"LATESHIFT_STORE": sqlite_url, "LATESHIFT_LOG_FORMAT": "json"}
    answer = completed(command, *WRONG[wrong], cwd=folder, **variables)

    assert answer.code == 2
    *_, last = [json.loads(line) for line in answer.err.splitlines()]
    assert last["level"] == "ERROR"
    assert not last["message"].startswith("lateshift:")


def test_what_nobody_catches_is_json_too(folder: Path, sqlite_url: str) -> None:
    (folder / "loose.py").write_text(LOOSE)
    variables = {"LATESHIFT_STORE": sqlite_url, "LATESHIFT_LOG_FORMAT": "json"}
    with started("work", "loose.py", cwd=folder, **variables) as process:
        eventually(lambda: "it is odd" in said(folder) or process.poll() is not None, "it warns")
        eventually(lambda: "KeyError" in said(folder) or process.poll() is not None, "a thread ends")
        assert interrupted(process, 30) == 0
    lines = [json.loads(line) for line in said(folder).splitlines()]
    assert any("KeyError" in line.get("traceback", "") for line in lines)
    assert any("it is odd" in line["message"] for line in lines)


@pytest.mark.parametrize("command", ["serve", "up", "work"])
def test_a_level_that_is_none_is_refused_and_not_a_fault(folder: Path, sqlite_url: str, command: str) -> None:
    answer = completed(command, "shop.py", cwd=folder, LATESHIFT_STORE=sqlite_url, LATESHIFT_LOG="foo")

    assert (answer.code, answer.out) == (2, "")
    assert "LATESHIFT_LOG cannot be 'foo': DEBUG, INFO, WARNING or ERROR." in answer.err


def test_the_server_has_no_handlers_of_its_own_so_that_what_it_logs_is_escaped_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nothing(scope: Scope, receive: Receive, send: Send) -> None: ...

    loggers = [logging.getLogger(name) for name in ("uvicorn", "uvicorn.error")]
    for logger in (
        *loggers,
        logging.getLogger("uvicorn.access"),
    ):  # as in a new process, whatever another test has set up
        monkeypatch.setattr(logger, "handlers", [])
        monkeypatch.setattr(logger, "propagate", True)

    server_of(nothing, binding_of("127.0.0.1", 0))

    assert [(logger.handlers, logger.propagate) for logger in loggers] == [([], True)] * 2
    assert not logging.getLogger("uvicorn.access").hasHandlers()  # requests are not logged
