"""What a request may cost, where it may come from, and how whatever goes wrong is told."""

import asyncio
import gzip
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from ipaddress import ip_network
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from lateshift import errors
from lateshift.api import bounds
from lateshift.api.application import make_api
from lateshift.api.asked import Asked
from lateshift.api.bounds import BODY_LIMIT, HEADERS_LIMIT, HEADERS_MOST, JSON_DEPTH, URL_LIMIT, Bounds
from lateshift.api.guard import host_in
from lateshift.api.problem import STATUSES, refused_by
from lateshift.api.route import PUBLIC, Done, Route
from lateshift.api.routes import health
from lateshift.model.depth import depth_of
from lateshift.telemetry.liveness import LATE_AFTER, LEAST_INTERVAL, living
from lateshift.testing import Kit
from tests.api.asking import Web, asking, status_of

START = "/v1/tasks/thumbnail/jobs"
JSON = {"Content-Type": "application/json"}


def test_a_body_over_its_limit_is_refused_whether_it_says_so_or_not(web: Web) -> None:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(BODY_LIMIT // 65536 + 1):
            yield b" " * 65536

    assert web("POST", START, content=b" " * (BODY_LIMIT + 1), headers=JSON).status_code == 413
    unsaid: Any = parts()
    assert web("POST", START, content=unsaid, headers=JSON).status_code == 413
    fits = b'{"arguments": {"path": "a"}}'
    assert web("POST", START, content=fits + b" " * (BODY_LIMIT - len(fits)), headers=JSON).status_code == 202


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_a_body_that_is_too_deep_is_refused(web: Web, opening: bytes, closing: bytes) -> None:
    for depth, status in ((JSON_DEPTH - 2, 202), (JSON_DEPTH - 1, 422), (100_000, 422)):
        inner = opening * depth + b"1" + closing * depth
        content = b'{"arguments": {"path": "a", "boxes": null, "deep": %s}}' % inner
        answer = web("POST", START, content=content, headers=JSON)
        assert answer.status_code == 422
        assert (answer.json()["title"] == "Too deep") is (status == 422)


def test_brackets_in_text_are_not_deep() -> None:
    assert depth_of(b'["' + b"[" * 1000 + b'\\"[[[", [[]]]') == 3
    assert depth_of(b"[" * 65 + b"]" * 65) == 65


@pytest.mark.parametrize("unended", [b'"\\' * 500_000, b'"' + b"\\" * 500_001, b'"' * 999_999])
def test_a_text_without_an_end_is_looked_at_once_not_once_for_each_of_its_quotes(unended: bytes) -> None:
    assert depth_of(b"[" * 65 + unended) == 65


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"{", JSON, 400),
        (b"\xff", JSON, 400),
        (b'{"arguments": {"path": "\xff"}}', JSON, 400),
        (b'{"arguments": {"path": "\\ud800"}}', JSON, 400),
        (b"nothing", {"Content-Type": "text/plain"}, 415),
        (b"{}", {}, 415),
        (b"a=1", {"Content-Type": "application/x-www-form-urlencoded"}, 415),
        (b"{}", {"Content-Type": "application/json; charset=utf-8"}, 422),
        (b"{}", {"Content-Type": 'Application/JSON;v=1; Charset="UTF-8"'}, 422),
        (b"{}", {"Content-Type": "application/json; charset=utf-16"}, 415),
        ("{}".encode("utf-16"), {"Content-Type": "application/json; charset=utf-16"}, 415),
        (b"{}", {"Content-Type": "application/json; charset=utf-8; charset=latin-1"}, 415),
        (gzip.compress(b"{}", mtime=0), JSON | {"Content-Encoding": "gzip"}, 415),
        (b"{}", JSON | {"Content-Encoding": "gzip"}, 415),
        (b"{}", JSON | {"Content-Encoding": "identity, BR"}, 415),
        (b"{}", JSON | {"Content-Encoding": "identity"}, 422),
        (b"null", JSON, 422),
    ],
)
def test_what_is_no_json_is_refused(web: Web, content: bytes, headers: dict[str, str], status: int) -> None:
    assert web("POST", START, content=content, headers=headers).status_code == status


