"""`lateshift jobs`: look at jobs, cancel them, run them again."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import click
import msgspec

from lateshift.cli import exits
from lateshift.cli.options import job_id as id_type
from lateshift.cli.options import listing, opened, operator, wants_json
from lateshift.cli.output import (
    STYLES,
    console,
    counted,
    duration,
    instant,
    job_brief,
    job_whole,
    print_json,
    print_table,
    readable,
)
from lateshift.client import Client
from lateshift.clock import SYSTEM
from lateshift.config import load
from lateshift.errors import JobUnknown
from lateshift.model.ids import JobId
from lateshift.model.job import AttemptRecord, JobFilter, JobView, State
from lateshift.store.contract import Store

STATES = [state.label for state in State]
PAGE = 500


@click.group()
def jobs() -> None:
    """Look at jobs, cancel them, run them again."""


@jobs.command("list")
@click.option("--queue", metavar="NAME", help="Only jobs of this queue.")
@click.option("--task", metavar="NAME", help="Only jobs of this task.")
@click.option("--state", type=click.Choice(STATES), help="Only jobs in this state.")
@click.option("--reason", metavar="REASON", help="Only settled jobs with this reason, such as exhausted.")
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    metavar="N",
    default=20,
    show_default=True,
    help="How many at most.",
)
@click.option("--before", type=id_type, metavar="ID", help="Only jobs older than this one: the next page.")
@listing
def list_jobs(
    queue: str | None,
    task: str | None,
    state: str | None,
    reason: str | None,
    limit: int,
    before: JobId | None,
) -> None:
    """The newest jobs first."""
    wanted = JobFilter(queue=queue, task=task, state=_state(state), reason=reason, before=before)
    with opened() as store:
        found = store.reports.jobs(wanted, limit)
    more = str(found[-1].id) if len(found) == limit else None
    if wants_json():
        print_json({"jobs": [job_brief(view) for view in found], "next_before": more})
        return
    print_table(
        ("job", "task", "queue", "state", ">attempt", ">age", "what"),
        [_row(view) for view in found],
        "No jobs." if wanted == JobFilter() else f"No jobs with {_in_words(wanted)}.",
    )
    if more:
        click.echo(f"\nMore: add --before {more}")


@jobs.command()
@click.argument("job_id", type=id_type, metavar="ID")
@listing
def show(job_id: JobId) -> None:
    """All there is to know about one job."""
    with opened() as store:
        view = store.reports.job(job_id)
    if view is None:
        raise JobUnknown(f"There is no job {job_id} in the store; it may have passed its retention.")
    if wants_json():
        print_json(job_whole(view))
    else:
        _print_job(view)


@jobs.command()
@click.argument("job_ids", type=id_type, metavar="ID...", nargs=-1, required=True)
@listing
def cancel(job_ids: tuple[JobId, ...]) -> None:
    """Cancel jobs: waiting ones at once, running ones are told within a second."""
    with opened() as store:
        done = store.jobs.cancel(job_ids, by=operator())
        _report("cancelled", "cancelled, or told to stop", done, _others(store, job_ids, done))


@jobs.command()
@click.argument("job_ids", type=id_type, metavar="[ID]...", nargs=-1)
@click.option("--queue", metavar="NAME", help="Dead letters of this queue.")
@click.option("--task", metavar="NAME", help="Dead letters of this task.")
@click.option("--reason", metavar="REASON", help="Dead letters with this reason, such as worker_lost.")
@click.option("--all", "every", is_flag=True, help="Every dead letter.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    default=1000,
    show_default=True,
    help="How many at most.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@listing
def resubmit(
    job_ids: tuple[JobId, ...], queue: str | None, task: str | None, reason: str | None, every: bool, limit: int,
    yes: bool,
) -> None:  # fmt: skip
    """Make dead letters (and cancelled jobs, by id) ready again, with fresh attempts: by id, or by a filter."""
    narrowed = any(value is not None for value in (queue, task, reason))
    if bool(job_ids) + every + narrowed != 1:
        raise click.UsageError("Give job ids, or a filter (--task, --queue, --reason), or --all.")
    with opened() as store:
        if job_ids:
            done = store.jobs.resubmit(job_ids, by=operator())
            _report("resubmitted", "ready again", done, _others(store, job_ids, done))
            return
        wanted = JobFilter(queue=queue, task=task, reason=reason, state=State.DEAD)
        count = sum(len(page) for page in _pages(store, wanted, limit))
        if not count:
            click.echo(
                f"No dead letters with {_in_words(wanted)}." if narrowed else "No dead letters.", err=True
            )
            _report("resubmitted", "ready again", [], {})
            return
        if not yes and not _confirmed(count, limit):
            click.echo("Nothing was resubmitted.")
            return
        client = Client(lambda: store, load().key_window)
        _report("resubmitted", "ready again", client.resubmit_where(wanted, by=operator(), limit=limit), {})


def _confirmed(count: int, limit: int) -> bool:
    bounded = " (as many as --limit allows)" if count == limit else ""
    try:
        return click.confirm(f"Resubmit {counted(count, 'dead letter')}{bounded}?", err=True)
    except click.Abort:
        raise click.UsageError("Nobody answered: add --yes to resubmit without being asked.") from None


def _pages(store: Store, wanted: JobFilter, limit: int) -> Iterator[list[JobView]]:
    while limit > 0 and (page := store.reports.jobs(wanted, min(PAGE, limit))):
        yield page
        limit -= len(page)
        wanted = msgspec.structs.replace(wanted, before=page[-1].id)


def _others(store: Store, asked: tuple[JobId, ...], done: list[JobId]) -> dict[UUID, str | None]:
    """The jobs that nothing was done to, each with its state; None for one that is not there."""
    left = [job_id for job_id in asked if job_id not in set(done)]
    views = {job_id: store.reports.job(job_id) for job_id in left}
    return {job_id: view.state.label if view else None for job_id, view in views.items()}


def _report(key: str, words: str, done: list[JobId], others: dict[UUID, str | None]) -> None:
    if wants_json():
        left = [{"id": str(job_id), "state": state} for job_id, state in others.items()]
        print_json({key: [str(job_id) for job_id in done], "unchanged": left})
    else:
        click.echo(f"{counted(len(done), 'job')} {words}.")
    for job_id, state in others.items():
        said = (
            f"is {state} and stays so" if state else "is not in the store; it may have passed its retention"
        )
        click.echo(f"lateshift: job {job_id} {said}.", err=True)
    if others:
        raise click.exceptions.Exit(exits.NOT_FOUND)


def _state(label: str | None) -> State | None:
    return None if label is None else State[label.upper()]


def _in_words(wanted: JobFilter) -> str:
    return ", ".join(f"{name} {value}" for name, value in wanted.describe().items())


def _row(view: JobView) -> list[str]:
    return [
        str(view.id), view.task, view.queue, view.state.label, f"{view.attempt}/{view.attempts}",
        duration(SYSTEM.now() - view.created_at), _what(view),
    ]  # fmt: skip


def _what(view: JobView) -> str:
    """The one thing to know about it in its state."""
    last = view.history[-1] if view.history else None
    said = " ".join(f"{last.error or last.reason}: {last.message or ''}".split()) if last else ""
    if view.state is State.DEAD:
        return f"{view.reason}; {said}" if said else view.reason or ""
    if view.state is State.RUNNING and view.progress is not None:
        total = f" of {view.progress.total:g}" if view.progress.total else ""
        return f"{view.progress.done:g}{total} {view.progress.note or ''}".strip()
    if view.state is State.SCHEDULED:
        wait = view.due_at - SYSTEM.now()
        return (f"in {duration(wait)}" if wait > timedelta(0) else "due") + (f" after {said}" if said else "")
    return view.reason or ""


def _print_job(view: JobView) -> None:
    from rich.table import Table
    from rich.text import Text

    out = console()
    title = Text.assemble(
        (view.task, "bold"), " is ", (view.state.label, STYLES.get(view.state.label, "bold"))
    )
    if view.reason:
        title.append(f" ({view.reason})")
    out.print(title)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bright_black", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _facts(view):
        if value:
            table.add_row(name, Text(value))
    out.print(table)
    out.print(Text("\ntimeline", style="bold"))
    line = Table.grid(padding=(0, 2))
    line.add_column(style="bright_black", no_wrap=True)
    line.add_column(overflow="fold")
    for moment, event in _timeline(view):
        line.add_row(moment, Text(event))
    out.print(line)
    trace = next((record.traceback for record in reversed(view.history) if record.traceback), None)
    if trace:
        out.print(Text("\nthe task's traceback, of its latest failure", style="bold"))
        out.print(Text(trace.rstrip()))


def _facts(view: JobView) -> Iterator[tuple[str, str]]:
    def as_json(encoded: bytes | None) -> str:
        return "" if encoded is None else msgspec.json.format(encoded, indent=0).decode()

    yield "job", str(view.id)
    yield "queue", f"{view.queue}, priority {view.priority}"
    yield "attempt", f"{view.attempt} of {view.attempts}, fence {view.fence}"
    yield "arguments", as_json(view.payload)
    yield "result", as_json(view.result) if readable(view.result) is not None else ""
    yield "checkpoint", as_json(view.checkpoint)
    if view.progress is not None:
        total = f" of {view.progress.total:g}" if view.progress.total else ""
        yield "progress", f"{view.progress.done:g}{total} {view.progress.note or ''}"
    yield "holder", str(view.holder or "") if view.state is State.RUNNING else ""
    yield "complete by", instant(view.complete_by)
    yield "exclusive", view.exclusive or ""
    yield "workers lost", str(view.losses or "")
    yield "cancel", "asked for; the attempt is told to stop" if view.cancel_requested else ""


def _timeline(view: JobView) -> Iterator[tuple[str, str]]:
    yield instant(view.created_at), "enqueued"
    for record in view.history:
        yield instant(record.at), _attempt(record)
    if view.state is State.RUNNING and view.started_at is not None:
        yield instant(view.started_at), f"attempt {view.attempt} started"
    if view.state in (State.SCHEDULED, State.READY, State.BLOCKED):
        yield instant(view.due_at), "due" if view.state is State.SCHEDULED else view.state.label
    if view.settled_at is not None:
        yield instant(view.settled_at), view.state.label + (f": {view.reason}" if view.reason else "")


def _attempt(record: AttemptRecord) -> str:
    ran = f" after {duration(record.ran_for)}" if record.ran_for is not None else ""
    said: Any = " ".join(part for part in (record.error, record.message) if part)
    return f"attempt {record.attempt} {record.reason}{ran}" + (f": {said}" if said else "")
