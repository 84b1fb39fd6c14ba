"""Real brokers that are told what becomes of jobs: each event in order, at least once, also when the broker was away."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import kombu
import pytest

from lateshift import Lateshift, Retry, current
from lateshift.replies import delivering
from lateshift.testing import Kit, testing
from tests.brokers.conftest import lend_queue
from tests.brokers.gate import Gate
from tests.brokers.queues import Queue, RabbitQueue, at

Told = list[kombu.Message]


@pytest.fixture(params=["rabbitmq", "redis"])
def queue(request: pytest.FixtureRequest) -> Iterator[Queue]:
    with lend_queue(request.param, request) as lent:
        yield lent


@pytest.fixture
def kit(store_url: str) -> Iterator[Kit]:
    app = Lateshift("shop", store=store_url)

    @app.task(retry=Retry(attempts=2, base=timedelta(0)))
    def charge(amount: int) -> str:
        if amount == 0 and current().attempt == 1:
            raise ValueError("not yet")
        return f"charged {amount}"

    with testing(app, store=store_url) as kit:
        yield kit


def charge(kit: Kit, amount: int, **options: Any) -> Any:
    return kit.app.find_task("charge").options(reply_to="broker:out", **options).enqueue(amount)


def told(queue: Queue) -> Told:
    """All that is in it, as another program reads it."""
    with kombu.Connection(queue.url) as connection, connection.channel() as channel:
        found: Told = []
        while (message := channel.basic_get(queue.name, no_ack=True)) is not None:
            found.append(channel.message_to_python(message))
        return found


def kinds(messages: Told) -> list[str]:
    return [message.payload["kind"] for message in messages]


def test_a_broker_gets_each_event_in_order_with_its_ids(kit: Kit, queue: Queue) -> None:
    kit.app.reply_broker("out", queue.url, queue=queue.name)
    jobs = [charge(kit, 0, correlation_id=f"order {number}") for number in range(3)]
    kit.drain()
    kit.travel(seconds=1)

    messages = told(queue)
    for number, job in enumerate(jobs):
        mine = [message for message in messages if message.payload["job_id"] == str(job.id)]
        assert kinds(mine) == ["received", "started", "retrying", "started", "completed"]
        assert {message.properties["correlation_id"] for message in mine} == {f"order {number}"}
        assert [message.properties["message_id"] for message in mine] == [each.payload["id"] for each in mine]
        assert mine[-1].properties["type"] == "job.completed"
        assert mine[-1].payload["result"] == "charged 0"
        assert {message.properties["delivery_mode"] for message in mine} == {2}
    assert len({message.payload["id"] for message in messages}) == len(messages) == 15


def _shut(gate: Gate) -> None:
    gate.shut()


def _held(gate: Gate) -> None:
    gate.hold()


@pytest.mark.parametrize("go_away", [_shut, _held])
def test_a_broker_that_was_away_gets_all_of_it_in_order_when_it_is_back(
    kit: Kit, queue: Queue, go_away: Callable[[Gate], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivering, "BROKER_ANSWERS", timedelta(seconds=0.5))
    with Gate(queue.port) as gate:
        kit.app.reply_broker("out", at(queue, gate.port), queue=queue.name)
        charge(kit, 1, reply_on=["received"])
        kit.drain()
        go_away(gate)
        charge(kit, 2, correlation_id="2")
        kit.drain()
        assert kinds(told(queue)) == ["received"]

        monkeypatch.undo()
        gate.open()
        kit.travel(seconds=6)
    messages = told(queue)
    assert kinds(messages) == ["received", "started", "completed"]
    assert {message.properties["correlation_id"] for message in messages} == {"2"}


def test_what_a_broker_took_though_nobody_heard_so_comes_again_before_the_next(
    kit: Kit, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost: list[str] = []

    def and_lose_the_answer(url: str, queue: str, event: dict[str, Any]) -> None:
        delivering.publish(url, queue, event)
        if event["kind"] not in lost:
            lost.append(event["kind"])
            raise ConnectionResetError

    monkeypatch.setattr("lateshift.app.replying.publish", and_lose_the_answer)
    kit.app.reply_broker("out", queue.url, queue=queue.name)
    charge(kit, 1)
    kit.drain()
    kit.travel(seconds=30)

    messages = told(queue)
    assert kinds(messages) == ["received"] * 2 + ["started"] * 2 + ["completed"] * 2
    assert len({message.properties["message_id"] for message in messages}) == 3


def test_a_queue_that_is_not_there_is_made(kit: Kit, queue: Queue) -> None:
    with kombu.Connection(queue.url) as connection, connection.channel() as channel:
        channel.queue_delete(queue.name)
    kit.app.reply_broker("out", queue.url, queue=queue.name)
    charge(kit, 1, reply_on="completed")
    kit.drain()

    assert kinds(told(queue)) == ["completed"]


def test_a_queue_of_rabbitmq_is_used_as_its_owner_made_it_and_tried_again_while_it_is_full(
    kit: Kit, rabbitmq: str
) -> None:
    queue = RabbitQueue(rabbitmq)
    queue._channel.queue_delete(queue.name)
    bounded = {"x-max-length": 1, "x-overflow": "reject-publish"}
    queue._channel.queue_declare(queue.name, durable=True, auto_delete=False, arguments=bounded)
    kit.app.reply_broker("out", queue.url, queue=queue.name)
    charge(kit, 1, reply_on=["received", "completed"])
    kit.drain()
    assert kinds(told(queue)) == ["received"]
    kit.travel(seconds=6)
    assert kinds(told(queue)) == ["completed"]
    queue.close()
