"""Messages of a broker: each is one job, and is acknowledged when the job is in the store, not before."""

import contextlib
from collections import deque
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import kombu
import msgspec

from lateshift.clock import SYSTEM
from lateshift.model.triggering.events import Message
from lateshift.model.triggering.sources import MessageSource
from lateshift.triggers.addresses import bare, without_secrets
from lateshift.triggers.brokers.broker import Broker, Delivery
from lateshift.triggers.brokers.envelopes import body_of
from lateshift.triggers.source import Incoming, Read, Receipts, SourceAway

CONNECT_WITHIN = 5.0  # seconds
ANSWER_WITHIN = 10.0
HEARTBEAT = 30.0  # a connection that is silent for twice as long is dead
# Of messages, unpacked, that are stored in one commit; the next ones stay packed until then.
BYTES_AT_ONCE = 16 * 2**20
COUNT_EVERY = 5.0  # seconds between two questions how many messages wait
# Of kombu's connection, not of its transport.
OF_CONNECTION = ("ssl", "heartbeat", "login_method", "connect_timeout", "failover_strategy")
# Where kombu's transport would wait for as long as it takes. What the program says comes after these.
TRANSPORT_OPTIONS: dict[str, dict[str, Any]] = {
    "redis": {"socket_connect_timeout": CONNECT_WITHIN, "socket_timeout": ANSWER_WITHIN},
    "sqs": {
        "client-config": {
            "connect_timeout": CONNECT_WITHIN, "read_timeout": ANSWER_WITHIN, "retries": {"max_attempts": 1},
        },
    },
    "azureservicebus": {"retry_total": 1},
}  # fmt: skip
REDIS = ("redis", "rediss", "sentinel")


class Messages:
    """Reads one queue. Knows a message by `where.key`, by its own id, or, if it has none, not at all."""

    def __init__(self, where: MessageSource) -> None:
        self.keep: timedelta | None = where.window
        self._where = where
        self._broker: Broker | None = None
        self._received = deque[Delivery]()  # and not handed on yet
        self._lag: int | None = None
        self._counted: int | None = None
        self._count_at = SYSTEM.monotonic()

    def open(self, position: bytes | None, receipts: Receipts) -> None:
        with self._told():
            self._broker = open_broker(self._where)

    def read(self, limit: int, wait: float) -> Read:
        broker = self._open
        most = min(limit, self._where.prefetch)
        if not self._received:
            with self._told():
                self._received.extend(broker.receive(most, wait))
                self._lag = self._count(broker) if len(self._received) >= most else 0
        events: list[Incoming] = []
        size = 0
        while self._received and len(events) < limit and size < BYTES_AT_ONCE:
            delivery = self._received.popleft()
            events.append(self._incoming(delivery))
            size += max(len(delivery.raw), len(events[-1].seen.raw))
        return Read(events, more=bool(events), pause=timedelta(seconds=broker.pause), lag=self._lag)

    def done(self, events: list[Incoming]) -> None:
        with self._told():
            self._open.acknowledge([each.receipt for each in events])

    def close(self) -> None:
        self._received.clear()
        broker, self._broker = self._broker, None
        if broker is not None:
            with contextlib.suppress(Exception):  # then the broker finds out by itself that we are gone
                broker.close()

    @property
    def _open(self) -> Broker:
        assert self._broker is not None, "open() comes first"
        return self._broker

    def _incoming(self, delivery: Delivery) -> Incoming:
        body, wrong = delivery.body, None
        try:
            body = body_of(delivery)
        except ValueError as error:
            wrong = str(error)
        message = Message(
            body=body, id=delivery.id, headers=delivery.headers, content_type=delivery.content_type, queue=self._where.queue
        )  # fmt: skip
        how = {"wrapped": delivery.wrapped, "encoding": delivery.encoding}
        event = delivery.id or f"unnamed {uuid4()}"  # each delivery by itself: no two are ever taken for one
        if wrong is None and self._where.key is not None:
            try:
                return Incoming(self._key(message), message, receipt=delivery.tag, raw=delivery.raw, how=how)
            except Exception as error:  # the program's own, too
                wrong = f"what it is known by cannot be told: {type(error).__name__}: {error}"
        if wrong is not None:
            event = f"refused {event}"  # by its id; what others are known by may look the same
        return Incoming(event, message, receipt=delivery.tag, wrong=wrong, raw=delivery.raw, how=how)

    def _key(self, message: Message) -> str:
        key = self._where.key
        known: Any
        if callable(key):
            known = key(message)
        else:
            known = msgspec.json.decode(message.body, type=dict[str, Any])[str(key)]
        if isinstance(known, int) and not isinstance(known, bool):
            known = str(known)
        if not isinstance(known, str) or not known:
            raise TypeError(f"it must be text or a whole number, not {known!r}")
        return known

    def _count(self, broker: Broker) -> int | None:
        now = SYSTEM.monotonic()
        if now >= self._count_at:
            self._count_at = now + COUNT_EVERY
            self._counted = broker.waiting()
        return self._counted

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Whatever a driver raises means that the broker is away, or refuses us."""
        try:
            yield
        except Exception as error:
            where = self._where
            if isinstance(error, ImportError):
                error = ImportError(f"{error}; to install it: pip install 'lateshift[brokers]'")
            first = (str(error).splitlines() or [""])[0]  # Azure goes on with what is another each time
            text = without_secrets(f"{type(error).__name__}: {first}", where.url, where.options)
            raise SourceAway(f"{bare(where.url)} queue {where.queue}: {text}") from None


def open_broker(where: MessageSource) -> Broker:
    """Connected. Makes no queue."""
    scheme = where.url.partition("://")[0].partition("+")[0].lower()
    options = dict(where.options)
    if scheme == "azurestoragequeues":
        from lateshift.triggers.brokers.azure import AzureStorage

        return AzureStorage(where.url, where.queue, options)
    of_connection = {name: options.pop(name) for name in OF_CONNECTION if name in options}
    if scheme in REDIS:
        options["retry_on_timeout"] = False  # a script that is sent twice would take twice
    defaults = TRANSPORT_OPTIONS.get("redis" if scheme in REDIS else scheme, {})
    connection = kombu.Connection(
        where.url,
        transport_options={**defaults, **options},
        **{"connect_timeout": CONNECT_WITHIN, "heartbeat": HEARTBEAT, **of_connection},
    )
    try:
        return _on(connection, scheme, where)
    except BaseException:
        with contextlib.suppress(Exception):
            connection.release()
        raise


def _on(connection: kombu.Connection, scheme: str, where: MessageSource) -> Broker:
    if scheme in REDIS:
        from lateshift.triggers.brokers.redis_lists import RedisList

        return RedisList(connection, where.queue, where.options.get("unacked_key"))
    if scheme == "sqs":
        from lateshift.triggers.brokers.sqs import Sqs

        return Sqs(connection, where.queue, where.options.get("visibility_timeout"))
    if scheme == "azureservicebus":
        from lateshift.triggers.brokers.azure import ServiceBus

        return ServiceBus(connection, where.queue)
    from lateshift.triggers.brokers.consumer import Consumer

    return Consumer(connection, where.queue, where.prefetch)
