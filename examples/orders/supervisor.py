"""What follows when a step has failed or was late, and who is told. Nothing here knows what an order is made of.

Lateshift's supervisor finds the steps that are past their complete-by and counts their failures; these are the thresholds.
"""

from examples.orders.application import PATIENCE, app
from examples.orders.database import execute, transaction
from examples.orders.replies import reply_held
from lateshift import Policy, current

# Asked for again at once, then after a pause that doubles; then an operator is alerted, and the order waits for them.
OR_ALERT = Policy(repeats=2, patient_after=2, patience=PATIENCE, then="hold")
# The same; but then what was done is undone.
OR_UNDO = Policy(repeats=2, patient_after=2, patience=PATIENCE, then="raise")


@app.on("alert.*")
@app.task(queue="orders.alerts")
def alert(data: dict[str, str]) -> None:
    """Where a pager would ring. The alert is kept, and the shop hears that its order is held, in one transaction."""
    if "run" not in data:  # of a service that is away, not of an order: `lateshift breakers list` shows it
        return
    this = str(current().job_id)
    with transaction() as connection:
        [(order_id,)] = execute(connection, "SELECT id FROM orders WHERE run = ?", data["run"])
        execute(
            connection,
            "INSERT INTO alerts (id, order_id, what, why) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            this, order_id, data["what"], data["why"],
        )  # fmt: skip
        if data["what"] == "workflow_held":  # whatever ends the run is told without us
            reply_held.options(connection=connection, key=this).enqueue(order_id, data["why"])
