"""A token that is revoked does nothing from then on, also for whoever was let in with it and had something to wait for since."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any
from uuid import UUID

import msgspec
import pytest

from lateshift.api import answering
from lateshift.api.bounds import LOOK_LASTS
from lateshift.errors import TokenRevoked
from lateshift.model.access import Scope, Token
from lateshift.runtime import aside as threads
from lateshift.testing import Kit
from tests.api.asking import Web, token_of
from tests.api.shop import Shop

JSON = {"Content-Type": "application/json"}
NEW = {"name": "again", "scopes": ["admin"]}
DEEDS = [
    ("/v1/tokens", NEW),
    ("/v1/queues/mail/pause", {}),
    ("/v1/tasks/send/jobs", {"arguments": {"to": "ann"}}),
]


@pytest.fixture
def victim(kit: Kit) -> str:
    return token_of(kit.app, "victim", [Scope.ADMIN])


def revoke(kit: Kit) -> None:
    token = kit.app.store.tokens.named("victim")
    assert token is not None
    assert kit.app.store.tokens.revoke(token.id, by="ana")
    kit.clock.move(seconds=2 * LOOK_LASTS.total_seconds())


async def late(body: Any, meanwhile: Callable[[], None]) -> AsyncIterator[bytes]:
    """A body of which the rest is waited for."""
    sent = msgspec.json.encode(body)
    yield sent[:1]
    await asyncio.to_thread(meanwhile)
    yield sent[1:]


@pytest.mark.parametrize("headers", [JSON, JSON | {"Idempotency-Key": "k"}], ids=["", "with a key"])
@pytest.mark.parametrize(("path", "body"), DEEDS)
def test_a_token_that_is_revoked_while_the_body_comes_does_nothing(
    web: Web, kit: Kit, shop: Shop, victim: str, path: str, body: Any, headers: dict[str, str]
) -> None:
    answer = web("POST", path, token=victim, headers=headers, content=late(body, lambda: revoke(kit)))
    assert (answer.status_code, "revoked" in answer.json()["detail"]) == (401, True)
    assert "www-authenticate" in answer.headers
    assert kit.app.store.tokens.named("again") is None
    assert web("GET", "/v1/jobs").json()["jobs"] == []
    assert [row.action for row in kit.app.store.audit.list(limit=10) if row.actor == "token victim"] == []


def test_an_answer_that_was_kept_is_not_told_to_whom_it_may_not_be_told_any_more(
    web: Web, kit: Kit, victim: str
) -> None:
    headers = JSON | {"Idempotency-Key": "k"}
    assert web("POST", "/v1/queues/mail/pause", {}, token=victim, headers=headers).status_code == 200
    again = web(
        "POST", "/v1/queues/mail/pause", token=victim, headers=headers, content=late({}, lambda: revoke(kit))
    )
    assert again.status_code == 401


def test_a_body_that_comes_slowly_from_a_good_token_is_taken(web: Web, kit: Kit, victim: str) -> None:
    made = web(
        "POST", "/v1/tokens", token=victim, headers=JSON, content=late(NEW, lambda: kit.clock.move(seconds=1))
    )
    assert made.status_code == 201


@pytest.mark.parametrize("key", [{}, {"Idempotency-Key": "k"}], ids=["", "with a key"])
def test_a_token_that_is_revoked_while_a_deed_waits_for_its_turn_does_nothing(
    web: Web, kit: Kit, shop: Shop, victim: str, monkeypatch: pytest.MonkeyPatch, key: dict[str, str]
) -> None:
    aside = threads.aside

    async def after_a_moment(*what: Any) -> Any:
        revoke(kit)
        return await aside(*what)

    monkeypatch.setattr(answering, "aside", after_a_moment)
    assert web("POST", "/v1/queues/mail/pause", {}, token=victim, headers=key).status_code == 401
    assert [row.action for row in kit.app.store.audit.list(limit=10) if row.actor == "token victim"] == []


def test_a_token_is_made_only_if_the_one_that_asks_is_good_at_its_commit(
    web: Web, kit: Kit, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = kit.app.store.tokens.create

    def after_a_pause(token: Token, *, maker: UUID | None = None) -> None:
        revoke(kit)  # the server stood still between its look and its commit
        create(token, maker=maker)

    monkeypatch.setattr(kit.app.store.tokens, "create", after_a_pause)
    assert web("POST", "/v1/tokens", NEW, token=victim).status_code == 401
    assert kit.app.store.tokens.named("again") is None
    with pytest.raises(TokenRevoked):
        create(made_by_nobody(kit), maker=UUID(int=1))


def made_by_nobody(kit: Kit) -> Token:
    found = kit.app.store.tokens.named("victim") or kit.app.store.tokens.list(1)[0]
    return msgspec.structs.replace(found, id=UUID(int=2), name="nobodys", revoked_at=None)


def test_who_has_nothing_to_wait_for_is_looked_at_once(
    web: Web, kit: Kit, shop: Shop, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Sequence[UUID]] = []
    find = kit.app.store.tokens.find

    def counted(ids: Sequence[UUID]) -> list[Token]:
        looks.append(ids)
        return find(ids)

    monkeypatch.setattr(kit.app.store.tokens, "find", counted)
    for path, body in DEEDS:
        assert web("POST", path, body, token=victim).status_code < 300
    assert len(looks) == len(DEEDS)
