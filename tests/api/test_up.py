"""The HTTP API inside `lateshift up`, as real processes on loopback."""

import os
import pty
import re
import select
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from lateshift.errors import StoreError
from lateshift.store.contract import MemberView, Store
from lateshift.store.open import open_store
from tests.walks.commands import command, completed, environment, eventually, interrupted, started

PROGRAM = """
from lateshift import Lateshift

app = Lateshift("shop")


@app.task(queue="images")
def thumbnail(path: str) -> str:
    return f"small {path}"
"""
WITHOUT_EXTRA = """
import importlib.util, sys

found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in ("starlette", "uvicorn") else found(name, package)
"""
STOPPED_AT_ITS_START = """
import asyncio, os, signal

start = asyncio.create_subprocess_exec

async def interrupted(*command, **options):
    os.kill(os.getpid(), signal.SIGINT)
    return await start(*command, **options)

asyncio.create_subprocess_exec = interrupted
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(PROGRAM)
    return tmp_path


def said(folder: Path) -> str:
    return (folder / "output").read_text()


def url_of(folder: Path, process: subprocess.Popen[str]) -> str:
    eventually(
        lambda: "the HTTP API and the dashboard" in said(folder) or process.poll() is not None,
        "it serves",
    )
    [url] = re.findall(r"lateshift: (http://127\.0\.0\.1:\d+): the HTTP API and the dashboard", said(folder))
    return str(url)


def at_work(url: str, process: subprocess.Popen[str]) -> None:
    """A worker has joined: from then on it is told to stop, and does."""
    store = open_store(url)
    try:
        eventually(
            lambda: process.poll() is not None or any(it.kind == "worker" for it in members(store)),
            "a worker joins",
        )
    finally:
        store.close()


def members(store: Store) -> list[MemberView]:
    try:
        return [it for it in store.reports.members() if not it.dead]
    except StoreError:  # it is being made
        return []


def test_up_answers_runs_what_it_was_asked_for_and_stops_gracefully(folder: Path, store_url: str) -> None:
    completed("store", "migrate", cwd=folder, LATESHIFT_STORE=store_url)
    made = completed(
        "tokens",
        "create",
        "all",
        "--scope",
        "read",
        "--scope",
        "enqueue",
        cwd=folder,
        LATESHIFT_STORE=store_url,
    )
    [token] = re.findall(r"lsh_[\w-]{64}", made.out)
    with started("up", "shop.py", "--port", "0", cwd=folder, LATESHIFT_STORE=store_url) as process:
        url = url_of(folder, process)
        with httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=60
        ) as client:
            job = client.post("/v1/tasks/thumbnail/jobs", json={"arguments": {"path": "cat.png"}}).headers[
                "location"
            ]
            shown = client.get(job, params={"wait": 20}).json()
            assert (shown["state"], shown["result"]) == ("completed", "small cat.png")
            assert 'lateshift_loop_late{loop="Sweep"} 0' in client.get("/metrics").text
        assert interrupted(process, 30) == 0
    assert "Traceback" not in said(folder)


def test_a_port_that_is_taken_is_told_if_it_was_asked_for_else_another_is_had(
    folder: Path, sqlite_url: str
) -> None:
    with socket.socket() as usual:
        usual.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            usual.bind(("127.0.0.1", 8642))
            usual.listen()
        except OSError:
            pass  # somebody has it, which is as good
        answer = completed("up", "shop.py", "--port", "8642", cwd=folder, LATESHIFT_STORE=sqlite_url)
        assert answer.code == 2
        assert "cannot be listened on" in answer.err
        with started("up", "shop.py", cwd=folder, LATESHIFT_STORE=sqlite_url) as process:
            url = url_of(folder, process)
            assert not url.endswith(":8642")
            assert httpx.get(f"{url}/health/ready", trust_env=False).status_code == 200
            at_work(sqlite_url, process)
            assert interrupted(process, 30) == 0


def test_up_for_elsewhere_is_refused_before_anything_starts(folder: Path, sqlite_url: str) -> None:
    bare = completed("up", "shop.py", "--host", "0.0.0.0", cwd=folder, LATESHIFT_STORE=sqlite_url)
    assert (bare.code, bare.out) == (2, "")
    assert "--behind-proxy" in bare.err


def test_the_link_is_shown_on_a_terminal_and_never_in_a_log(folder: Path, sqlite_url: str) -> None:
    with started("up", "shop.py", "--port", "0", cwd=folder, LATESHIFT_STORE=sqlite_url) as process:
        url_of(folder, process)
        assert "code=" not in said(folder)
        assert "lateshift tokens create" in said(folder)
        at_work(sqlite_url, process)
        assert interrupted(process, 30) == 0
    mine, theirs = pty.openpty()
    process = subprocess.Popen(
        command("up", "shop.py", "--port", "0", "--no-view"), cwd=folder, env=environment(LATESHIFT_STORE=sqlite_url), stdout=theirs,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        os.close(theirs)
        shown = ""
        while "/sign-in?code=" not in shown:
            assert select.select([mine], [], [], 40)[0], f"nothing more was shown: {shown}"
            shown += os.read(mine, 4096).decode()
        at_work(sqlite_url, process)
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        os.close(mine)


def test_without_the_extra_it_runs_without_the_api_and_says_how_to_get_it(
    folder: Path, sqlite_url: str
) -> None:
    (folder / "sitecustomize.py").write_text(WITHOUT_EXTRA)
    path = {"PYTHONPATH": f"{folder}{os.pathsep}{environment()['PYTHONPATH']}"}
    with started("up", "shop.py", cwd=folder, LATESHIFT_STORE=sqlite_url, **path) as process:
        at_work(sqlite_url, process)
        assert "pip install 'lateshift[serve]'" in said(folder)
        assert "the HTTP API and the dashboard" not in said(folder)
        assert interrupted(process, 30) == 0
    asked = completed("up", "shop.py", "--port", "0", cwd=folder, LATESHIFT_STORE=sqlite_url, **path)
    assert asked.code == 2
    assert "not installed here" in asked.err


def test_no_api_is_no_api_and_no_word_about_it(folder: Path, sqlite_url: str) -> None:
    with started("up", "shop.py", "--no-api", cwd=folder, LATESHIFT_STORE=sqlite_url) as process:
        at_work(sqlite_url, process)
        assert interrupted(process, 30) == 0
    assert "HTTP" not in said(folder)


def test_a_worker_that_is_started_in_the_moment_of_a_ctrl_c_is_told_to_stop_as_well(
    folder: Path, sqlite_url: str
) -> None:
    (folder / "sitecustomize.py").write_text(STOPPED_AT_ITS_START)
    path = {"PYTHONPATH": f"{folder}{os.pathsep}{environment()['PYTHONPATH']}"}
    with started("up", "shop.py", "--no-api", cwd=folder, LATESHIFT_STORE=sqlite_url, **path) as process:
        assert process.wait(60) == 0
    assert "ERROR" not in said(folder)  # it was not waited for in vain, and killed
