"""A message that is refused is kept as the broker gave it, up to a limit, and is read again when somebody retries it."""

import base64
import zlib
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import kombu
import msgspec
import pytest

from lateshift import Lateshift
from lateshift.errors import EventInvalid, LateshiftError
from lateshift.model.ids import new_member_id
from lateshift.model.job import JobFilter
from lateshift.model.triggering.events import Message
from lateshift.model.triggering.sources import MessageSource
from lateshift.model.triggering.trigger import ERROR_LIMIT, REFUSED_LIMIT, RefusedView
from lateshift.triggers.brokers.broker import Delivery
from lateshift.triggers.brokers.envelopes import delivered, opened
from lateshift.triggers.messages import Messages
from lateshift.triggers.reader import Reader
from lateshift.triggers.refusing import refused, seen_again
from lateshift.triggers.source import Incoming
from tests.unit.test_messages import put

Refuse = Callable[..., RefusedView]


@pytest.fixture
def queue() -> str:
    return uuid4().hex


@pytest.fixture
def refuse(app: Lateshift, queue: str) -> Iterator[Refuse]:
    """Publishes a message; gives what was kept of it."""

    @app.on_message("memory://", queue)
    @app.task
    def take(order: dict[str, int]) -> None: ...

    app.readers()[0].say()  # type: ignore[attr-defined]
    reader = Reader(app.store, app.triggers["take"], new_member_id(), app.clock)

    def publish(body: Any, **properties: Any) -> RefusedView:
        with kombu.Connection("memory://") as connection:
            put(connection.Producer(), queue, body, **properties)
        while not app.store.triggers.refused("take", None, 1):
            reader.round()
        [kept] = app.store.triggers.refused("take", None, 10)
        return kept

    yield publish
    reader.resign()


def mended(app: Lateshift, queue: str) -> Lateshift:
    """The same app, whose code takes anything by now."""
    changed = Lateshift("shop", store="memory://unused")
    changed._store, changed.clock = app.store, app.clock

    @changed.on_message("memory://", queue)
    @changed.task
    def take(order: Any) -> None: ...

    return changed


def test_a_message_that_was_packed_is_kept_as_it_came_and_retried_as_it_was_meant(
    app: Lateshift, queue: str, refuse: Refuse
) -> None:
    kept = refuse(["no", "order"], compression="zlib", headers={"a": 1}, message_id="m")
    envelope = msgspec.json.decode(kept.raw)
    assert zlib.decompress(base64.b64decode(envelope["body"])) == b'["no", "order"]'
    with pytest.raises(LateshiftError, match="order"):
        app.retry_refused(kept.id)
    assert mended(app, queue).retry_refused(kept.id) is not None
    [job] = app.store.reports.jobs(JobFilter(), 10)
    assert msgspec.json.decode(job.payload) == {"order": ["no", "order"]}


def test_what_cannot_be_read_is_no_better_when_it_is_retried(
    app: Lateshift, queue: str, refuse: Refuse
) -> None:
    kept = refuse(b"1", content_type="application/json", content_encoding="punycode")
    assert "'punycode' is none that is read here" in kept.reason
    with pytest.raises(EventInvalid, match="'punycode' is none that is read here"):
        mended(app, queue).retry_refused(kept.id)


def test_of_a_large_message_the_beginning_is_kept_and_the_rest_told(
    app: Lateshift, queue: str, refuse: Refuse
) -> None:
    kept = refuse(["x" * 3 * REFUSED_LIMIT])
    assert len(kept.raw) == REFUSED_LIMIT
    assert len(kept.reason) <= ERROR_LIMIT
    assert "bytes that came, the first 1,048,576 are kept: it cannot be retried)" in kept.reason
    with pytest.raises(EventInvalid, match="have it sent again, or discard it"):
        mended(app, queue).retry_refused(kept.id)


def incoming(delivery: Delivery) -> Incoming:
    return Messages(MessageSource(url="memory://", queue="q"))._incoming(delivery)


@pytest.mark.parametrize(
    "delivery",
    [
        opened(base64.b64encode(b'{"n":1}'), tag=1, id="m"),
        delivered(zlib.compress(b'{"n":1}'), {"a": 1}, "x/y", "deflate", tag=1, id="m"),
        delivered('{"n":1}'.encode("utf-16"), {"a": 1}, "x/y", "utf-16", tag=1, id="m"),
    ],
)
def test_the_raw_is_byte_for_byte_what_the_broker_gave(delivery: Delivery) -> None:
    came = incoming(delivery)
    kept = refused(came, "for a test", "default", ours=True)
    assert kept.raw == delivery.raw
    again = seen_again(kept.raw, kept.rest)
    assert isinstance(again, Message)
    assert (again, again.body) == (came.seen, b'{"n":1}')


def test_headers_that_are_too_large_are_not_kept_either() -> None:
    came = incoming(delivered(b"{}", {"a": "x" * 2 * REFUSED_LIMIT}, None, None, tag=1, id="m"))
    kept = refused(came, "w" * 5000, "default", ours=True)
    assert len(kept.rest) < 1000
    assert len(kept.reason) <= ERROR_LIMIT
    assert kept.reason.endswith("it cannot be retried)")


def test_what_was_kept_before_it_was_told_how_is_seen_as_it_was() -> None:
    rest = b'{"kind":"Message","seen":{"id":"m","headers":{},"queue":"q"}}'
    assert seen_again(b'{"n":1}', rest) == Message(body=b'{"n":1}', id="m", queue="q")
