"""`jobs resubmit --show`: which jobs would run again, and how their arguments would change."""

from typing import Any

import click

from lateshift.cli.options import wants_json
from lateshift.cli.output import counted, print_json, print_table, readable, say, short
from lateshift.model.edit import changes
from lateshift.resubmission import Plan, Planned

OLD_WIDTH = 24  # characters of an old value; the new one has the rest of the line


def print_plan(plan: Plan, limit: int | None = None) -> None:
    if wants_json():
        print_json(_document(plan))
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


def _rows(planned: Planned) -> list[list[str]]:
    view = planned.view
    if planned.edit is None:
        return [[short(view.id), view.task, view.state.label, view.payload.decode()]]
    rows: list[list[str]] = []
    for each in changes(planned.edit):
        old = "(none)" if each.old is None else each.old.decode()
        new = "(none)" if each.new is None else each.new.decode()
        old = old if len(old) <= OLD_WIDTH else old[: OLD_WIDTH - 1] + "…"
        first = not rows
        rows.append([short(view.id) if first else "", view.task if first else "", each.name, old, new])
    return rows


def _document(plan: Plan) -> dict[str, Any]:
    return {
        "would_resubmit": plan.count,
        "would_edit": plan.edited,
        "examples": [
            {
                "id": str(each.view.id),
                "task": each.view.task,
                "before": readable(each.view.payload),
                "after": readable(each.edit.after if each.edit else each.view.payload),
            }
            for each in plan.examples
        ],
    }
