"""`lateshift serve`: the HTTP API of a program."""

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING

import click

from lateshift.cli.door import Place, opened_door, place_options, require_extra, show_first_token, show_link
from lateshift.cli.options import common, patience, refuse_memory, remembered
from lateshift.cli.output import print_table
from lateshift.runtime.log import set_up
from lateshift.store.urls import shown

if TYPE_CHECKING:
    from lateshift.app import Lateshift


@click.command()
@click.argument("program")
@place_options
@common
def serve(program: str, place: Place) -> None:
    """Serve PROGRAM's HTTP API, for this machine only unless said otherwise. Ctrl-C stops gracefully."""
    require_extra()
    from lateshift.worker.program import find_app

    place.binding()  # what must not be is told before the program is imported
    if remembered("store"):
        os.environ["LATESHIFT_STORE"] = str(remembered("store"))
    app = find_app(program)
    refuse_memory(app.settings.store)
    with patience():
        app.ring()  # one that cannot be read is said now
        _ = app.store
    try:
        _serve(app, place)
    finally:
        app.close()


def _serve(app: "Lateshift", place: Place) -> None:
    from lateshift.api.application import matrix
    from lateshift.runtime.stopping import stop_on_signals

    with opened_door(app, place) as door:
        set_up(os.environ.get("LATESHIFT_LOG", "INFO"))
        print_table(("method", "path", "scope", "queues"), matrix(), "")
        if not door.has_tokens:
            show_first_token(app)
        click.echo(f"\n{app.name} on {shown(app.settings.store)}: {door.url}")
        show_link(door)
        sys.stdout.flush()

        async def run() -> None:
            stopping = asyncio.Event()
            stop_on_signals(stopping, signal.SIGINT, signal.SIGTERM)
            await door.run(stopping)

        asyncio.run(run())
