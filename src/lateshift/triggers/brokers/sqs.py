"""Amazon SQS. kombu knows the account and the queue's address; what is received is deleted when it is stored, not before."""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Any

import kombu

from lateshift.triggers.brokers.broker import Delivery
from lateshift.triggers.brokers.envelopes import opened

AT_ONCE = 10  # the most that SQS gives, or takes back, in one request


class Sqs:
    """A tag is a receipt handle: it is another one each time, the message's id is not."""

    pause = 0.0

    def __init__(self, connection: kombu.Connection, queue: str, visibility: int | None) -> None:
        self._connection = connection
        self._channel = connection.channel()
        self._name = self._channel.canonical_queue_name(queue)
        # Raises if there is none: it is not made here.
        self._address = self._channel._resolve_queue_url(queue)
        self._visibility = {} if visibility is None else {"VisibilityTimeout": visibility}
        self._held: set[str] = set()

    def receive(self, most: int, wait: float) -> list[Delivery]:
        found: list[Delivery] = []
        while len(found) < most:
            answer = self._client.receive_message(
                QueueUrl=self._address,
                MaxNumberOfMessages=min(AT_ONCE, most - len(found)),
                WaitTimeSeconds=0 if found else ceil(wait),
                MessageAttributeNames=["All"],
                **self._visibility,
            )
            some = answer.get("Messages") or []
            if not some:
                break
            found += [self._delivery(each) for each in some]
        return found

    def acknowledge(self, tags: Sequence[Any]) -> None:
        """What cannot be deleted comes again, and makes nothing."""
        for some in _tens(tags):
            self._client.delete_message_batch(
                QueueUrl=self._address,
                Entries=[{"Id": str(place), "ReceiptHandle": handle} for place, handle in enumerate(some)],
            )
            self._held.difference_update(some)

    def waiting(self) -> int:
        asked = ["ApproximateNumberOfMessages"]
        told = self._client.get_queue_attributes(QueueUrl=self._address, AttributeNames=asked)
        return int(told["Attributes"][asked[0]])

    def close(self) -> None:
        try:
            for some in _tens(list(self._held)):
                self._client.change_message_visibility_batch(
                    QueueUrl=self._address,
                    Entries=[
                        {"Id": str(place), "ReceiptHandle": handle, "VisibilityTimeout": 0}
                        for place, handle in enumerate(some)
                    ],
                )
        finally:
            self._connection.release()

    @property
    def _client(self) -> Any:
        return self._channel.sqs(queue=self._name)  # asked each time: its credentials may have to be renewed

    def _delivery(self, message: dict[str, Any]) -> Delivery:
        handle = message["ReceiptHandle"]
        self._held.add(handle)
        headers = {
            name: value.get("StringValue", value.get("BinaryValue"))
            for name, value in (message.get("MessageAttributes") or {}).items()
        }
        return opened(message["Body"].encode(), tag=handle, id=message["MessageId"], headers=headers)


def _tens(tags: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(tags), AT_ONCE):
        yield tags[start : start + AT_ONCE]
