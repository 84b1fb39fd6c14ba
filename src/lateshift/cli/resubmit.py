"""`lateshift jobs resubmit`: dead letters run again, with other arguments if need be, seen first, a few before the rest."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import click

from lateshift.cli import exits
from lateshift.cli.acting import complain, report, resolved, untouched
from lateshift.cli.changing import read_change, refuse_unused
from lateshift.cli.letters import is_narrowed, refuse_unless_named, which_letters
from lateshift.cli.missing import nothing_found
from lateshift.cli.numbers import Number, Whole
from lateshift.cli.options import listing, opened, opened_for, operator, wants_json
from lateshift.cli.output import counted, duration
from lateshift.cli.planned import print_plan
from lateshift.cli.progress import bar
from lateshift.cli.stopping import stoppable
from lateshift.clock import SYSTEM
from lateshift.dead_letters.dead_letters import DEAD_LOOKED_AT, DeadLetters, refuse_problems
from lateshift.dead_letters.resubmission import Course, Plan, Resubmission, Resubmitted, up_to
from lateshift.model.job import JobView
from lateshift.model.rate import Rate
from lateshift.operating.bulk import RESUBMIT, choose_these
from lateshift.operating.step_jobs import steps_left_out, why_step
from lateshift.store.contract import Store


@click.command()
@which_letters
@click.option("--app", metavar="PROGRAM", help="Check all arguments by this program's types first.")
@click.option("--set", "sets", metavar="NAME=JSON", multiple=True, help="Change an argument. Needs --app.")
@click.option("--unset", "unsets", metavar="NAME", multiple=True, help="Leave an argument out. Needs --app.")
@click.option(
    "--show", is_flag=True, help="Show what would run again, and with which arguments; write nothing."
)
@click.option("--first", type=Whole(min=1), metavar="N", default=None,
              help="Let N go first, and the rest only when these have completed.")  # fmt: skip
@click.option("--wait", type=Number(min=0), metavar="SECONDS", default=300, show_default=True,
              help="How long the first may take.")  # fmt: skip
@click.option(
    "--rate", metavar="N/s", help="How fast the rest go: 10/s, 300/min, 5000/h. Each is due at its time."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@listing
def resubmit(
    named: tuple[str, ...], every: bool, limit: int, app: str | None, sets: tuple[str, ...], unsets: tuple[str, ...],
    show: bool, first: int | None, wait: float, rate: str | None, yes: bool, **filters: str | None,
) -> None:  # fmt: skip
    """Make dead letters (and cancelled jobs, by id) ready again, with fresh attempts: by id, or by a filter."""
    refuse_unless_named(named, every, filters)
    change = read_change(sets, unsets)
    if change is not None and app is None:
        raise click.UsageError(
            "--set and --unset need --app PROGRAM, whose types check the new arguments first."
        )
    course = Course(
        first=first or 0, wait=timedelta(seconds=wait), rate=None if rate is None else Rate.read(rate)
    )
    program = _find(app)
    with opened() if program is None else opened_for(program) as store:
        tasks = None if program is None else program.tasks
        asked = Asked(
            store, Resubmission(store, by=operator(), change=change, tasks=tasks), course, unsets=unsets, show=show
        )  # fmt: skip
        if named:
            asked.by_name(named)
        else:
            asked.by_filter(filters, limit, question=None if yes else f", at {rate}" if rate else "")


class Asked:
    """One call of the command, on an open store."""

    def __init__(
        self, store: Store, resubmission: Resubmission, course: Course, *, unsets: tuple[str, ...], show: bool
    ) -> None:
        self._store = store
        self._resubmission = resubmission
        self._course = course
        self._unsets = unsets
        self._show = show

    def by_name(self, named: tuple[str, ...]) -> None:
        ids, missing = resolved(self._store, named)
        found = self._store.reports.named(ids)
        chosen = {view.id for view in choose_these(self._store, RESUBMIT, found).jobs}
        views = [view for view in found if view is not None and view.id in chosen]
        plan = self._looked_through(views)
        if self._show:
            print_plan(plan)
            return
        done = self._carry_out(views, plan)
        others = untouched(self._store, ids, done.ids) | dict.fromkeys(missing)
        _report(done, others, plan)
        complain(self._store, others, why=lambda id: why_step(self._store, id))

    def by_filter(self, filters: dict[str, str | None], limit: int, question: str | None) -> None:
        letters = DeadLetters(self._store, {}, SYSTEM, **filters)
        plan = self._looked_through(up_to(limit, letters.resubmittable()))
        if letters.cut:
            click.echo(
                f"lateshift: only the newest {DEAD_LOOKED_AT:,} dead letters were looked at.", err=True
            )
        if letters.steps:
            click.echo(f"lateshift: {steps_left_out(letters.steps)}", err=True)
        if self._show and plan.count:
            print_plan(plan, limit)
        elif not plan.count:
            if wants_json() or not is_narrowed(filters):
                _report(Resubmitted(), {}, plan)
            if is_narrowed(filters):
                nothing_found(self._store, filters, "resubmitted")
            click.echo("No dead letters.", err=True)
        elif question is None or _confirmed(plan, limit, self._course, question):
            seen = letters.these(plan.ids)  # those that were looked through, and no other that has died since
            done = self._carry_out(seen.resubmittable(), plan)
            done.skipped = seen.without(done)
            _report(done, untouched(self._store, done.skipped, []), plan)
        else:
            click.echo("Nothing was resubmitted.")

    def _looked_through(self, views: Iterable[JobView]) -> Plan:
        """Raises if one of them cannot be resubmitted so: before anything is written."""
        with bar("looking at dead letters", None) as told:
            plan = self._resubmission.plan(views, told)
        refuse_problems(plan)
        if plan.count:
            refuse_unused(self._unsets, plan)
        return plan

    def _carry_out(self, views: Iterable[JobView], plan: Plan) -> Resubmitted:
        with stoppable() as stopping, bar("resubmitting", plan.count) as told:
            return self._resubmission.carry_out(views, self._course, SYSTEM, told=told, stopping=stopping)


def _find(program: str | None) -> Any:
    if program is None:
        return None
    from lateshift.worker.program import find_app

    return find_app(program)


def _confirmed(plan: Plan, limit: int, course: Course, pace: str) -> bool:
    said = f"Resubmit {counted(plan.count, 'dead letter')}"
    said += " (as many as --limit allows)" if plan.count == limit else ""
    said += f", {plan.edited:,} of them with other arguments" if plan.edited else ""
    said += f", {min(course.first, plan.count):,} of them first" if course.first else ""
    said += pace
    if plan.runs.told.count:
        click.echo(f"lateshift: {plan.runs.told.says}", err=True)
    try:
        return click.confirm(f"{said}?", err=True)
    except click.Abort:
        raise click.UsageError("Nobody answered: add --yes to resubmit without being asked.") from None


def _report(done: Resubmitted, others: dict[str, str | None], plan: Plan) -> None:
    more = {
        "edited": done.edited, "failed": [str(id) for id in done.failed], "stopped": done.stopped,
        "spread": done.spread.total_seconds(),
    }  # fmt: skip
    edited = f", {done.edited:,} of them with other arguments" if done.edited else ""
    last = f", the last due in {duration(done.spread)}" if done.spread else ""
    report("resubmitted", f"ready again{edited}{last}", done.ids, others, more)
    left = plan.count - len(done.ids) - len(done.skipped)
    match done.stopped:
        case "failed":
            names = ", ".join(map(str, done.failed))
            said = f"of those that went first, {names} failed. See `lateshift jobs show`."
        case "waited":
            said = "those that went first have not completed in time. Is a worker running? --wait gives them longer."
        case "interrupted":
            said = "interrupted."
        case _:
            return
    click.echo(f"lateshift: stopped, {counted(left, 'job')} left as they were: {said}", err=True)
    raise click.exceptions.Exit(exits.INTERRUPTED if done.stopped == "interrupted" else exits.FOUND)
