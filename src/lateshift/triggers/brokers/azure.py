"""Azure Storage queues and Azure Service Bus.

kombu deletes a message of Azure Storage before it hands it on, so a reader that dies loses it. Here it is deleted when it is
stored. kombu still says what the URL means.
"""

import contextlib
from collections.abc import Sequence
from typing import Any

import kombu
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.queue import QueueServiceClient
from kombu.transport import azurestoragequeues
from msgspec import structs

from lateshift.triggers.brokers.broker import Delivery
from lateshift.triggers.brokers.envelopes import opened, own_id

PAGE = 32  # the most that Azure Storage gives in one request
VISIBILITY = 60  # seconds for which nobody else is given a message
TIMEOUT = 5  # seconds


class AzureStorage:
    """It cannot wait for messages: a quiet queue is asked once in `pause`."""

    def __init__(self, url: str, queue: str, options: dict[str, Any]) -> None:
        credential, address = azurestoragequeues.Transport.parse_uri(url)
        self.pause = float(options.get("polling_interval", 1.0))
        self._visibility = int(options.get("visibility_timeout", VISIBILITY))
        self._service = QueueServiceClient(
            account_url=address, credential=credential, retry_total=0, connection_timeout=TIMEOUT, read_timeout=2 * TIMEOUT
        )  # fmt: skip
        name = azurestoragequeues.Channel.entity_name(None, f"{options.get('queue_name_prefix', '')}{queue}")
        self._queue = self._service.get_queue_client(name)
        self._held: set[tuple[str, str]] = set()
        self._queue.get_queue_properties()  # raises if there is none: it is not made here

    def receive(self, most: int, wait: float) -> list[Delivery]:
        found = self._queue.receive_messages(
            messages_per_page=min(PAGE, most), max_messages=most, visibility_timeout=self._visibility
        )
        return [self._delivery(each) for each in found]

    def acknowledge(self, tags: Sequence[Any]) -> None:
        for id, receipt in tags:
            with contextlib.suppress(
                ResourceNotFoundError
            ):  # held for too long: it comes again, and makes nothing
                self._queue.delete_message(id, receipt)
            self._held.discard((id, receipt))

    def waiting(self) -> int:
        return int(self._queue.get_queue_properties().approximate_message_count)

    def close(self) -> None:
        try:
            for id, receipt in self._held:
                with contextlib.suppress(ResourceNotFoundError):
                    self._queue.update_message(id, receipt, visibility_timeout=0)
        finally:
            self._service.close()

    def _delivery(self, message: Any) -> Delivery:
        tag = (message.id, message.pop_receipt)
        self._held.add(tag)
        return opened((message.content or "").encode(), tag=tag, id=message.id)


class ServiceBus:
    """Messages are locked while they are held, and completed when they are stored."""

    pause = 0.0

    def __init__(self, connection: kombu.Connection, queue: str) -> None:
        self._connection = connection
        self._channel = connection.channel()
        self._name = self._channel.entity_name(self._channel.queue_name_prefix + queue)
        self._held: list[Any] = []

    def receive(self, most: int, wait: float) -> list[Delivery]:
        found = self._receiver.receive_messages(max_message_count=most, max_wait_time=wait)
        self._held += found
        return [_of_bus(each) for each in found]

    def acknowledge(self, tags: Sequence[Any]) -> None:
        from azure.servicebus.exceptions import MessageAlreadySettled, MessageLockLostError

        for message in tags:
            with contextlib.suppress(
                MessageAlreadySettled, MessageLockLostError
            ):  # it comes again, and makes nothing
                self._receiver.complete_message(message)
            self._held = [each for each in self._held if each is not message]

    def waiting(self) -> int:
        told = self._channel.queue_mgmt_service.get_queue_runtime_properties(self._name)
        return int(told.active_message_count)

    def close(self) -> None:
        try:
            for message in self._held:
                self._receiver.abandon_message(message)
        finally:
            self._connection.release()

    @property
    def _receiver(self) -> Any:
        return self._channel._get_asb_receiver(self._name).receiver


def _of_bus(message: Any) -> Delivery:
    body = message.body if isinstance(message.body, bytes) else b"".join(message.body)
    headers = {_text(name): each for name, each in (message.application_properties or {}).items()}
    id = own_id({"message_id": message.message_id}, headers) or f"#{message.sequence_number}"
    delivery = opened(body, tag=message, id=id, headers=headers)
    return structs.replace(delivery, content_type=delivery.content_type or message.content_type)


def _text(name: Any) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)
