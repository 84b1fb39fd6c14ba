"""The orders as the pattern's state store shows them. Only the order's own row is the shop's; all the rest is asked of Lateshift, which
keeps it anyway: the run of its workflow, the step that is in hand, and the job that the step is."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias
from uuid import UUID

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from examples.orders.application import app
from examples.orders.database import query
from examples.orders.replies import heard
from lateshift import JobView

ProcessState: TypeAlias = Literal["Pending", "Processing", "Processed", "Error"]

SHOWN = 100  # orders, the newest
COLUMNS = {
    "OrderID": 7,
    "remote": 14,
    "ProcessState": 12,
    "LockedBy": 13,
    "CompleteBy": 10,
    "FailureCount": 12,
}
NUMBERS = ("OrderID", "FailureCount")
WIDE_ENOUGH = 120  # columns of a terminal
STYLES = {"Pending": "blue", "Processing": "cyan", "Processed": "green", "Error": "bold red"}


@dataclass(frozen=True)
class Row:
    """An order. `says`: what is done with it now, how it ended, or what an operator must know."""

    order: int
    mode: str
    run: UUID
    state: ProcessState
    locked_by: str = ""
    complete_by: datetime | None = None
    failures: int = 0
    says: str = ""
    step: str = ""  # the number of the one that an operator may resubmit

    @property
    def over(self) -> bool:
        """Nothing more happens to it, unless somebody mends it."""
        return self.state in ("Processed", "Error")


def rows() -> list[Row]:
    newest = query("SELECT id, mode, service, run FROM orders ORDER BY id DESC LIMIT ?", SHOWN)
    return [
        _row(id, mode if service == "charge" else f"{service} {mode}", UUID(run))
        for id, mode, service, run in reversed(newest)
    ]


def _row(order: int, mode: str, run: UUID) -> Row:
    view, job = app.store.workflows.view(run), app.store.reports.job(run)
    if job is None:
        return Row(order, mode, run, *_long_ago(order))
    if job.state.settled:  # completed; or undone, cancelled, or not even that could be done
        failures = sum(step.failures for step in view.steps) if view else 0
        if job.state.label == "completed":
            return Row(order, mode, run, "Processed", failures=failures, says="shipped")
        how, why = (job.reason or job.state.label).replace("_", " "), view.run.why if view else None
        return Row(order, mode, run, "Error", failures=failures, says=f"{how}: {why}" if why else how)
    if view is None:  # no scheduler has taken it yet
        return Row(order, mode, run, "Pending", says="submitted")
    failures = sum(step.failures for step in view.steps)
    step = next((each for each in view.steps if each.state.label != "completed"), None)
    if view.run.phase.label == "held":
        number = "" if step is None else str(int(step.path))
        return Row(order, mode, run, "Error", failures=failures, says=view.run.why or "", step=number)
    undoing = next((each for each in view.steps if each.undo_state.label == "undoing"), None)
    asked = undoing.undo_job if undoing else step.job if step else None
    agent = None if asked is None else app.store.reports.job(asked)
    holder = next((each for each in (job, agent) if each is not None and each.holder is not None), None)
    waits = holder is None and agent is not None and agent.attempt == 0
    return Row(
        order, mode, run, "Pending" if waits else "Processing",
        locked_by="" if holder is None else f"{holder.queue} {str(holder.holder)[-4:]}",
        complete_by=None if step is None else step.complete_by, failures=failures, says=_doing(agent, undoing),
    )  # fmt: skip


def _long_ago(order: int) -> tuple[ProcessState, str, None, int, str]:
    """Lateshift has forgotten it: the last that the shop heard is what there is to say."""
    return "Processed" if heard(order)[-1:] == ["Processed"] else "Error", "", None, 0, "long ago"


def _doing(agent: JobView | None, undoing: object) -> str:
    """What, and the how manyth try it is."""
    if agent is None:
        return "between two steps"
    said = f"undone by {agent.task}" if undoing else agent.task
    return f"{said}, try {agent.attempt}" if agent.attempt else f"{said} is asked for"


def drawn(orders: Sequence[Row], width: int) -> RenderableType:
    """What each order says stands beside it, or below the table where that is too narrow."""
    table = Table(
        box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False, padding=(0, 1, 0, 0)
    )
    for name, room in COLUMNS.items():
        table.add_column(name, min_width=room, no_wrap=True, justify="right" if name in NUMBERS else "left")
    beside = width >= WIDE_ENOUGH
    if beside:
        table.add_column("", no_wrap=True, overflow="ellipsis", ratio=1)
    for row in orders:
        by = "" if row.complete_by is None else f"{row.complete_by.astimezone():%H:%M:%S}"
        cells: list[str | Text] = [
            str(row.order), row.mode, Text(row.state, STYLES[row.state]), row.locked_by, by,
            Text(str(row.failures or ""), "yellow"),
        ]  # fmt: skip
        table.add_row(*cells, *([_said(row, row.says)] if beside else []))
    below = [] if beside else [_said(row, f"{row.order}: {row.says}") for row in orders]
    return Group(table, *below)


def _said(row: Row, text: str) -> Text:
    return Text(text, "red" if row.state == "Error" else "bright_black", no_wrap=True, overflow="ellipsis")
