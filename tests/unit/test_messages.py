"""A source of messages, on kombu's broker in memory."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import kombu
import pytest

from lateshift.model.triggering.events import Message
from lateshift.model.triggering.sources import MessageSource
from lateshift.triggers import messages
from lateshift.triggers.brokers.broker import Delivery
from lateshift.triggers.messages import Messages
from lateshift.triggers.source import Incoming, Receipts, SourceAway

URL = "memory://"


class NoReceipts:
    def unseen(self, events: list[tuple[str, str]]) -> list[bool]:
        raise AssertionError

    def after(self, event: str, limit: int) -> list[str]:
        raise AssertionError

    def forget(self, events: list[str], *, before: str | None = None) -> int:
        raise AssertionError


RECEIPTS: Receipts = NoReceipts()


@pytest.fixture
def queue() -> str:
    return uuid4().hex


@pytest.fixture
def producer() -> Iterator[Any]:
    with kombu.Connection(URL) as connection:
        yield connection.Producer()


def put(producer: Any, queue: str, body: Any, **properties: Any) -> None:
    producer.publish(body, routing_key=queue, exchange="", **properties)


def opened(queue: str, **more: Any) -> Messages:
    source = Messages(MessageSource(url=URL, queue=queue, **more))
    source.open(None, RECEIPTS)
    return source


def read(source: Messages, limit: int = 500) -> list[Incoming]:
    return source.read(limit, 0.01).events


def test_a_message_comes_with_all_that_its_publisher_said(producer: Any, queue: str) -> None:
    put(producer, queue, {"n": 1}, message_id="m", headers={"a": "b"})
    source = opened(queue)
    [incoming] = read(source)
    assert incoming.event == "m"
    assert incoming.seen == Message(
        body=b'{"n": 1}', id="m", headers={"a": "b"}, content_type="application/json", queue=queue
    )
    source.close()


def test_what_is_not_done_when_it_closes_comes_again_under_the_same_id(producer: Any, queue: str) -> None:
    for number in range(3):
        put(producer, queue, number)
    source = opened(queue)
    first = read(source)
    source.done(first[:1])
    source.close()
    source.close()  # as often as one likes
    source.open(None, RECEIPTS)
    again = read(source)
    assert {each.event for each in again} == {each.event for each in first[1:]}
    source.done(again)
    source.close()
    source.open(None, RECEIPTS)
    assert read(source) == []
    source.close()


def test_no_more_are_taken_than_prefetch_says(producer: Any, queue: str) -> None:
    for number in range(5):
        put(producer, queue, number)
    source = opened(queue, prefetch=2)
    looked = source.read(500, 0.01)
    assert (len(looked.events), looked.more, looked.lag) == (2, True, 3)
    assert read(source) == []  # two are held
    source.done(looked.events)
    assert len(read(source)) == 2
    source.close()


def test_what_waits_is_counted_now_and_then(
    producer: Any, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        put(producer, queue, number)
    source = opened(queue, prefetch=1)
    asked: list[int] = []

    def count() -> int:
        asked.append(1)
        return 7

    monkeypatch.setattr(source._open, "waiting", count)
    for _ in range(20):
        source.done(read(source))
    assert len(asked) == 1
    source.close()


@pytest.mark.parametrize(
    ("key", "body", "event"),
    [
        ("id", {"id": "a"}, "a"),
        ("id", {"id": 5}, "5"),
        (lambda message: message.content["a"]["b"], {"a": {"b": "c"}}, "c"),
        (lambda message: message.headers["h"], {}, "of the header"),
    ],
)
def test_a_message_is_known_by_its_key(
    producer: Any, queue: str, key: Any, body: dict[str, Any], event: str
) -> None:
    put(producer, queue, body, message_id="m", headers={"h": "of the header"})
    source = opened(queue, key=key)
    [incoming] = read(source)
    assert (incoming.event, incoming.wrong) == (event, None)
    source.close()


@pytest.mark.parametrize(
    ("key", "body"),
    [
        ("id", {"other": 1}),
        ("id", {"id": None}),
        ("id", {"id": ""}),
        ("id", {"id": True}),
        ("id", {"id": ["a"]}),
        ("id", [1]),
        ("id", "no object"),
        (lambda message: message.headers["none"], {}),
        (lambda message: None, {}),
    ],
)
def test_without_its_key_a_message_is_wrong_and_known_by_its_id(
    producer: Any, queue: str, key: Any, body: Any
) -> None:
    put(producer, queue, body, message_id="m")
    source = opened(queue, key=key)
    [incoming] = read(source)
    assert incoming.event == "refused m"
    assert "what it is known by cannot be told" in (incoming.wrong or "")
    source.close()


def test_messages_without_an_id_are_never_taken_for_one(queue: str) -> None:
    source = Messages(MessageSource(url=URL, queue=queue))
    twice = [source._incoming(Delivery(tag=1, raw=b"{}", body=b"{}")) for _ in range(2)]
    assert twice[0].event != twice[1].event


def test_one_that_cannot_be_read_is_wrong_and_the_next_is_not(producer: Any, queue: str) -> None:
    put(producer, queue, b"\xff", content_type="application/json", content_encoding="klingon")
    put(producer, queue, {"n": 1})
    source = opened(queue)
    bad, good = read(source)
    assert "klingon" in (bad.wrong or "")
    assert bad.seen.raw == b"\xff"
    assert b'"content-encoding": "klingon"' in (bad.raw or b"")
    assert (good.wrong, good.seen.content) == (None, {"n": 1})
    source.close()


def test_messages_that_are_large_when_unpacked_are_handed_on_a_few_at_a_time(
    producer: Any, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "BYTES_AT_ONCE", 250_000)
    for number in range(5):
        put(producer, queue, [number, "x" * 100_000], compression="zlib")
    source = opened(queue)
    first = source.read(500, 0.01)
    assert ([each.seen.content[0] for each in first.events], first.more) == ([0, 1, 2], True)
    source.done(first.events)
    assert [each.seen.content[0] for each in read(source)] == [3, 4]
    source.close()
    source.open(None, RECEIPTS)
    assert [each.seen.content[0] for each in read(source)] == [3, 4]
    source.close()


def test_what_was_received_and_not_handed_on_comes_again(
    producer: Any, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "BYTES_AT_ONCE", 1)
    for number in range(3):
        put(producer, queue, number)
    source = opened(queue)
    source.done(read(source))
    source.close()
    source.open(None, RECEIPTS)
    assert sorted(each.seen.content for _ in range(2) for each in read(source)) == [1, 2]
    source.close()


def test_whatever_a_driver_raises_means_that_the_broker_is_away_and_tells_no_secret() -> None:
    source = Messages(MessageSource(url="amqp://me:hunter22@127.0.0.1:1//", queue="q"))
    with pytest.raises(SourceAway, match=r"^amqp://127\.0\.0\.1:1// queue q: ") as told:
        source.open(None, RECEIPTS)
    assert "hunter22" not in str(told.value)
    source.close()


def test_a_library_that_is_missing_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(where: MessageSource) -> None:
        raise ModuleNotFoundError("No module named 'redis'")

    monkeypatch.setattr(messages, "open_broker", missing)
    with pytest.raises(SourceAway, match=r"No module named 'redis'; .* pip install 'lateshift\[brokers\]'"):
        Messages(MessageSource(url="redis://", queue="q")).open(None, RECEIPTS)


def test_close_never_raises(queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = opened(queue)

    def broken() -> None:
        raise OSError("gone")

    monkeypatch.setattr(source._open, "close", broken)
    source.close()
