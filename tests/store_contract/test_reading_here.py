"""What is read on an event loop without a thread: right while it can be had, and not waited for while it cannot."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from lateshift.clock import ManualClock
from lateshift.model.access import Scope, Token, new_token
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from lateshift.store.postgres import PostgresStore, on_loop
from lateshift.store.postgres.on_loop import OnLoop
from tests.store_contract.test_deadlines import DEADLINE, Proxy, proxy

__all__ = ["proxy"]  # a fixture

OTHERS = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
ONE = "SELECT 1"
pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


@pytest.fixture
def postgres(postgres_url: str, clock: ManualClock) -> Iterator[PostgresStore]:
    yield from opened(postgres_url, clock)


def opened(url: str, clock: ManualClock) -> Iterator[PostgresStore]:
    store = open_store(url, clock)
    assert isinstance(store, PostgresStore)
    store.ready()
    yield store
    store.close()


def made(store: Store, name: str) -> Token:
    token, _ = new_token(name, [Scope.READ], [], at=store.clock.now(), by="ann")
    store.tokens.create(token)
    return token


async def connected(here: OnLoop) -> None:
    """After the try to connect that is under way, or that the next look begins."""
    if here._connecting is None:
        here._not_before = 0.0  # the pause is over
        assert await here.read(ONE, ()) is None
    assert here._connecting is not None
    await asyncio.wait({here._connecting})
    await asyncio.sleep(0)


async def test_what_is_found_here_is_what_is_found_on_a_thread_or_there_is_no_way_here(store: Store) -> None:
    first, second = made(store, "first"), made(store, "second")
    async with store.tokens.finding_here() as find:
        if not isinstance(store, PostgresStore):
            assert await find([first.id]) is None
            return
        found = None
        for _ in range(10_000):  # while it connects
            if (found := await find([second.id, first.id])) is not None:
                break
            await asyncio.sleep(0)
        assert found is not None
        assert sorted(found, key=lambda token: token.id) == store.tokens.find([first.id, second.id])
        store.tokens.revoke(first.id, by="ann")
        assert await find([first.id]) == store.tokens.find([first.id])
        assert await find([]) == []


async def test_nobody_waits_for_the_connection_and_one_that_the_server_has_closed_is_replaced(
    postgres: PostgresStore,
) -> None:
    async with OnLoop(postgres._database) as here:
        assert await here.read(ONE, ()) is None
        await connected(here)
        assert await here.read(ONE, ()) == [(1,)]
        with psycopg.connect(postgres.url, autocommit=True) as other:
            other.execute(f"SELECT pg_terminate_backend(pid, 5000) {OTHERS}".encode())

        assert await here.read(ONE, ()) is None, "on a thread this once"
        await connected(here)
        assert await here.read(ONE, ()) == [(1,)]


async def test_a_statement_that_fails_is_told_of_by_whoever_does_it_on_a_thread(
    postgres: PostgresStore,
) -> None:
    async with OnLoop(postgres._database) as here:
        await connected(here)
        assert await here.read("SELECT 1 / %s", (0,)) is None
        await connected(here)
        assert await here.read(ONE, ()) == [(1,)]


@pytest.mark.parametrize(
    "error", [psycopg.OperationalError("connection refused"), RuntimeError("can't start new thread")]
)
async def test_after_a_try_to_connect_that_failed_there_is_none_for_a_while(
    postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    tries = 0

    async def refused() -> None:
        nonlocal tries
        tries += 1
        raise error

    monkeypatch.setattr(postgres._database, "aconnect", refused)
    monkeypatch.setattr(on_loop, "AGAIN_SECONDS", 3600)
    async with OnLoop(postgres._database) as here:
        await connected(here)
        assert [await here.read(ONE, ()) for _ in range(3)] == [None] * 3
        assert (tries, here._connecting) == (1, None)
        monkeypatch.undo()
        await connected(here)
        assert await here.read(ONE, ()) == [(1,)]


async def test_after_a_read_that_failed_no_connection_is_made_for_a_while(
    postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_loop, "AGAIN_SECONDS", 3600)
    async with OnLoop(postgres._database) as here:
        await connected(here)
        assert await here.read("SELECT * FROM nowhere", ()) is None
        assert [await here.read(ONE, ()) for _ in range(3)] == [None] * 3
        assert here._connecting is None


async def test_a_read_that_is_under_way_when_it_is_left_ends_and_nothing_is_made_after_it(
    postgres: PostgresStore,
) -> None:
    async with OnLoop(postgres._database) as here:
        await connected(here)
        slow = asyncio.create_task(here.read("SELECT pg_sleep(30)", ()))
        waits = asyncio.create_task(here.read(ONE, ()))
        await asyncio.sleep(0.01)
    assert (await slow, await waits, await here.read(ONE, ())) == (None, None, None)
    assert (here._connecting, here._connection) == (None, None)


async def test_a_standby_is_not_read(postgres: PostgresStore) -> None:
    with psycopg.connect(postgres.url, autocommit=True) as other:
        other.execute("CREATE SCHEMA fake")
        other.execute("CREATE FUNCTION fake.pg_is_in_recovery() RETURNS boolean RETURN true")
        name = other.info.dbname
        other.execute(f'ALTER DATABASE "{name}" SET search_path = fake, pg_catalog'.encode())
        async with OnLoop(postgres._database) as here:
            await connected(here)
            assert await here.read(ONE, ()) is None
            other.execute(f'ALTER DATABASE "{name}" RESET search_path'.encode())  # it is promoted
            await connected(here)
            assert await here.read(ONE, ()) == [(1,)]


@pytest.mark.parametrize("how", ["?pooler=transaction", "?service=other", "PGSERVICE"])
async def test_where_nobody_knows_which_server_is_read_or_the_loop_would_wait_for_a_name_there_is_no_way_here(
    postgres: PostgresStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if how == "PGSERVICE":
        monkeypatch.setenv(how, "other")
    store = open_store(postgres.url + (how if how.startswith("?") else ""), clock)
    assert isinstance(store, PostgresStore)
    async with OnLoop(store._database) as here:
        assert await here.read(ONE, ()) is None
        assert here._connecting is None
    store.close()


async def test_one_that_is_cancelled_leaves_no_answer_to_the_next(postgres: PostgresStore) -> None:
    async with OnLoop(postgres._database) as here:
        await connected(here)
        slow = asyncio.create_task(here.read("SELECT pg_sleep(30), 'mine'", ()))
        with psycopg.connect(postgres.url, autocommit=True) as other:
            for _ in range(10_000):  # until it is under way
                if other.execute(f"SELECT 1 {OTHERS} AND wait_event = 'PgSleep'".encode()).fetchall():
                    break
                await asyncio.sleep(0)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        await connected(here)
        assert await here.read(ONE, ()) == [(1,)]


async def test_two_that_read_at_once_have_their_own_answers(postgres: PostgresStore) -> None:
    async with OnLoop(postgres._database) as here:
        await connected(here)
        got = await asyncio.gather(*[here.read("SELECT %s::int", (number,)) for number in range(20)])
        assert got == [[(number,)] for number in range(20)]


@pytest.mark.parametrize("steps", [0, 1, 3, 10, None])
async def test_no_connection_stays_when_it_is_left(postgres: PostgresStore, steps: int | None) -> None:
    async with OnLoop(postgres._database) as here:
        if steps is None:
            await connected(here)
        for _ in range(steps or 0):  # in the middle of connecting
            await asyncio.sleep(0.0005)
    postgres.close()
    assert here._connecting is None
    with psycopg.connect(postgres.url, autocommit=True) as other:
        for _ in range(1000):  # until the server has noticed
            if other.execute(f"SELECT count(*) {OTHERS}".encode()).fetchone() == (0,):
                return
            await asyncio.sleep(0.01)
    pytest.fail("a connection is still there")


async def test_a_server_that_takes_all_and_answers_nothing_is_given_up_on(
    proxy: Proxy, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_loop, "READ_SECONDS", DEADLINE)
    with contextmanager(opened)(proxy.url, clock) as store:
        async with OnLoop(store._database) as here:
            await connected(here)
            proxy.silent = True
            assert await asyncio.wait_for(here.read(ONE, ()), 30) is None
            proxy.silent = False
            await connected(here)
            assert await here.read(ONE, ()) == [(1,)]


async def test_its_connection_reads_as_the_others_do(postgres: PostgresStore) -> None:
    """The same plans, the same end of what takes too long."""
    settings = ("statement_timeout", "enable_seqscan", "enable_bitmapscan", "jit", "client_encoding")
    asked = "SELECT " + ", ".join([f"current_setting('{name}')" for name in settings])
    async with OnLoop(postgres._database) as here:
        await connected(here)
        with postgres._database.connect() as other:
            assert await here.read(asked, ()) == other.execute(asked.encode()).fetchall()
