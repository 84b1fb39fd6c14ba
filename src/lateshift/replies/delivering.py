"""One delivery of an event outside: when it is tried again, and what a broker gets."""

import random
from datetime import timedelta
from typing import Any

from lateshift.errors import OptionInvalid
from lateshift.model.retry import Retry

# After which tries a delivery is tried again, as Standard Webhooks has it; about three days in all.
DELAYS = tuple(
    timedelta(seconds=seconds) for seconds in (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
)
JITTER = 0.1  # of each delay, so that those who failed together do not come back together
DELIVERY_RETRY = Retry(attempts=len(DELAYS) + 1)
DELIVERY_TIME = timedelta(minutes=1)  # of each try
DELIVERED_KEPT = timedelta(hours=1)


def delay_after(attempt: int) -> timedelta:
    return DELAYS[min(attempt, len(DELAYS)) - 1] * random.uniform(1, 1 + JITTER)


def publish(url: str, queue: str, event: dict[str, Any]) -> None:
    """One message, confirmed by a broker that confirms. Blocking."""
    try:
        from kombu import Connection, Queue
    except ModuleNotFoundError as error:
        raise OptionInvalid(
            "kombu is not installed, which replies to a broker need: pip install 'lateshift[brokers]'"
        ) from error
    with Connection(
        url, transport_options={"confirm_publish": True}, connect_timeout=DELIVERY_TIME.total_seconds() / 4
    ) as connection:
        connection.Producer().publish(
            event, exchange="", routing_key=queue, declare=[Queue(queue, durable=True)], delivery_mode=2, serializer="json",
            message_id=event["id"], correlation_id=event.get("correlation_id"), type=f"job.{event['kind']}",
        )  # fmt: skip
