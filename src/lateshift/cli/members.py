"""`lateshift members`: the live processes."""

import click

from lateshift.cli.nouns import Nouns
from lateshift.cli.options import listing, opened, wants_json
from lateshift.cli.output import amount, duration, print_json, print_sentences, short
from lateshift.clock import SYSTEM
from lateshift.documents.members import member_document
from lateshift.store.contract import MemberView


@click.group(cls=Nouns)
def members() -> None:
    """The processes that work on the store."""


@members.command("list")
@listing
def list_members() -> None:
    """Every process that beats, and for ten minutes those that have died."""
    with opened() as store:
        found = store.reports.members()
    if wants_json():
        print_json({"members": [member_document(view) for view in found]})
        return
    print_sentences(
        ("member", "name", "host", ">pid", ">up", ">running", ">completed", "state", "runs"),
        [_row(view) for view in found],
        "No process works on this store.",
    )


def _row(view: MemberView) -> list[str]:
    return [
        short(view.id), view.name, view.host, str(view.pid), duration(SYSTEM.now() - view.started_at),
        amount(view.stats.get("running", 0)), amount(view.stats.get("completed", 0)), "dead" if view.dead else "alive",
        _runs(view),
    ]  # fmt: skip


def _runs(view: MemberView) -> str:
    """Its program, and the queues that it serves."""
    if view.serves is None:
        return ""
    return f"{view.serves.program} for {', '.join(view.serves.queues) or 'all queues'}"
