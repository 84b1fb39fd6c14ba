"""Whether a webhook is genuine: the published vectors, and everything that is nearly right."""

import hmac
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lateshift.errors import SignatureInvalid, TriggerInvalid
from lateshift.model.triggering.sources import Verify
from lateshift.replies.signing import SECRETS_MOST, Secrets
from lateshift.webhooks import (
    DELIVERY_ID_LIMIT,
    SIGNATURES_MOST,
    TOLERANCE,
    github,
    missing_secrets,
    standard_webhooks,
    stripe,
)

# Of the reference implementations of Standard Webhooks, and of GitHub's documentation. Stripe publishes none with its secret.
STANDARD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
STANDARD_AT = 1614265330
STANDARD_BODY = b'{"test": 2432232314}'
STANDARD = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": str(STANDARD_AT),
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}  # fmt: skip
GITHUB_SECRET = "It's a Secret to Everybody"
GITHUB_BODY = b"Hello, World!"
GITHUB = {
    "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
}  # fmt: skip
STRIPE_SECRET = "whsec_test_secret"
STRIPE_BODY = b'{"id": "evt_1", "object": "event"}'


def by_stripe(body: bytes, at: int = STANDARD_AT, secret: str = STRIPE_SECRET) -> dict[str, str]:
    signature = hmac.new(secret.encode(), f"{at}.".encode() + body, sha256).hexdigest()
    return {"stripe-signature": f"t={at},v1={signature},v0={'0' * 64}"}


def now(at: float = STANDARD_AT) -> datetime:
    return datetime.fromtimestamp(at, UTC)


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDARD", STANDARD_SECRET)
    monkeypatch.setenv("GITHUB", GITHUB_SECRET)
    monkeypatch.setenv("STRIPE", STRIPE_SECRET)


SCHEMES = [
    pytest.param(standard_webhooks("env:STANDARD"), STANDARD, STANDARD_BODY, id="standard"),
    pytest.param(github("env:GITHUB"), GITHUB, GITHUB_BODY, id="github"),
    pytest.param(stripe("env:STRIPE"), by_stripe(STRIPE_BODY), STRIPE_BODY, id="stripe"),
]


def test_the_published_vectors_are_genuine_and_known_by_their_ids() -> None:
    assert standard_webhooks("env:STANDARD")(STANDARD, STANDARD_BODY, now()) == "msg_p5jXN8AQM9LWM0D4loKWxJek"
    assert github("env:GITHUB")(GITHUB, GITHUB_BODY, now()) == "72d3162e-cc78-11e3-81ab-4c9367dc0958"
    assert stripe("env:STRIPE")(by_stripe(STRIPE_BODY), STRIPE_BODY, now()) == "evt_1"


@pytest.mark.parametrize(("verify", "headers", "body"), SCHEMES)
def test_a_body_of_which_any_byte_was_changed_is_refused(
    verify: Verify, headers: Mapping[str, str], body: bytes
) -> None:
    for place in range(len(body)):
        for bit in (1, 32, 128):
            changed = body[:place] + bytes([body[place] ^ bit]) + body[place + 1 :]
            with pytest.raises(SignatureInvalid):
                verify(headers, changed, now())
    for other in (b"", body[:-1], body + b" ", b" " + body, body + b"\n"):
        with pytest.raises(SignatureInvalid):
            verify(headers, other, now())


@pytest.mark.parametrize(("verify", "headers", "body"), SCHEMES)
def test_a_header_of_which_any_character_was_changed_is_refused_or_says_the_same(
    verify: Verify, headers: dict[str, str], body: bytes
) -> None:
    unsigned = {"x-github-delivery"}  # GitHub signs the body alone
    for name, value in headers.items():
        if name in unsigned:
            continue
        end = value.index(",v0") if "v0=" in value else len(value)
        for place in range(end):
            changed = value[:place] + chr(ord(value[place]) ^ 1) + value[place + 1 :]
            with pytest.raises(SignatureInvalid):
                verify({**headers, name: changed}, body, now())


