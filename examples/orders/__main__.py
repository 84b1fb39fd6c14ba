"""`python -m examples.orders`: the whole of it, in this process. `--help` tells of its parts."""

import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import click
from rich.console import Console
from rich.live import Live

from examples.orders.application import app
from examples.orders.database import Order, prepare
from examples.orders.remote import MODES, PORT, SERVICES, Mode, Service, serving
from examples.orders.show import LONGEST, show
from examples.orders.submission import receive
from examples.orders.table import drawn, rows
from lateshift import LateshiftError

WIDE = 160  # columns, where there is no terminal


@click.group(invoke_without_command=True)
@click.option(
    "--store",
    metavar="URL",
    help="Where the orders and the jobs are; without it, a file that is gone at the end.",
)
@click.pass_context
def orders(context: click.Context, store: str | None) -> None:
    """An order for each way in which remote services fail; see docs/orders.md. The commands are its parts, for several terminals."""
    if context.invoked_subcommand is not None:
        if store is not None:
            app.settings = replace(app.settings, store=store)
        return
    with tempfile.TemporaryDirectory() as folder:
        app.settings = replace(app.settings, store=store or f"sqlite:///{folder}/orders.db?driver=sqlite3")
        with opened():
            well = asyncio.run(show(console()))
    sys.exit(0 if well else 1)


@orders.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 for any that is free."
)
def serve(port: int) -> None:
    """The remote services alone."""
    try:
        with suppress(KeyboardInterrupt), serving(port) as remote:
            click.echo(
                f"The remote services listen on {remote.url}. Ctrl-C ends them. To make one hang for order 7:"
            )
            click.echo(f"""curl -d '{{"order": 7, "mode": "hang", "service": "charge"}}' {remote.url}/mode""")
            remote.closing.wait()
    except OSError as error:
        raise click.ClickException(
            f"Nobody can listen on port {port}: {error}. Give another --port."
        ) from error


@orders.command()
@click.argument("number", type=click.IntRange(1, 2**31 - 1))
@click.option("--item", default="lamp", show_default=True)
@click.option("--price", default=39, show_default=True)
@click.option(
    "--mode", type=click.Choice(MODES), default="work", show_default=True, help="How it is treated."
)
@click.option("--service", type=click.Choice(SERVICES), default="charge", show_default=True, help="By whom.")
def submit(number: int, item: str, price: int, mode: Mode, service: Service) -> None:
    """Post an order. `lateshift work examples.orders:app` does the rest."""
    with opened():
        receive.enqueue(Order(number, item, price, mode, service))
    click.echo(f"Order {number} is posted.")


@orders.command()
@click.option("--watch", is_flag=True, help="Draw it again and again, until Ctrl-C.")
def table(watch: bool) -> None:
    """The orders, as the pattern's state store shows them."""
    with opened():
        out = console()
        if not watch:
            out.print(drawn(rows(), out.width))
            return
        with suppress(KeyboardInterrupt), Live(console=out, auto_refresh=False) as live:
            while True:
                live.update(drawn(rows(), out.width), refresh=True)
                time.sleep(0.2)


@contextmanager
def opened() -> Iterator[None]:
    """The store, with the tables of the orders; it must be one that the shop's own code can open."""
    url = app.settings.store
    if not url.startswith("postgresql:") and not (url.startswith("sqlite:///") and "driver=sqlite3" in url):
        raise click.UsageError(
            "The orders stand in the store's own database, and the shop's code must be able to open it. Name one by --store or"
            " LATESHIFT_STORE: sqlite:///orders.db?driver=sqlite3, or postgresql://…"
        )
    try:
        prepare()
        yield
    except LateshiftError as error:
        raise click.ClickException(str(error)) from error
    except TimeoutError as error:
        raise click.ClickException(
            f"The orders did not come to rest within {LONGEST.seconds} seconds."
        ) from error
    finally:
        app.close()


def console() -> Console:
    return Console(width=None if sys.stdout.isatty() else WIDE, highlight=False)


if __name__ == "__main__":
    orders(prog_name="python -m examples.orders")
