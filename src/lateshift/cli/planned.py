"""`jobs resubmit --show`: which jobs would run again, and how their arguments would change."""

import click

from lateshift.cli.options import wants_json
from lateshift.cli.output import counted, print_json, print_table, say, short
from lateshift.dead_letters.resubmission import Plan, Planned
from lateshift.documents.dead_letters import plan_document
from lateshift.model.edit import changes
from lateshift.model.sealed import masked_view, shown_payload

OLD_WIDTH = 24  # characters of an old value; the new one has the rest of the line


def print_plan(plan: Plan, limit: int | None = None) -> None:
    if wants_json():
        print_json(plan_document(plan))
        return
    rows = [row for each in plan.examples for row in _rows(each)]
    if plan.edited:
        print_table(("job", "task", "argument", "old", "new"), rows, "")
    else:
        print_table(("job", "task", "state", "arguments"), rows, "")
    if rows:
        click.echo()
    others = plan.count - plan.edited
    as_they_are = f", {others:,} as they are" if plan.edited and others else ""
    edited = f": {plan.edited:,} with other arguments{as_they_are}" if plan.edited else ""
    most = " (as many as --limit allows)" if plan.count == limit else ""
    say(f"{counted(plan.count, 'job')}{most} would be resubmitted{edited}. Nothing was written.")
    if plan.runs.told.count:
        say(plan.runs.told.says)


def _rows(planned: Planned) -> list[list[str]]:
    view = masked_view(planned.view)
    if planned.edit is None or shown_payload(view, planned.edit.after) != planned.edit.after:
        return [[short(view.id), view.task, view.state.label, view.payload.decode()]]
    rows: list[list[str]] = []
    for each in changes(planned.edit):
        old = "(none)" if each.old is None else each.old.decode()
        new = "(none)" if each.new is None else each.new.decode()
        old = old if len(old) <= OLD_WIDTH else old[: OLD_WIDTH - 1] + "…"
        first = not rows
        rows.append([short(view.id) if first else "", view.task if first else "", each.name, old, new])
    return rows
