"""The reply queue: the shop hears what becomes of an order, by its id and its status.

The queue is `orders.replies`. In a company the shop's own program would have this task, and only its workers would serve the queue.
"""

from examples.orders.application import app
from examples.orders.database import execute, transaction
from lateshift import current

replies = app.task(queue="orders.replies")


@replies
def reply(order_id: int, status: str, detail: str = "") -> None:
    """A reply may be delivered twice; it is kept once, by the id of its job."""
    with transaction() as connection:
        execute(
            connection,
            "INSERT INTO replies (id, order_id, status, detail) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            str(current().job_id), order_id, status, detail,
        )  # fmt: skip


@replies
def reply_undone(order_id: int, status: str) -> None:
    """Takes the first reply back, as the last thing that is undone."""
    reply(order_id, "Undone", f"it is not {status} any more; what was paid is refunded")
