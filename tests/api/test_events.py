"""Streams of events: resumed by Last-Event-ID, for whom may hear them, and no longer than that."""

import re
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import httpx
import pytest

from lateshift import JobEvent, Lateshift
from lateshift.api import serving
from lateshift.api.application import make_api
from lateshift.api.asked import Asked
from lateshift.api.bounds import LAST_EVENT_LIMIT, Bounds
from lateshift.api.route import EVENT_STREAM, Done, Reach, Route, Stream
from lateshift.model.access import Scope, new_token
from lateshift.model.ids import new_job_id
from lateshift.model.job import Lane, Line, Note, Progress
from lateshift.model.outcome import Completed, Settlement
from lateshift.store.contract import Want
from lateshift.testing import Kit
from tests.api.asking import Web, asking, token_of, told
from tests.api.running import connected, running
from tests.api.shop import Shop
from tests.store_contract.driving import member
from tests.walks.commands import eventually


def ids(answer: httpx.Response) -> list[str]:
    return re.findall(r"^id: (.*)\ndata", answer.text, re.MULTILINE)


def kinds(answer: httpx.Response) -> list[str]:
    return [re.findall(rb'"kind":"(\w+)"', document)[0].decode() for document in told(answer)]


@pytest.fixture
def app(app: Lateshift) -> Lateshift:
    app.queue("images", events=True)
    app.queue("mail", events=True)
    return app


@pytest.fixture
def long(kit: Kit) -> Iterator[Web]:
    """A server whose streams last, and whose tokens are looked at often."""
    bounds = Bounds(stream=timedelta(seconds=20), check=timedelta(seconds=0.05), streams=1)
    with asking(kit.app, make_api(kit.app, bounds=bounds)) as web:
        yield web


def test_a_job_is_followed_to_its_end_and_gone_on_with_after_any_event(
    web: Web, kit: Kit, shop: Shop
) -> None:
    job = shop.send.enqueue("ann")
    kit.drain()
    path = f"/v1/jobs/{job.id}/events"
    whole = web("GET", path)

    assert whole.headers["content-type"].startswith("text/event-stream")
    assert kinds(whole) == ["received", "started", "completed"]
    assert b'"result":"sent to ann"' in told(whole)[-1]
    for place, last in enumerate(ids(whole)):
        rest = web("GET", path, headers={"Last-Event-ID": last})
        assert ids(rest) == ids(whole)[place + 1 :]


def test_progress_is_gone_on_with_after_the_word_that_was_heard(web: Web, kit: Kit, shop: Shop) -> None:
    """By the ids that were given, and by that of an older release, which all its progress had."""
    job = shop.send.enqueue("ann")
    store, worker = kit.app.store, member()
    store.members.join(worker, timedelta(minutes=1))
    wanted = Want(Line("mail", Lane.GUARDED_THREAD), 1)
    [lease] = store.jobs.exchange(worker.id, [], [wanted]).leases
    path = f"/v1/jobs/{job.id}/events"
    heard: list[str] = []
    for number in (1, 2, 3):
        store.jobs.save([Note(lease, Progress(number, 3), number=number)])
        resumed = {"Last-Event-ID": heard[-1]} if heard else {}
        heard += ids(web("GET", path, headers=resumed))

    assert heard == ["0.1", "1.2", "1.3.1", "1.3.2", "1.3.3"]
    assert ids(web("GET", path, headers={"Last-Event-ID": "1.3.3"})) == []
    assert ids(web("GET", path, headers={"Last-Event-ID": "1.3"})) == ["1.3.3"]
    store.jobs.exchange(worker.id, [Settlement(lease, Completed(b'"sent"', timedelta(days=1)))], [])
    word, end = ids(web("GET", path, headers={"Last-Event-ID": "1.3.2"}))
    assert (word, end[:4]) == ("1.3.3", "1.5.")
    assert ids(web("GET", path, headers={"Last-Event-ID": "1.3.3"})) == [end]


