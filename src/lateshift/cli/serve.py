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
from lateshift.runtime.log import log_level, set_up
from lateshift.store.urls import shown
from lateshift.telemetry.structured import identify

if TYPE_CHECKING:
    from lateshift.app.app import Lateshift


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
@click.option(
    "--show-secrets",
    is_flag=True,
    help="Print the first token and the link that signs in also where it is no terminal, which may be a log.",
)
@place_options
@common
def serve(program: str, place: Place, show_secrets: bool) -> None:
    """Serve PROGRAM's HTTP API, for this machine only unless said otherwise. Ctrl-C stops gracefully."""
    require_extra()
    from lateshift.worker.program import find_app

    level = log_level("INFO")
    place.binding()  # what must not be is told before the program is imported
    if remembered("store"):
        os.environ["LATESHIFT_STORE"] = str(remembered("store"))
    app = find_app(program)
    refuse_memory(app.settings.store)
    set_up(level, app.settings)  # before anything is told
    identify(app=app.name, version=app.version)
    with patience():
        app.ring()  # one that cannot be read is said now
        _ = app.store
    try:
        _serve(app, place, show_secrets=show_secrets)
    finally:
        app.close()


def _serve(app: "Lateshift", place: Place, *, show_secrets: bool) -> None:
    from lateshift.api.application import matrix
    from lateshift.runtime.stopping import stop_on_signals

    with opened_door(app, place) as door:
        seen = show_secrets or sys.stdout.isatty()
        if not door.has_tokens and seen:
            show_first_token(app)
        click.echo(f"\n{app.name} on {shown(app.settings.store)}: {door.url}")
        if seen:
            show_link(door)
        elif not door.has_tokens:
            click.echo(
                "There is no token yet, and none is made where this may be a log. Make one: lateshift tokens create admin --scope admin"
            )
        click.echo(f"Who may use which of the {len(matrix())} routes: lateshift serve --matrix")
        sys.stdout.flush()

        async def run() -> None:
            stopping = asyncio.Event()
            stop_on_signals(stopping, signal.SIGINT, signal.SIGTERM)
            await door.run(stopping)

        asyncio.run(run())
