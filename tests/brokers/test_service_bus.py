"""Azure Service Bus: there is no emulator of it that runs here, so these put a receiver of our own behind kombu's transport.
What they show is what is asked of Azure, and when; not how Azure answers."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from azure.servicebus.exceptions import MessageLockLostError
from kombu.transport import azureservicebus
from kombu.utils.json import dumps

from lateshift.model.triggering.sources import MessageSource
from lateshift.triggers.messages import Messages
from lateshift.triggers.source import SourceAway
from tests.unit.test_messages import RECEIPTS

URL = "azureservicebus://policy:a/secret=@space"


class Receiver:
    """Messages that are locked when they are received, until they are completed or abandoned."""

    def __init__(self) -> None:
        self.waiting: list[Any] = []
        self.locked: list[Any] = []
        self.lost: set[int] = set()
        self.away: Exception | None = None

    def receive_messages(self, max_message_count: int, max_wait_time: float) -> list[Any]:
        assert max_wait_time > 0
        if self.away:
            raise self.away
        taken, self.waiting = self.waiting[:max_message_count], self.waiting[max_message_count:]
        self.locked += taken
        return taken

    def complete_message(self, message: Any) -> None:
        if message.sequence_number in self.lost:
            raise MessageLockLostError(message="too late")
        self.locked.remove(message)

    def abandon_message(self, message: Any) -> None:
        self.locked.remove(message)
        self.waiting.append(message)

    def close(self) -> None: ...


def message(
    number: int, body: Any, id: str | None = None, properties: dict[str, Any] | None = None
) -> SimpleNamespace:
    return SimpleNamespace(
        sequence_number=number, message_id=id, body=body, application_properties=properties, content_type="application/json"
    )  # fmt: skip


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Receiver:
    made = Receiver()
    monkeypatch.setattr(
        azureservicebus.Channel, "_get_asb_receiver", lambda self, name: SimpleNamespace(receiver=made)
    )
    counted = SimpleNamespace(
        get_queue_runtime_properties=lambda name: SimpleNamespace(active_message_count=len(made.waiting))
    )
    monkeypatch.setattr(azureservicebus.Channel, "queue_mgmt_service", counted)
    return made


@pytest.fixture
def source(receiver: Receiver) -> Iterator[Messages]:
    made = Messages(MessageSource(url=URL, queue="orders", prefetch=3))
    made.open(None, RECEIPTS)
    yield made
    made.close()


def test_messages_are_completed_when_they_are_done_and_not_before(
    source: Messages, receiver: Receiver
) -> None:
    receiver.waiting = [message(1, b'{"n":1}', "m"), message(2, iter([b'{"n"', b":2}"]))]
    events = source.read(500, 0.5).events
    assert [(each.event, each.seen.content) for each in events] == [("m", {"n": 1}), ("#2", {"n": 2})]
    assert len(receiver.locked) == 2
    source.done(events)
    assert (receiver.locked, receiver.waiting) == ([], [])


def test_what_is_not_done_is_abandoned_when_it_closes(source: Messages, receiver: Receiver) -> None:
    receiver.waiting = [message(1, b"{}"), message(2, b"{}")]
    events = source.read(500, 0.5).events
    source.done(events[:1])
    source.close()
    assert [each.sequence_number for each in receiver.waiting] == [2]


def test_a_lock_that_was_lost_is_no_error_for_it_comes_again(source: Messages, receiver: Receiver) -> None:
    receiver.waiting = [message(1, b"{}"), message(2, b"{}")]
    receiver.lost = {1}
    source.done(source.read(500, 0.5).events)
    assert [each.sequence_number for each in receiver.locked] == [1]


def test_envelopes_of_kombu_and_headers_of_others_are_read(source: Messages, receiver: Receiver) -> None:
    told: dict[str, Any] = {
        "delivery_tag": "t",
        "delivery_info": {},
        "message_id": "k",
        "body_encoding": None,
    }
    wrapped = dumps(
        {"body": '{"n":1}', "properties": told, "headers": {"a": 1}, "content-type": "x/y"}
    ).encode()
    receiver.waiting = [message(1, wrapped), message(2, b"{}", properties={"id": "h", "task": "t"})]
    first, second = source.read(500, 0.5).events
    assert (first.event, first.seen.content) == ("k", {"n": 1})
    assert first.seen.content_type == "x/y"  # type: ignore[union-attr]
    assert second.event == "h"


def test_what_waits_is_counted_and_no_more_are_locked_than_prefetch_says(
    source: Messages, receiver: Receiver
) -> None:
    receiver.waiting = [message(number, b"{}") for number in range(10)]
    looked = source.read(500, 0.5)
    assert (len(looked.events), looked.lag) == (3, 7)


def test_an_error_means_that_it_is_away_and_tells_no_secret(source: Messages, receiver: Receiver) -> None:
    receiver.away = OSError("a/secret= is not welcome")
    with pytest.raises(SourceAway, match="azureservicebus://space queue orders: OSError: … is not welcome"):
        source.read(500, 0.5)
