"""The reply queue: the shop hears what becomes of an order, by its id and its status.

The queue is `orders.replies`. In a company the shop's own program would have these tasks, and only its workers would serve the queue.
What Lateshift tells of the order's workflow comes by itself, for the workflow says `reply_to=reply`; the order's id is its correlation id.
"""

from datetime import timedelta

from examples.orders.application import app
from examples.orders.database import execute, query, transaction
from lateshift import JobEvent, Snooze, current

STATUSES = {
    "received": "Pending", "started": "Processing", "completed": "Processed", "failed": "Error", "cancelled": "Error",
}  # fmt: skip

replies = app.task(queue="orders.replies")


@replies
def reply(event: JobEvent) -> None:
    """Events come in order, and may come twice: each is kept once, by its id."""
    status = "Undone" if event.reason == "undone" else STATUSES[event.kind]
    keep(event.id, int(event.correlation_id or 0), status, event.reason or str(event.result or ""))


@replies
def reply_held(order_id: int, why: str) -> None:
    """Not an end: an operator is at it, and more will follow. It comes by a way of its own, and lets pass what was told before."""
    if "Processing" not in heard(order_id):
        raise Snooze(timedelta(seconds=1))
    keep(str(current().job_id), order_id, "Error", why)


def keep(id: str, order_id: int, status: str, detail: str) -> None:
    with transaction() as connection:
        [(place,)] = execute(connection, "SELECT count(*) FROM replies WHERE order_id = ?", order_id)
        execute(
            connection,
            "INSERT INTO replies (id, order_id, place, status, detail) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            id, order_id, place, status, detail,
        )  # fmt: skip


def heard(order: int) -> list[str]:
    """What the shop was told of it, in order."""
    return [
        status for (status,) in query("SELECT status FROM replies WHERE order_id = ? ORDER BY place", order)
    ]
