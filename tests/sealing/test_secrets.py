"""Tokens, secrets of webhooks and keys of a ring, and where they are not: in no line of the log, no page, no answer, no table."""

import logging
import re
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from html import unescape

import pytest

from lateshift import Cancel, Lateshift, Permanent
from lateshift.api.application import make_api, with_document
from lateshift.api.bounds import Bounds
from lateshift.api.routes.all import ROUTES
from lateshift.config import load
from lateshift.dashboard.pages.all import PAGES
from lateshift.model.access import PREFIX, Scope
from lateshift.model.job import JobFilter
from lateshift.replies.signing import Secrets
from lateshift.testing import Kit, testing
from lateshift.webhooks import standard_webhooks
from tests.api.asking import Web, asking, token_of
from tests.dashboard.browsing import browsing
from tests.sealing.clinic import DIGEST, NEW, kept
from tests.unit.receiver import Receiver, receiving

REPLY, ALERT, HOOK = (f"whsec_{b64encode(bytes([byte]) * 32).decode()}" for byte in (0xA7, 0xB8, 0xC9))
REPLY_PATH, ALERT_PATH = (
    "canary-reply-path-7f3a91",
    "canary-alert-path-7f3a91",
)  # where on its host a URL leads
BRIEF = Bounds(stream=timedelta(seconds=0.1), token_rate=1e6, address_rate=1e6)
PAGES_MOST = 500  # that are followed


def forms(secret: bytes) -> set[bytes]:
    return {
        secret,
        b64encode(secret).rstrip(b"="),
        urlsafe_b64encode(secret).rstrip(b"="),
        secret.hex().encode(),
    }


def of_token(text: str) -> set[bytes]:
    """A token is its id, which everybody may see, and its secret."""
    return {text.encode()} | forms(urlsafe_b64decode(text.removeprefix(PREFIX))[16:])


class Needles(dict[str, set[bytes]]):
    """What is looked for, by name, in every form it may be written in."""

    def found(self, told: bytes, *, without: tuple[str, ...] = ()) -> list[str]:
        return [
            name
            for name, texts in self.items()
            if name not in without and any(text in told for text in texts)
        ]


@contextmanager
def listening() -> Iterator[list[str]]:
    """Every record of every logger, down to DEBUG, with all that is in it."""
    told: list[str] = []

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(f"{self.format(record)} {record.__dict__}")

    heard, loggers = Heard(logging.DEBUG), [logging.getLogger(), logging.getLogger("lateshift")]
    before = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.DEBUG)
        each.addHandler(heard)
    try:
        yield told
    finally:
        for each, level in zip(loggers, before, strict=True):
            each.setLevel(level)
            each.removeHandler(heard)


def shop(url: str, receiver: Receiver) -> Lateshift:
    app = Lateshift("shop", store=url)
    app.settings = load(store=url, keys=(NEW, DIGEST))
    app.queue("patients", sensitive=True)
    at = f"http://127.0.0.1:{receiver.port}"
    app.reply_webhook(at, secret=REPLY, internal=True, name="shop")
    app.alert_webhook(f"{at}/{ALERT_PATH}", secret=ALERT, internal=True)

    @app.task(queue="patients")
    def examine(name: str) -> str:
        return name

    @app.task
    def work(how: str) -> str:
        match how:
            case "raise":
                raise ValueError("it went wrong")
            case "give up":
                raise Permanent("for good")
            case "cancel":
                raise Cancel("not wanted")
        return how

    @app.on_webhook("payments", verify=standard_webhooks("env:HOOK_SECRET"))
    @app.task
    def pay(amount: dict[str, int]) -> None: ...

    return app


def a_day(kit: Kit, web: Web, receiver: Receiver) -> str:
    """Jobs succeed, fail, are cancelled and delivered; errors are raised. Gives the text of a token that was made over the API."""
    app, to = kit.app, f"http://127.0.0.1:{receiver.port}/{REPLY_PATH}"
    work = app.tasks["work"].options(reply_to=to)
    for how in ("well", "raise", "give up", "cancel"):
        work.enqueue(how)
    app.tasks["examine"].options(reply_to=to, key="visit").enqueue("Ada")
    made = web("POST", "/v1/tokens", {"name": "made", "scopes": ["read"]}, headers={"Idempotency-Key": "one"})
    assert (
        web(
            "POST", "/v1/tasks/work/jobs", {"arguments": {"how": "well"}}, headers={"Idempotency-Key": "two"}
        ).status_code
        == 202
    )
    for body in (b'{"n": 1}', b"no json"):
        stamp = int(app.store.clock.now().timestamp())
        signed = Secrets(HOOK).signatures(f"msg_{len(body)}", stamp, body)
        headers = {
            "webhook-id": f"msg_{len(body)}",
            "webhook-timestamp": str(stamp),
            "webhook-signature": signed,
        }
        web("POST", "/hooks/payments", content=body, token=None, headers=headers)
        assert (
            web("POST", "/hooks/payments", content=body + b" ", token=None, headers=headers).status_code
            == 401
        )
    kit.drain()
    assert receiver.taken
    receiver.answers = [(500, {}, b"not now")]
    work.enqueue("not delivered")
    kit.drain()
    kit.travel(days=5)  # until it is a dead letter, and an alert
    receiver.answers = [(204, {}, b"")]
    kit.travel(days=2)
    assert any(taken.path == f"/{ALERT_PATH}" for taken in receiver.taken)
    return str(made.json()["token"])


