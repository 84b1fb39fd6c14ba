"""Messages of real brokers: each is one job, on both stores, whatever goes wrong in between."""

import asyncio
import base64
import time
from collections.abc import Callable, Iterator
from typing import Any

import kombu
import msgspec
import pytest

from lateshift.errors import StoreUnavailable
from lateshift.model.job import JobFilter
from lateshift.model.triggering.events import Message
from lateshift.model.triggering.trigger import RefusedView, TriggerView
from lateshift.triggers.messages import Messages
from lateshift.triggers.reader import STAND_BY, Reader
from lateshift.triggers.source import Incoming, SourceAway
from tests.brokers.gate import Gate
from tests.brokers.queues import Queue, at
from tests.brokers.reading import make_app, reader

PATIENCE = 30.0  # seconds


class Inbox:
    """An app that reads the queue, by hand."""

    def __init__(self, store: str, queue: Queue, **more: Any) -> None:
        url = more.pop("url", queue.url)
        name = more.pop("queue_name", queue.name)
        self.app = make_app(store, url, name, queue.options, **more)
        self.queue = queue
        self.readers: list[Reader] = []

    def reader(self) -> Reader:
        self.readers.append(reader(self.app))
        return self.readers[-1]

    def orders(self) -> list[Any]:
        jobs = self.app.store.reports.jobs(JobFilter(), 1000)
        return sorted((msgspec.json.decode(job.payload)["order"] for job in jobs), key=repr)

    def refused(self) -> list[RefusedView]:
        return self.app.store.triggers.refused("inbox", None, 100)

    @property
    def view(self) -> TriggerView:
        view = self.app.store.triggers.get("inbox")
        assert view is not None
        return view

    def close(self) -> None:
        for each in self.readers:
            each.resign()
        self.app.close()


@pytest.fixture
def make(store_url: str, queue: Queue) -> Iterator[Callable[..., Inbox]]:
    made: list[Inbox] = []

    def make_one(**more: Any) -> Inbox:
        made.append(Inbox(store_url, queue, **more))
        return made[-1]

    yield make_one
    for each in made:
        each.close()


