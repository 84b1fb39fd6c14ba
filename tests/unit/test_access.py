"""Who may do what: a table of refusals, and what a token's text gives away."""

from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lateshift.errors import OptionInvalid
from lateshift.model.access import (
    PREFIX,
    TOKEN_NAME_LIMIT,
    TOKEN_PATTERN_LIMIT,
    TOKEN_QUEUES_MOST,
    Scope,
    Token,
    looks_like_token,
    new_token,
    parse,
    refusal,
    standing,
    verify,
)
from lateshift.model.retry import LONGEST_DELAY

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ENQUEUE, READ, OPERATE, ADMIN = Scope


def make(*scopes: str, queues: tuple[str, ...] = (), **more: Any) -> Token:
    token, _ = new_token("ci", scopes or (READ,), queues, at=NOW, by="ann")
    return replace(token, **more)


GONE: dict[str, Any] = {"revoked_at": NOW - HOUR, "revoked_by": "ann"}


@pytest.mark.parametrize(
    ("token", "scope", "queue", "why"),
    [
        pytest.param(make(ENQUEUE), ENQUEUE, "mail", None, id="its scope"),
        pytest.param(make(ENQUEUE), READ, "mail", "scope", id="enqueue does not read"),
        pytest.param(make(ENQUEUE), OPERATE, "mail", "scope", id="enqueue does not operate"),
        pytest.param(make(ENQUEUE), ADMIN, None, "scope", id="enqueue does not administer"),
        pytest.param(make(READ), READ, "mail", None, id="read reads"),
        pytest.param(make(READ), ENQUEUE, "mail", "scope", id="read does not enqueue"),
        pytest.param(make(READ), OPERATE, "mail", "scope", id="read does not operate"),
        pytest.param(make(READ), ADMIN, None, "scope", id="read does not administer"),
        pytest.param(make(OPERATE), READ, "mail", None, id="operate includes read"),
        pytest.param(make(OPERATE), ENQUEUE, "mail", "scope", id="operate does not enqueue"),
        pytest.param(make(OPERATE), ADMIN, None, "scope", id="operate does not administer"),
        pytest.param(make(ADMIN), ENQUEUE, "mail", None, id="admin enqueues"),
        pytest.param(make(ADMIN), READ, "mail", None, id="admin reads"),
        pytest.param(make(ADMIN), OPERATE, "mail", None, id="admin operates"),
        pytest.param(make(ADMIN), ADMIN, None, None, id="admin administers"),
        pytest.param(make(ENQUEUE, READ), READ, "mail", None, id="the second of two scopes"),
        pytest.param(make(queues=("images.*",)), READ, "images.small", None, id="a queue that fits"),
        pytest.param(make(queues=("images.*",)), READ, "images", "queue", id="a pattern is no prefix"),
        pytest.param(make(queues=("images.*",)), READ, "mail", "queue", id="another queue"),
        pytest.param(make(queues=("images.*",)), READ, "my.images.small", "queue", id="not in the middle"),
        pytest.param(make(queues=("images",)), READ, "Images", "queue", id="capitals count"),
        pytest.param(make(queues=("a", "mail-?")), READ, "mail-7", None, id="the second of two patterns"),
        pytest.param(make(queues=("images.*",)), READ, None, "queue", id="what is of no one queue"),
        pytest.param(make(ADMIN, queues=("a",)), ADMIN, "b", "queue", id="an admin of one queue, too"),
        pytest.param(make(), READ, None, None, id="of all queues, what is of no one queue"),
        pytest.param(make(**GONE), READ, "mail", "revoked", id="revoked"),
        pytest.param(make(ADMIN, **GONE), ADMIN, None, "revoked", id="a revoked admin"),
        pytest.param(
            make(revoked_at=NOW + HOUR), READ, "mail", "revoked", id="revoked by a clock that is ahead"
        ),
        pytest.param(make(expires_at=NOW + HOUR), READ, "mail", None, id="not expired yet"),
        pytest.param(make(expires_at=NOW), READ, "mail", "expired", id="expires this very moment"),
        pytest.param(make(expires_at=NOW - HOUR), READ, "mail", "expired", id="expired"),
        pytest.param(make(expires_at=NOW - HOUR, **GONE), READ, "mail", "revoked", id="expired and revoked"),
        pytest.param(
            make(expires_at=NOW - HOUR), ADMIN, "mail", "expired", id="expired and of another scope"
        ),
        pytest.param(make(queues=("a",)), ADMIN, "b", "scope", id="of another scope and queue"),
        pytest.param(replace(make(), scopes=()), READ, "mail", "scope", id="of no scope that is known here"),
    ],
)
def test_why_not(token: Token, scope: Scope, queue: str | None, why: str | None) -> None:
    assert refusal(token, scope, queue, NOW) == why
    assert standing(token, scope, NOW) == (None if why == "queue" else why)


