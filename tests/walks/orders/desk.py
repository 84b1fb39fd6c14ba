"""What the tests of the orders do: post one, let time pass, look at its row, and act as an operator."""

from datetime import timedelta

from examples.orders import app
from examples.orders.application import COMPLETE_BY
from examples.orders.database import Order, prepare, query
from examples.orders.remote import Mode, Remote, Service
from examples.orders.replies import heard
from examples.orders.submission import receive
from examples.orders.table import Row, rows
from lateshift.cli.main import run
from lateshift.model.ids import new_member_id
from lateshift.runtime.leadership import TTL
from lateshift.testing import Kit, testing


def shared(url: str) -> str:
    """The same store, named so that the shop's own code may open it too."""
    return f"{url}?driver=sqlite3" if url.startswith("sqlite") else url


class Desk:
    """The app of the orders in a test kit."""

    def __init__(self, url: str, remote: Remote) -> None:
        self.remote = remote
        self.kit: Kit = testing(app, store=url)

    def __enter__(self) -> "Desk":
        self.kit.__enter__()
        prepare()
        return self

    def __exit__(self, *_: object) -> None:
        self.kit.__exit__()

    def post(self, order: int, mode: Mode = "work", service: Service = "charge") -> None:
        """And let everybody do what can be done now."""
        receive.enqueue(Order(order, mode=mode, service=service))
        self.kit.drain()

    def wait(self, seconds: float) -> None:
        """Whatever becomes due in that time is done; at its end the supervisor has looked, and what it asked for is done."""
        self.kit.travel(seconds=seconds)
        self.kit.drain()

    def row(self, order: int) -> Row:
        [found] = [row for row in rows() if row.order == order]
        return found

    def given(self, order: int) -> timedelta:
        """How much time the step in hand was given when it was asked for, a pause before it included; to the second, for the
        database's clock goes on between two statements."""
        view = app.store.workflows.view(self.row(order).run)
        assert view is not None
        step = view.steps[-1]
        assert step.job is not None
        job = app.store.reports.job(step.job)
        assert job is not None
        assert step.complete_by is not None
        return timedelta(seconds=round((step.complete_by - job.created_at).total_seconds()))

    def until_failed(self, order: int, times: int) -> None:
        """Until the supervisor has found it late so often, and no longer."""
        for _ in range(60):
            if self.row(order).failures >= times:
                return
            self.wait(1)
        raise AssertionError(f"order {order} has not failed {times} times within a minute")

    def heard(self, order: int) -> list[str]:
        """What the shop has been told."""
        return heard(order)

    def alerts(self, order: int) -> list[str]:
        return [why for (why,) in query("SELECT why FROM alerts WHERE order_id = ?", order)]

    def operate(self, *command: str) -> None:
        """`lateshift …`, as an operator types it."""
        assert run(list(command)) == 0
        self.kit.drain()

    def resubmit(self, order: int) -> None:
        row = self.row(order)
        self.operate("workflows", "resubmit-step", str(row.run), row.step)

    def supervise(self) -> list[str]:
        """One look of a supervisor that has taken over, as after a longer silence of whoever led: the steps that it finds late."""
        self.kit.clock.move(seconds=TTL.total_seconds() + COMPLETE_BY.total_seconds())
        grip = app.store.locks.acquire("supervisor", new_member_id(), TTL)
        assert grip is not None
        return [step.name for step in app.store.workflows.overdue(term=grip.fence, limit=10)]
