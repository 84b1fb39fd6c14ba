"""The submission: takes orders from the queue on which the shop posts them, and records each in the state store."""

from uuid import UUID

from examples.orders.application import app
from examples.orders.database import Connection, Order, execute, transaction
from examples.orders.scheduler import fulfil


@app.task(queue="orders.incoming")
def receive(order: Order) -> None:
    """`receive.enqueue(order)` posts an order. It may be delivered twice."""
    with transaction() as connection:
        submit(connection, order)


def submit(connection: Connection, order: Order) -> UUID:
    """The order's row and the workflow that fulfils it, in the caller's transaction: both are there, or neither is."""
    known = execute(connection, "SELECT run FROM orders WHERE id = ?", order.id)
    if known:
        return UUID(known[0][0])
    run = fulfil.options(connection=connection, correlation_id=str(order.id)).enqueue(order)
    execute(
        connection,
        "INSERT INTO orders (id, item, price, mode, service, run) VALUES (?, ?, ?, ?, ?, ?)",
        order.id, order.item, order.price, order.mode, order.service, str(run.id),
    )  # fmt: skip
    return run.id
