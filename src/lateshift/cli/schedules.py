"""`lateshift schedules`: what fires when, pause, fire now, and what was missed."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import click
from msgspec import structs

from lateshift.batches.handle import Batch
from lateshift.cli.durations import length, moment
from lateshift.cli.nouns import Nouns
from lateshift.cli.numbers import Whole
from lateshift.cli.options import listing, opened, operator, wants_json
from lateshift.cli.output import amount, counted, duration, print_json, print_table, short
from lateshift.cli.progress import bar
from lateshift.cli.schedule_making import add, edit
from lateshift.cli.schedule_view import (
    COLUMNS,
    print_moments,
    print_schedule,
    schedule_row,
)
from lateshift.cli.short_ids import meant
from lateshift.clock import SYSTEM
from lateshift.documents.batches import batch_document
from lateshift.documents.jobs import job_brief
from lateshift.documents.schedules import both, coming_document, schedule_document
from lateshift.model.job import JobView, State
from lateshift.model.scheduling.timing import Timing, in_zone, timing_of, upcoming
from lateshift.model.scheduling.zones import zone
from lateshift.operating.names import schedule as find_schedule
from lateshift.operating.written import digits_in
from lateshift.schedules import Schedule
from lateshift.store.contract import Store


@click.group(cls=Nouns)
def schedules() -> None:
    """What fires when; add, pause, fire now, fill what was missed."""


schedules.add_command(add)
schedules.add_command(edit)


@schedules.command("list")
@click.option("--once", is_flag=True, help="Jobs that wait for their time (delay= and at=), the next first.")
@click.option(
    "--limit",
    type=Whole(1, 10_000),
    metavar="N",
    default=200,
    show_default=True,
    help="How many at most.",
)
@click.option("--after", metavar="NAME", help="Only schedules after this one, by name: the next page.")
@listing
def list_schedules(once: bool, limit: int, after: str | None) -> None:
    """Schedules by name, when each fires next and what became of its last tick."""
    with opened() as store:
        if once:
            _list_once(store.reports.upcoming(limit))
            return
        found, hidden = store.schedules.list(after, limit), store.queues.concealed()
    more = found[-1].name if len(found) == limit else None
    if wants_json():
        print_json({"schedules": [schedule_document(view, hidden) for view in found], "next_after": more})
        return
    now = SYSTEM.now()
    nothing = "No schedules. app.schedule(…) makes one in code, `lateshift schedules add` here."
    print_table(COLUMNS, [schedule_row(view, now) for view in found], nothing)
    if more:
        click.echo(f"\nMore: add --after {more!r}")


def _list_once(found: list[JobView]) -> None:
    if wants_json():
        print_json({"jobs": [job_brief(view) for view in found]})
        return
    now = SYSTEM.now()
    rows = [
        [short(view.id), view.task, view.queue, f"in {duration(max(timedelta(0), view.due_at - now))}",
         f"{view.due_at.astimezone():%Y-%m-%d %H:%M:%S %Z}"]
        for view in found
    ]  # fmt: skip
    print_table(("job", "task", "queue", "next", "at"), rows, "No job waits for its time.")


@schedules.command()
@click.argument("name", metavar="NAME")
@listing
def show(name: str) -> None:
    """One schedule: its plan, its next ticks, and what became of the last ones."""
    with opened() as store:
        schedule, hidden = find_schedule(store, name), store.queues.concealed()
        view, coming = schedule.view(), schedule.upcoming()
    if wants_json():
        print_json(coming_document(view, coming, hidden))
    else:
        print_schedule(view, coming, SYSTEM.now(), hidden)


@schedules.command("next")
@click.argument("name", metavar="NAME", required=False)
@click.option("--cron", metavar="EXPRESSION", help="Try an expression that is no schedule yet.")
@click.option("--every", type=length, metavar="15m", help="Try an interval.")
@click.option("--timezone", metavar="ZONE", default="UTC", show_default=True, help="Of --cron.")
@click.option("--count", type=Whole(1, 1000), metavar="N", default=5, show_default=True, help="How many.")
@listing
def next_ticks(
    name: str | None, cron: str | None, every: timedelta | None, timezone: str, count: int
) -> None:
    """When a schedule fires next, in its time zone and in UTC, and in words what its expression means."""
    if (name is None) == (cron is None and every is None):
        raise click.UsageError("Give the NAME of a schedule, or try --cron or --every.")
    if name is None:
        timing = timing_of(cron=cron, every=every, at=None, timezone=timezone, start=None, end=None)
        found = upcoming(timing, SYSTEM.now(), count)
    else:
        with _found(name) as schedule:
            timing, found = schedule.view().plan.timing, schedule.upcoming(count)
    _print_next(timing, found)


def _print_next(timing: Timing, found: list[datetime]) -> None:
    if wants_json():
        local = [each.astimezone(zone(timing.timezone)).isoformat() for each in found]
        print_json({"words": timing.words, "timezone": timing.timezone, "next": found, "next_local": local})
        return
    click.echo(f"{timing.words}\n")
    print_moments(found, timing.timezone, "It does not fire again.")


@schedules.command()
@click.argument("name", metavar="NAME")
@listing
def pause(name: str) -> None:
    """No tick fires until it is resumed. What it misses is recorded, not caught up."""
    with _found(name) as schedule:
        paused = schedule.pause(by=operator())
    _answer(name, "paused", paused, f"{name} is paused." if paused else f"{name} was paused before.")


@schedules.command()
@click.argument("name", metavar="NAME")
@listing
def resume(name: str) -> None:
    """Fire again, from the next tick on."""
    with _found(name) as schedule:
        resumed = schedule.resume(by=operator())
    _answer(name, "resumed", resumed, f"{name} goes on." if resumed else f"{name} was not paused.")


@schedules.command()
@click.argument("name", metavar="NAME")
@listing
def remove(name: str) -> None:
    """Remove a schedule; its jobs stay. Or cancel a job that waits for its time, named by its id."""
    with opened() as store:
        if store.schedules.get(name) is None and _cancelled(store, name):
            _answer(name, "cancelled", True, f"The job {name} is cancelled.")
            return
        view = find_schedule(store, name).view()
        store.schedules.remove(name, by=operator())
    note = (
        f" The code of app {view.app} has it still: it stays away until that changes it." if view.app else ""
    )
    _answer(name, "removed", True, f"{name} is removed.{note}")


def _cancelled(store: Store, named: str) -> bool:
    """If it is the id of a job that waits for its time."""
    digits = digits_in(named)
    id = None if digits is None else meant(store, digits)
    view = None if id is None else store.reports.job(id)
    if view is None or view.state is not State.SCHEDULED:
        return False
    return bool(store.jobs.cancel([view.id], by=operator()))


@schedules.command()
@click.argument("name", metavar="NAME")
@listing
def fire(name: str) -> None:
    """Make one job of a schedule now, besides its ticks."""
    with _found(name) as schedule:
        job = schedule.fire(by=operator())
    if wants_json():
        print_json({"schedule": name, "job": str(job)})
    else:
        click.echo(f"Job {job} is enqueued.")


@schedules.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--from",
    "start",
    type=moment,
    required=True,
    metavar="DATE",
    help="The first moment, in the schedule's zone.",
)
@click.option(
    "--to",
    "end",
    type=moment,
    required=True,
    metavar="DATE",
    help="The last moment, itself included; a date alone is its midnight, not the day.",
)
@listing
def backfill(name: str, start: datetime, end: datetime) -> None:
    """A job for each tick of a range in the past, as a batch. Repeated, it makes none twice, and goes on where it was
    interrupted."""
    counts: list[int] = []
    with opened() as store:
        schedule = find_schedule(store, name)
        timing = schedule.view().plan.timing
        begin, last = in_zone("from", start, timing.timezone), in_zone("to", end, timing.timezone)
        with bar("enqueueing", None) as drawn:

            def told(count: int) -> None:
                counts.append(count)
                drawn(count)

            batch = schedule.backfill(begin, last, told, by=operator())
        view = Batch(batch, lambda: store, {}).progress()
    before, made = counts[0], sum(counts[1:])
    if wants_json():
        print_json(structs.asdict(batch_document(view)) | {"made": made, "from": begin, "to": last})
        return
    (first, _), (until, _) = both(begin, timing.timezone), both(last, timing.timezone)
    click.echo(
        f"{_backfilled(before, made)} in batch {batch}. `lateshift batches watch {batch}` shows how far it is.\n"
        f"The range was {first} to {until}, both included."
    )


def _backfilled(before: int, made: int) -> str:
    if not before:
        return f"{counted(made, 'tick')}, each with its job,"
    if not made:
        return f"Nothing is made twice: {counted(before, 'tick')} of this range had their jobs before,"
    return f"It went on where it was interrupted: {counted(before, 'tick')} had their jobs, {amount(made)} more have now,"


@contextmanager
def _found(name: str) -> Iterator[Schedule]:
    with opened() as store:
        yield find_schedule(store, name)


def _answer(name: str, key: str, changed: bool, sentence: str) -> None:
    if wants_json():
        print_json({"schedule": name, key: changed})
    else:
        click.echo(sentence)