@pytest.mark.parametrize(("verify", "headers", "body"), SCHEMES)
@given(wrong=st.dictionaries(
    st.sampled_from([*STANDARD, *GITHUB, "stripe-signature"]),
    st.text(max_size=200) | st.sampled_from(["", "v1,", "sha256=", "t=1,v1=", "v1=,t=", "é", "v1,é", "t=-1,v1=0", "t=1e9,v1=0"]),
    min_size=1,
))  # fmt: skip
def test_no_header_of_any_kind_is_more_than_refused(
    verify: Verify, headers: dict[str, str], body: bytes, wrong: dict[str, str]
) -> None:
    signed = {*headers} - {"x-github-delivery"}
    if not signed & {*wrong} or any(headers.get(name) == value for name, value in wrong.items()):
        return
    with pytest.raises(SignatureInvalid):
        verify({**headers, **wrong}, body, now())


@pytest.mark.parametrize(("verify", "headers", "body"), SCHEMES)
def test_a_header_that_is_missing_is_named(verify: Verify, headers: dict[str, str], body: bytes) -> None:
    for name in headers:
        less = {each: value for each, value in headers.items() if each != name}
        with pytest.raises(SignatureInvalid, match=name):
            verify(less, body, now())


@pytest.mark.parametrize(("verify", "headers", "body"), [SCHEMES[0], SCHEMES[2]])
def test_an_old_delivery_and_one_of_the_future_are_refused(
    verify: Verify, headers: dict[str, str], body: bytes
) -> None:
    for off in (TOLERANCE, -TOLERANCE):
        assert verify(headers, body, now() + off)
        with pytest.raises(SignatureInvalid, match="seconds from now"):
            verify(headers, body, now() + off + off / 300)


def test_a_dot_in_an_id_is_refused_as_it_moves_what_was_signed() -> None:
    """`a.1614265330` and the body `1614265330.{}` would be signed as `a` and the body `1614265330.1614265330.{}` are."""
    at = STANDARD_AT
    secrets = Secrets(STANDARD_SECRET)
    signature = secrets.signatures("a", at, f"{at}.".encode() + STANDARD_BODY)
    assert signature == secrets.signatures(f"a.{at}", at, STANDARD_BODY)
    moved = {"webhook-id": f"a.{at}", "webhook-timestamp": str(at), "webhook-signature": signature}
    with pytest.raises(SignatureInvalid, match="without a dot"):
        standard_webhooks("env:STANDARD")(moved, STANDARD_BODY, now())


@pytest.mark.parametrize("id", ["", "a b", "a\n", "é", "a" * (DELIVERY_ID_LIMIT + 1)])
def test_an_id_is_short_and_plain(id: str) -> None:
    signature = Secrets(STANDARD_SECRET).signatures(id, STANDARD_AT, b"")
    headers = {**STANDARD, "webhook-id": id, "webhook-signature": signature}
    with pytest.raises(SignatureInvalid, match="webhook-id"):
        standard_webhooks("env:STANDARD")(headers, b"", now())


@pytest.mark.parametrize(
    "stamp", ["", "+1614265330", "01614265330", "1614265330.0", "1_614_265_330", " 1614265330", "１"]
)
def test_a_time_has_one_spelling(stamp: str) -> None:
    with pytest.raises(SignatureInvalid, match="number of seconds"):
        standard_webhooks("env:STANDARD")({**STANDARD, "webhook-timestamp": stamp}, STANDARD_BODY, now())


