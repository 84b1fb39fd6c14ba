"""For probes: whether the process answers, and whether its store does. They tell nothing else, and ask for no token."""

import asyncio
from typing import Literal

from msgspec import Struct

from lateshift.api.asked import Asked
from lateshift.api.bounds import READY_WITHIN
from lateshift.api.problem import Refused
from lateshift.api.route import PUBLIC, Route
from lateshift.errors import StoreError
from lateshift.runtime.aside import aside
from lateshift.telemetry.liveness import ages


class Health(Struct, frozen=True, kw_only=True):
    status: Literal["live", "ready"]


async def live(asked: Asked) -> Health:
    """Whether the process answers. The store is not asked."""
    return Health(status="live")


async def ready(asked: Asked) -> Health:
    """Whether every loop of the process turns, and the store answers, within five seconds; else 503."""
    if any(age.is_late for age in ages()):
        raise _not_ready(
            "A loop of this process has not turned well for long; its log and /metrics say which."
        )
    try:
        async with asyncio.timeout(READY_WITHIN.total_seconds()):
            await aside(asked.store.queues.waiting, "default", 1)
    except (StoreError, TimeoutError):
        raise _not_ready("The store does not answer.") from None
    return Health(status="ready")


def _not_ready(why: str) -> Refused:
    return Refused(503, "not-ready", why)


ROUTES = (
    Route(method="GET", path="/health/live", handler=live, gives=Health, scope=PUBLIC),
    Route(method="GET", path="/health/ready", handler=ready, gives=Health, scope=PUBLIC),
)
