"""`lateshift sessions`: what sessions keep, which are held, and letting them go on."""

import click
import msgspec

from lateshift.cli import exits
from lateshift.cli.missing import held_elsewhere
from lateshift.cli.nouns import Nouns
from lateshift.cli.numbers import Whole
from lateshift.cli.options import listing, opened, operator, wants_json
from lateshift.cli.output import print_json, print_table
from lateshift.documents.sessions import SessionDocument, session_document

SHOWN = 200  # sessions in a listing, unless --limit says otherwise
STATE_SHOWN = 60  # characters of a session's state in a listing


@click.group(cls=Nouns)
def sessions() -> None:
    """What sessions keep, and which are held."""


@sessions.command("list")
@click.option(
    "--held",
    is_flag=True,
    help="Only those that wait for somebody: a dead letter or a missing number holds them.",
)
@click.option("--limit", type=Whole(1, 10_000), default=SHOWN, show_default=True, help="How many at most.")
@listing
def list_sessions(held: bool, limit: int) -> None:
    """Sessions that keep state, number their jobs, or are held."""
    with opened() as store:
        found = store.sessions.list(held=held, limit=limit)
        hidden = store.queues.concealed()
    documents = [session_document(view, hidden) for view in found]
    if wants_json():
        print_json({"sessions": documents})
        return
    print_table(
        ("queue", "session", "held by", ">expects", "state"),
        [_row(document) for document in documents],
        "No session is held." if held else "No session keeps anything.",
    )


@sessions.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--queue", default="default", show_default=True, metavar="NAME", help="The queue it belongs to."
)
@listing
def release(name: str, queue: str) -> None:
    """Let a held session go on without its dead letter, or without the number that is missing."""
    with opened() as store:
        released = store.sessions.release(queue, name, by=operator())
        hint = "" if released else held_elsewhere(store, name)
    if wants_json():
        print_json({"queue": queue, "session": name, "released": released})
    elif released:
        click.echo(f"The session {name} of queue {queue} goes on.")
    else:
        click.echo(
            f"No session {name} of queue {queue} is held.{hint} `lateshift sessions list --held` shows those that are."
        )
    if not released:
        raise click.exceptions.Exit(exits.NOT_FOUND)


def _row(document: SessionDocument) -> list[str]:
    held = {"dead": f"dead letter {document.held_by}", "gap": "a missing number", None: ""}[document.held_why]
    state = "" if document.state is None else msgspec.json.encode(document.state).decode()
    shown = state if len(state) <= STATE_SHOWN else state[: STATE_SHOWN - 1] + "…"
    expects = "" if document.expects is None else str(document.expects)
    return [document.queue, document.session, held, expects, shown]