def test_who_has_seen_the_end_of_a_job_is_told_to_ask_no_more(web: Web, kit: Kit, shop: Shop) -> None:
    """A browser asks a stream that ended again for ever, unless it is answered 204."""
    job = shop.send.enqueue("nobody")
    path = f"/v1/jobs/{job.id}/events"
    waiting = ids(web("GET", path))
    kit.drain()
    rest = web("GET", path, headers={"Last-Event-ID": waiting[-1]})
    assert (rest.status_code, kinds(rest)) == (200, ["started", "failed"])
    over = web("GET", path, headers={"Last-Event-ID": ids(rest)[-1]})
    assert (over.status_code, over.content) == (204, b"")
    assert "content-type" not in over.headers
    kit.app.store.jobs.resubmit([job.id], by="ann")
    assert web("GET", path, headers={"Last-Event-ID": ids(rest)[-1]}).status_code == 200
    kit.clock.move(seconds=1)
    kit.app.store.jobs.cancel([job.id], by="ann")
    again = web("GET", path, headers={"Last-Event-ID": ids(rest)[-1]})
    assert (again.status_code, kinds(again)) == (200, ["cancelled"])
    assert ids(again)[-1] not in ids(rest)


def test_a_stream_of_a_job_that_waits_ends_when_its_time_is_over(web: Web, shop: Shop) -> None:
    job = shop.send.enqueue("ann")

    assert kinds(web("GET", f"/v1/jobs/{job.id}/events")) == ["received"]


def test_a_job_that_is_not_there_is_not_followed(web: Web) -> None:
    assert web("GET", f"/v1/jobs/{new_job_id()}/events").status_code == 404


@pytest.mark.parametrize(
    "last", ["x", "1", "1.9", "-1.1", "1.1.1", "999.5", "1.1", "1" * 30 + ".1", "1" * (LAST_EVENT_LIMIT + 1)]
)
def test_a_last_event_that_was_never_given_is_refused(web: Web, shop: Shop, last: str) -> None:
    job = shop.send.enqueue("ann")
    answer = web("GET", f"/v1/jobs/{job.id}/events", headers={"Last-Event-ID": last})

    assert (answer.status_code, answer.json()["field"]) == (400, "Last-Event-ID")


@pytest.mark.parametrize("last", ["x", "1.1", "-1", "9" * 19])
def test_a_last_number_that_was_never_given_is_refused(web: Web, last: str) -> None:
    answer = web("GET", "/v1/events?channel=jobs.mail.send", headers={"Last-Event-ID": last})

    assert (answer.status_code, answer.json()["field"]) == (400, "Last-Event-ID")


def test_channels_are_gone_on_with_after_any_event(web: Web, kit: Kit, shop: Shop) -> None:
    begun = web("GET", "/v1/events?channel=jobs.*")
    [start] = re.findall(r"^id: (\d+)\nretry", begun.text)
    shop.send.enqueue("ann")
    shop.thumbnail.enqueue("cat.png")
    kit.drain()
    whole = web("GET", "/v1/events?channel=jobs.*", headers={"Last-Event-ID": start})

    assert sorted(kinds(whole)) == sorted(["received", "started", "completed"] * 2)
    for place, last in enumerate(ids(whole)):
        rest = web("GET", "/v1/events?channel=jobs.*", headers={"Last-Event-ID": last})
        assert ids(rest) == ids(whole)[place + 1 :]
    of_mail = web("GET", "/v1/events?channel=jobs.mail.*", headers={"Last-Event-ID": start})
    assert kinds(of_mail) == ["received", "started", "completed"]


def test_a_token_of_some_queues_hears_only_of_these(web: Web, kit: Kit, shop: Shop) -> None:
    shop.send.enqueue("ann")
    shop.thumbnail.enqueue("cat.png")
    kit.drain()
    text = token_of(kit.app, "mailer", [Scope.READ], ("mail",))
    heard = web("GET", "/v1/events?channel=*", token=text, headers={"Last-Event-ID": "0"})

    assert len(told(heard)) == 3
    assert all(b'"queue":"mail"' in document for document in told(heard))


@pytest.mark.parametrize(
    "query", ["", "?channel=", "?channel=a%20b", "?channel=jobs.orders.*", "?channel=x&y=1"]
)
def test_a_channel_that_is_none_is_refused(web: Web, query: str) -> None:
    assert web("GET", f"/v1/events{query}").status_code == 422


