"""The scheduler's part: the steps of an order, one after the other. Each is recorded with its complete-by and its result; a worker that
dies leaves them to the next, which goes on where it stood."""

from examples.orders.agents import charge, refund, ship
from examples.orders.application import COMPLETE_BY, app
from examples.orders.database import Order
from examples.orders.replies import STATUSES, reply
from examples.orders.supervisor import OR_ALERT, OR_UNDO
from lateshift import Flow


@app.workflow(queue="orders", on_failure=OR_ALERT, reply_to=reply, reply_on=[*STATUSES])
async def fulfil(flow: Flow, order: Order) -> str:
    await flow.step(charge, order, undo=refund, time_limit=COMPLETE_BY)
    return await flow.step(ship, order, time_limit=COMPLETE_BY, on_failure=OR_UNDO)
