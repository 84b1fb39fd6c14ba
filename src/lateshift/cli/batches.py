"""`lateshift batches`: how far each is, cancel all of one, run again what failed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from lateshift.batches.handle import Batch
from lateshift.cli import exits
from lateshift.cli.batch_view import facts, watched
from lateshift.cli.nouns import Nouns
from lateshift.cli.numbers import Whole
from lateshift.cli.options import job_id as id_type
from lateshift.cli.options import listing, opened, operator, wants_json
from lateshift.cli.output import amount, console, counted, duration, print_json, print_table
from lateshift.cli.progress import bar
from lateshift.cli.short_ids import batch_digits, one_batch
from lateshift.clock import SYSTEM
from lateshift.documents.batches import batch_document, state_of
from lateshift.model.batch import BatchId, BatchView


@click.group(cls=Nouns)
def batches() -> None:
    """How far batches are; cancel all of one, run again what failed."""


@batches.command("list")
@click.option(
    "--limit",
    type=Whole(1, 10_000),
    metavar="N",
    default=20,
    show_default=True,
    help="How many at most.",
)
@click.option("--before", type=id_type, metavar="ID", help="Only batches older than this one: the next page.")
@listing
def list_batches(limit: int, before: BatchId | None) -> None:
    """The newest batches first."""
    with opened() as store:
        found = store.batches.newest(before, limit)
    more = str(found[-1].id) if len(found) == limit else None
    if wants_json():
        print_json({"batches": [batch_document(view) for view in found], "next_before": more})
        return
    print_table(
        ("batch", "state", ">total", ">waiting", ">running", ">completed", ">failed", ">cancelled", ">age", "name"),
        [_row(view) for view in found],
        "No batches.",
    )  # fmt: skip
    if more:
        click.echo(f"\nMore: add --before {more}")


@batches.command()
@click.argument("named", type=batch_digits, metavar="ID")
@listing
def show(named: str) -> None:
    """How far one batch is, and what follows it. The last digits of its id will do."""
    with _found(named) as batch:
        view = batch.progress()
    if wants_json():
        print_json(batch_document(view))
        return
    from rich.table import Table
    from rich.text import Text

    out = console()
    out.print(Text.assemble((view.name or "batch", "bold"), " is ", (state_of(view), "bold")))
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bright_black", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts(view):
        if value:
            table.add_row(name, Text(value))
    out.print(table)


@batches.command()
@click.argument("named", type=batch_digits, metavar="ID")
@listing
def watch(named: str) -> None:
    """A progress bar until all jobs of a batch have ended. Exit code 1 if some have failed or were cancelled."""
    with _found(named) as batch:
        view = watched(batch)
    if wants_json():
        print_json(batch_document(view))
    else:
        said = [f"{amount(view.completed)} of {counted(view.total, 'job')} completed"]
        said += [f"{amount(view.failed)} failed"] if view.failed else []
        said += [f"{amount(view.cancelled)} cancelled"] if view.cancelled else []
        click.echo(", ".join(said) + ".")
    if view.completed < view.total:
        raise click.exceptions.Exit(exits.FOUND)


@batches.command()
@click.argument("named", type=batch_digits, metavar="ID")
@listing
def cancel(named: str) -> None:
    """Cancel all jobs of a batch: waiting ones at once, running ones are told within a second. No callback follows."""
    with _found(named) as batch:
        cancelled = batch.cancel(by=operator())
        view = batch.progress()
    done = "is cancelled" if cancelled else "had finished, and stays so"
    told = f", {counted(view.running, 'job')} told to stop" if cancelled and view.running else ""
    _answer(
        view, "cancelled", cancelled, f"The batch {view.id} {done}: {amount(view.cancelled)} cancelled{told}."
    )


@batches.command()
@click.argument("named", type=batch_digits, metavar="ID")
@listing
def resubmit(named: str) -> None:
    """Make the dead letters of a batch ready again, with fresh attempts."""
    with _found(named) as batch:
        with bar("resubmitting", batch.progress().failed) as told:
            count = batch.resubmit_failed(operator(), told)
        view = batch.progress()
    if wants_json():
        print_json({"batch": str(view.id), "resubmitted": count})
    else:
        click.echo(
            f"{counted(count, 'job')} ready again." if count else "No job of this batch is a dead letter."
        )


@batches.command()
@click.argument("named", type=batch_digits, metavar="ID")
@listing
def seal(named: str) -> None:
    """Say that no more jobs will come to a batch whose producer died: those that are in are all."""
    with _found(named) as batch:
        sealed = batch.seal(by=operator())
        view = batch.progress()
    done = "is sealed" if sealed else "was sealed before"
    _answer(view, "sealed", sealed, f"The batch {view.id} {done}, with {counted(view.total, 'job')}.")


def _answer(view: BatchView, key: str, changed: bool, sentence: str) -> None:
    if wants_json():
        print_json({"batch": str(view.id), key: changed})
    else:
        click.echo(sentence)
    if not changed:
        raise click.exceptions.Exit(exits.NOT_FOUND)


@contextmanager
def _found(named: str) -> Iterator[Batch]:
    with opened() as store:
        yield Batch(one_batch(store, named), lambda: store, {})


def _row(view: BatchView) -> list[str]:
    numbers: list[Any] = [view.total, view.waiting, view.running, view.completed, view.failed, view.cancelled]
    return [
        str(view.id), state_of(view), *map(amount, numbers), duration(SYSTEM.now() - view.created_at), view.name or "",
    ]  # fmt: skip
