"""Versions: a new store is made at once, a newer one refused, an older one brought up."""

from collections.abc import Iterator

import psycopg
import pytest

from lateshift.clock import ManualClock
from lateshift.errors import SchemaTooNew, SchemaTooOld, StoreError, StoreUnavailable
from lateshift.model.job import State
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from lateshift.store.postgres import database as postgres_database
from lateshift.store.postgres.schema import STEPS as POSTGRES_STEPS
from lateshift.store.sqlite import database as sqlite_database
from lateshift.store.sqlite.schema import STEPS as SQLITE_STEPS
from tests.store_contract.driving import LINE, added, make_job, query, see

VERSION = len(SQLITE_STEPS)
NEXT = VERSION + 1


@pytest.fixture(params=["sqlite", "postgres"])
def new_store(request: pytest.FixtureRequest, clock: ManualClock) -> Iterator[Store]:
    """A store that nobody has migrated."""
    name = "sqlite_url" if request.param == "sqlite" else "empty_postgres_url"
    store = open_store(request.getfixturevalue(name), clock)
    yield store
    store.close()


def knows(monkeypatch: pytest.MonkeyPatch, *steps: str) -> None:
    """As if this Lateshift were one version further."""
    for module, known in ((sqlite_database, SQLITE_STEPS), (postgres_database, POSTGRES_STEPS)):
        monkeypatch.setattr(module, "STEPS", (*known, steps))
        monkeypatch.setattr(module, "VERSION", NEXT)


def test_a_new_store_is_made_at_once(new_store: Store) -> None:
    new_store.ready()

    added(new_store, make_job())
    assert new_store.jobs.lines() == [LINE]


def test_a_new_store_can_be_made_by_hand(new_store: Store) -> None:
    assert new_store.migrate() == [*range(1, NEXT)]
    assert new_store.migrate() == []
    new_store.ready()


def test_opening_a_store_does_not_connect(clock: ManualClock) -> None:
    open_store("postgresql://nobody@127.0.0.1:1/none", clock).close()
    open_store("sqlite:////no/such/folder/jobs.db", clock).close()


def test_a_store_that_was_never_made_says_what_to_do(new_store: Store) -> None:
    with pytest.raises(SchemaTooOld, match="lateshift store migrate"):
        new_store.jobs.enqueue([make_job()])
    with pytest.raises(SchemaTooOld, match="lateshift store migrate"):
        new_store.jobs.lines()


def test_being_ready_twice_changes_nothing(store: Store) -> None:
    [id] = added(store, make_job())
    store.ready()
    assert store.migrate() == []

    assert see(store, id).state is State.READY


def test_a_schema_that_is_too_new_is_refused_with_both_versions_and_the_remedy(store: Store) -> None:
    make_newer(store)

    for verb in (store.ready, store.migrate):
        with pytest.raises(SchemaTooNew, match=rf"schema {NEXT}.* knows {VERSION}.*Upgrade Lateshift"):
            verb()


def make_newer(store: Store) -> None:
    if not store.url.startswith("postgresql"):
        query(store, "PRAGMA user_version = 17")
        assert NEXT == 17, "a new step: raise the number above"
    else:
        query(store, "INSERT INTO {migration} (version) VALUES ({})", NEXT)


def test_an_older_sqlite_file_is_migrated_at_once_and_keeps_its_jobs(
    sqlite_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(sqlite_url, clock)
    store.ready()
    [id] = added(store, make_job())
    knows(monkeypatch, "ALTER TABLE job ADD COLUMN note TEXT")

    store.ready()

    assert query(store, "SELECT note FROM job") == [(None,)]
    assert see(store, id).state is State.READY
    assert store.migrate() == []
    store.close()


def test_an_older_database_waits_for_the_operator_and_keeps_its_jobs(
    postgres_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(postgres_url, clock)
    store.ready()
    [id] = added(store, make_job())
    knows(monkeypatch, "ALTER TABLE lateshift.job ADD COLUMN note text")

    with pytest.raises(SchemaTooOld, match=rf"schema {VERSION}.* needs {NEXT}.*lateshift store migrate"):
        store.ready()
    assert store.migrate() == [NEXT]
    store.ready()

    assert see(store, id).state is State.READY
    store.close()


def test_a_migration_that_waits_for_a_table_gives_up_so_that_nobody_waits_behind_it(
    postgres_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(postgres_url, clock)
    store.ready()
    [id] = added(store, make_job())
    knows(monkeypatch, "ALTER TABLE lateshift.job ADD COLUMN note text")
    monkeypatch.setattr(postgres_database, "LOCK_SECONDS", 0.01)
    with psycopg.connect(postgres_url) as reader:
        reader.execute("SELECT count(*) FROM lateshift.job")  # and its transaction stays open
        with pytest.raises(StoreUnavailable):
            store.migrate()
    assert store.migrate() == [NEXT]

    assert see(store, id).state is State.READY
    store.close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    [id] = added(store, make_job())
    with monkeypatch.context() as patch:
        knows(patch, "CREATE TABLE half (id integer)", "CREATE NONSENSE")
        with pytest.raises(StoreError):
            store.migrate()

    store.ready()
    assert see(store, id).state is State.READY
    with monkeypatch.context() as patch:
        knows(patch, "CREATE TABLE half (id integer)")
        assert store.migrate() == [NEXT]


def test_both_stores_keep_the_same_columns_and_indexes(
    sqlite_url: str, postgres_url: str, clock: ManualClock
) -> None:
    file, server = open_store(sqlite_url, clock), open_store(postgres_url, clock)
    file.ready()
    in_file = query(
        file,
        "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'"
        " AND m.name NOT IN ('turn', 'sqlite_sequence')",  # sequences on the server
    )
    on_server = query(
        server,
        "SELECT table_name::text, column_name::text FROM information_schema.columns"
        " WHERE table_schema = 'lateshift' AND table_name NOT IN ('migration', 'batch_count')",  # in the batch's row in a file
    )
    assert sorted(in_file) == sorted(on_server)

    in_file = query(file, "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
    on_server = query(
        server,
        "SELECT indexname::text FROM pg_indexes WHERE schemaname = 'lateshift' AND indexname NOT LIKE '%%pkey'"
        " AND tablename <> 'batch_count'",
    )
    assert sorted(in_file) == sorted(on_server)
    file.close()
    server.close()