def test_while_a_secret_is_rotated_both_are_good_and_then_the_old_one_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    new = "whsec_" + b64encode(bytes(range(32))).decode()
    monkeypatch.setenv("NEW", new)
    for both in (standard_webhooks("env:NEW", "env:STANDARD"), standard_webhooks("env:STANDARD", "env:NEW")):
        for secret in (STANDARD_SECRET, new):
            signature = Secrets(secret).signatures("msg_1", STANDARD_AT, b"{}")
            headers = {
                "webhook-id": "msg_1",
                "webhook-timestamp": str(STANDARD_AT),
                "webhook-signature": signature,
            }
            assert both(headers, b"{}", now()) == "msg_1"
    old = {**STANDARD, "webhook-signature": f"v1a,x v1,AAAA {STANDARD['webhook-signature']} v2,y"}
    assert standard_webhooks("env:STANDARD")(old, STANDARD_BODY, now())
    with pytest.raises(SignatureInvalid):
        standard_webhooks("env:NEW")(old, STANDARD_BODY, now())
    monkeypatch.delenv("STANDARD")
    with pytest.raises(SignatureInvalid):
        standard_webhooks("env:NEW", "env:STANDARD")(old, STANDARD_BODY, now())


def test_signatures_of_one_delivery_are_not_endless() -> None:
    many = " ".join(["v1,AAAA"] * SIGNATURES_MOST)
    genuine = STANDARD["webhook-signature"]
    for signatures in (f"{many} {genuine}", f"{genuine} {many}"):
        with pytest.raises(SignatureInvalid, match="At most"):
            standard_webhooks("env:STANDARD")(
                {**STANDARD, "webhook-signature": signatures}, STANDARD_BODY, now()
            )


@pytest.mark.parametrize("body", [b"no JSON", b"[]", b"{}", b'{"id": 7}', b'{"id": "a.b c"}', b"[" * 100_000])
def test_an_event_of_stripe_without_an_id_is_known_by_all_that_it_says(body: bytes) -> None:
    assert stripe("env:STRIPE")(by_stripe(body), body, now()) == f"sha256:{sha256(body).hexdigest()}"


def test_stripe_says_one_time() -> None:
    headers = by_stripe(STRIPE_BODY)["stripe-signature"]
    with pytest.raises(SignatureInvalid, match="one t="):
        stripe("env:STRIPE")({"stripe-signature": f"t=1,{headers}"}, STRIPE_BODY, now())


@pytest.mark.parametrize("scheme", [standard_webhooks, github, stripe])
@pytest.mark.parametrize(
    "given", [(), ("whsec_written",), ("env:",), ("env:a b",), ("env:A",) * (SECRETS_MOST + 1), (7,)]
)
def test_a_secret_is_named_and_what_was_given_instead_is_not_said_again(
    scheme: object, given: tuple[str, ...]
) -> None:
    with pytest.raises(TriggerInvalid) as told:
        scheme(*given)  # type: ignore[operator]
    assert "written" not in str(told.value).replace("not written", "")


@pytest.mark.parametrize("scheme", [standard_webhooks, github, stripe])
def test_a_secret_that_is_not_set_is_told_by_its_name_and_lets_nobody_in(
    scheme: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMPTY", "")
    verify: Verify = scheme("env:EMPTY", "env:NOT_SET")  # type: ignore[operator]
    assert missing_secrets(verify) == ["EMPTY", "NOT_SET"]
    empty = hmac.new(b"", STRIPE_BODY, sha256).hexdigest()
    headers = {
        **STANDARD,
        **GITHUB,
        **by_stripe(STRIPE_BODY, secret=""),
        "x-hub-signature-256": f"sha256={empty}",
    }
    with pytest.raises(TriggerInvalid, match="EMPTY or NOT_SET"):
        verify(headers, STRIPE_BODY, now())


def test_a_secret_that_is_none_of_standard_webhooks_is_told_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SHORT", "whsec_c2hvcnQ=")
    with pytest.raises(TriggerInvalid) as told:
        standard_webhooks("env:SHORT")(STANDARD, STANDARD_BODY, now())
    assert "c2hvcnQ" not in str(told.value)


def test_the_tolerance_is_five_minutes() -> None:
    assert timedelta(minutes=5) == TOLERANCE
