"""The stores that every test can ask for: `store_url` runs a test on SQLite and on PostgreSQL.

One PostgreSQL server serves the whole run, all xdist workers included: the one of `LATESHIFT_TEST_POSTGRES` if
set, else one that is started here. PostgreSQL is never skipped.
"""

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from lateshift.store.open import open_store
from tests.postgres_databases import ClonedDatabase, PostgresDatabases, unused_name
from tests.postgres_server import PostgresMissing, PostgresServer

# What whoever runs the tests has set for terminals and for programs of their own is none of the tests' business.
FOR_TERMINALS = {"COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"}
FOR_TESTS = ("LATESHIFT_TEST_", "LATESHIFT_EXAMPLES", "LATESHIFT_BROKERS", "LATESHIFT_AXE", "LATESHIFT_CHROMIUM", "LATESHIFT_SCREENSHOTS")  # fmt: skip
for _name in list(os.environ):
    if _name in FOR_TERMINALS or (_name.startswith("LATESHIFT_") and not _name.startswith(FOR_TESTS)):
        del os.environ[_name]

# Nor is a Ctrl-C that whoever starts them in the background ignores: the programs that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run, so that a red test means a change; LATESHIFT_EXAMPLES=1000 goes looking for new ones.
hypothesis.settings.register_profile(
    "lateshift", deadline=None, print_blob=True, derandomize="LATESHIFT_EXAMPLES" not in os.environ
)
hypothesis.settings.load_profile("lateshift")

_own_server = pytest.StashKey[PostgresServer]()


@pytest.fixture
def usual_recursion() -> Iterator[None]:
    """Code may be nested as deep as Python has it: what looks for examples raises that for its process, and leaves it so."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000)
    yield
    sys.setrecursionlimit(before)


def _server_url(config: pytest.Config) -> str:
    """The server's address: from the environment, from the xdist controller, or of a server started now."""
    named = os.environ.get("LATESHIFT_TEST_POSTGRES")
    if named:
        return named
    if hasattr(config, "workerinput"):
        return str(config.workerinput["postgres_url"])
    if _own_server not in config.stash:
        try:
            # Without autovacuum, the planner's choice in one test does not hang on the tests before it.
            config.stash[_own_server] = PostgresServer(autovacuum="off")
        except PostgresMissing as missing:
            raise pytest.UsageError(str(missing)) from None
        config.stash[_own_server].start()
    return config.stash[_own_server].admin_url


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("numprocesses", None):  # else the server starts with the first test that wants it
        _server_url(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """In the xdist controller, for each worker before it starts."""
    node.workerinput["postgres_url"] = _server_url(node.config)


def pytest_unconfigure(config: pytest.Config) -> None:
    if _own_server in config.stash:
        config.stash[_own_server].close()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def postgres_server(pytestconfig: pytest.Config) -> PostgresDatabases:
    """The server of this run, shared: make databases on it, but do not stop it (use a PostgresServer for that)."""
    return PostgresDatabases(_server_url(pytestconfig))


@pytest.fixture(scope="session")
def postgres_template(postgres_server: PostgresDatabases) -> Iterator[str]:
    """The name of a migrated database to copy."""
    name = unused_name()
    store = open_store(postgres_server.create_database(name))
    try:
        store.migrate()
    finally:
        store.close()
    yield name
    postgres_server.drop_database(name)


@pytest.fixture(scope="session")
def _cloned_database(postgres_server: PostgresDatabases, postgres_template: str) -> Iterator[ClonedDatabase]:
    cloned = ClonedDatabase(postgres_server, postgres_template)
    yield cloned
    cloned.drop()


@pytest.fixture
def postgres_url(postgres_server: PostgresDatabases, _cloned_database: ClonedDatabase) -> Iterator[str]:
    """A migrated PostgreSQL database with nothing in it."""
    yield postgres_server.url(_cloned_database.take())
    _cloned_database.give_back()


@pytest.fixture
def empty_postgres_url(postgres_server: PostgresDatabases) -> Iterator[str]:
    """A PostgreSQL database without any table."""
    name = unused_name()
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path}/jobs.db"


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated file to copy."""
    file = tmp_path_factory.mktemp("template") / "jobs.db"
    store = open_store(f"sqlite:///{file}")
    try:
        store.migrate()
    finally:
        store.close()
    return file


@pytest.fixture
def migrated_sqlite_url(sqlite_url: str, sqlite_template: Path) -> str:
    """A migrated SQLite file with nothing in it: to copy one takes a tenth of the time."""
    shutil.copy(sqlite_template, sqlite_url.removeprefix("sqlite:///"))
    return sqlite_url


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    """A store with nothing in it, once of each kind."""
    names = {"sqlite": "migrated_sqlite_url", "postgres": "postgres_url"}
    return str(request.getfixturevalue(names[request.param]))
