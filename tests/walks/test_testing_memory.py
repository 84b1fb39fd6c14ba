"""A store in memory: real in one process, and clear about where it ends."""

import os
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from lateshift import Lateshift, State
from lateshift.errors import ConnectionUnsupported, JobUnknown, StoreUnavailable, StoreUnsafe, StoreUrlInvalid
from lateshift.store.open import open_store
from tests.walks.commands import Cli

SOON = timedelta(seconds=20)


@pytest.mark.anyio
async def test_an_app_in_memory_works_as_on_any_store() -> None:
    app = Lateshift("test", store="memory://")

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    @app.task
    def half(number: int) -> int:
        return number // 2

    async with app.running():
        assert await (await double.aenqueue(4)).aresult(SOON) == 8
        assert await half.enqueue(4).aresult(SOON) == 2
    app.close()


def test_what_is_in_memory_is_gone_when_the_app_closes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = Lateshift("test", store="memory://")

    @app.task
    def work() -> None: ...

    job = work.enqueue()
    before = app.store
    app.close()
    with pytest.raises(JobUnknown):
        app.job(job.id)
    with pytest.raises(StoreUnavailable, match=r"closed.*gone"):
        before.reports.job(job.id)
    app.close()
    assert list(tmp_path.iterdir()) == []


def test_two_apps_share_what_is_in_memory_under_one_name_and_only_then() -> None:
    apps = [Lateshift("test", store=url) for url in ("memory://a", "memory://a", "memory://b", "memory://")]
    for app in apps:
        app.task(name="work")(lambda: None)
    job = apps[0].find_task("work").enqueue()
    assert apps[1].job(job.id).state is State.READY
    for other in apps[2:]:
        with pytest.raises(JobUnknown):
            other.job(job.id)
    apps[0].close()
    assert apps[1].job(job.id).state is State.READY
    for app in apps[1:]:
        app.close()
    with pytest.raises(JobUnknown):
        apps[0].job(job.id)
    apps[0].close()


def test_a_connection_of_the_callers_is_refused_with_advice() -> None:
    app = Lateshift("test", store="memory://")

    @app.task
    def work() -> None: ...

    own = sqlite3.connect(":memory:")
    with pytest.raises(ConnectionUnsupported, match=r"sqlite3\.Connection.*memory://.*Leave connection= out"):
        work.options(connection=own).enqueue()
    own.close()
    app.close()


@pytest.mark.parametrize("url", ["memory:///path", "memory://shop?driver=sqlite3"])
def test_a_url_with_more_than_a_name_is_refused(url: str) -> None:
    with pytest.raises(StoreUrlInvalid, match="comes nothing, or a name"):
        open_store(url)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forking beside threads is what this is about
def test_a_forked_child_is_told_that_the_store_is_not_its_own() -> None:
    store = open_store("memory://")
    store.ready()
    child = os.fork()
    if child == 0:
        try:
            store.jobs.lines()
        except StoreUnsafe:
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert store.jobs.lines() == []
    store.close()


PROGRAM = 'from lateshift import Lateshift\napp = Lateshift("in_memory", store="memory://")\n'


@pytest.mark.parametrize("command", ["up", "work"])
def test_workers_in_processes_of_their_own_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (tmp_path / f"in_memory_{command}.py").write_text(PROGRAM)
    said = Cli(capsys)(command, str(tmp_path / f"in_memory_{command}.py"))
    assert said.code == 2
    assert "lives in one process" in said.err
    assert "sqlite:///jobs.db" in said.err


@pytest.mark.parametrize("arguments", [["jobs", "list"], ["store", "check"], ["bench"]], ids=" ".join)
def test_commands_that_could_see_nothing_are_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    said = Cli(capsys)(*arguments, "--store", "memory://")
    assert said.code == 2
    assert "lives in one process" in said.err
