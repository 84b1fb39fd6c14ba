"""One delivery of an event outside: when it is tried again, and what a broker gets."""

from datetime import timedelta
from typing import Any

from lateshift.errors import OptionInvalid
from lateshift.model.retry import Retry

# After which tries a delivery is tried again, as Standard Webhooks has it; about three days in all.
DELAYS = tuple(
    timedelta(seconds=seconds) for seconds in (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
)
DELIVERY_RETRY = Retry(attempts=len(DELAYS) + 1, waits=DELAYS, patient=True)
DELIVERY_TIME = timedelta(minutes=1)  # of each try
BROKER_ANSWERS = DELIVERY_TIME / 6  # within that, to each thing that it is asked, or the try has failed
DELIVERED_KEPT = timedelta(hours=1)


def publish(url: str, queue: str, event: dict[str, Any]) -> None:
    """One message, confirmed by a broker that confirms. Blocking, for a few times BROKER_ANSWERS; whatever goes wrong is raised."""
    try:
        from kombu import Connection
    except ModuleNotFoundError as error:
        raise OptionInvalid(
            "kombu is not installed, which replies to a broker need: pip install 'lateshift[brokers]'"
        ) from error
    seconds = BROKER_ANSWERS.total_seconds()
    options = {"confirm_publish": True, "socket_timeout": seconds, "socket_connect_timeout": seconds}
    with Connection(url, transport_options=options, connect_timeout=seconds) as connection:
        connection.connect()  # which gives up; what connects by itself does not
        if connection.transport.driver_type == "amqp":
            connection.connection.transport.sock.settimeout(seconds)  # else it is waited for without end
        connection.Producer(channel=_with_queue(connection, queue)).publish(
            event, exchange="", routing_key=queue, delivery_mode=2, serializer="json", message_id=event["id"],
            correlation_id=event.get("correlation_id"), type=f"job.{event['kind']}",
        )  # fmt: skip


def _with_queue(connection: Any, queue: str) -> Any:
    """A channel, and the queue is there: as whoever made it wants it, or else durable."""
    if connection.transport.driver_type == "amqp":
        channel = connection.channel()
        try:
            channel.queue_declare(queue, passive=True)
            return channel
        except channel.connection.channel_errors:  # there is none, and the channel is closed
            pass
    channel = connection.channel()
    channel.queue_declare(queue, durable=True, auto_delete=False)
    return channel
