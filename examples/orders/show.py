"""What `python -m examples.orders` shows: an order for each way in which the remote services can behave, until all have come to their
end; then an operator, who mends what has failed."""

import asyncio
import logging
import os
import re
import sys
import urllib.request
from collections import deque
from collections.abc import Sequence
from datetime import timedelta

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from examples.orders.application import app
from examples.orders.database import Order, prepare, query
from examples.orders.remote import Remote, serving
from examples.orders.replies import heard
from examples.orders.submission import receive
from examples.orders.table import Row, drawn, rows

LONGEST = timedelta(seconds=60)  # that the orders may take to come to rest
LOOK_EVERY = 0.1  # seconds
LINES = 8  # of the log, below the table
ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{6}([0-9a-f]{6})\b")


def orders_from(first: int) -> list[Order]:
    """One for each way; all but the last come right in the end."""
    return [
        Order(first, "lamp", 39),
        Order(first + 1, "kettle", 24, "transient"),
        Order(first + 2, "chair", 89, "timeout"),
        Order(first + 3, "atlas", 55, "lost"),
        Order(first + 4, "teapot", 19, "hang"),
        Order(first + 5, "cake", 12, "permanent"),
        Order(first + 6, "piano", 900, "permanent", "ship"),
    ]


async def show(out: Console) -> bool:
    """Whether every order ended as it should."""
    prepare()
    [(last,)] = query("SELECT coalesce(max(id), 0) FROM orders")
    orders = orders_from(last + 1)
    log = Log(out)
    with serving() as remote, log:
        os.environ["ORDERS_REMOTE"] = remote.url
        async with app.running():
            out.print(f"{len(orders)} orders are posted; the remote services treat each in another way.")
            for order in orders:
                await receive.aenqueue(order)
            failed = [row for row in await at_rest(orders, log, out) if row.step]
            await alerts(failed, out)
            for row in failed:
                await mend(row, remote, out)
            ended = await at_rest(orders, log, out)
            await told(ended)
        return judge(orders, ended, remote, out)


async def at_rest(orders: Sequence[Order], log: "Log", out: Console) -> list[Row]:
    """Draw the table until nothing moves any more."""
    wanted = {order.id for order in orders}
    seen: list[Row] = []
    with Live(console=out, auto_refresh=False, transient=True) as live:
        async with asyncio.timeout(LONGEST.total_seconds()):
            while len(seen) < len(wanted) or not all(row.over for row in seen):
                seen = [row for row in await asyncio.to_thread(rows) if row.order in wanted]
                log.names = {str(row.run): f"(order {row.order})" for row in seen}
                if out.is_terminal:
                    live.update(Group(drawn(seen, out.width), *log.last), refresh=True)
                await asyncio.sleep(LOOK_EVERY)
    out.print(drawn(seen, out.width))
    return seen


async def alerts(failed: Sequence[Row], out: Console) -> None:
    """What the operator was told, once the shop has heard of it too."""
    out.print(Text("The operator is alerted:", "bold"))
    await told(failed)
    for row in failed:
        for (why,) in query("SELECT why FROM alerts WHERE order_id = ?", row.order):
            out.print(Text(f"  order {row.order}: {why}", "red"))


async def told(rows: Sequence[Row]) -> None:
    """Until the shop has heard how each stands, which comes a moment later."""
    async with asyncio.timeout(LONGEST.total_seconds()):
        for row in rows:
            ends = ["Processed"] if row.state == "Processed" else ["Error", "Undone"]
            while not {*ends} & {*(await asyncio.to_thread(heard, row.order))[-1:]}:  # noqa: ASYNC110 - it is in a database
                await asyncio.sleep(LOOK_EVERY)


async def mend(row: Row, remote: Remote, out: Console) -> None:
    """The cause first, then the step; by the commands that an operator has."""
    body = f'{{"order": {row.order}, "mode": "work"}}'
    out.print(Text(f"\n$ curl -d '{body}' {remote.url}/mode", "bold"), soft_wrap=True)
    request = urllib.request.Request(f"{remote.url}/mode", body.encode())
    await asyncio.to_thread(lambda: urllib.request.urlopen(request, timeout=5).close())
    command = ["workflows", "resubmit-step", str(row.run), row.step]
    out.print(Text(f"$ lateshift {' '.join(command)}", "bold"), soft_wrap=True)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "lateshift", *command, env=os.environ | {"LATESHIFT_STORE": app.settings.store},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said, _ = await process.communicate()
    out.print(Text(said.decode().rstrip(), "bright_black"), soft_wrap=True)


def judge(orders: Sequence[Order], ended: Sequence[Row], remote: Remote, out: Console) -> bool:
    out.print(Text("The shop has heard:", "bold"))
    for order in orders:
        said = ", then ".join(heard(order.id))
        done = ", ".join(each.split()[0] for each in remote.log if each.split()[1] == str(order.id))
        out.print(f"  order {order.id}: {said}. Really done: {done}.")
    states = [row.state for row in ended]
    charged = sorted(each for each in remote.log if each.startswith("charge"))
    well = states == ["Processed"] * (len(orders) - 1) + ["Error"]
    once = charged == sorted(f"charge {order.id}" for order in orders)
    out.print(
        Text("Every card was charged once, and the piano that nobody could ship is refunded.", "bold green")
        if well and once
        else Text("That is not how it should have ended.", "bold red")
    )
    return well and once


class Log(logging.Handler):
    """What Lateshift logs: below the table on a terminal, else line by line. Runs are called by their orders."""

    def __init__(self, out: Console) -> None:
        super().__init__(logging.WARNING)
        self.last: deque[Text] = deque(maxlen=LINES)
        self.names: dict[str, str] = {}
        self._out = out
        self._logger = logging.getLogger("lateshift")

    def __enter__(self) -> None:
        self._logger.addHandler(self)

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        said = ID.sub(lambda found: self.names.get(found[0], f"…{found[1]}"), record.getMessage())
        line = Text(said, "bright_black", no_wrap=True, overflow="ellipsis")
        self.last.append(line)
        if not self._out.is_terminal:
            self._out.print(line, soft_wrap=True)
