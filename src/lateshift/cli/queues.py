"""`lateshift queues`: what stands in each, pause, resume."""

import click

from lateshift.cli.missing import unseen
from lateshift.cli.nouns import Nouns
from lateshift.cli.options import listing, opened, operator, wants_json
from lateshift.cli.output import amount, duration, print_json, print_table
from lateshift.documents.queues import queue_document
from lateshift.operating.names import check_queue
from lateshift.operating.queues import all_queues
from lateshift.store.contract import COUNT_LIMIT, QueueView


@click.group(cls=Nouns)
def queues() -> None:
    """What stands in each queue; pause and resume."""


@queues.command("list")
@listing
def list_queues() -> None:
    """Every queue that has jobs, is paused or ran something in the last day, or that living workers serve by name or declare. A count
    stops at 10,000."""
    with opened() as store:
        found = all_queues(store)
    if wants_json():
        print_json({"queues": [queue_document(view) for view in found], "count_limit": COUNT_LIMIT})
        return
    print_table(
        ("queue", ">ready", ">scheduled", ">running", ">blocked", ">dead", ">oldest", "paused"),
        [_row(view) for view in found],
        "No queue has a job, and no worker that is alive declares one.",
    )


@queues.command()
@click.argument("name", metavar="NAME")
@listing
def pause(name: str) -> None:
    """Lease nothing more from a queue. What runs goes on; new jobs are accepted and wait."""
    check_queue(name)
    with opened() as store:
        known = {view.name for view in all_queues(store)}
        hint = "" if name in known else unseen(store, name)
        store.queues.pause(name, by=operator())
    _answer(name, "paused", f"{name} is paused. `lateshift queues resume {name}` lets it go on.{hint}")


@queues.command()
@click.argument("name", metavar="NAME")
@listing
def resume(name: str) -> None:
    """Let a paused queue go on."""
    check_queue(name)
    with opened() as store:
        resumed = store.queues.resume(name, by=operator())
    _answer(name, "resumed", f"{name} goes on." if resumed else f"{name} was not paused.", changed=resumed)


def _answer(name: str, key: str, sentence: str, *, changed: bool = True) -> None:
    if wants_json():
        print_json({"queue": name, key: changed})
    else:
        click.echo(sentence)


def _row(view: QueueView) -> list[str]:
    def count(number: int, cut: bool = False) -> str:
        return amount(number) + ("+" if cut or number >= COUNT_LIMIT else "")

    paused = f"by {view.paused_by}" if view.paused_at is not None else ""
    running = count(view.running, view.more_running)
    counts = (count(view.ready), count(view.scheduled), running, count(view.blocked), count(view.dead))
    return [view.name, *counts, duration(view.oldest_ready), paused]
