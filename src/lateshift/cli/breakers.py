"""`lateshift breakers`: which are open, since when and why, how many jobs each has parked; and opening and closing them by hand."""

from datetime import UTC, datetime

import click

from lateshift.cli.nouns import Nouns
from lateshift.cli.options import listing, opened, operator, wants_json
from lateshift.cli.output import amount, instant, print_json, print_table
from lateshift.documents.breakers import breaker_document
from lateshift.model.breaker import CircuitView
from lateshift.operating.names import require_breaker
from lateshift.store.contract import COUNT_LIMIT


@click.group(cls=Nouns)
def breakers() -> None:
    """Circuit breakers: which are open, and what they have parked."""


@breakers.command("list")
@click.option("--open", "only_open", is_flag=True, help="Only those that are open.")
@listing
def list_breakers(only_open: bool) -> None:
    """Every breaker that the workers' code declares; those by version once for each version. A count stops at 10,000."""
    with opened() as store:
        found = [view for view in store.breakers.list() if view.state != "closed" or not only_open]
    if wants_json():
        print_json({"breakers": [breaker_document(view) for view in found]})
        return
    print_table(
        ("breaker", "state", ">parked", ">failed", ">passed", "next probe", "tasks", "why"),
        [_row(view) for view in found],
        "No breaker is open." if only_open else "No breaker is declared.",
    )


@breakers.command("open")
@click.argument("name", metavar="NAME")
@listing
def open_breaker(name: str) -> None:
    """Park what comes to it until it is closed by hand; nobody probes meanwhile. What runs goes on."""
    with opened() as store:
        require_breaker(store, name)
        _answer(name, "opened", store.breakers.open(name, by=operator()))


@breakers.command()
@click.argument("name", metavar="NAME")
@listing
def close(name: str) -> None:
    """Let everything through again."""
    with opened() as store:
        require_breaker(store, name)
        _answer(name, "closed", store.breakers.close(name, by=operator()))


def _answer(name: str, done: str, changed: bool) -> None:
    if wants_json():
        print_json({"breaker": name, done: changed})
    elif not changed:
        click.echo(f"{name} was closed before." if done == "closed" else f"{name} was opened by hand before.")
    elif done == "opened":
        click.echo(
            f"{name} is open, and what comes to it is parked. `lateshift breakers close {name}` lets it go on."
        )
    else:
        click.echo(f"{name} is closed: what was parked goes on.")


def stands(view: CircuitView) -> str:
    """Such as: open since 12:03, by ann."""
    if view.opened_at is None:
        return "closed"
    since = f"{view.state} since {_shortly(view.opened_at)}"
    return f"{since}, by {view.opened_by}" if view.opened_by else since


def summary(view: CircuitView) -> str:
    """Such as: payments: open since 12:03, 3,214 parked."""
    return f"{view.name}: {stands(view)}, {parked(view)} parked"


def parked(view: CircuitView) -> str:
    return amount(view.parked) + ("+" if view.parked >= COUNT_LIMIT else "")


def _shortly(moment: datetime) -> str:
    """In the reader's own time zone; the date too, if that is another day."""
    here, now = moment.astimezone(), datetime.now().astimezone()
    return here.strftime("%H:%M" if here.date() == now.date() else "%Y-%m-%d %H:%M")


def _row(view: CircuitView) -> list[str]:
    probe = "" if view.next_probe_at is None or view.probe else instant(view.next_probe_at)
    if view.next_probe_at is not None and view.next_probe_at <= datetime.now(UTC) and not view.parked:
        probe = "with the next job"
    counts = [parked(view), amount(view.failed), amount(view.passed)]
    return [view.name, stands(view), *counts, probe, ", ".join(view.tasks), view.reason or ""]
