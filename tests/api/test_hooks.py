"""Webhooks that are posted to us: genuine ones make one job each, on both stores, in a process that only serves."""

import hmac
import logging
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import httpx
import msgspec
import pytest
from msgspec import Struct, structs

from lateshift import Lateshift, Message, Retry
from lateshift.api.application import make_api
from lateshift.api.bounds import BODY_LIMIT, JSON_DEPTH, SMALL_BODY, Bounds
from lateshift.errors import TriggerInvalid
from lateshift.model.access import Scope
from lateshift.model.job import JobFilter, State
from lateshift.model.triggering.trigger import NewTrigger
from lateshift.replies.signing import Secrets
from lateshift.testing import Kit, testing
from lateshift.triggers.refusing import for_sender
from lateshift.webhooks import github, standard_webhooks, stripe
from tests.api.asking import Web, asking, token_of
from tests.store_contract.driving import Worker, serve

SECRET = "whsec_" + b64encode(bytes(range(32))).decode()


class Payment(Struct):
    id: str
    amount: int


class Seen(list[Any]):
    """What tasks were given."""


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def kit(app: Lateshift, seen: Seen, store_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kit]:
    monkeypatch.setenv("HOOK_SECRET", SECRET)

    @app.on_webhook("payments", verify=standard_webhooks("env:HOOK_SECRET"))
    @app.task(queue="money")
    def pay(payment: Payment) -> None:
        seen.append(payment)

    @app.on_webhook("github", verify=github("env:HOOK_SECRET"), decode=by_event)
    def build(message: Message) -> None:
        seen.append(message)

    @app.on_webhook("gitlab", verify=by_hand)
    @app.task
    def merge(message: Message) -> None: ...

    @app.on_webhook("faulty", verify=by_hand, decode=at_fault)
    @app.task
    def never(event: Any) -> None: ...

    @app.on_webhook("stripe", verify=stripe("env:HOOK_SECRET"))
    @app.task(queue="tight", unique=True)
    def charge(event: dict[str, Any]) -> None: ...

    app.queue("tight", max_ready=1)

    @app.on_webhook("broken", verify=standard_webhooks("env:NOT_SET"))
    @app.on_webhook("own", verify=by_hand)
    @app.task
    def other(event: Any) -> None: ...

    with testing(app, store=store_url) as kit:
        yield kit


@pytest.fixture
def web(kit: Kit) -> Iterator[Web]:
    with asking(kit.app, make_api(kit.app)) as web:
        yield web


def by_event(message: Message) -> Message | None:
    return None if message.headers.get("x-github-event") == "ping" else message


def at_fault(message: Message) -> Any:
    raise KeyError("a secret of the program")


def by_hand(headers: Mapping[str, str], body: bytes, now: datetime) -> str:
    return headers.get("x-id", "")


def signed(web: Web, body: bytes, id: str = "msg_1", at: datetime | None = None) -> dict[str, str]:
    stamp = int((at or web.app.store.clock.now()).timestamp())
    signature = Secrets(SECRET).signatures(id, stamp, body)
    return {"webhook-id": id, "webhook-timestamp": str(stamp), "webhook-signature": signature}


def post(web: Web, body: bytes, headers: Mapping[str, str], name: str = "payments") -> httpx.Response:
    return web("POST", f"/hooks/{name}", content=body, token=None, headers=headers)


def jobs_in(web: Web) -> int:
    return len(web.app.store.reports.jobs(JobFilter(), 100))


PAID = b'{"id": "p1",  "amount": 7}'


def test_a_genuine_delivery_is_one_job_however_often_it_comes(web: Web, kit: Kit, seen: Seen) -> None:
    headers = signed(web, PAID)
    first = post(web, PAID, headers)
    assert (first.status_code, first.json()["created"]) == (202, True)
    again = post(web, PAID, headers)
    assert (again.status_code, again.json()) == (202, {"created": False, "job": first.json()["job"]})
    kit.travel(minutes=4)
    later = post(web, PAID, signed(web, PAID))  # sent again by its sender, signed anew
    assert later.json() == again.json()
    kit.drain()
    assert seen == [Payment("p1", 7)]
    assert web("GET", f"/v1/jobs/{first.json()['job']}").json()["state"] == "completed"
    assert post(web, PAID, signed(web, PAID, "msg_2")).json()["created"] is True