def answers(web: Web) -> Iterator[tuple[str, bytes]]:
    """Every GET of the API, of every job, trigger, queue and refused event that there is."""
    store = web.app.store
    ids = [str(view.id) for view in store.reports.jobs(JobFilter(), 1000)]
    ids += [str(view.id) for view in store.triggers.refused(None, None, 100)]
    names = [view.name for view in store.triggers.all()] + ["work", "shop"]
    for route in with_document(ROUTES):
        if route.method == "GET":
            for value in ids if "{id}" in route.path else names if "{name" in route.path else [""]:
                path = re.sub(r"{\w+(:path)?}", value, route.path)
                path += "?channel=*" if path == "/v1/events" else ""
                yield (
                    path,
                    web("GET", path, headers={"Last-Event-ID": "0"} if "channel" in path else None).content,
                )
    yield "/metrics", web("GET", "/metrics").content


def pages(app: Lateshift, token: str) -> Iterator[tuple[str, bytes]]:
    """Every page of the dashboard, and where it leads."""
    with browsing(app) as browser:
        browser.sign_in(token)
        left, seen = [page.path for page in PAGES if "{" not in page.path], set[str]()
        while left and len(seen) < PAGES_MOST:
            path = left.pop()
            if path in seen:
                continue
            seen.add(path)
            page = browser.ask("GET", path)
            yield path, page.content
            links = [unescape(link).partition("#")[0] for link in re.findall(r'href="(/[^"]*)"', page.text)]
            left += [link for link in links if not link.startswith(("/static", "/sign"))]
        for reached in ("/jobs/", "/dead-letters/", "/queues/", "/triggers/"):
            assert any(path.startswith(reached) for path in seen)


def test_no_token_no_secret_and_no_key_is_anywhere_but_where_it_was_given(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the database must hold for a delivery is the URL that a call named with `reply_to=`: it stands beside the job and in what
    the delivery is given, and is shown nowhere. Of a token it holds the digest; of the rest nothing."""
    monkeypatch.setenv("HOOK_SECRET", HOOK)
    with listening() as told, receiving() as receiver:
        app = shop(store_url, receiver)
        with testing(app, store=store_url) as kit, asking(app, make_api(app, bounds=BRIEF)) as web:
            assert web.token is not None
            revoked = token_of(app, "revoked", [Scope.READ], revoked=True)
            assert web("GET", "/v1/jobs", token=revoked).status_code == 401
            made = a_day(kit, web, receiver)
            assert web("GET", "/v1/jobs", token=made).status_code == 200
            needles = Needles(
                {"token": of_token(web.token), "revoked": of_token(revoked), "made": of_token(made)}
                | {name: {text.encode()} | forms(b64decode(text.removeprefix("whsec_")))
                   for name, text in {"reply": REPLY, "alert": ALERT, "hook": HOOK}.items()}
                | {text.partition(":")[0]: forms(b64decode(text.partition(":")[2])) for text in (NEW, DIGEST)}
                | {"reply path": {REPLY_PATH.encode()}, "alert path": {ALERT_PATH.encode()}}
            )  # fmt: skip
            shown = [*answers(web), *pages(app, web.token)]
            assert {path: found for path, content in shown if (found := needles.found(content))} == {}
        dump = dict(kept(store_url))
        app.close()
    inside = {
        where: found
        for where, content in dump.items()
        if (found := needles.found(content, without=("reply path",)))
    }
    assert inside == {}
    assert any(
        needles.found(content) == ["reply path"] for content in dump.values()
    )  # the look finds what is there
    lines = [line for line in told if needles.found(line.encode())]
    assert lines == []
    assert any("is a dead letter" in line for line in told)