def test_a_stream_ends_when_its_token_is_revoked(long: Web, kit: Kit) -> None:
    text = token_of(kit.app, "ann", [Scope.READ])
    answers: list[Any] = []
    asked = threading.Thread(target=lambda: answers.append(long("GET", "/v1/events?channel=x", token=text)))
    asked.start()
    [token] = [each for each in kit.app.store.tokens.list(10) if each.name == "ann"]
    kit.app.store.tokens.revoke(token.id, by="a test")
    asked.join(timeout=15)

    [answer] = answers
    assert answer.status_code == 401 or "good for this no more" in answer.text


def test_more_listeners_than_a_server_takes_are_told_so(kit: Kit, shop: Shop) -> None:
    job = shop.send.enqueue("ann")
    with asking(kit.app, make_api(kit.app, bounds=Bounds(streams=0))) as full:
        answer = full("GET", f"/v1/jobs/{job.id}/events")

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["type"].endswith("streams-full")


def test_one_token_takes_no_more_places_than_it_may_have(kit: Kit, shop: Shop) -> None:
    job = shop.send.enqueue("ann")
    text = token_of(kit.app, "ann", [Scope.READ])
    [token] = [each for each in kit.app.store.tokens.list(10) if each.name == "ann"]
    browser, of_browser = new_token(
        "ann:browser", token.scopes, [], at=token.created_at, by="a test", parent=token.id
    )
    kit.app.store.tokens.create(browser)
    bounds = Bounds(streams=2, streams_of_token=1, stream=timedelta(seconds=0.3))
    with asking(kit.app, make_api(kit.app, bounds=bounds)) as web:
        first, second = web.at_once(2, "GET", f"/v1/jobs/{job.id}/events", None, tokens=[text, of_browser])
        both = web.at_once(2, "GET", f"/v1/jobs/{job.id}/events", None, tokens=[text, web.token])
        again = web("GET", f"/v1/jobs/{job.id}/events", token=of_browser)

    full = first if first.status_code == 429 else second
    assert {first.status_code, second.status_code} == {200, 429}
    assert full.json()["type"].endswith("streams-of-token")
    assert full.headers["retry-after"] == "1"
    assert [each.status_code for each in both] == [200, 200]
    assert again.status_code == 200


def test_to_ask_for_the_head_of_a_stream_takes_no_place(kit: Kit, shop: Shop) -> None:
    job = shop.send.enqueue("ann")
    with asking(kit.app, make_api(kit.app, bounds=Bounds(streams=0))) as web:
        for path in (f"/v1/jobs/{job.id}/events", "/v1/events?channel=x"):
            answer = web("HEAD", path)
            assert (answer.status_code, answer.content) == (200, b"")
            assert answer.headers["content-type"] == "text/event-stream"
            assert answer.headers["cache-control"] == "no-store"
            assert web("HEAD", path, token=None).status_code == 401


