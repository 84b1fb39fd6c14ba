"""What goes wrong is told in one line that says what happened and what to do, with an exit code and no traceback."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import psutil
import psycopg
import pytest

from lateshift import errors
from lateshift.errors import LateshiftError
from lateshift.model.job import JobFilter
from lateshift.store.open import open_store
from tests.walks.commands import Cli, Said, completed


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LATESHIFT_STORE", raising=False)
    return Cli(capsys)


def one_line(said: Said, code: int, *parts: str) -> None:
    assert said.code == code, said.err
    assert said.out == ""
    err = said.err.replace("lateshift: the store does not answer; trying on …\n", "")  # as on a busy machine
    assert err.startswith("lateshift: ")
    assert err.count("\n") == 1
    for part in parts:
        assert part in said.err


# -- the store ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        ("postgressql://localhost/db", "Examples: sqlite:///jobs.db"),
        ("lateshift.db", "Examples: sqlite:///jobs.db"),
        ("sqlite://jobs.db", "sqlite:// is followed by a slash and a path"),
        ("sqlite:///jobs.db?mode=ro", "?network=allow"),
        ("postgresql://localhost:notaport/db", "is no PostgreSQL URL"),
        ("postgresql://localhost/db?poolr=x", "is no PostgreSQL URL"),
    ],
)
def test_a_store_url_with_a_typo(cli: Cli, url: str, remedy: str) -> None:
    one_line(cli("jobs", "list", "--store", url), 2, remedy)


def test_a_password_in_a_url_is_not_shown(cli: Cli) -> None:
    said = cli("jobs", "list", "--store", "mysql://shop:secret@host/db")
    one_line(said, 2, "is no store URL")
    assert "secret" not in said.err


def test_a_host_that_does_not_exist(cli: Cli) -> None:
    one_line(
        cli("jobs", "list", "--store", "postgresql://nowhere.invalid/db"),
        3,
        "Is it running, and is the URL right?",
    )


def test_a_database_that_does_not_exist(cli: Cli, postgres_url: str) -> None:
    one_line(cli("jobs", "list", "--store", postgres_url + "_not"), 3, "does not exist")


def test_a_server_that_does_not_run_is_waited_for_and_one_is_told(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lateshift.store.postgres.database.GIVE_UP_SECONDS", 4.0)
    said = cli("jobs", "list", "--store", "postgresql://127.0.0.1:1/db")
    assert said.code == 3
    waiting, answer = said.err.splitlines()
    assert waiting == "lateshift: the store does not answer; trying on …"
    assert "cannot be reached" in answer


def test_a_folder_that_is_not_there(cli: Cli, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/no/jobs.db"
    one_line(cli("store", "migrate", "--store", url), 3, "Create it first")
    one_line(
        cli("jobs", "list", "--store", url), 3, "There is no store", "the right name, in the right folder?"
    )


LOOKING = (
    ["jobs", "list"], ["queues", "list"], ["queues", "pause", "a"], ["sessions", "list"], ["limits"], ["members", "list"],
    ["batches", "list"], ["jobs", "dead"],
)  # fmt: skip


def test_looking_around_makes_no_store(cli: Cli, tmp_path: Path) -> None:
    for verb in LOOKING:
        one_line(
            cli(*verb, "--store", "sqlite:///misspelt.db"), 3, "There is no store", f"there is no file {tmp_path}/misspelt.db"
        )  # fmt: skip
    assert not (tmp_path / "misspelt.db").exists()


def test_looking_around_in_another_database_makes_no_store(cli: Cli, empty_postgres_url: str) -> None:
    for verb in LOOKING:
        one_line(cli(*verb, "--store", empty_postgres_url), 3, "There is no store", "has no schema lateshift")
    with psycopg.connect(empty_postgres_url) as connection:
        made = connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'lateshift'").fetchone()
    assert made == (0,)


def test_a_file_that_is_no_store(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "jobs.db").write_text("Dear diary, " * 100)
    one_line(cli("jobs", "list", "--store", "sqlite:///jobs.db"), 3, "no SQLite file")


def test_a_read_only_file(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with _folder_for_all() as folder:
        monkeypatch.chdir(folder)
        url = f"sqlite:///{folder}/jobs.db"
        assert cli("store", "migrate", "--store", url).code == 0
        assert cli("queues", "pause", "a", "--store", url).code == 0
        assert cli("queues", "list", "--store", url).code == 0
        for path in folder.iterdir():
            path.chmod(0o444)
        folder.chmod(0o555)
        with _as_nobody():
            said = cli("queues", "pause", "b", "--store", url)
        folder.chmod(0o755)
        one_line(said, 3, "writ")
        assert [
            queue["name"] for queue in cli("queues", "list", "--store", url, "--json").document["queues"]
        ] == ["a"]


def test_a_file_on_a_network_file_system(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = [SimpleNamespace(mountpoint="/", fstype="nfs4")]
    monkeypatch.setattr(psutil, "disk_partitions", lambda all=False: mounts)
    one_line(
        cli("store", "migrate", "--store", "sqlite:///jobs.db"),
        3,
        "network file system (nfs4)",
        "?network=allow",
    )
    assert cli("store", "migrate", "--store", "sqlite:///jobs.db?network=allow").code == 0
    one_line(cli("jobs", "list", "--store", "sqlite:///jobs.db"), 3, "network file system (nfs4)")


def test_a_schema_that_is_too_new(cli: Cli, store_url: str) -> None:
    store = open_store(store_url)
    store.ready()
    store.close()
    if store_url.startswith("sqlite"):
        with sqlite3.connect(store_url.removeprefix("sqlite:///")) as file:
            file.execute("PRAGMA user_version = 999")
        file.close()
    else:
        with psycopg.connect(store_url) as connection:
            connection.execute("INSERT INTO lateshift.migration (version) VALUES (999)")
    try:
        for verb in (["jobs", "list"], ["store", "migrate"], ["store", "check"]):
            one_line(cli(*verb, "--store", store_url), 3, "has schema 999", "Upgrade Lateshift")
    finally:
        if not store_url.startswith("sqlite"):
            with psycopg.connect(store_url) as connection:
                connection.execute("DELETE FROM lateshift.migration WHERE version = 999")


def _every_error() -> list[type[LateshiftError]]:
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LateshiftError)
    ]
    kinds.remove(errors.StepFailed)  # is raised in the code of workflows alone, and has words of its own
    return sorted(kinds, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", _every_error())
def test_every_error_is_one_line_with_an_exit_code(
    cli: Cli, kind: type[LateshiftError], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(url: str) -> None:
        raise kind("The disk is full.\nFree some space.")

    monkeypatch.setattr("lateshift.cli.options.open_store", fail)
    said = cli("jobs", "list")
    one_line(said, said.code, "lateshift: The disk is full. Free some space.")
    unknown = (
        errors.JobUnknown, errors.BatchUnknown, errors.ScheduleUnknown, errors.TriggerUnknown, errors.RunUnknown, errors.RunEnded,
        errors.BreakerUnknown, errors.PipelineUnknown, errors.TokenUnknown,
    )  # fmt: skip
    expected = 4 if kind in unknown else 3 if issubclass(kind, errors.StoreError) else 2
    assert said.code == (2 if kind is errors.StoreUrlInvalid else expected)


def test_a_fault_of_our_own_is_told_without_a_traceback(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(url: str) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("lateshift.cli.options.open_store", fail)
    one_line(cli("jobs", "list"), 70, "a fault in Lateshift: ZeroDivisionError", "--debug")


def test_ctrl_c_in_a_listing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(url: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lateshift.cli.options.open_store", stop)
    assert cli("jobs", "list").code == 130


# -- the command line and the settings ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("jbos", "Did you mean"),
        ("jobs lst", "No such command"),
        ("jobs list --state flying", "is not one of"),
        ("jobs list --limit 0", "--limit"),
        ("jobs list --before yesterday", "is no job id"),
        ("jobs show 12", "is no job id"),
        ("jobs show", "Missing argument"),
        ("up", "Missing argument 'PROGRAM'"),
        ("work shop.py --processes 0", "--processes"),
        ("up nosuch.py", "There is no file nosuch.py"),
        ("up nosuch:app", "There is no module nosuch"),
        ("store backup nosuch/copy.db", "There is no folder"),
    ],
)
def test_a_wrong_command_line(cli: Cli, line: str, says: str) -> None:
    one_line(cli(*line.split()), 2, says)


def test_a_setting_that_does_not_exist(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "lateshift.toml").write_text("thread = 3\n")
    one_line(cli("jobs", "list"), 2, "there is no setting 'thread'", "threads")


def test_a_setting_with_a_wrong_value(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATESHIFT_THREADS", "many")
    one_line(cli("jobs", "list"), 2, "LATESHIFT_THREADS: threads cannot be 'many'")


# -- the program -------------------------------------------------------------------------------------------------------

HEAD = """
from lateshift import Lateshift
app = Lateshift("wrong")

