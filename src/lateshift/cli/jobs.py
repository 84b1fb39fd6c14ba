"""`lateshift jobs`: look at jobs, cancel them, run them again, discard them."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import click

from lateshift.cli.acting import complain, report, resolved, untouched
from lateshift.cli.dead import dead
from lateshift.cli.discard import discard
from lateshift.cli.explain import explain
from lateshift.cli.logs import logs, tell_of_logs
from lateshift.cli.missing import unheard_of, unseen
from lateshift.cli.nouns import Nouns
from lateshift.cli.numbers import Whole
from lateshift.cli.options import job_id as id_type
from lateshift.cli.options import listing, opened, operator, wants_json
from lateshift.cli.output import (
    STYLES,
    console,
    duration,
    instant,
    print_json,
    print_table,
)
from lateshift.cli.resubmit import resubmit
from lateshift.cli.short_ids import batch_digits, digits, one, one_batch, unknown
from lateshift.clock import SYSTEM
from lateshift.documents.jobs import job_brief, job_whole
from lateshift.documents.reading import in_one_line, readable
from lateshift.documents.workflows import at_what
from lateshift.errors import JobUnknown
from lateshift.model.fingerprint import last_failure
from lateshift.model.ids import JobId
from lateshift.model.job import RESUBMITTED, AttemptRecord, JobFilter, JobView, State
from lateshift.model.sealed import masked_view
from lateshift.model.search import LOOKED_AT
from lateshift.model.words import shortened
from lateshift.model.workflow.run import RunRow
from lateshift.operating.bulk import CANCEL, runs_among
from lateshift.operating.written import moment

STATES = [state.label for state in State]
GIVEN_SHOWN = 1_000  # characters of the arguments; of a terminal they get what is left


@click.group(cls=Nouns)
def jobs() -> None:
    """Look at jobs, cancel them, run them again, discard dead letters."""


@jobs.command("list")
@click.option("--queue", metavar="NAME", help="Only jobs of this queue.")
@click.option("--task", metavar="NAME", help="Only jobs of this task.")
@click.option("--state", type=click.Choice(STATES), help="Only jobs in this state.")
@click.option("--session", metavar="NAME", help="Only jobs of this session.")
@click.option("--tenant", metavar="NAME", help="Only jobs of this tenant.")
@click.option(
    "--batch", type=batch_digits, metavar="ID", help="Only jobs of this batch; its last digits will do."
)
@click.option("--reason", metavar="REASON", help="Only settled jobs with this reason, such as exhausted.")
@click.option("--tag", metavar="TAG", help="Only jobs with this tag.")
@click.option("--key", metavar="KEY", help="Only jobs with this idempotency key.")
@click.option(
    "--argument", metavar="TEXT", help="Only jobs with this text in their arguments, or NAME=VALUE for one."
)
@click.option("--error", metavar="TEXT", help="Only jobs with this text in what went wrong.")
@click.option(
    "--since", metavar="WHEN", help="Only jobs made since then: 15m, 2h, 3d ago, or 2026-11-30T09:00."
)
@click.option("--until", metavar="WHEN", help="Only jobs made before then.")
@click.option(
    "--limit",
    type=Whole(1, 10_000),
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
    session: str | None,
    tenant: str | None,
    batch: str | None,
    reason: str | None,
    tag: str | None,
    key: str | None,
    argument: str | None,
    error: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    before: JobId | None,
) -> None:
    """The newest jobs first."""
    with opened() as store:
        wanted = JobFilter(
            queue=queue, task=task, state=_state(state), session=session, tenant=tenant, reason=reason, before=before,
            batch=None if batch is None else one_batch(store, batch), tag=tag, key=key, argument=argument, error=error,
            since=moment("--since", since, SYSTEM.now()), until=moment("--until", until, SYSTEM.now()),
        )  # fmt: skip
        page = store.reports.search(wanted, limit)
        found = page.jobs
        ids = [view.id for view in found if view.is_run and not view.state.settled]
        runs = store.workflows.begun(ids) if ids else {}
        hint = unseen(store, queue) if queue is not None and not found else ""
    more = None if page.before is None else str(page.before)
    if reason is not None and not found and (said := unheard_of(reason)):
        click.echo(f"lateshift: {said}", err=True)
    if wants_json():
        print_json({"jobs": [job_brief(view) for view in found], "next_before": more, "cut": page.cut})
        return
    print_table(
        ("job", "task", "queue", "state", ">attempt", ">age", "what"),
        [_row(view, runs.get(view.id)) for view in found],
        "No jobs." if wanted == JobFilter() else f"No jobs with {_in_words(wanted)}.{hint}",
    )
    if page.cut:
        click.echo(f"\nOnly the newest {LOOKED_AT:,} jobs were looked at. To go on: add --before {more}")
    elif more:
        click.echo(f"\nMore: add --before {more}")


@jobs.command()
@click.argument("named", type=digits, metavar="ID")
@listing
def show(named: str) -> None:
    """All there is to know about one job. The last digits of its id will do."""
    with opened() as store:
        view = store.reports.job(one(store, named))
        if view is None:
            raise JobUnknown(unknown(store, named))
        of_run = view.batch is not None and bool(store.workflows.begun([view.batch]))
        logged = store.logs.of(view.id)
    if wants_json():
        print_json(job_whole(view, of_run=of_run))
    else:
        _print_job(view, of_run)
        tell_of_logs(view.id, logged)


@jobs.command()
@click.argument("named", type=digits, metavar="ID...", nargs=-1, required=True)
@listing
def cancel(named: tuple[str, ...]) -> None:
    """Cancel jobs: waiting ones at once, running ones are told within a second."""
    with opened() as store:
        ids, missing = resolved(store, named)
        done = store.jobs.cancel(ids, by=operator())
        others = untouched(store, ids, done) | dict.fromkeys(missing)
        runs = runs_among(store, CANCEL, [view for view in store.reports.named(done) if view is not None])
        report("cancelled", "cancelled, or told to stop", done, others)
        if runs.count and not wants_json():
            click.echo(runs.says)
        complain(store, others)


jobs.add_command(explain)
jobs.add_command(logs)
jobs.add_command(dead)
jobs.add_command(resubmit)
jobs.add_command(discard)


def _state(label: str | None) -> State | None:
    return None if label is None else State[label.upper()]


def _in_words(wanted: JobFilter) -> str:
    return ", ".join(f"{name} {value}" for name, value in wanted.describe().items())


def _row(view: JobView, run: RunRow | None) -> list[str]:
    view = masked_view(view)
    what = at_what(run, view.state) if view.is_run and not view.state.settled else _what(view)
    return [
        str(view.id), view.task, view.queue, view.state.label, "" if view.is_run else f"{view.attempt}/{view.attempts}",
        duration(SYSTEM.now() - view.created_at), what,
    ]  # fmt: skip


def _what(view: JobView) -> str:
    """The one thing to know about it in its state; where there is none, what it was given."""
    last = last_failure(view)
    said = " ".join(f"{last.error or last.reason}: {last.message or ''}".split()) if last else ""
    if view.state is State.DEAD:
        return f"{view.reason}; {said}" if said else view.reason or ""
    if view.state is State.RUNNING and view.progress is not None:
        total = f" of {view.progress.total:g}" if view.progress.total else ""
        return f"{view.progress.done:g}{total} {view.progress.note or ''}".strip()
    if view.state is State.SCHEDULED:
        wait = view.due_at - SYSTEM.now()
        return (f"in {duration(wait)}" if wait > timedelta(0) else "due") + (f" after {said}" if said else "")
    return view.reason or shortened(in_one_line(view.payload), GIVEN_SHOWN)


def _print_job(view: JobView, of_run: bool) -> None:
    view = masked_view(view)
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
    for name, value in _facts(view, of_run):
        if value:
            table.add_row(name, Text(value))
    out.print(table)
    out.print(Text("\ntimeline", style="bold"))
    line = Table.grid(padding=(0, 2))
    line.add_column(style="bright_black", no_wrap=True)
    line.add_column(overflow="fold")
    for at, event in _timeline(view):
        line.add_row(at, Text(event))
    out.print(line)
    if not view.state.settled and view.state is not State.RUNNING:
        out.print(Text(f"\nWhy it waits: lateshift jobs explain {view.id}"))
    trace = next((record.traceback for record in reversed(view.history) if record.traceback), None)
    if trace:
        out.print(Text("\nthe task's traceback, of its latest failure", style="bold"))
        out.print(Text(trace.rstrip()))


def _facts(view: JobView, of_run: bool) -> Iterator[tuple[str, str]]:
    yield "job", str(view.id)
    yield "queue", f"{view.queue}, priority {view.priority}"
    yield (
        "fence" if view.is_run else "attempt",
        f"{view.fence}" if view.is_run else f"{view.attempt} of {view.attempts}, fence {view.fence}",
    )
    yield "arguments", in_one_line(view.payload)
    yield "result", in_one_line(view.result) if readable(view.result) is not None else ""
    yield "checkpoint", in_one_line(view.checkpoint)
    if view.progress is not None:
        total = f" of {view.progress.total:g}" if view.progress.total else ""
        yield "progress", f"{view.progress.done:g}{total} {view.progress.note or ''}"
    yield "holder", str(view.holder or "") if view.state is State.RUNNING else ""
    yield "complete by", instant(view.complete_by)
    yield "exclusive", view.exclusive or ""
    number = "" if view.sequence is None else f", number {view.sequence}"
    yield "session", f"{view.session}{number}" if view.session is not None else ""
    yield "tenant", view.tenant or ""
    yield "limit key", view.limit_key or ""
    yield "workflow" if of_run else "batch", str(view.batch or "")
    yield "tags", ", ".join(view.tags)
    yield "asked for by", str(view.parent or "")
    yield "workers lost", str(view.losses or "")
    yield "cancel", "asked for; the attempt is told to stop" if view.cancel_requested else ""


def _timeline(view: JobView) -> Iterator[tuple[str, str]]:
    yield instant(view.created_at), "enqueued"
    for record in view.history:
        yield instant(record.at), _attempt(record, of_run=view.is_run)
    if view.state is State.RUNNING and view.started_at is not None:
        yield instant(view.started_at), "goes on" if view.is_run else f"attempt {view.attempt} started"
    if view.state in (State.SCHEDULED, State.READY, State.BLOCKED):
        yield instant(view.due_at), "due" if view.state is State.SCHEDULED else view.state.label
    if view.settled_at is not None:
        yield instant(view.settled_at), view.state.label + (f": {view.reason}" if view.reason else "")


def _attempt(record: AttemptRecord, *, of_run: bool) -> str:
    if record.reason == RESUBMITTED:
        return f"resubmitted {record.message}"
    ran = f" after {duration(record.ran_for)}" if record.ran_for is not None else ""
    said: Any = " ".join(part for part in (record.error, record.message) if part)
    return f"{'' if of_run else f'attempt {record.attempt} '}{record.reason}{ran}" + (
        f": {said}" if said else ""
    )