def test_the_text_holds_the_id_and_the_secret_and_the_token_only_a_digest() -> None:
    token, text = new_token("ci", ["read"], [], at=NOW, by="ann")
    held = parse(text)
    assert held is not None
    id, secret = held
    assert (id, len(secret)) == (token.id, 32)
    assert verify(token, secret)
    assert text.startswith("lsh_")
    assert "=" not in text
    assert secret not in token.digest
    assert not verify(token, secret[:-1])
    assert not verify(token, secret[:-1] + bytes([secret[-1] ^ 1]))
    assert not verify(token, b"")


def test_no_two_tokens_are_alike() -> None:
    made = [new_token("ci", ["read"], [], at=NOW, by="ann") for _ in range(100)]
    assert len({text for _, text in made}) == len({token.digest for token, _ in made}) == 100
    assert len({text[-43:] for _, text in made}) == 100


def test_neither_the_secret_nor_the_digest_is_in_the_repr() -> None:
    token, text = new_token("ci", ["read"], ["a.*"], at=NOW, by="ann")
    held = parse(text)
    assert held is not None
    shown = f"{token!r} {token} {[token]}"
    assert "ci" in shown
    for hidden in (text, text[-20:], held[1].hex(), repr(held[1]), token.digest.hex(), repr(token.digest)):
        assert hidden not in shown


def test_scopes_and_queues_are_kept_once_each_and_in_one_order() -> None:
    token, _ = new_token("ci", ["read", "enqueue", "read"], ["b", "a", "b"], at=NOW, by="ann")
    assert (token.scopes, token.queues) == ((Scope.ENQUEUE, Scope.READ), ("b", "a"))


GOOD = (
    PREFIX + urlsafe_b64encode(bytes(range(48))).decode()
)  # the same in every process, for the names of tests


@pytest.mark.parametrize(
    "text",
    [
        "", "lsh_", GOOD[:-1], GOOD + "A", GOOD + "=", GOOD + "\n", " " + GOOD, GOOD.upper(), GOOD[4:], "Bearer " + GOOD,
        GOOD[:-1] + "+", GOOD[:-1] + "/", GOOD[:-1] + "é", GOOD[:-1] + "\0", GOOD.replace("lsh_", "lsh-"), GOOD * 2, "lsh_" + "=" * 64,
    ],
)  # fmt: skip
def test_what_is_no_token_is_none(text: str) -> None:
    assert parse(text) is None


@given(st.text(max_size=100))
def test_any_text_is_taken_or_is_none(text: str) -> None:
    assert parse(text) is None
    held = parse(PREFIX + text)
    assert held is None or isinstance(held[0], UUID)


@given(st.integers(min_value=4, max_value=67), st.sampled_from("AZaz09-_"))
def test_a_token_that_was_changed_anywhere_is_another(place: int, letter: str) -> None:
    token, text = new_token("ci", ["read"], [], at=NOW, by="ann")
    changed = text[:place] + letter + text[place + 1 :]
    held = parse(changed)
    assert held is not None
    assert (held[0] == token.id and verify(token, held[1])) is (changed == text)


