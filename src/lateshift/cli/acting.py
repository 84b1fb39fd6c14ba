"""What cancel, resubmit and discard say about the jobs they were given."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from lateshift.cli import exits
from lateshift.cli.options import wants_json
from lateshift.cli.output import counted, print_json
from lateshift.cli.short_ids import meant, unknown
from lateshift.model.ids import JobId
from lateshift.store.contract import Store


def resolved(store: Store, named: Sequence[str]) -> tuple[list[JobId], list[str]]:
    """The jobs so named, each once, and the names that fit none. Raises if a name fits several: nothing is done then."""
    found = {name: meant(store, name) for name in named}
    return list(dict.fromkeys(id for id in found.values() if id)), [
        name for name, id in found.items() if not id
    ]


def untouched(store: Store, asked: Sequence[JobId], done: Sequence[JobId]) -> dict[str, str | None]:
    """The jobs that nothing was done to, each with its state; None for one that is not there."""
    gone = set(done)
    views = {id: store.reports.job(id) for id in asked if id not in gone}
    return {str(id): view.state.label if view else None for id, view in views.items()}


def report(
    key: str,
    words: str,
    done: Sequence[JobId],
    others: dict[str, str | None],
    more: dict[str, Any] | None = None,
) -> None:
    if wants_json():
        left = [{"id": id, "state": state} for id, state in others.items()]
        print_json({key: [str(id) for id in done], "unchanged": left} | (more or {}))
    else:
        click.echo(f"{counted(len(done), 'job')} {words}.")


def complain(
    store: Store, others: dict[str, str | None], why: Callable[[str], str | None] = lambda id: None
) -> None:
    """Ends with the exit code for it, if there is anything to complain of. `why`: more about one that is there."""
    for id, state in others.items():
        if state:
            said = why(id) or f"job {id} is {state} and stays so."
        else:
            plain = id.replace("-", "")
            said = f"job {id} is not in the store; " + unknown(store, plain).partition("; ")[2]
        click.echo(f"lateshift: {said}", err=True)
    if others:
        raise click.exceptions.Exit(exits.NOT_FOUND)