def test_whoever_is_not_genuine_is_refused_and_leaves_nothing(web: Web, kit: Kit) -> None:
    headers = signed(web, PAID)
    old = signed(web, PAID, at=kit.app.store.clock.now() - timedelta(minutes=6))
    wrong: list[tuple[bytes, Mapping[str, str]]] = [
        (PAID + b" ", headers), (PAID, {}), (PAID, {**headers, "webhook-id": "msg_2"}), (PAID, old),
        (PAID, {**headers, "webhook-id": "msg.1"}), (PAID, {**headers, "webhook-signature": ""}),
    ]  # fmt: skip
    for body, given in wrong:
        answer = post(web, body, given)
        assert (answer.status_code, answer.json()["title"]) == (401, "Signature invalid")
    assert jobs_in(web) == 0
    assert kit.app.store.triggers.refused("payments", None, 10) == []


def test_a_header_that_stands_twice_is_refused_whichever_is_right(web: Web) -> None:
    headers = signed(web, PAID)
    for name in headers:
        other = signed(web, PAID, "msg_9")[name] + "0"
        for pair in ([headers[name], other], [other, headers[name]], [headers[name]] * 2):
            twice = [each for each in headers.items() if each[0] != name] + [(name, value) for value in pair]
            assert post(web, PAID, httpx.Headers(twice)).status_code == 401


def test_the_body_is_looked_at_byte_for_byte_and_need_not_say_that_it_is_json(web: Web) -> None:
    for number, body in enumerate((PAID, b"  " + PAID, PAID + b"\r\n")):
        headers = signed(web, body, f"msg_{number}") | {"Content-Type": "text/plain"}
        assert post(web, body, headers).status_code == 202


@pytest.mark.parametrize("depth", [JSON_DEPTH - 1, JSON_DEPTH, JSON_DEPTH + 1, 900, 1_500, 100_000])
def test_a_body_may_be_as_deep_as_any_other_and_its_sender_is_told_so(web: Web, kit: Kit, depth: int) -> None:
    body = b"[" * depth + b"]" * depth
    first, again = (post(web, body, {"x-id": "d1"}, "own") for _ in range(2))
    if depth <= JSON_DEPTH:
        assert (first.status_code, again.status_code) == (202, 202)
        return
    assert first.json() == again.json()
    assert (first.status_code, first.json()["type"]) == (422, "urn:lateshift:problem:event-refused")
    assert "more than 64 deep inside one another. It is kept as" in first.json()["detail"]
    [kept] = kit.app.store.triggers.refused("own", None, 10)
    assert (kept.reason, jobs_in(web)) == (
        "the body has objects or lists more than 64 deep inside one another.",
        0,
    )


def test_nothing_of_what_the_program_raised_is_told_to_the_sender(web: Web, kit: Kit) -> None:
    first, again = (post(web, PAID, {"x-id": "f1"}, "faulty") for _ in range(2))
    [kept] = kit.app.store.triggers.refused("faulty", None, 10)
    assert kept.reason == "KeyError: 'a secret of the program'"  # for operators
    assert first.json() == again.json()
    assert first.json()["detail"] == (
        f"No job can be made of this: the program that takes it cannot read it. It is kept as {kept.id}; "
        "sending it again changes nothing."
    )


def test_what_an_older_release_has_refused_says_nothing_of_why(web: Web, kit: Kit) -> None:
    post(web, b"no JSON", {"x-id": "o1"}, "own")
    [kept] = kit.app.store.triggers.refused("own", None, 10)
    rest = msgspec.json.decode(kept.rest)
    assert for_sender(kept) == kept.reason
    del rest["ours"]
    assert for_sender(structs.replace(kept, rest=msgspec.json.encode(rest))) is None


@pytest.mark.parametrize(
    "body",
    [b"no JSON", b'{"id": "p1", "amount": "seven"}', b"\xff", b"[" * 100_000, b'"' + b"a" * 300_000 + b'"'],
)
def test_what_no_job_can_be_made_of_is_kept_once_and_refused_until_an_operator_has_dealt_with_it(
    web: Web, kit: Kit, body: bytes
) -> None:
    first, again = (post(web, body, signed(web, body)) for _ in range(2))
    assert (first.status_code, first.json()["title"]) == (422, "Event refused")
    assert again.json() == first.json()
    [kept] = kit.app.store.triggers.refused("payments", None, 10)
    assert (kept.raw, kept.event) == (body, "msg_1")
    assert str(kept.id) in first.json()["detail"]
    assert re.search(r"[^.]\. It is kept as", first.json()["detail"])
    assert b"webhook-signature" not in kept.rest
    kit.app.store.triggers.discard([kept.id], by="ann")
    assert post(web, body, signed(web, body)).json() == {"created": False, "job": None}