def test_what_is_one_is_one() -> None:
    assert parse(GOOD) == (UUID(bytes=bytes(range(16))), bytes(range(16, 48)))


def test_a_token_where_a_name_belongs_is_known_for_one() -> None:
    assert looks_like_token(GOOD)
    assert looks_like_token(f" {GOOD[:20]}")
    assert not looks_like_token("ci")


LONG = "a" * (TOKEN_NAME_LIMIT + 1)


@pytest.mark.parametrize(
    ("name", "scopes", "queues", "says"),
    [
        ("", ["read"], [], "no name of a token"),
        ("a b", ["read"], [], "letters, digits"),
        ("-a", ["read"], [], "first"),
        ("ci\n", ["read"], [], "no name"),
        ("<script>", ["read"], [], "no name"),
        (LONG, ["read"], [], f"1 to {TOKEN_NAME_LIMIT}"),
        (7, ["read"], [], "no name"),
        ("01a1e5e6-3f60-7000-8db6-a2aae2f3f190", ["read"], [], "no id"),
        ("01A1E5E63F6070008DB6A2AAE2F3F190", ["read"], [], "no id"),
        ("ci", [], [], "one or more of these scopes: enqueue, read, operate, admin; and there is none"),
        ("ci", ["root"], [], "not 'root'"),
        ("ci", [["read"]], [], r"not \['read'\]"),
        ("ci", "read", [], "scopes is a list"),
        ("ci", None, [], "scopes is a list"),
        ("ci", ["read"], "images", "queues is a list"),
        ("ci", ["read"], [""], "no pattern of queues"),
        ("ci", ["read"], ["a,b"], "no pattern of queues"),
        ("ci", ["read"], [7], "no pattern of queues"),
        ("ci", ["read"], ["a" * (TOKEN_PATTERN_LIMIT + 1)], f"up to {TOKEN_PATTERN_LIMIT}"),
        ("ci", ["read"], [f"q{n}" for n in range(TOKEN_QUEUES_MOST + 1)], f"at most {TOKEN_QUEUES_MOST}"),
    ],
)
def test_what_no_token_can_have_is_refused(name: Any, scopes: Any, queues: Any, says: str) -> None:
    with pytest.raises(OptionInvalid, match=says):
        new_token(name, scopes, queues, at=NOW, by="ann")


def test_a_token_given_as_a_name_is_not_said_back() -> None:
    with pytest.raises(OptionInvalid) as refused:
        new_token(GOOD, ["read"], [], at=NOW, by="ann")
    assert GOOD[4:20] not in str(refused.value)


def test_the_most_that_a_token_can_have_is_taken() -> None:
    queues = ["a" * (TOKEN_PATTERN_LIMIT - 2) + f"{number:02}" for number in range(TOKEN_QUEUES_MOST)]
    token, _ = new_token(LONG[1:], Scope, queues, at=NOW, by="ann", expires_at=NOW + LONGEST_DELAY)
    assert (len(token.name), len(token.queues), token.expires_at) == (100, 50, NOW + LONGEST_DELAY)


@pytest.mark.parametrize(
    ("expires_at", "says"),
    [
        (NOW, "longer than nothing"),
        (NOW - HOUR, "longer than nothing"),
        (NOW + LONGEST_DELAY + HOUR, "at most 3,650 days"),
        (NOW.replace(tzinfo=None), "with a time zone"),
        (30, "with a time zone"),
    ],
)
def test_a_life_that_no_token_can_have_is_refused(expires_at: Any, says: str) -> None:
    with pytest.raises(OptionInvalid, match=says):
        new_token("ci", ["read"], [], at=NOW, by="ann", expires_at=expires_at)