def turn_until(mine: Reader, condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"not within {PATIENCE:g} s: {what}"
        mine.round()


def test_each_message_is_one_job_and_leaves_the_broker(make: Callable[..., Inbox], queue: Queue) -> None:
    inbox = make()
    for number in range(25):
        queue.send(b'{"n":%d}' % number, id=f"order-{number}")
    mine = inbox.reader()
    turn_until(mine, lambda: len(inbox.orders()) >= 25, "25 jobs")
    assert inbox.orders() == sorted(({"n": number} for number in range(25)), key=repr)
    mine.resign()
    assert queue.left() == 0
    assert (inbox.view.made, inbox.view.repeated, inbox.view.refused) == (25, 0, 0)


def test_a_message_is_not_acknowledged_before_its_job_is_stored(
    make: Callable[..., Inbox], queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = make()
    queue.send(b'{"n":1}', id="one")
    mine = inbox.reader()
    took: list[int] = []

    def no_store(name: str, arrivals: list[Any], **_: Any) -> None:
        took.append(len(arrivals))
        raise StoreUnavailable("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(inbox.app.store.triggers, "take", no_store)
        for _ in range(5):
            if not took:
                assert asyncio.run(mine.turn()) is not None
    assert took == [1]
    assert inbox.orders() == []
    turn_until(mine, lambda: inbox.orders() == [{"n": 1}], "it comes again, and is stored")
    assert (inbox.view.made, inbox.view.repeated) == (1, 0)


def test_what_was_stored_and_not_acknowledged_comes_again_and_makes_nothing(
    make: Callable[..., Inbox], queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = make()
    queue.send(b'{"n":1}', id="one")
    mine = inbox.reader()

    def broken(self: Messages, events: list[Incoming]) -> None:
        raise SourceAway("the cable is out")

    with monkeypatch.context() as patched:
        patched.setattr(Messages, "done", broken)
        turn_until(mine, lambda: inbox.view.made == 1, "it is stored")
    turn_until(mine, lambda: inbox.view.repeated >= 1, "it has come again")
    mine.resign()
    assert inbox.orders() == [{"n": 1}]
    assert queue.left() == 0


def test_what_cannot_be_read_is_refused_as_it_came_and_the_next_one_flows(
    make: Callable[..., Inbox], queue: Queue
) -> None:
    inbox = make()
    broken = msgspec.json.encode(
        {
            "body": "no base64!", "content-type": "application/json", "content-encoding": "utf-8", "headers": {},
            "properties": {"delivery_tag": "t", "delivery_info": {}, "body_encoding": "base64"},
        }
    )  # fmt: skip
    for number, body in enumerate([b"no JSON {", broken, b"[1]", b'{"n":1}']):
        queue.send(body, id=f"message-{number}")
    mine = inbox.reader()

    def counts() -> tuple[int, int]:
        return inbox.view.made, inbox.view.refused

    if queue.url.startswith("amqp"):  # it has no envelopes: this is JSON as any other
        turn_until(mine, lambda: counts() == (2, 2), "two are jobs, two are refused")
        wanted = {b"no JSON {", b"[1]"}
    else:
        turn_until(mine, lambda: counts() == (1, 3), "one is a job, three are refused")
        wanted = {b"no JSON {", b"[1]", broken}
        assert {"n": 1} in inbox.orders()
    mine.resign()
    assert {view.raw for view in inbox.refused()} == wanted
    assert queue.left() == 0


def test_messages_of_kombu_and_of_others_are_read_alike(make: Callable[..., Inbox], queue: Queue) -> None:
    inbox = make()
    with kombu.Connection(queue.url, transport_options=queue.options) as connection:
        producer = connection.Producer()
        for number in range(3):
            producer.publish({"kombu": number}, routing_key=queue.name, exchange="", message_id=f"k{number}")
        producer.publish(
            {"packed": 1}, routing_key=queue.name, exchange="", message_id="z", compression="zlib"
        )
    queue.send(b'{"plain":1}', id="p")
    wanted: list[Any] = [{"kombu": 0}, {"kombu": 1}, {"kombu": 2}, {"packed": 1}, {"plain": 1}]
    if not queue.url.startswith("amqp"):
        queue.send(base64.b64encode(b'{"base64":1}'))
        wanted.append({"base64": 1})
    mine = inbox.reader()
    turn_until(mine, lambda: inbox.view.made >= len(wanted), "all are jobs")
    assert inbox.orders() == sorted(wanted, key=repr)
    assert inbox.refused() == []


def test_a_message_is_known_by_its_key_and_one_without_is_refused(
    make: Callable[..., Inbox], queue: Queue
) -> None:
    inbox = make(key="order")
    for number, body in enumerate(
        [b'{"order":"a","n":1}', b'{"order":"a","n":2}', b'{"n":3}', b'{"order":4}']
    ):
        queue.send(body, id=f"message-{number}")
    mine = inbox.reader()
    turn_until(mine, lambda: inbox.view.refused == 1 and len(inbox.orders()) == 2, "two jobs, one refused")
    mine.resign()
    [left] = inbox.refused()
    assert left.raw == b'{"n":3}'
    assert "KeyError: 'order'" in left.reason
    assert {order["order"] for order in inbox.orders()} == {"a", 4}
    assert queue.left() == 0


def test_a_key_that_raises_refuses_one_message_and_holds_up_none(
    make: Callable[..., Inbox], queue: Queue
) -> None:
    def key(message: Message) -> str:
        return str(message.content["a"] // message.content["b"])

    inbox = make(key=key)
    queue.send(b'{"a":1,"b":0}', id="1")
    queue.send(b'{"a":1,"b":1}', id="2")
    mine = inbox.reader()
    turn_until(mine, lambda: (inbox.view.made, inbox.view.refused) == (1, 1), "one job, one refused")
    assert "ZeroDivisionError" in inbox.refused()[0].reason


def test_two_readers_do_not_read_at_once_and_one_takes_over(make: Callable[..., Inbox], queue: Queue) -> None:
    inbox = make()
    first, second = inbox.reader(), inbox.reader()
    queue.send(b'{"n":1}', id="1")
    turn_until(first, lambda: len(inbox.orders()) == 1, "the first one reads")
    queue.send(b'{"n":2}', id="2")
    assert second.round() == STAND_BY
    assert len(inbox.orders()) == 1
    first.resign()
    turn_until(second, lambda: len(inbox.orders()) == 2, "the second one reads")
    assert inbox.view.repeated == 0


def test_a_broker_that_goes_away_is_told_of_and_read_again_when_it_is_back(
    make: Callable[..., Inbox], queue: Queue
) -> None:
    with Gate(queue.port) as gate:
        inbox = make(url=at(queue, gate.port))
        mine = inbox.reader()
        queue.send(b'{"n":1}', id="1")
        turn_until(mine, lambda: len(inbox.orders()) == 1, "it reads")
        gate.shut()
        queue.send(b'{"n":2}', id="2")
        turn_until(mine, lambda: inbox.view.error is not None, "it says that the broker is away")
        assert inbox.view.error is not None
        assert f"queue {queue.name}: " in inbox.view.error
        for secret in ("guest:", "anything", "Eby8vd"):
            assert secret not in inbox.view.error
        gate.open()
        turn_until(mine, lambda: len(inbox.orders()) == 2, "it reads again")
        turn_until(mine, lambda: inbox.view.error is None, "it says that all is well")
    assert inbox.view.refused == 0


def test_a_connection_that_is_dead_and_does_not_say_so_is_noticed(
    migrated_sqlite_url: str, queue: Queue
) -> None:
    impatient: dict[str, Any] = {
        "amqp": {"heartbeat": 1},
        "redis": {"socket_timeout": 1, "retry_on_timeout": False},
        "sqs": {"client-config": {"connect_timeout": 2, "read_timeout": 2, "retries": {"max_attempts": 0}}},
        "azurestoragequeues": {},
    }
    queue.options.update(impatient[queue.url.partition("://")[0]])
    with Gate(queue.port) as gate:
        inbox = Inbox(migrated_sqlite_url, queue, url=at(queue, gate.port))
        try:
            mine = inbox.reader()
            queue.send(b'{"n":1}', id="1")
            turn_until(mine, lambda: len(inbox.orders()) == 1, "it reads")
            gate.hold()
            turn_until(mine, lambda: inbox.view.error is not None, "it says that the broker is away")
            queue.send(b'{"n":2}', id="2")
            gate.shut()
            gate.open()
            turn_until(mine, lambda: len(inbox.orders()) == 2, "it reads again")
        finally:
            inbox.close()


def test_it_is_told_how_many_wait(make: Callable[..., Inbox], queue: Queue) -> None:
    inbox = make(prefetch=5)
    for number in range(20):
        queue.send(b'{"n":%d}' % number, id=f"{number}")
    mine = inbox.reader()
    turn_until(mine, lambda: inbox.view.made > 0, "some are jobs")
    assert inbox.view.lag is not None
    assert 5 <= inbox.view.lag <= 20
    turn_until(mine, lambda: inbox.view.made == 20 and inbox.view.lag == 0, "none waits")


def test_a_queue_that_is_not_there_is_told_of(make: Callable[..., Inbox], queue: Queue) -> None:
    inbox = make(queue_name="nobody-made-this")
    inbox.reader().round()
    if queue.url.startswith("redis"):  # a list that is not there is an empty one
        assert inbox.view.error is None
    else:
        assert "queue nobody-made-this: " in (inbox.view.error or "")


def test_secrets_are_not_where_a_trigger_is_shown(make: Callable[..., Inbox]) -> None:
    about = make().view.about
    for secret in ("guest", "anything", "Eby8vd"):
        assert secret not in about