def test_what_was_refused_becomes_a_job_once_the_code_is_mended(web: Web, kit: Kit, seen: Seen) -> None:
    fits = b'{"id": "p1", "amount": 7}'
    post(web, b'{"id": "p1"}', signed(web, b'{"id": "p1"}'))
    [kept] = kit.app.store.triggers.refused("payments", None, 10)
    with pytest.raises(Exception, match="amount"):
        kit.app.retry_refused(kept.id)
    trigger = kit.app.triggers["payments"]
    trigger._decode = lambda message: Payment("mended", 1)
    kit.app.retry_refused(kept.id)
    kit.drain()
    assert seen == [Payment("mended", 1)]
    assert post(web, fits, signed(web, fits)).json() == {"created": False, "job": None}


def test_github_tells_the_event_in_a_header_and_a_program_may_pass_one_over(
    web: Web, kit: Kit, seen: Seen
) -> None:
    body = b'{"zen": "Keep it logically awesome."}'
    mark = "sha256=" + hmac.new(SECRET.encode(), body, sha256).hexdigest()
    headers = {"X-Hub-Signature-256": mark, "X-GitHub-Delivery": "72d3162e", "X-GitHub-Event": "ping"}
    assert post(web, body, headers, "github").json() == {"created": True, "job": None}
    assert post(web, body, headers, "github").json() == {"created": False, "job": None}
    pushed = headers | {
        "X-GitHub-Delivery": "72d3162f",
        "X-GitHub-Event": "push",
        "Authorization": "Bearer x",
    }
    assert post(web, body, pushed, "github").json()["job"]
    kit.drain()
    [message] = seen
    assert (message.id, message.body, message.queue) == ("72d3162f", body, "github")
    assert message.headers["x-github-event"] == "push"
    assert not {"authorization", "x-hub-signature-256"} & {*message.headers}


def test_a_form_is_taken_and_a_task_that_reads_it_as_json_is_a_dead_letter_at_once(
    web: Web, kit: Kit
) -> None:
    @kit.app.task(name="reader", retry=Retry(attempts=5))
    def read(message: dict[str, Any]) -> Any:
        form = "application/x-www-form-urlencoded; charset=utf-8"
        return Message(body=b"payload=%7B%7D", content_type=form).content

    job = read.enqueue({})
    kit.drain()
    view = job.view()
    assert (view.state, view.reason, view.attempt) == (State.DEAD, "permanent", 1)
    assert "have its sender send application/json" in str(view.history[-1].message)


def test_a_full_queue_has_the_sender_try_again(web: Web, kit: Kit) -> None:
    def sent(id: str) -> httpx.Response:
        body = b'{"id": "%s"}' % id.encode()
        at = int(kit.app.store.clock.now().timestamp())
        mark = hmac.new(SECRET.encode(), f"{at}.".encode() + body, sha256).hexdigest()
        return post(web, body, {"Stripe-Signature": f"t={at},v1={mark}"}, "stripe")

    assert sent("evt_1").status_code == 202
    full = sent("evt_2")
    assert (full.status_code, full.headers["retry-after"]) == (429, "1")
    kit.drain()
    assert sent("evt_2").json()["created"] is True


def test_a_paused_webhook_and_one_without_its_secret_have_the_sender_try_again(
    web: Web, kit: Kit, caplog: pytest.LogCaptureFixture
) -> None:
    kit.app.declare_webhooks()
    web("POST", "/v1/triggers/payments/pause")
    paused = post(web, PAID, signed(web, PAID))
    assert (paused.status_code, paused.headers["retry-after"]) == (503, "1")
    web("POST", "/v1/triggers/payments/resume")
    assert post(web, PAID, signed(web, PAID)).status_code == 202
    with caplog.at_level(logging.ERROR, "lateshift"):
        closed = post(web, PAID, signed(web, PAID), "broken")
    assert closed.status_code == 503
    assert "NOT_SET" in caplog.text
    assert "NOT_SET" not in closed.text


def test_a_name_that_is_no_webhook_is_not_there(web: Web) -> None:
    for name in ("nothing", "thumbnail", "payments/x", "payments%2f", "payments%00"):
        assert post(web, PAID, signed(web, PAID), name).status_code == 404
    assert web("GET", "/hooks/payments", token=None).status_code == 405


def test_a_body_over_the_limit_is_refused_before_it_is_looked_at(web: Web) -> None:
    body = b"a" * (BODY_LIMIT + 1)
    assert post(web, body, signed(web, body)).status_code == 413


def test_a_function_of_the_program_says_what_a_delivery_is_known_by(web: Web) -> None:
    assert post(web, b"1", {"X-Id": "a"}, "own").json()["created"] is True
    assert post(web, b"2", {"X-Id": "a"}, "own").json()["created"] is False
    assert post(web, b"3", {}, "own").status_code == 401


