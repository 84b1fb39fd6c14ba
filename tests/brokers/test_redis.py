"""What is Redis' own: no message is ever outside of the list and of the hash of those that were taken."""

from collections.abc import Iterator
from typing import Any

import kombu
import pytest
import redis as client

from lateshift.model.triggering.sources import MessageSource
from lateshift.triggers.brokers.redis_lists import LOOK_BACK_EVERY
from lateshift.triggers.messages import Messages
from lateshift.triggers.source import Incoming, SourceAway
from tests.brokers.queues import RedisQueue
from tests.unit.test_messages import RECEIPTS


@pytest.fixture
def queue(redis: str) -> Iterator[RedisQueue]:
    made = RedisQueue(redis)
    yield made
    made.close()


@pytest.fixture
def server(redis: str) -> Iterator[Any]:
    connection = client.Redis.from_url(redis)
    yield connection
    connection.close()


def opened(queue: RedisQueue, **options: Any) -> Messages:
    source = Messages(MessageSource(url=queue.url, queue=queue.name, options=options))
    source.open(None, RECEIPTS)
    return source


def read(source: Messages, wait: float = 0.01) -> list[Incoming]:
    return source.read(500, wait).events


def known(events: list[Incoming]) -> list[str]:
    return [each.event for each in events]


def test_messages_that_are_alike_byte_by_byte_are_two_and_each_keeps_its_name(queue: RedisQueue) -> None:
    queue.send(b"{}")
    queue.send(b"{}")
    source = opened(queue)
    first = known(read(source))
    assert len(set(first)) == 2
    source.close()
    source.open(None, RECEIPTS)
    again = read(source)
    assert known(again) == first
    source.done(again)
    source.close()
    assert queue.left() == 0


def test_what_is_taken_is_in_the_hash_until_it_is_acknowledged(queue: RedisQueue, server: Any) -> None:
    queue.send(b'{"n":1}')
    source = opened(queue)
    events = read(source)
    assert (server.llen(queue.name), server.hvals(f"{queue.name}.lateshift")) == (0, [b'{"n":1}'])
    source.done(events)
    assert queue.left() == 0
    source.close()


def test_what_one_took_who_came_too_late_is_found_by_the_other_without_a_restart(queue: RedisQueue) -> None:
    late, present = opened(queue), opened(queue)
    queue.send(b'{"n":1}')
    taken = known(read(late))  # whose term was over when it took it, and who dies before it knows
    found: list[str] = []
    for _ in range(LOOK_BACK_EVERY + 1):
        found = found or known(read(present))
    assert found == taken
    late.close()
    present.close()


def test_they_come_in_order_the_first_priority_first(queue: RedisQueue) -> None:
    with kombu.Connection(queue.url) as connection:
        for number, priority in enumerate([9, 0, 0, 3]):
            connection.Producer().publish(
                number, routing_key=queue.name, exchange="", priority=priority, message_id=f"m{number}"
            )
    source = opened(queue)
    events = read(source)
    assert known(events) == ["m1", "m2", "m3", "m0"]
    source.done(events)
    source.close()


def test_a_message_wakes_a_reader_that_waits(queue: RedisQueue) -> None:
    source = opened(queue)
    queue.send(b"{}")
    [event] = read(source, wait=5)
    source.done([event])
    source.close()


def test_the_hash_may_have_another_name(queue: RedisQueue, server: Any) -> None:
    queue.send(b"{}")
    source = opened(queue, unacked_key=f"{queue.name}.mine", global_keyprefix="")
    assert len(read(source)) == 1
    assert server.hlen(f"{queue.name}.mine") == 1
    source.close()
    server.delete(f"{queue.name}.mine")


def test_names_with_a_prefix_are_those_of_kombu(queue: RedisQueue, server: Any) -> None:
    options = {"global_keyprefix": "shop:"}
    with kombu.Connection(queue.url, transport_options=options) as connection:
        connection.Producer().publish(1, routing_key=queue.name, exchange="")
    source = opened(queue, **options)
    assert len(read(source)) == 1
    assert server.hlen(f"shop:{queue.name}.lateshift") == 1
    source.close()
    server.delete(f"shop:{queue.name}.lateshift")


@pytest.mark.parametrize("wrong", ["{}", "{}.lateshift"])
def test_a_key_that_is_something_else_is_told_of_and_nothing_is_popped(
    queue: RedisQueue, server: Any, wrong: str
) -> None:
    if wrong != "{}":
        queue.send(b"{}")
    server.set(wrong.format(queue.name), "text")
    source = Messages(MessageSource(url=queue.url, queue=queue.name))
    with pytest.raises(SourceAway, match=r"WRONGTYPE|wrong kind"):
        source.open(None, RECEIPTS)
        read(source)
    source.close()
    if wrong != "{}":
        assert server.llen(queue.name) == 1
