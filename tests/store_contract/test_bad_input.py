"""What goes wrong outside: each says what happened and what to do, and loses nothing."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import psycopg
import pytest

from lateshift.clock import ManualClock
from lateshift.errors import (
    OptionInvalid,
    RightMissing,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnsafe,
    StoreUrlInvalid,
)
from lateshift.model.job import JobFilter, State
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from lateshift.store.postgres import PostgresStore
from lateshift.store.postgres import database as postgres_database
from lateshift.store.sqlite import SqliteStore
from lateshift.store.sqlite import database as sqlite_database
from lateshift.store.sqlite.drivers import Apsw
from tests.store_contract.driving import LINE, Worker, added, file_of, make_job, see

NOBODY = 65534


# URLs


@pytest.mark.parametrize(
    "url",
    [
        "",
        "jobs.db",
        "sqlite",
        "sqlite:jobs.db",
        "sqlite:/jobs.db",
        "sqlite://jobs.db",
        "sqlite://",
        "sqlite:///",
        "sqlte:///jobs.db",
        "postgresq://user@host/db",
        "postgresql:/user@host/db",
        "mysql://user@host/db",
        "postgresql://user@host:54x2/db",
        "postgresql://user@host:99999/db",
        "postgresql://user@[::1/db",
        "postgresql://user@host/db?sslmodus=require",
        "postgresql://user@host/db?pooler=session",
        "postgresql://user@host/db?durability=on",
        "sqlite:///jobs.db?mode=ro",
        "sqlite:///jobs.db?network=yes",
    ],
)
def test_a_url_with_a_mistake_is_refused_with_words(url: str) -> None:
    with pytest.raises(StoreUrlInvalid) as refused:
        open_store(url)

    assert repr(url) in str(refused.value)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize(
    "url",
    [
        "postgresq://user:hush@host/db",
        "postgresql://user:hush@host:54x2/db",
        "postgresql://user:hush@host/db?pooler=session",
        "postgresql://user:hu@sh@host/db?nonsense=1",
        "postgresql://user@host/db?password=hush&nonsense=1",
    ],
)
def test_no_message_shows_a_password(url: str) -> None:
    with pytest.raises(StoreUrlInvalid) as refused:
        open_store(url)

    assert "hush" not in str(refused.value)
    assert "hu@sh" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("postgres://user@host/db", "postgresql://user@host/db"),
        ("postgresql://user@one:5432,two:5433/db?target_session_attrs=read-write", "one:5432,two:5433"),
        ("postgresql://user@/db?host=/var/run/postgresql", "%2Fvar%2Frun%2Fpostgresql"),
        ("postgresql:///db", "/db"),
        ("postgresql://user@host/db?options=-c%20work_mem%3D8MB", "options=-c%20work_mem%3D8MB"),
        ("postgresql://user@host/db?pooler=transaction&sslmode=require", "?sslmode=require"),
    ],
)
def test_every_address_that_postgresql_knows_is_taken(url: str, part: str) -> None:
    store = open_store(url)

    assert isinstance(store, PostgresStore)
    assert part in store._database.address


# PostgreSQL


def with_options(url: str, setting: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}options=-c%20{setting.replace('=', '%3D')}"


def test_a_server_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_database, "GIVE_UP_SECONDS", 0.05)
    store = open_store("postgresql://ana:hush@127.0.0.1:1/shop")

    with pytest.raises(
        StoreUnavailable, match=r"127\.0\.0\.1:1/shop cannot be reached.*Is it running"
    ) as told:
        store.ready()
    assert "hush" not in str(told.value)


def test_a_database_that_does_not_exist_is_said_at_once(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        name = connection.info.dbname
    store = open_store(postgres_url.replace(name, "no_such_database"))

    with pytest.raises(StoreUnavailable, match='"no_such_database" does not exist'):
        store.ready()


def test_a_host_that_does_not_exist_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*_: object, **__: object) -> None:
        raise psycopg.OperationalError("failed to resolve host 'nowhere': Name or service not known")

    monkeypatch.setattr(psycopg, "connect", connect)

    with pytest.raises(StoreUnavailable, match="failed to resolve host 'nowhere'"):
        open_store("postgresql://ana@nowhere/shop").ready()


def test_a_server_that_may_lose_commits_is_refused_unless_that_is_wanted(postgres_url: str) -> None:
    url = with_options(postgres_url, "synchronous_commit=off")
    store = open_store(url)
    with pytest.raises(StoreUnsafe, match=r"synchronous_commit=off.*durability=off"):
        store.ready()
    store.close()

    store = open_store(f"{url}&durability=off")
    store.ready()
    store.close()


def test_a_read_only_database_is_said_to_be_one(postgres_url: str) -> None:
    store = open_store(with_options(postgres_url, "default_transaction_read_only=on"))
    store.ready()

    with pytest.raises(StoreReadOnly, match=r"read-only.*Name the primary"):
        store.jobs.enqueue([make_job()])
    assert store.reports.jobs(JobFilter(), 10) == []
    store.close()


def test_a_user_without_rights_is_told_which_to_get(postgres_url: str) -> None:
    role = f"reader_{os.getpid()}"
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role}".encode())
        store = open_store(with_options(postgres_url, f"role={role}"))
        try:
            with pytest.raises(RightMissing, match=r"permission denied.*store roles"):
                store.jobs.enqueue([make_job()])
        finally:
            store.close()
            admin.execute(f"DROP ROLE {role}".encode())


def test_a_hostile_search_path_changes_nothing(postgres_url: str, clock: ManualClock) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("CREATE SCHEMA hostile")
        for table in ("job", "settled", "member", "queue", "lock"):
            admin.execute(f"CREATE TABLE hostile.{table} (id integer)".encode())
        store = open_store(with_options(postgres_url, "search_path=hostile"), clock)
        store.ready()
        [id] = added(store, make_job())
        worker = Worker(store)
        worker.settle(worker.lease_one())
        assert see(store, id).state is State.COMPLETED
        store.close()
        admin.execute("DROP SCHEMA hostile CASCADE")


# SQLite


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that somebody without privileges can reach, as pytest's own cannot."""
    with tempfile.TemporaryDirectory(prefix="lateshift-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder
        folder.chmod(0o777)


@contextmanager
def without_privileges() -> Iterator[None]:
    """Root may write everywhere: be nobody for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_in_a_missing_folder_is_refused(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/none/jobs.db")

    with pytest.raises(StoreUnavailable, match=r"no folder .*/none to hold jobs\.db\. Create it"):
        store.ready()
    assert not (tmp_path / "none").exists()


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"cannot be opened.*Is it a file"):
        open_store(f"sqlite:///{tmp_path}").ready()


def test_a_file_that_cannot_be_written_is_said_to_be_one(folder: Path) -> None:
    store = open_store(f"sqlite:///{folder}/jobs.db")
    store.ready()
    store.close()
    (folder / "jobs.db").chmod(0o444)
    with without_privileges():
        store = open_store(f"sqlite:///{folder}/jobs.db")
        with pytest.raises(StoreReadOnly, match=r"jobs\.db cannot be written to\. Make the file"):
            store.ready()
        store.close()


def test_a_folder_that_cannot_be_written_is_said_to_be_one(folder: Path) -> None:
    folder.chmod(0o555)
    with without_privileges():
        store = open_store(f"sqlite:///{folder}/jobs.db")
        with pytest.raises(StoreReadOnly, match="is not writable for this user"):
            store.ready()
        store.close()


@pytest.mark.parametrize("content", [b"hello, I am a text\n" * 200, b"SQLite format 3\x00" + b"\xff" * 4096])
def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "jobs.db"
    file.write_bytes(content)
    store = open_store(f"sqlite:///{file}")

    with pytest.raises(StoreCorrupt, match=r"damaged or no SQLite file.*Restore a backup, or name another"):
        store.ready()
    store.close()
    assert file.read_bytes() == content


def test_somebody_elses_database_is_not_taken_for_a_store(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    other = apsw.Connection(str(file))
    other.execute("CREATE TABLE job (name TEXT); CREATE TABLE customer (name TEXT)")
    other.close()
    store = open_store(f"sqlite:///{file}")

    with pytest.raises(StoreError):
        store.ready()
    store.close()
    other = apsw.Connection(str(file))
    tables = {name for (name,) in other.execute("SELECT name FROM sqlite_schema")}
    other.close()
    assert tables == {"job", "customer"}


def test_a_damaged_page_is_found_by_the_check(sqlite_url: str, clock: ManualClock) -> None:
    store = open_store(sqlite_url, clock)
    store.ready()
    added(store, *[make_job(payload=b"x" * 900) for _ in range(200)])
    store.close()
    with file_of(sqlite_url).open("r+b") as file:
        file.seek(4096 * 20)
        file.write(b"\xff" * 4096 * 5)
    store = open_store(sqlite_url, clock)

    try:
        found = store.upkeep.check()
    except StoreCorrupt as error:
        found = [str(error)]
    assert found != []
    store.close()


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "9p", "fuse.sshfs"])
def test_a_network_file_system_is_refused_unless_that_is_wanted(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(sqlite_database, "_file_system", lambda folder: kind)
    with pytest.raises(
        StoreUnsafe, match=rf"network file system \({kind}\).*local disk, use PostgreSQL, or add"
    ):
        open_store(sqlite_url).ready()
    assert not file_of(sqlite_url).exists()

    store = open_store(f"{sqlite_url}?network=allow")
    store.ready()
    store.close()


def test_the_file_system_of_a_folder_is_known(tmp_path: Path) -> None:
    assert sqlite_database._file_system(tmp_path) not in ("", "nfs4")
    assert sqlite_database._file_system(Path("/proc/self")) == "proc"


def test_a_sqlite_that_may_lose_commits_is_refused(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Apsw, "version", (3, 51, 2))

    with pytest.raises(StoreUnsafe, match=r"may lose commits\. Install apsw"):
        open_store(sqlite_url).ready()


def test_a_full_disk_accepts_nothing_loses_nothing_and_goes_on_when_there_is_space(
    sqlite_url: str, clock: ManualClock
) -> None:
    store = open_store(sqlite_url, clock)
    store.ready()
    ids = added(store, *[make_job() for _ in range(20)])
    worker = Worker(store)
    let_grow(store, 10)
    big = [make_job(payload=b"x" * 10_000) for _ in range(100)]

    with pytest.raises(StoreFull, match=r"disk is full\. Free some space; jobs accepted so far are safe"):
        store.jobs.enqueue(big)

    assert all(store.reports.job(job.id) is None for job in big)
    assert [lease.id for lease in worker.lease(20)] == ids
    let_grow(store, 1_000_000)
    assert len(store.jobs.enqueue(big)) == 100
    store.close()


def let_grow(store: Store, pages: int) -> None:
    """Let the file grow by so many pages and no more, as a disk with little space would."""
    assert isinstance(store, SqliteStore)
    with store._database.write():
        pass
    writer = store._database._writer
    assert writer is not None
    [[used]] = writer.execute("PRAGMA page_count").fetchall()
    writer.execute(f"PRAGMA max_page_count = {used + pages:d}")


def test_a_writer_that_holds_the_file_too_long_is_said_to_do_so(
    sqlite_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_database, "BUSY_SECONDS", 0)
    store = open_store(sqlite_url, clock)
    store.ready()
    other = apsw.Connection(str(file_of(sqlite_url)))
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreUnavailable, match="another process has held the write lock"):
        store.jobs.enqueue([make_job()])
    assert store.jobs.lines() == []
    other.execute("ROLLBACK")
    other.close()
    added(store, make_job())
    assert store.jobs.lines() == [LINE]
    store.close()


# Backups


def test_a_backup_holds_what_was_accepted(store: Store, tmp_path: Path) -> None:
    ids = added(store, *[make_job() for _ in range(50)])

    store.upkeep.backup(tmp_path / "copy")

    assert (tmp_path / "copy").stat().st_size > 0
    if store.url.startswith("sqlite"):
        copy = open_store(f"sqlite:///{tmp_path}/copy", store.clock)
        copy.ready()
        assert [view.id for view in copy.reports.jobs(JobFilter(), 100)] == ids[::-1]
        copy.close()


def test_a_backup_never_overwrites(store: Store, tmp_path: Path) -> None:
    (tmp_path / "copy").write_text("mine")

    with pytest.raises(OptionInvalid, match=r"exists.*never overwrites"):
        store.upkeep.backup(tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == "mine"


def test_a_backup_into_a_missing_folder_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(OptionInvalid, match=r"no folder.*Create it"):
        store.upkeep.backup(tmp_path / "none" / "copy")


def test_a_backup_puts_no_password_on_the_command_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[list[str]] = []

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        seen.append(command)
        environment = options["env"]
        assert isinstance(environment, dict)
        assert environment["PGPASSWORD"] == "hush"
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    open_store("postgresql://ana:hush@host/shop").upkeep.backup(tmp_path / "copy")

    [command] = seen
    assert not any("hush" in part for part in command)
    assert "host" in command[-1]
