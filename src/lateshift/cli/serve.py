"""`lateshift serve`: the HTTP API of a program."""

import asyncio
import os
import signal
import sys
from collections import Counter
from typing import TYPE_CHECKING

import click

from lateshift.cli.door import Place, opened_door, place_options, require_extra, show_first_token, show_link
from lateshift.cli.options import common, patience, refuse_memory, remembered
from lateshift.cli.output import print_table
from lateshift.model.access import Scope
from lateshift.runtime.log import set_up
from lateshift.store.urls import shown

if TYPE_CHECKING:
    from lateshift.app import Lateshift


def _show_matrix(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    """Of no program in particular: the routes are the same for each."""
    if not wanted or context.resilient_parsing:
        return
    require_extra()
    from lateshift.api.application import matrix

    print_table(("method", "path", "scope", "queues"), matrix(), "")
    context.exit()


@click.command()
@click.argument("program")
@click.option(
    "--matrix",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_matrix,
    help="Print who may use which route, and end.",
)
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
    from lateshift.api.route import PUBLIC
    from lateshift.runtime.stopping import stop_on_signals

    with opened_door(app, place) as door:
        set_up(os.environ.get("LATESHIFT_LOG", "INFO"))
        counts = Counter(scope for _, _, scope, _ in matrix())
        scopes = ", ".join(f"{counts[scope]} {scope}" for scope in (PUBLIC, *Scope) if counts[scope])
        click.echo(
            f"{counts.total()} routes, by who may use them: {scopes}. All of them: lateshift serve --matrix"
        )
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
