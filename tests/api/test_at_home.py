"""A look at a token on the loop that serves, without a thread: as good as one on a thread, and never in its way."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import psycopg
import pytest

from lateshift.api.application import doorkeeper_of
from lateshift.api.authentication import Doorkeeper
from lateshift.api.bounds import BOUNDS
from lateshift.api.problem import Refused
from lateshift.model.access import Scope, Token, new_token
from lateshift.testing import Kit

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


@pytest.fixture
def doorkeeper(kit: Kit) -> Doorkeeper:
    return doorkeeper_of(kit.app, BOUNDS, ())


@pytest.fixture
def bearer(kit: Kit) -> str:
    token, text = new_token("ci", [Scope.READ], [], at=kit.clock.now(), by="ann")
    kit.app.store.tokens.create(token)
    return f"Bearer {text}"


def count_threads(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tokens were looked for at each look on a thread."""
    looks: list[int] = []
    find = kit.app.store.tokens.find

    def counted(ids: Sequence[UUID]) -> list[Token]:
        looks.append(len(ids))
        return find(ids)

    monkeypatch.setattr(kit.app.store.tokens, "find", counted)
    return looks


async def until_there(doorkeeper: Doorkeeper, looks: list[int], bearer: str) -> None:
    """The first few are looked at on threads, while it connects."""
    for _ in range(10_000):
        before = len(looks)
        await doorkeeper.who(bearer)
        if len(looks) == before:
            return
        await asyncio.sleep(0)
    pytest.fail("every look took a thread")


async def test_whoever_is_revoked_is_refused_at_once(kit: Kit, doorkeeper: Doorkeeper, bearer: str) -> None:
    async with doorkeeper.finding_here():
        for _ in range(20):  # with a thread, and without
            token = await doorkeeper.admit_to_sign_in(bearer)
        kit.app.store.tokens.revoke(token.id, by="ann")
        with pytest.raises(Refused, match="revoked"):
            await doorkeeper.admit_to_sign_in(bearer)


async def test_on_postgres_a_look_takes_no_thread_and_elsewhere_and_afterwards_it_does(
    kit: Kit, doorkeeper: Doorkeeper, bearer: str, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = count_threads(kit, monkeypatch)
    async with doorkeeper.finding_here():
        if store_url.startswith("postgres"):
            await until_there(doorkeeper, looks, bearer)
            looks.clear()
            known = await asyncio.gather(*[doorkeeper.who(bearer) for _ in range(20)])
            assert [token.name for token in known] == ["ci"] * 20
            assert looks == []
        else:
            await asyncio.gather(*[doorkeeper.who(bearer) for _ in range(20)])
            assert looks == [1], "shared"
    looks.clear()
    await doorkeeper.who(bearer)
    assert looks == [1]


async def test_callers_are_known_while_its_connection_is_away(
    kit: Kit, doorkeeper: Doorkeeper, bearer: str, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = count_threads(kit, monkeypatch)

    def cut(*_: Any) -> None:
        if store_url.startswith("postgres"):
            with psycopg.connect(store_url, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                    " AND datname = current_database()"
                )

    async with doorkeeper.finding_here():
        for _ in range(3):
            assert (await doorkeeper.who(bearer)).name == "ci"
            if store_url.startswith("postgres"):
                await until_there(doorkeeper, looks, bearer)
            cut()
        assert (await doorkeeper.who(bearer)).name == "ci"
        with pytest.raises(Refused, match="not known"):
            await doorkeeper.who(f"Bearer {new_token('x', [Scope.READ], [], at=kit.clock.now(), by='x')[1]}")
