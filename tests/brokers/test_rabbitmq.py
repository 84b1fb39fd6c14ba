"""What is RabbitMQ's own."""

from collections.abc import Iterator
from typing import Any

import amqp
import kombu
import pytest

from lateshift.model.triggering.sources import MessageSource
from lateshift.triggers.messages import Messages
from lateshift.triggers.source import Incoming, SourceAway
from tests.brokers.queues import RabbitQueue
from tests.unit.test_messages import RECEIPTS


@pytest.fixture
def queue(rabbitmq: str) -> Iterator[RabbitQueue]:
    made = RabbitQueue(rabbitmq)
    yield made
    made.close()


def opened(queue: RabbitQueue, **options: Any) -> Messages:
    source = Messages(MessageSource(url=queue.url, queue=queue.name, options=options))
    source.open(None, RECEIPTS)
    return source


def read(source: Messages, count: int) -> list[Incoming]:
    """So many, in as many looks as it takes."""
    events: list[Incoming] = []
    for _ in range(20):
        if len(events) < count:
            events += source.read(500, 1).events
    return events


def test_messages_without_an_id_are_never_taken_for_one(queue: RabbitQueue) -> None:
    queue.send(b"{}")
    queue.send(b"{}")
    source = opened(queue)
    events = read(source, 2)
    assert len({each.event for each in events}) == 2
    source.done(events)
    source.close()
    assert queue.left() == 0


def test_properties_and_headers_of_any_kind_are_read(queue: RabbitQueue) -> None:
    with kombu.Connection(queue.url) as connection:
        message = amqp.Message(
            b"\xff\x00", content_type="application/octet-stream", message_id="m",
            application_headers={"text": "ä", "number": 2**40, "nested": {"list": [1, None, True]}, "float": 0.5},
        )  # fmt: skip
        connection.channel().basic_publish(message, routing_key=queue.name)
    source = opened(queue)
    [incoming] = read(source, 1)
    assert incoming.event == "m"
    assert incoming.seen.raw == b"\xff\x00"
    assert incoming.seen.headers == {  # type: ignore[union-attr]
        "text": "ä", "number": 2**40, "nested": {"list": [1, None, True]}, "float": 0.5,
    }  # fmt: skip
    source.done([incoming])
    source.close()


def test_a_queue_that_is_deleted_under_its_reader_is_told_of(rabbitmq: str) -> None:
    queue = RabbitQueue(rabbitmq)
    source = opened(queue)
    queue.close()
    with pytest.raises(SourceAway, match=queue.name):
        for _ in range(20):
            source.read(500, 0.5)
    source.close()


def test_no_more_is_held_than_prefetch_says_and_the_rest_is_for_others(queue: RabbitQueue) -> None:
    for number in range(10):
        queue.send(b"{}", id=str(number))
    source = Messages(MessageSource(url=queue.url, queue=queue.name, prefetch=4))
    source.open(None, RECEIPTS)
    assert len(read(source, 4)) == 4
    assert source.read(500, 0.1).events == []
    assert queue.left() == 6
    source.close()


def test_a_heartbeat_is_agreed_upon_so_that_a_dead_connection_is_noticed(queue: RabbitQueue) -> None:
    source = opened(queue, heartbeat=7)
    connection: Any = source._open._connection  # type: ignore[attr-defined]
    assert connection.get_heartbeat_interval() == 7
    source.close()
