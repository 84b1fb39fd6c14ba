"""`lateshift triggers`: how far each has read, what keeps it, pause and resume; and what was refused."""

import sys
from uuid import UUID

import click

from lateshift.cli import exits
from lateshift.cli.nouns import Nouns
from lateshift.cli.numbers import Whole
from lateshift.cli.options import listing, opened, opened_for, operator, wants_json
from lateshift.cli.output import counted, print_json, print_sentences, print_table, short
from lateshift.cli.short_ids import nothing_refused, one_refused, refused_digits
from lateshift.cli.trigger_view import (
    COLUMNS,
    REFUSED_COLUMNS,
    print_trigger,
    refused_row,
    trigger_row,
)
from lateshift.clock import SYSTEM
from lateshift.documents.hiding import shown_refused
from lateshift.documents.triggers import refused_document, trigger_document
from lateshift.errors import TriggerUnknown
from lateshift.operating import refused as operating
from lateshift.operating.names import pause_trigger, trigger


@click.group(cls=Nouns)
def triggers() -> None:
    """What starts jobs from outside: how far each has read, and what it refused."""


@triggers.command("list")
@listing
def list_triggers() -> None:
    """Triggers by name: how far each has read, jobs made, their rate, what waits, and what keeps one from reading."""
    with opened() as store:
        found = store.triggers.all()
    if wants_json():
        print_json({"triggers": [trigger_document(view) for view in found]})
        return
    nothing = "No triggers. @app.on_message, @app.on_file, @app.on_row, @app.on_webhook and @app.on make them in code."
    print_sentences(COLUMNS, [trigger_row(view, SYSTEM.now()) for view in found], nothing)


@triggers.command()
@click.argument("name", metavar="NAME")
@listing
def show(name: str) -> None:
    """One trigger, with its position and its last error."""
    with opened() as store:
        view = trigger(store, name)
    if wants_json():
        print_json(trigger_document(view))
    else:
        print_trigger(view, SYSTEM.now())


@triggers.command()
@click.argument("name", metavar="NAME")
@listing
def pause(name: str) -> None:
    """Read no more until it is resumed. What comes waits where it is."""
    with opened() as store:
        paused = pause_trigger(store, name, by=operator())
    _answer(name, "paused", paused, f"{name} is paused." if paused else f"{name} was paused before.")


@triggers.command()
@click.argument("name", metavar="NAME")
@listing
def resume(name: str) -> None:
    """Read again, from where it stands."""
    with opened() as store:
        trigger(store, name)
        resumed = store.triggers.resume(name, by=operator())
    _answer(name, "resumed", resumed, f"{name} goes on." if resumed else f"{name} was not paused.")


@triggers.command()
@click.argument("name", metavar="NAME", required=False)
@click.option("--limit", type=Whole(1, 10_000), metavar="N", default=100, show_default=True,
              help="How many at most.")  # fmt: skip
@click.option("--after", type=refused_digits, metavar="ID", help="Only what was refused after this one.")
@listing
def refused(name: str | None, limit: int, after: str | None) -> None:
    """Events that no job could be made of, of one trigger or of all, the oldest first, and why."""
    with opened() as store:
        if name is not None and not store.triggers.refused(name, None, 1):
            trigger(store, name)
        start = None if after is None else one_refused(store, after)
        hidden = store.queues.concealed()
        found = [shown_refused(view, hidden) for view in store.triggers.refused(name, start, limit)]
    more = str(found[-1].id) if len(found) == limit else None
    if wants_json():
        print_json({"refused": [refused_document(view, ()) for view in found], "next_after": more})
        return
    rows = [refused_row(view, SYSTEM.now()) for view in found]
    print_sentences(REFUSED_COLUMNS, rows, "Nothing was refused.")
    if more:
        click.echo(f"\nMore: add --after {more}")
    if found:
        click.echo(
            f"\nSee it: lateshift triggers raw {short(found[0].id)}. Once the program is mended: lateshift triggers retry PROGRAM ID"
        )


@triggers.command()
@click.argument("id", type=refused_digits, metavar="ID")
@listing
def raw(id: str) -> None:
    """What was refused, byte for byte as it came, to stdout."""
    with opened() as store:
        meant = one_refused(store, id)
        kept, hidden = store.triggers.find_refused(meant), store.queues.concealed()
    if kept is None:
        raise TriggerUnknown(nothing_refused(meant))
    found = shown_refused(kept, hidden)
    if wants_json():
        print_json(refused_document(found, ()))
        return
    sys.stdout.buffer.write(found.raw)
    sys.stdout.buffer.flush()


@triggers.command()
@click.argument("program")
@click.argument("ids", type=refused_digits, metavar="[ID]…", nargs=-1)
@click.option("--trigger", "name", metavar="NAME", help="All that this trigger refused.")
@listing
def retry(program: str, ids: tuple[str, ...], name: str | None) -> None:
    """Make jobs of what was refused, with PROGRAM's code as it is now. Exit code 1 if some are refused again."""
    from lateshift.worker.program import find_app

    if bool(ids) == (name is not None):
        raise click.UsageError("Name what to retry: ids, or --trigger for all of one.")
    app = find_app(program)
    with opened_for(app) as store, app.using(store):
        which = [one_refused(store, each) for each in ids] or operating.ids_of(store, name or "")
        if name is not None and not which:
            trigger(store, name)
        told = operating.retry(app, which, by=operator())
    made, again = [str(job) for job in told.jobs], told.refused
    if wants_json():
        print_json({"jobs": made, "refused": again})
    else:
        click.echo(f"{counted(len(made), 'job')} made." if not made else f"Made: {', '.join(made)}")
        if again:
            rows = [[short(UUID(id)), why] for id, why in again.items()]
            print_table(("id", "not made, because"), rows, "")
    if again:
        raise click.exceptions.Exit(exits.FOUND)


@triggers.command()
@click.argument("ids", type=refused_digits, metavar="ID…", nargs=-1, required=True)
@listing
def discard(ids: tuple[str, ...]) -> None:
    """Let go of what was refused."""
    with opened() as store:
        gone = store.triggers.discard([one_refused(store, id) for id in ids], by=operator())
    if wants_json():
        print_json({"discarded": gone})
    else:
        click.echo(f"{counted(gone, 'event')} discarded.")
    if not gone:
        raise click.exceptions.Exit(exits.NOT_FOUND)


def _answer(name: str, key: str, changed: bool, sentence: str) -> None:
    if wants_json():
        print_json({"trigger": name, key: changed})
    else:
        click.echo(sentence)
