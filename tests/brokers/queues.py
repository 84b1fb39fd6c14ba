"""A queue on each broker, written to as by a program that knows neither Lateshift nor kombu."""

import contextlib
from collections.abc import Iterator
from typing import Any, Protocol
from uuid import uuid4

import amqp
import boto3
import kombu
import redis
from azure.storage.queue import QueueServiceClient

from tests.brokers.servers import HOST, Azurite


class Queue(Protocol):
    url: str
    name: str
    options: dict[str, Any]
    port: int  # of its server

    def send(self, body: bytes, id: str | None = None) -> None:
        """`id`: where the broker lets a publisher give one."""

    def left(self) -> int:
        """How many the broker has, those that a reader holds included if it counts them."""

    def close(self) -> None: ...


class RabbitQueue:
    options: dict[str, Any]

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = _name()
        self.options = {}
        self._connection = kombu.Connection(url)
        self._channel = self._connection.channel()
        self.port = int(self._connection.port or 5672)
        self._channel.queue_declare(self.name, durable=True, auto_delete=False)

    def send(self, body: bytes, id: str | None = None) -> None:
        properties = {} if id is None else {"message_id": id}
        self._channel.basic_publish(amqp.Message(body, **properties), routing_key=self.name)

    def left(self) -> int:
        return int(self._channel.queue_declare(self.name, passive=True).message_count)

    def close(self) -> None:
        self._channel.queue_delete(self.name)
        self._connection.release()


class RedisQueue:
    def __init__(self, url: str) -> None:
        self.url = url
        self.name = _name()
        self.options: dict[str, Any] = {}
        self._redis = redis.Redis.from_url(url)
        self.port = int(self._redis.connection_pool.connection_kwargs["port"])

    def send(self, body: bytes, id: str | None = None) -> None:
        self._redis.lpush(self.name, body)

    def left(self) -> int:
        return int(self._redis.llen(self.name)) + int(self._redis.hlen(f"{self.name}.lateshift"))

    def close(self) -> None:
        self._redis.delete(self.name, f"{self.name}.lateshift")
        self._redis.close()


class SqsQueue:
    def __init__(self, server: str) -> None:
        address = server.removeprefix("http://")
        self.port = int(address.rpartition(":")[2])
        self.url = f"sqs://anybody:anything@{address}//"
        self.name = _name()
        self.options: dict[str, Any] = {"is_secure": False, "region": "us-east-1", "visibility_timeout": 2}
        self._sqs = boto3.client(
            "sqs", endpoint_url=server, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
        )  # fmt: skip
        self._address = self._sqs.create_queue(QueueName=self.name)["QueueUrl"]

    def send(self, body: bytes, id: str | None = None) -> None:
        self._sqs.send_message(QueueUrl=self._address, MessageBody=body.decode())

    def left(self) -> int:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        told = self._sqs.get_queue_attributes(QueueUrl=self._address, AttributeNames=names)["Attributes"]
        return sum(int(told[name]) for name in names)

    def close(self) -> None:
        self._sqs.delete_queue(QueueUrl=self._address)
        self._sqs.close()


class AzureQueue:
    def __init__(self, server: Azurite) -> None:
        self.url = f"azurestoragequeues://{server.key}@{server.queue}"
        self.name = _name()
        self.port = int(server.queue.split(":")[2].partition("/")[0])
        self.options: dict[str, Any] = {"visibility_timeout": 2}
        self._service = QueueServiceClient.from_connection_string(server.connection_string)
        self._queue = self._service.create_queue(self.name)

    def send(self, body: bytes, id: str | None = None) -> None:
        self._queue.send_message(body.decode())

    def left(self) -> int:
        return int(self._queue.get_queue_properties().approximate_message_count)

    def close(self) -> None:
        self._queue.delete_queue()
        self._service.close()


@contextlib.contextmanager
def lent(queue: Queue) -> Iterator[Queue]:
    try:
        yield queue
    finally:
        queue.close()


def at(queue: Queue, port: int) -> str:
    """Its URL, by way of another port of this machine."""
    assert f"{HOST}:{queue.port}" in queue.url
    return queue.url.replace(f"{HOST}:{queue.port}", f"{HOST}:{port}")


def _name() -> str:
    return f"lateshift-test-{uuid4().hex[:12]}"