def test_a_listener_that_reads_nothing_loses_its_place(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one whose token is revoked, which is looked at between what it is sent."""
    monkeypatch.setattr(serving, "READ_WITHIN", timedelta(milliseconds=100))

    async def much(asked: Asked) -> Stream:
        """Without an end."""
        return Stream(frames(), None)

    async def frames() -> AsyncIterator[list[bytes]]:
        while True:
            yield [b"data: %s\n\n" % (b"a" * 65536)]

    route = Route(
        method="GET",
        path="/v1/much",
        handler=much,
        gives=Done,
        scope=Scope.READ,
        reach=Reach.ALL,
        media=(EVENT_STREAM,),
    )
    text = token_of(kit.app, "ann", [Scope.READ])
    head = f"GET /v1/much HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {text}\r\n\r\n".encode()
    with (
        running(make_api(kit.app, routes=[route], bounds=Bounds(streams=1))) as port,
        connected(port) as silent,
    ):
        silent.sendall(head)
        assert silent.recv(12) == b"HTTP/1.1 200"
        eventually(partial(listened, port, head), "another has the place")


def listened(port: int, head: bytes) -> bool:
    with connected(port) as another:
        another.sendall(head)
        return another.recv(12) == b"HTTP/1.1 200"


def test_a_listener_that_has_gone_makes_room_for_another(long: Web, kit: Kit, shop: Shop) -> None:
    job = shop.send.enqueue("ann")
    kit.drain()
    for _ in range(3):  # where one is the most
        assert kinds(long("GET", f"/v1/jobs/{job.id}/events"))[-1] == "completed"


def test_a_job_started_over_http_replies_as_it_says(web: Web, kit: Kit, shop: Shop) -> None:
    heard: list[JobEvent] = []

    @kit.app.task(queue="replies")
    def hear(event: JobEvent) -> None:
        heard.append(event)

    body = {
        "arguments": {"to": "ann"},
        "reply_to": "task:hear",
        "correlation_id": "7",
        "reply_on": ["completed"],
    }
    assert web("POST", "/v1/tasks/send/jobs", body).status_code == 202
    kit.drain()
    assert [(event.kind, event.correlation_id) for event in heard] == [("completed", "7")]
    several = body | {"reply_to": ["task:hear", "channel:x"]}
    assert web("POST", "/v1/tasks/send/jobs", several).status_code == 202


@pytest.mark.parametrize(
    "wrong",
    [
        {"reply_to": "nowhere"}, {"reply_to": "http://127.0.0.1/"}, {"reply_to": 7}, {"reply_to": "task:send", "reply_on": ["x"]},
        {"reply_to": "channel:jobs.pay.pay"}, {"reply_to": ["channel:x", "channel:jobs."]},
        {"correlation_id": "7"}, {"reply_to": "task:send", "correlation_id": "x" * 201},
    ],
)  # fmt: skip
def test_a_reply_that_cannot_be_is_refused(web: Web, shop: Shop, wrong: dict[str, Any]) -> None:
    assert web("POST", "/v1/tasks/send/jobs", {"arguments": {"to": "ann"}} | wrong).status_code == 422


def test_a_token_replies_only_into_its_own_queues(web: Web, kit: Kit, shop: Shop) -> None:
    @kit.app.task(queue="replies")
    def hear(event: JobEvent) -> None: ...

    text = token_of(kit.app, "mailer", [Scope.ENQUEUE], ("mail",))
    body = {"arguments": {"to": "ann"}, "reply_to": "task:hear"}
    refused = web("POST", "/v1/tasks/send/jobs", body, token=text)
    assert (refused.status_code, refused.json()["field"]) == (422, "reply_to")


def test_a_token_for_some_queues_replies_to_webhooks_that_the_app_declared_and_to_no_queues_channel(
    web: Web, kit: Kit, shop: Shop
) -> None:
    kit.app.reply_webhook("http://127.0.0.1:9", secret="whsec_" + "A" * 40, internal=True)
    text = token_of(kit.app, "painter", [Scope.ENQUEUE], ("images",))
    for to, status in (
        ("http://127.0.0.1:9/x", 202), ("http://127.0.0.1:8/x", 422), ("broker:rabbit", 422), ("channel:news", 202),
        ("channel:jobs.pay.pay", 422), ("channel:jobs.images.thumbnail", 422),
    ):  # fmt: skip
        body = {"arguments": {"path": "x"}, "reply_to": to}
        assert (to, web("POST", "/v1/tasks/thumbnail/jobs", body, token=text).status_code) == (to, status)


def test_a_token_starts_a_task_that_replies_elsewhere_because_the_app_says_so(
    web: Web, kit: Kit, shop: Shop
) -> None:
    heard: list[JobEvent] = []

    @kit.app.task(queue="replies")
    def hear(event: JobEvent) -> None:
        heard.append(event)

    @kit.app.task(queue="mail", reply_to=hear, reply_on="completed")
    def post(to: str) -> None: ...

    text = token_of(kit.app, "mailer", [Scope.ENQUEUE], ("mail",))
    body = {"arguments": {"to": "ann"}, "correlation_id": "7"}
    assert web("POST", "/v1/tasks/post/jobs", body, token=text).status_code == 202
    kit.drain()
    assert [event.correlation_id for event in heard] == ["7"]