def test_a_route_that_takes_no_body_takes_none(web: Web) -> None:
    assert web("POST", "/v1/queues/mail/pause", {"now": True}).json()["field"] == "now"


def test_heads_have_a_limit(web: Web) -> None:
    assert web("GET", f"/v1/jobs?task={'a' * URL_LIMIT}").status_code == 414
    assert web("GET", "/v1/jobs", headers={"X-Long": "a" * HEADERS_LIMIT}).status_code == 431
    many = {f"X-{number}": "a" for number in range(HEADERS_MOST)}
    assert web("GET", "/v1/jobs", headers=many).status_code == 431


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", ["/v1/queues", "/health/live", "/nothing"])
def test_a_question_with_a_body_is_refused_as_nobody_would_read_it(web: Web, method: str, path: str) -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b""

    unsaid: Any = parts()
    for content in (b"x", unsaid):
        answer = web(method, path, content=content)
        assert (answer.status_code, answer.headers["connection"]) == (400, "close")
        assert method == "HEAD" or answer.json()["type"] == "urn:lateshift:problem:body-unexpected"
    assert web(method, "/health/live", headers={"Content-Length": "0"}).status_code == 200


@pytest.mark.parametrize("key", ["", "a b", "a" * 201, "\x7f"])
def test_an_idempotency_key_is_text_within_bounds(web: Web, key: str) -> None:
    answer = web(
        "POST",
        START,
        {"arguments": {"path": "a"}},
        headers={"Idempotency-Key": key},
    )
    assert (answer.status_code, answer.json()["field"]) == (400, "Idempotency-Key")


def test_what_is_not_there_and_what_no_path_answers_to_are_problems_too(web: Web) -> None:
    assert web("GET", "/v1/nothing").json()["type"] == "urn:lateshift:problem:not-found"
    wrong = web("PUT", "/v1/queues")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, HEAD")


def test_below_a_prefix_paths_are_those_behind_it(kit: Kit) -> None:
    async def mounted(scope: Scope, receive: Receive, send: Send) -> None:
        await api({**scope, "root_path": "/jobs"}, receive, send)

    api = make_api(kit.app)
    with asking(kit.app, mounted) as web:
        assert ask(web, "/jobs/health/live") == 200
        assert ask(web, "/jobs/v1/queues") == 200


def ask(web: Web, path: str) -> int:
    answer = web._portal.call(
        partial(web._client.get, path, headers={"Authorization": f"Bearer {web.token}"})
    )
    return int(answer.status_code)


