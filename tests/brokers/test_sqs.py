"""What is Amazon SQS' own."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from lateshift.model.triggering.sources import MessageSource
from lateshift.triggers.messages import Messages
from tests.brokers.queues import SqsQueue
from tests.unit.test_messages import RECEIPTS


@pytest.fixture
def queue(moto: str) -> Iterator[SqsQueue]:
    made = SqsQueue(moto)
    yield made
    made.close()


def opened(queue: SqsQueue, **options: Any) -> Messages:
    source = Messages(MessageSource(url=queue.url, queue=queue.name, options={**queue.options, **options}))
    source.open(None, RECEIPTS)
    return source


def test_more_than_ten_are_read_at_a_time_and_deleted_with_one_another(queue: SqsQueue) -> None:
    for number in range(25):
        queue.send(b"%d" % number)
    source = opened(queue)
    events = source.read(500, 0.5).events
    assert sorted(each.seen.content for each in events) == list(range(25))
    source.done(events)
    source.close()
    assert queue.left() == 0


def test_attributes_of_a_message_are_its_headers(moto: str, queue: SqsQueue) -> None:
    client = boto3.client(
        "sqs", endpoint_url=moto, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    )
    client.send_message(
        QueueUrl=client.get_queue_url(QueueName=queue.name)["QueueUrl"],
        MessageBody="{}",
        MessageAttributes={
            "colour": {"DataType": "String", "StringValue": "red"},
            "raw": {"DataType": "Binary", "BinaryValue": b"\xff"},
        },
    )
    client.close()
    source = opened(queue)
    [incoming] = source.read(500, 0.5).events
    assert incoming.seen.headers == {"colour": "red", "raw": "\\xff"}  # type: ignore[union-attr]
    source.close()


def test_one_that_was_given_back_keeps_its_id(queue: SqsQueue) -> None:
    queue.send(b"{}")
    source = opened(queue, visibility_timeout=600)
    [first] = source.read(500, 0.5).events
    source.close()
    source.open(None, RECEIPTS)
    [again] = source.read(500, 0.5).events
    assert (again.event, again.receipt != first.receipt) == (first.event, True)
    source.done([again])
    source.close()


def test_a_queue_may_be_named_by_its_address_so_that_none_need_be_listed(moto: str, queue: SqsQueue) -> None:
    queue.send(b"{}")
    address = {"url": f"{moto}/123456789012/{queue.name}"}
    source = opened(queue, predefined_queues={queue.name: address})
    [incoming] = source.read(500, 0.5).events
    source.done([incoming])
    source.close()
    assert queue.left() == 0
