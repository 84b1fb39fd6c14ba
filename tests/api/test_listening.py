"""What a stream may still tell: nothing that happened after its token was good no more, and no gap in silence."""

import json
import re
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from itertools import islice
from typing import Any

import httpx
import pytest

from lateshift import Lateshift
from lateshift.api.application import make_api
from lateshift.api.authentication import Doorkeeper
from lateshift.api.bounds import Bounds
from lateshift.api.route import EVENT_STREAM, Asked, Reach, Route, Stream
from lateshift.model.access import Scope, new_token
from lateshift.model.events import JobEvent
from lateshift.replies.hub import Channels
from lateshift.store.reply_contract import Published
from lateshift.store.replying import EVENTS_KEPT
from lateshift.testing import Kit
from tests.api.asking import Web, asking, token_of
from tests.api.running import running
from tests.api.shop import Shop

CHANNEL = "/v1/events?channel=jobs.mail.*"
BEYOND = "999999999999999999"


@pytest.fixture
def app(app: Lateshift) -> Lateshift:
    app.queue("mail", events=True)
    return app


def send(kit: Kit, shop: Shop) -> None:
    """Of which there are three events."""
    shop.send.enqueue("ann")
    kit.drain()


@pytest.mark.parametrize("end", ["revoked", "revoked with its parent", "expired"])
def test_of_what_happened_after_a_token_was_good_no_more_its_stream_tells_nothing(
    kit: Kit, shop: Shop, end: str
) -> None:
    store = kit.app.store
    text = token_of(kit.app, "ann", [Scope.READ], lives=timedelta(hours=1))
    token = store.tokens.named("ann")
    assert token is not None
    if end == "revoked with its parent":
        browser, text = new_token("b", [Scope.READ], [], at=store.clock.now(), by="ann", parent=token.id)
        store.tokens.create(browser)
    send(kit, shop)
    seldom = Bounds(check=timedelta(hours=1))  # that a token is looked at for its own sake
    headers = {"Authorization": f"Bearer {text}", "Last-Event-ID": "0"}
    with (
        running(make_api(kit.app, bounds=seldom)) as port,
        httpx.Client(trust_env=False, timeout=30) as client,
        client.stream("GET", f"http://127.0.0.1:{port}{CHANNEL}", headers=headers) as answer,
    ):
        lines = answer.iter_lines()
        before = list(islice((line for line in lines if line.startswith("data:")), 3))
        if end == "expired":
            kit.clock.move(hours=1)
        else:
            store.tokens.revoke(token.id, by="a test")
        send(kit, shop)
        after = list(lines)
    assert len(before) == 3
    assert [line for line in after if line] == [": this token is good for this no more"]


def test_all_that_was_read_together_costs_one_look(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, find = [], Doorkeeper._find

    def counted(self: Doorkeeper, ids: Sequence[Any]) -> Any:
        looks.append(ids)
        return find(self, ids)

    monkeypatch.setattr(Doorkeeper, "_find", counted)

    async def frames() -> AsyncIterator[list[bytes]]:
        for _ in range(3):
            yield [b"data: {}\n\n"] * 100

    async def some(asked: Asked) -> Stream:
        """Three hundred, in three parts."""
        return Stream(frames(), None)

    route = Route(
        method="GET", path="/v1/some", handler=some, gives=JobEvent, scope=Scope.READ, reach=Reach.ALL, media=(EVENT_STREAM,)
    )  # fmt: skip
    with asking(kit.app, make_api(kit.app, routes=[route])) as web:
        answer = web.plain("GET", "/v1/some", {})
    assert answer.text.count("data: {}") == 300
    assert len(looks) == 1 + 3


def test_an_id_beyond_the_newest_event_is_refused_and_it_is_said_what_to_do(
    web: Web, kit: Kit, shop: Shop
) -> None:
    for _ in range(2):
        answer = web("GET", CHANNEL, headers={"Last-Event-ID": BEYOND})
        assert (answer.status_code, answer.json()["field"]) == (400, "Last-Event-ID")
        assert "ask without Last-Event-ID" in answer.json()["detail"]
        send(kit, shop)
    newest = str(kit.app.store.replies.newest())
    assert web("GET", CHANNEL, headers={"Last-Event-ID": newest}).status_code == 200
    over = {"Last-Event-ID": str(int(newest) + 1)}
    assert web("GET", CHANNEL, headers=over).status_code == 400


def left_out(answer: httpx.Response) -> list[tuple[str, dict[str, int]]]:
    found = re.findall(r"^id: (.*)\nevent: left-out\ndata: (.*)\n\n", answer.text, re.MULTILINE)
    return [(id, json.loads(data)) for id, data in found]


def test_where_events_are_kept_no_more_the_stream_says_so_first(web: Web, kit: Kit, shop: Shop) -> None:
    send(kit, shop)
    first = kit.app.store.replies.newest()
    assert left_out(web("GET", CHANNEL, headers={"Last-Event-ID": "0"})) == []
    kit.travel(seconds=EVENTS_KEPT.total_seconds() + 1)
    kit.drain()
    quiet = web("GET", CHANNEL, headers={"Last-Event-ID": str(first)})
    assert left_out(quiet) == []  # nothing came since
    assert quiet.text.startswith(f"id: {first}\n")
    send(kit, shop)
    gap = web("GET", CHANNEL, headers={"Last-Event-ID": "0"})
    assert left_out(gap) == [(str(first), {"after": 0, "before": first + 1})]
    assert gap.text.index("event: left-out") < gap.text.index('"kind"')
    assert gap.text.count('"kind"') == 3
    again = web("GET", CHANNEL, headers={"Last-Event-ID": left_out(gap)[0][0]})
    assert left_out(again) == []
    assert again.text.count('"kind"') == 3


def test_what_was_purged_between_two_looks_is_told_to_who_listens(
    web: Web, kit: Kit, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(kit, shop)
    last = kit.app.store.replies.newest()
    send(kit, shop)
    replies, read = kit.app.store.replies, Channels._read
    published = replies.published

    def late(self: Channels, after: int, limit: int, most: int | None = None) -> Any:
        """Of the six that were told, the first five are gone when the store is asked what came after the third."""
        monkeypatch.setattr(replies, "published", left)
        return read(self, after, limit, most)

    def left(after: int, limit: int, *, most: int | None = None) -> list[Published]:
        return published(max(after, last + 2), limit, most=most)

    monkeypatch.setattr(Channels, "_read", late)

    answer = web("GET", CHANNEL, headers={"Last-Event-ID": str(last)})

    assert left_out(answer) == [(str(last + 2), {"after": last, "before": last + 3})]
    assert answer.text.index("event: left-out") < answer.text.index('"kind"')
    assert answer.text.count('"kind"') == 1