def test_every_answer_forbids_what_pages_could_do_with_it(web: Web) -> None:
    for path in ("/v1/queues", "/v1/nothing"):
        headers = web("GET", path, headers={"Origin": "https://evil.example"}).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert not [name for name in headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.", "", "127.0.0.1:x", "[::1", "a@localhost"]
)
def test_a_host_that_is_not_ours_is_refused(web: Web, host: str) -> None:
    assert web("GET", "/health/live", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8642", "LOCALHOST", "[::1]:8642"])
def test_names_of_this_machine_are_ours(web: Web, host: str) -> None:
    assert web("GET", "/health/live", headers={"Host": host}).status_code == 200


def test_a_host_is_read_without_its_port() -> None:
    assert [host_in(text) for text in ("a:1", "[::1]:1", "[::1]x", "a:b", "::1")] == ["a", "::1", "", "", ""]


def test_only_the_proxies_may_ask_and_no_header_makes_anybody_one(kit: Kit) -> None:
    with asking(kit.app, make_api(kit.app, peers=[ip_network("10.0.0.0/8")])) as web:
        spoofed = {"X-Forwarded-For": "10.0.0.1", "Forwarded": "for=10.0.0.1", "X-Real-IP": "10.0.0.1"}
        assert web("GET", "/health/live", headers=spoofed).status_code == 403
    with asking(kit.app, make_api(kit.app, peers=[ip_network("127.0.0.0/8")])) as web:
        assert web("GET", "/health/live", headers={"X-Forwarded-Host": "evil.example"}).status_code == 200


async def never(asked: Asked) -> Done:
    """Never answers."""
    await asyncio.Event().wait()
    raise AssertionError


def broken(asked: Asked) -> Done:
    """Has a fault."""
    raise RuntimeError("the secret is 42")


def away(asked: Asked) -> Done:
    """Has no store."""
    raise errors.StoreUnavailable("The store does not answer.")


OWN = [
    Route(method="GET", path=f"/{handler.__name__}", handler=handler, gives=Done, scope=PUBLIC)
    for handler in (never, broken, away)
]


def test_whoever_takes_too_long_is_answered_at_the_deadline(kit: Kit) -> None:
    api = make_api(kit.app, routes=OWN, bounds=Bounds(deadline=timedelta(milliseconds=20)))
    with asking(kit.app, api) as web:
        answer = web("GET", "/never", token=None)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_a_body_that_comes_too_slowly_is_its_senders_fault(kit: Kit, web: Web) -> None:
    api = make_api(kit.app, bounds=Bounds(deadline=timedelta(milliseconds=200)))
    headers = JSON | {
        "Host": "127.0.0.1:8642",
        "Authorization": f"Bearer {web.token}",
        "Content-Length": "100",
    }
    begun = {"type": "http.request", "body": b"{", "more_body": True}
    assert asyncio.run(status_of(api, START, headers, [begun])) == 408


def test_a_handler_that_takes_too_long_over_a_whole_body_is_our_fault(kit: Kit) -> None:
    slow = Route(method="POST", path="/slow", handler=never, gives=Done, scope=PUBLIC)
    api = make_api(kit.app, routes=[slow], bounds=Bounds(deadline=timedelta(milliseconds=200)))
    with asking(kit.app, api) as web:
        assert web("POST", "/slow", {}, token=None).status_code == 503


def test_a_fault_tells_nothing_but_where_to_look_for_it(kit: Kit, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "lateshift"), asking(kit.app, make_api(kit.app, routes=OWN)) as web:
        answer = web("GET", "/broken", token=None)
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    assert answer.json()["fault"] in caplog.text
    assert "the secret is 42" in caplog.text


def test_a_store_that_is_away_may_be_asked_again(kit: Kit) -> None:
    with asking(kit.app, make_api(kit.app, routes=OWN)) as web:
        answer = web("GET", "/away", token=None)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_a_store_that_does_not_answer_is_not_ready(
    kit: Kit, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(*_: object) -> None:
        raise errors.StoreUnavailable("away")

    monkeypatch.setattr(health, "aside", gone)
    assert web("GET", "/health/ready", token=None).status_code == 503


def test_a_process_of_which_a_loop_no_longer_turns_is_not_ready_and_lives(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert web("GET", "/health/ready", token=None).status_code == 200
    with living("Stuck") as loop:
        loop.turned -= LATE_AFTER * LEAST_INTERVAL + 1
        answer = web("GET", "/health/ready", token=None)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert "a loop" in answer.json()["detail"].lower()
        assert web("GET", "/health/live", token=None).status_code == 200
        loop.has_turned(1)
        assert web("GET", "/health/ready", token=None).status_code == 200


def test_every_error_of_lateshift_has_a_status_or_is_a_fault() -> None:
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.UsageError)
    ]
    for kind in kinds:
        refused = refused_by(kind("it is wrong"))
        assert refused is not None
        of_server = kind is errors.SealKeyMissing  # the one that its caller cannot mend
        assert (refused.problem.status == 503) if of_server else (400 <= refused.problem.status < 500)
    assert refused_by(errors.LeaseLost("x")) is None
    assert len({kind for kind, _ in STATUSES}) == len(STATUSES)


def test_no_wait_is_longer_than_the_deadline() -> None:
    assert timedelta(seconds=bounds.WAIT_MOST) < bounds.DEADLINE