def test_webhooks_are_shown_among_the_triggers(web: Web, kit: Kit) -> None:
    kit.app.declare_webhooks()
    post(web, PAID, signed(web, PAID))
    shown = web("GET", "/v1/triggers/payments").json()
    assert (shown["kind"], shown["about"], shown["jobs"]) == ("webhook", "POST /hooks/payments", 1)
    assert "broken" in [each["name"] for each in web("GET", "/v1/triggers").json()["triggers"]]
    assert SECRET not in web("GET", "/v1/triggers").text


def test_a_name_that_another_app_has_and_serves_is_left_to_it(web: Web, kit: Kit) -> None:
    store = kit.app.store
    other = NewTrigger(name="payments", kind="webhook", about="POST /hooks/payments", task="pay")
    store.triggers.declare([other], app="another")
    worker = Worker(store)
    serve(store, worker, "another")
    assert post(web, PAID, signed(web, PAID)).status_code == 503
    assert jobs_in(web) == 0
    kit.travel(minutes=2)  # and its worker is gone
    assert post(web, PAID, signed(web, PAID)).status_code == 202


@pytest.mark.parametrize(
    "given",
    [{"name": "a/b"}, {"name": ""}, {"name": ".."}, {"verify": None}, {"window": timedelta(minutes=9)}],
)
def test_a_webhook_that_cannot_be_is_refused_where_it_is_written(
    app: Lateshift, given: dict[str, Any]
) -> None:
    options: dict[str, Any] = {"name": "ok", "verify": by_hand, **given}
    with pytest.raises((TriggerInvalid, ValueError)):
        app.on_webhook(options.pop("name"), **options)


def test_a_token_is_of_no_use_at_a_webhook(web: Web, kit: Kit) -> None:
    text = token_of(kit.app, "root", [Scope.ADMIN])
    answer = web("POST", "/hooks/payments", content=PAID, token=text)
    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/hooks/nosuch", {}, 404),
        ("/hooks/payments", {}, 401),
        ("/hooks/github", {}, 401),
        ("/hooks/stripe", {}, 401),
    ],
)
def test_what_cannot_be_let_in_is_refused_before_its_body_is_read(
    web: Web, path: str, headers: dict[str, str], status: int
) -> None:
    read: list[bytes] = []

    async def body() -> AsyncIterator[bytes]:
        read.append(b"a")
        yield b"a"

    assert web("POST", path, headers=headers, content=body()).status_code == status
    assert read == []


def test_bodies_of_those_who_are_not_known_share_a_budget(kit: Kit) -> None:
    bounds, small, large = Bounds(unknown_bodies=SMALL_BODY + 500), b"a" * 900, b"a" * (SMALL_BODY + 900)
    with asking(kit.app, make_api(kit.app, bounds=bounds)) as web:
        for _ in range(3):  # what was answered is given back
            assert web("POST", "/hooks/own", content=small).status_code != 503
            assert web("POST", "/hooks/own", content=b"a" * SMALL_BODY).status_code != 503
        full = web("POST", "/hooks/own", content=large)
        assert (full.status_code, full.headers["retry-after"], full.headers["connection"]) == (
            503,
            "1",
            "close",
        )

        async def by_letters() -> AsyncIterator[bytes]:
            for _ in range(SMALL_BODY // 20):
                yield b"a"

        assert (
            web("POST", "/hooks/own", content=by_letters()).status_code == 503
        )  # each costs more than itself
        assert web("POST", "/hooks/own", content=small).status_code != 503
        known = {"name": "n" * (SMALL_BODY + 900)}
        assert web("POST", "/v1/tokens", known).status_code == 422  # who is known has no share in it


@pytest.mark.parametrize(
    "name",
    [
        "X-Gitlab-Token", "X-Slack-Signature", "X-Shopify-Hmac-Sha256", "X-Telegram-Bot-Api-Secret-Token", "X-Api-Key", "Authorization",
        "Cookie", "Stripe-Signature", "X-Hub-Signature-256", "X-Password",
    ],
)  # fmt: skip
def test_what_lets_a_delivery_in_is_kept_nowhere(web: Web, name: str) -> None:
    body = b'{"ref": "main"}'
    told = {"X-Id": "1", name: "canary-7f3a", "X-Event": "push", "Idempotency-Key": "k1"}

    assert post(web, body, told, "gitlab").status_code == 202
    assert post(web, body, told | {"X-Id": "2"}, "faulty").status_code == 422

    [job] = web.app.store.reports.jobs(JobFilter(), 100)
    [refused] = web.app.store.triggers.refused(None, None, 10)
    for kept in (job.payload, refused.raw + refused.rest):
        assert b"canary-7f3a" not in kept
        assert b"push" in kept
        assert b"k1" in kept