@app.task
async def add(one: int, two: int) -> int:
    return one + two

@app.on_start
async def begin() -> None:
    """


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (HEAD + "await add.aenqueue('x', 2)", "add"),
        (HEAD + "await add.aenqueue(1)", "two"),
        (HEAD + "app.find_task('ad')", "has no task 'ad'. Its tasks: add."),
        (HEAD.replace("one: int", "one: str") + "await add.aenqueue('x' * 300_000, 2)", "262,144"),
        (HEAD + "raise RuntimeError('the coffee is cold')", "RuntimeError: the coffee is cold"),
    ],
)
def test_a_program_with_a_wrong_call(tmp_path: Path, body: str, says: str, store_url: str) -> None:
    (tmp_path / "wrong.py").write_text(body)
    one_line(completed("work", "wrong.py", "--store", store_url, cwd=tmp_path), 2, says)
    store = open_store(store_url)
    assert store.reports.jobs(JobFilter(), 10) == []  # a refused call has written nothing
    store.close()


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("import nonsense_that_is_not_there", "nonsense_that_is_not_there"),
        ("def broken(:\n    pass", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
        ("number = 7", "holds no Lateshift app"),
        (
            "from lateshift import Lateshift\napp = Lateshift('x')\n@app.task\ndef f(*all): ...\nf.enqueue(1)",
            "*all",
        ),
        (
            "from lateshift import Lateshift\napp = Lateshift('x')\n@app.task(priority=1000)\ndef f(): ...",
            "priority",
        ),
    ],
)
def test_a_program_that_cannot_be_loaded(tmp_path: Path, body: str, says: str) -> None:
    (tmp_path / "wrong.py").write_text(body)
    one_line(completed("work", "wrong.py", cwd=tmp_path), 2, says)


@contextmanager
def _folder_for_all() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="lateshift-test-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _as_nobody() -> Iterator[None]:
    """Root may write anywhere, so it must not be root that tries."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
