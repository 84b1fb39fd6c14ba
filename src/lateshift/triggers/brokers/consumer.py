"""Brokers that push: RabbitMQ and whatever else speaks AMQP, and every transport of kombu without a file of its own here."""

from collections.abc import Sequence
from typing import Any

import kombu
from kombu.message import Message as KombuMessage
from kombu.utils.json import dumps

from lateshift.triggers.brokers.broker import Delivery
from lateshift.triggers.brokers.envelopes import delivered, opened, own_id

AT_HAND = 0.005  # seconds that a message may take which is on its way already
ANSWER_WITHIN = 10.0  # what is asked; a connection may be dead and not say so
GOODBYE_WITHIN = 2.0


class Consumer:
    """A consumer with a prefetch. What it does not acknowledge, AMQP gives to the next when the channel closes."""

    pause = 0.0

    def __init__(self, connection: kombu.Connection, queue: str, prefetch: int) -> None:
        self._connection = connection
        self._queue = queue
        self._received: list[Delivery] = []
        self._held: dict[Any, None] = {}  # in their order
        self._amqp = connection.transport.driver_type == "amqp"
        connection.connect()
        self._wait_at_most(ANSWER_WITHIN)
        self._channel = connection.channel()
        if not self._amqp:
            self._channel.Message = _Whole
        self._channel.queue_declare(queue, passive=self._amqp)  # on RabbitMQ it is its publisher's to make
        self._channel.basic_qos(0, prefetch, False)
        callback = self._arrived if self._amqp else self._arrived_whole
        self._channel.basic_consume(queue, no_ack=False, callback=callback, consumer_tag="lateshift")

    def receive(self, most: int, wait: float) -> list[Delivery]:
        if self._amqp:
            self._connection.heartbeat_check()
        while len(self._received) < most:
            try:
                self._connection.drain_events(timeout=AT_HAND if self._received else wait)
            except TimeoutError:
                break
        found, self._received = self._received[:most], self._received[most:]
        return found

    def acknowledge(self, tags: Sequence[Any]) -> None:
        for tag in tags:
            self._channel.basic_ack(tag)
            self._held.pop(tag, None)

    def waiting(self) -> int:
        return int(self._channel.queue_declare(self._queue, passive=True).message_count)

    def close(self) -> None:
        self._wait_at_most(GOODBYE_WITHIN)
        try:
            if not self._amqp:
                for tag in list(self._held):
                    self._channel.basic_reject(tag, requeue=True)
        finally:
            self._connection.release()

    def _wait_at_most(self, seconds: float) -> None:
        """For an answer: without this, forever. How long a message may take is said each time."""
        if self._amqp and self._connection.connected:
            self._connection.connection.transport.sock.settimeout(seconds)

    def _arrived(self, message: Any) -> None:
        """A message of AMQP, with its properties."""
        properties = message.properties
        headers = properties.get("application_headers") or {}
        body = message.body.encode() if isinstance(message.body, str) else bytes(message.body)
        kind, encoding = properties.get("content_type"), properties.get("content_encoding")
        known = own_id(properties, headers)
        self._keep(delivered(body, headers, kind, encoding, tag=message.delivery_tag, id=known))

    def _arrived_whole(self, message: "_Whole") -> None:
        self._keep(opened(message.encoded, tag=message.delivery_tag))

    def _keep(self, delivery: Delivery) -> None:
        self._held[delivery.tag] = None
        self._received.append(delivery)


class _Whole(KombuMessage):  # type: ignore[misc]
    """A message that kombu does not look into, so that one that cannot be read is not lost on the way."""

    def __init__(self, payload: dict[str, Any], channel: Any = None, **rest: Any) -> None:
        properties = payload["properties"]
        self._raw = payload
        self.encoded = dumps(payload).encode()
        super().__init__(
            body=None, channel=channel, delivery_tag=properties["delivery_tag"], properties=properties,
            delivery_info=properties.get("delivery_info"), **rest,
        )  # fmt: skip

    def serializable(self) -> dict[str, Any]:
        return self._raw
