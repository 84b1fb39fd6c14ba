"""The agents: one for each remote service. They call it, make of its answer a result or the right kind of error, and know nothing
of the order of things.

A job's own retry is the agent's retry inside the complete-by: a time-out, a connection that broke or a 5xx is tried again,
after a little longer each time. What the service refuses for good is `Permanent`, and told at once. When the complete-by of the step has
passed, the supervisor stops the job, and nothing that it still says is heard.
"""

import json
import os
import urllib.request
from datetime import timedelta
from urllib.error import HTTPError

from examples.orders.application import COMPLETE_BY, ONE_CALL, app
from examples.orders.database import Order
from examples.orders.remote import PORT, Service
from lateshift import Breaker, Limit, Permanent, Retry

ADDRESS = f"http://127.0.0.1:{PORT}"  # unless ORDERS_REMOTE names another
NOT_NOW = (408, 425, 429)  # refused, but not for good
TRY_AGAIN = Retry(attempts=50, base=timedelta(seconds=0.2), cap=timedelta(seconds=1))

# When a service is away altogether its calls are parked, for all workers, and one of them asks each second whether it is back.
BREAKER = Breaker(failures=30, share=0.9, open_for=timedelta(seconds=1))

# One declaration for each remote service.
payments = app.agent("payments", breaker=BREAKER, limits=Limit(concurrency=10))
delivery = app.agent("delivery", breaker=BREAKER, limits=Limit(concurrency=10))


@payments.task(retry=TRY_AGAIN, time_limit=COMPLETE_BY)
def charge(order: Order) -> str:
    return call("charge", order)


@payments.task(retry=TRY_AGAIN, time_limit=COMPLETE_BY)
def refund(order: Order) -> str:
    return call("refund", order)


@delivery.task(retry=TRY_AGAIN, time_limit=COMPLETE_BY)
def ship(order: Order) -> str:
    return call("ship", order)


def call(service: Service, order: Order) -> str:
    """The receipt. The token is the order's, not the job's: a repeat that the supervisor asks for is another job, and it must not
    charge a second time."""
    asked = {"order": order.id, "price": order.price, "token": f"{service} {order.id}"}
    if order.service == service:
        asked["mode"] = order.mode
    request = urllib.request.Request(
        f"{os.environ.get('ORDERS_REMOTE', ADDRESS)}/{service}", json.dumps(asked).encode()
    )
    try:
        with urllib.request.urlopen(request, timeout=ONE_CALL.total_seconds()) as answer:
            return str(json.load(answer)["receipt"])
    except HTTPError as error:
        with error:
            said = json.load(error).get("error", "")
        if 400 <= error.code < 500 and error.code not in NOT_NOW:
            raise Permanent(f"{error.code}: {said}") from None
        raise ConnectionError(f"{error.code}: {said}") from None
