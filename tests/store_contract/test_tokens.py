"""Tokens: kept by a digest alone, revoked at once, visible for a while after their end."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from msgspec.structs import replace

from lateshift.clock import ManualClock
from lateshift.errors import OptionInvalid, TokenNameTaken, TokenRevoked
from lateshift.model.access import (
    SIGN_IN_LINK,
    Scope,
    Token,
    TokenState,
    new_token,
    parse,
    refusal,
    verify,
)
from lateshift.store import postgres, sqlite
from lateshift.store.access_contract import TOKENS_AT_ONCE, USED_EVERY, TokenGroup, place_of
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from lateshift.store.taking import TOKEN_KEPT
from tests.store_contract.driving import DAY, HOUR, Supervisor, file_of, query
from tests.store_contract.explaining import analyse, plans

SECOND = timedelta(seconds=1)


def make(
    store: Store, name: str = "ci", *, queues: tuple[str, ...] = (), life: timedelta | None = None
) -> tuple[Token, str]:
    now = store.clock.now()
    expires_at = None if life is None else now + life
    token, text = new_token(
        name, [Scope.ENQUEUE, Scope.READ], queues, at=now, by="ann", expires_at=expires_at
    )
    store.tokens.create(token)
    return token, text


def seen(store: Store, token: Token) -> Token:
    [found] = store.tokens.find([token.id])
    return found


def audit(store: Store) -> list[tuple[str, str, str]]:
    return [(row.action, row.subject, row.actor) for row in store.audit.list(limit=100)]


def test_what_the_servers_know_is_drawn_when_the_store_is_made_and_stays(store: Store) -> None:
    secret = store.tokens.secret()
    assert len(secret) == 32
    assert len(set(secret)) > 8, "drawn by chance"
    [(kept,)] = query(store, "SELECT value FROM {secret}")
    assert kept == secret
    store.ready()
    assert store.tokens.secret() == secret


def test_a_token_is_found_as_it_was_made(store: Store) -> None:
    token, text = make(store, queues=("images.*", "mail-?"), life=30 * DAY)
    held = parse(text)
    assert held is not None
    [found] = store.tokens.find([held[0]])
    assert found == token
    assert verify(found, held[1])
    assert store.tokens.named("ci") == token
    plain, _ = make(store, "plain")
    assert seen(store, plain) == plain
    assert (plain.queues, plain.expires_at) == ((), None)


def test_only_those_that_are_there_are_found(store: Store) -> None:
    tokens = [make(store, f"t{number}")[0] for number in range(3)]
    found = store.tokens.find([uuid4(), *(token.id for token in tokens), uuid4()])
    assert sorted(token.id for token in found) == sorted(token.id for token in tokens)
    assert store.tokens.find([]) == []
    assert store.tokens.named("nobody") is None


def test_making_one_is_audited_and_doing_it_again_is_harmless(store: Store) -> None:
    token, _ = make(store)
    store.tokens.create(token)
    assert audit(store) == [("create", "token ci", "ann")]
    assert store.tokens.list(10) == [token]


def test_repeating_one_that_was_revoked_meanwhile_does_not_bring_it_back(store: Store) -> None:
    token, _ = make(store)
    store.tokens.revoke(token.id, by="bob")
    store.tokens.create(token)
    assert seen(store, token).revoked_by == "bob"
    assert store.tokens.named("ci") is None


def test_a_name_is_one_tokens_until_it_is_revoked(store: Store, clock: ManualClock) -> None:
    first, _ = make(store, life=HOUR)
    with pytest.raises(TokenNameTaken, match="lateshift tokens revoke ci"):
        make(store)
    clock.move(hours=2)
    with pytest.raises(TokenNameTaken):  # expired, and still the one that people know by this name
        make(store)
    assert store.tokens.list(10) == [first]
    store.tokens.revoke(first.id, by="ann")
    second, _ = make(store)
    assert store.tokens.named("ci") == second
    store.tokens.revoke(second.id, by="ann")
    assert len(store.tokens.list(10)) == 2
    assert [action for action, _, _ in audit(store)] == ["revoke", "create", "revoke", "create"]


def test_of_many_who_take_a_name_at_once_one_has_it(store: Store) -> None:
    def take(_: int) -> bool:
        try:
            make(store)
        except TokenNameTaken:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(take, range(8))) == 1
    assert len(store.tokens.list(10)) == len(audit(store)) == 1


def test_revoked_is_revoked_at_once_for_everybody(store: Store, store_of_another: Store) -> None:
    token, _ = make(store)
    assert refusal(seen(store_of_another, token), Scope.READ, "mail", store.clock.now()) is None
    assert store.tokens.revoke(token.id, by="bob")
    found = seen(store_of_another, token)
    assert refusal(found, Scope.READ, "mail", store.clock.now()) == "revoked"
    assert found.revoked_by == "bob"
    assert found.revoked_at is not None
    assert abs(found.revoked_at - store.clock.now()) < HOUR


@pytest.fixture
def store_of_another(store: Store, clock: ManualClock) -> Any:
    """The same store, opened a second time as by another process; in memory it is one."""
    other = store if store.url.startswith("memory") else open_store(store.url, clock)
    yield other
    if other is not store:
        other.close()


def test_what_a_browser_was_given_is_revoked_with_the_token_it_signed_in_with(store: Store) -> None:
    token, _ = make(store)
    browsers = [child_of(store, token, f"ci:browser-{number}") for number in range(2)]
    other, _ = make(store, "other")
    assert store.tokens.revoke(token.id, by="bob")
    assert [seen(store, each).revoked_by for each in browsers] == ["bob", "bob"]
    assert seen(store, browsers[0]).parent == token.id
    assert seen(store, other).revoked_at is None
    revoked = {subject for action, subject, _ in audit(store) if action == "revoke"}
    assert revoked == {"token ci", "token ci:browser-0", "token ci:browser-1"}


def test_a_browsers_own_is_revoked_alone(store: Store) -> None:
    token, _ = make(store)
    browser = child_of(store, token, "ci:browser")
    assert store.tokens.revoke(browser.id, by="bob")
    assert seen(store, token).revoked_at is None


def test_nobody_signs_in_with_a_token_that_is_revoked_in_that_moment(store: Store) -> None:
    token, _ = make(store)
    store.tokens.revoke(token.id, by="bob")
    with pytest.raises(TokenRevoked):
        child_of(store, token, "ci:browser")
    assert store.tokens.named("ci:browser") is None


@pytest.mark.parametrize("ended", ["revoked", "expired", "gone"])
def test_nobody_makes_a_token_with_one_that_is_good_no_more_in_that_moment(
    store: Store, clock: ManualClock, ended: str
) -> None:
    maker, _ = make(store, "admin", life=HOUR)
    new, _ = new_token("ci", [Scope.READ], [], at=store.clock.now(), by="token admin")
    if ended == "revoked":
        store.tokens.revoke(maker.id, by="bob")
    elif ended == "expired":
        clock.move(hours=2)
    with pytest.raises(TokenRevoked):
        store.tokens.create(new, maker=uuid4() if ended == "gone" else maker.id)
    assert store.tokens.named("ci") is None
    store.tokens.create(new, maker=make(store, "other")[0].id)
    assert store.tokens.named("ci") == new


def test_no_token_is_made_after_the_revocation_of_the_one_that_makes_it(store: Store) -> None:
    maker, _ = make(store, "admin")
    at_once = Barrier(2)

    def make_some() -> None:
        at_once.wait(10)
        for number in range(50):
            new, _ = new_token(f"n{number}", [Scope.READ], [], at=store.clock.now(), by="token admin")
            store.tokens.create(new, maker=maker.id)

    def revoke() -> None:
        at_once.wait(10)
        store.tokens.revoke(maker.id, by="bob")

    with ThreadPoolExecutor(2) as pool:
        making, revoking = pool.submit(make_some), pool.submit(revoke)
        assert revoking.exception() is None
        assert isinstance(making.exception(), TokenRevoked | None)
    lines = [action for action, _, actor in audit(store) if actor in ("token admin", "bob")]
    assert lines.index("revoke") == 0  # the newest


def child_of(store: Store, parent: Token, name: str) -> Token:
    child, _ = new_token(name, parent.scopes, parent.queues, at=store.clock.now(), by="ann", parent=parent.id)
    store.tokens.create(child)
    return child


def test_revoking_twice_is_harmless(store: Store, clock: ManualClock) -> None:
    token, _ = make(store)
    assert store.tokens.revoke(token.id, by="bob")
    first = seen(store, token)
    clock.move(hours=1)
    assert not store.tokens.revoke(token.id, by="eve")
    assert seen(store, token) == first
    assert not store.tokens.revoke(uuid4(), by="eve")
    assert audit(store) == [("revoke", "token ci", "bob"), ("create", "token ci", "ann")]


def test_of_many_who_revoke_it_at_once_one_did(store: Store) -> None:
    token, _ = make(store)
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda number: store.tokens.revoke(token.id, by=f"u{number}"), range(8)))
    assert sum(told) == 1
    assert seen(store, token).revoked_by == f"u{told.index(True)}"
    assert len(audit(store)) == 2


def test_when_it_was_last_used_is_written_at_most_once_a_minute(store: Store, clock: ManualClock) -> None:
    token, other = make(store)[0], make(store, "other")[0]
    store.tokens.used([token.id, token.id, uuid4()])
    first = seen(store, token).last_used_at
    assert first is not None
    clock.move(seconds=30)
    store.tokens.used([token.id])
    assert seen(store, token).last_used_at == first
    clock.move(seconds=31)
    store.tokens.used([token.id])
    again = seen(store, token).last_used_at
    assert again is not None
    assert timedelta(0) < again - first < USED_EVERY + HOUR
    assert seen(store, other).last_used_at is None
    store.tokens.used([])


def test_use_is_not_audited_and_brings_nothing_back(store: Store) -> None:
    token, _ = make(store)
    store.tokens.revoke(token.id, by="bob")
    store.tokens.used([token.id])
    assert seen(store, token).revoked_by == "bob"
    assert len(audit(store)) == 2


def test_those_that_are_good_are_listed_first_and_the_newest_of_them(
    store: Store, clock: ManualClock
) -> None:
    tokens = {name: make(store, name)[0] for name in ("a", "b", "c", "d", "e")}
    for name in ("d", "b"):
        clock.move(seconds=1)
        store.tokens.revoke(tokens[name].id, by="bob")
    assert [token.name for token in store.tokens.list(10)] == ["e", "c", "a", "b", "d"]
    assert [token.name for token in store.tokens.list(4)] == ["e", "c", "a", "b"]
    assert [token.name for token in store.tokens.list(2)] == ["e", "c"]


def names(tokens: list[Token]) -> str:
    return " ".join(token.name for token in tokens)


def page_by_page(store: Store, size: int, **asked: Any) -> list[Token]:
    found = page = store.tokens.list(size, **asked)
    while page:
        page = store.tokens.list(size, after=place_of(page[-1]), **asked)
        found = found + page
    return found


def several(store: Store, clock: ManualClock) -> None:
    """Good: with and without an end; expired and revoked."""
    for name, life in (
        ("old", None),
        ("e1", HOUR),
        ("e2", 2 * HOUR),
        ("d1", DAY),
        ("d2", 2 * DAY),
        ("new", None),
    ):
        make(store, name, life=life)
    for name in ("r1", "r2", "r3"):
        token, _ = make(store, name, life=HOUR)
        clock.move(seconds=1)
        store.tokens.revoke(token.id, by="bob")
    clock.move(hours=2)


def test_those_that_have_expired_stand_behind_those_that_are_good(store: Store, clock: ManualClock) -> None:
    several(store, clock)
    assert names(store.tokens.list(100)) == "new old d2 d1 e2 e1 r3 r2 r1"
    assert names(store.tokens.list(100, state=TokenState.GOOD)) == "new old d2 d1"
    assert names(store.tokens.list(100, state=TokenState.EXPIRED)) == "e2 e1"
    assert names(store.tokens.list(100, state=TokenState.REVOKED)) == "r3 r2 r1"


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9, 10])
def test_tokens_are_read_page_by_page_each_once(store: Store, clock: ManualClock, size: int) -> None:
    several(store, clock)
    for state in (None, *TokenState):
        whole = store.tokens.list(100, state=state)
        assert page_by_page(store, size, state=state) == whole


def test_tokens_of_the_same_moment_are_all_listed(store: Store) -> None:
    at = store.clock.now()
    for number in range(5):
        token, _ = new_token(f"t{number}", ["read"], [], at=at, by="ann", expires_at=at + HOUR)
        store.tokens.create(token)
    assert len({token.id for token in page_by_page(store, 2)}) == 5


def test_browsers_sign_ins_are_listed_apart_however_many_there_are(store: Store, clock: ManualClock) -> None:
    first, _ = make(store, "admin")
    now = store.clock.now()
    for number in range(12):
        by, parent = (SIGN_IN_LINK, None) if number % 2 else ("token admin", first.id)
        child, _ = new_token(
            f"b{number}", ["read"], [], at=now, by=by, expires_at=now + (number + 1) * HOUR, parent=parent
        )
        store.tokens.create(child)
    clock.move(hours=6)
    assert store.tokens.list(2) == [first]
    assert names(store.tokens.list(3, sign_ins=True)) == "b11 b10 b9"
    assert len(page_by_page(store, 5, sign_ins=True)) == 12
    assert names(page_by_page(store, 5, sign_ins=True, state=TokenState.EXPIRED)) == "b5 b4 b3 b2 b1 b0"


@pytest.mark.parametrize("limit", [0, -1, TOKENS_AT_ONCE + 1, True, None])
def test_a_listing_is_bounded(store: Store, limit: Any) -> None:
    with pytest.raises(OptionInvalid, match="from 1 to 1,000"):
        store.tokens.list(limit)


def test_expired_and_revoked_ones_are_seen_for_a_while_and_then_purged(
    store: Store, supervisor: Supervisor, clock: ManualClock
) -> None:
    lasting, _ = make(store, "lasting")
    expiring, _ = make(store, "expiring", life=HOUR)
    revoked, _ = make(store, "revoked")
    store.tokens.revoke(revoked.id, by="bob")
    clock.move(seconds=(TOKEN_KEPT - SECOND).total_seconds())
    supervisor.purge()
    assert len(store.tokens.list(10)) == 3
    clock.move(seconds=2)
    assert supervisor.purge() == 1
    assert {token.name for token in store.tokens.list(10)} == {"lasting", "expiring"}
    clock.move(hours=1)
    assert supervisor.purge() == 1
    assert store.tokens.list(10) == [lasting]
    assert store.tokens.find([expiring.id, revoked.id]) == []
    clock.move(days=1000)
    supervisor.purge()
    assert store.tokens.list(10) == [lasting]


def test_a_purge_takes_no_more_than_it_is_asked_to(
    store: Store, supervisor: Supervisor, clock: ManualClock
) -> None:
    for number in range(5):
        make(store, f"t{number}", life=HOUR)
    clock.move(days=32)
    assert supervisor.purge(limit=2) == 2
    assert len(store.tokens.list(10)) == 3


def test_the_secret_is_nowhere_in_the_store(store: Store) -> None:
    token, text = make(store)
    store.tokens.used([token.id])
    store.tokens.revoke(token.id, by="bob")
    held = parse(text)
    assert held is not None
    rows = repr(query(store, "SELECT * FROM {token}")) + repr(query(store, "SELECT * FROM {audit}"))
    for hidden in (text, text[-30:], repr(held[1])[2:-1], held[1].hex()):
        assert hidden not in rows
    if store.url.startswith("sqlite"):
        file = file_of(store.url)
        kept = b"".join(each.read_bytes() for each in file.parent.glob(f"{file.name}*"))
        assert token.digest in kept  # what is looked for would be found
        assert held[1] not in kept
        assert text[-30:].encode() not in kept


def test_a_scope_of_a_later_version_is_good_for_nothing(store: Store) -> None:
    token, _ = make(store)
    query(store, "UPDATE {token} SET scopes = 'script,read'")
    assert seen(store, token) == replace(token, scopes=(Scope.READ,))


def test_instants_are_kept_to_the_microsecond(store: Store) -> None:
    at = datetime.fromisoformat("2026-11-16T12:34:56.789012+02:00")
    token, _ = new_token(
        "ci", ["read"], [], at=at, by="ann", expires_at=at + HOUR + timedelta(microseconds=1)
    )
    store.tokens.create(token)
    assert seen(store, token) == token


ONE = uuid4()
SKEW = {"skew": timedelta(0), "kept": HOUR, "limit": 10, "id": ONE, "ids": [ONE], "by": "ann", "every": HOUR}


@pytest.mark.parametrize("analysed", [False, True])
def test_no_statement_reads_all_tokens(store: Store, analysed: bool) -> None:
    if store.url.startswith("postgresql"):
        query(
            store,
            "INSERT INTO {token} (id, name, scopes, queues, digest, created_at, created_by, expires_at, revoked_at)"
            " SELECT gen_random_uuid(), 't' || i, 'read', '', '', now(), 'ann', now(), CASE i %% 2 WHEN 0 THEN now() END"
            " FROM generate_series(1, 5000) i",
        )
        tokens = postgres.tokens
        listed = {"sign_in": 0, "above": "-infinity", "at": "infinity", "id": ONE, "limit": 10}
        wanted: list[tuple[str, Any, str]] = [
            (tokens.FIND, ([ONE],), "token_pkey"),
            (tokens.REVOKE, SKEW, "Index Cond: (id = "),
            (tokens.REVOKE_CHILDREN, SKEW, "token_parent"),
            (tokens.LIVES, SKEW, "Index Cond: (id = "),
            (tokens.USED, SKEW, "token_pkey"),
            (tokens.NAMED, ("ci",), "token_name"),
            (tokens.LISTED[TokenGroup.LASTING], listed, "token_lasting"),
            (tokens.LISTED[TokenGroup.ENDING], listed, "token_ending"),
            (tokens.LISTED[TokenGroup.REVOKED], listed, "token_gone"),
            (tokens.PURGE_REVOKED, SKEW, "token_revoked"),
            (tokens.PURGE_EXPIRED, SKEW, "token_expires"),
        ]
    else:
        query(
            store,
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO {token}"
            " (id, name, scopes, queues, digest, created_at, created_by, expires_at, revoked_at)"
            " SELECT randomblob(16), 't' || i, 'read', '', x'', i, 'ann', i, CASE i % 2 WHEN 0 THEN i END FROM n",
        )
        wanted = [
            (sqlite.tokens.FIND, (), "PRIMARY KEY (id=?)"),
            (sqlite.tokens.REVOKE, (), "PRIMARY KEY (id=?)"),
            (sqlite.tokens.REVOKE_CHILDREN, (), "token_parent (parent=?)"),
            (sqlite.tokens.LIVES, (), "PRIMARY KEY (id=?)"),
            (sqlite.tokens.STALE, (), "PRIMARY KEY (id=?)"),
            (sqlite.tokens.USED, (), "PRIMARY KEY (id=?)"),
            (sqlite.tokens.NAMED, (), "token_name (name=?)"),
            (sqlite.tokens.LISTED[TokenGroup.LASTING], (), "token_lasting (<expr>=? AND id<?)"),
            (
                sqlite.tokens.LISTED[TokenGroup.ENDING],
                (),
                "(<expr>=? AND expires_at>? AND (expires_at,id)<(?,?))",
            ),
            (
                sqlite.tokens.LISTED[TokenGroup.REVOKED],
                (),
                "(<expr>=? AND revoked_at>? AND (revoked_at,id)<(?,?))",
            ),
            (sqlite.tokens.PURGE_REVOKED, (), "token_revoked (revoked_at>? AND revoked_at<?)"),
            (sqlite.tokens.PURGE_EXPIRED, (), "token_expires (expires_at>? AND expires_at<?)"),
        ]
    if analysed:
        analyse(store)
    for sql, parameters, index in wanted:
        for found in plans(store, sql, parameters):
            assert index in found, f"{sql}\n{found}"
            assert not re.search("Seq Scan|Sort|TEMP B-TREE", found), found
