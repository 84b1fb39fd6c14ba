"""`lateshift breakers`, and the program of docs/agents.md, on both stores."""

import re
from collections import deque
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from lateshift import NO_RETRY, Breaker, Flow, Lateshift
from lateshift.cli.view import View
from lateshift.testing import Kit, testing
from lateshift.worker.declaring import declare
from tests.walks.commands import Cli
from tests.walks.test_workflows_docs import run

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
DRIVE = """
import asyncio


async def main() -> None:
    async with app.running():
        print(await (await charge.aenqueue(7)).aresult())


asyncio.run(main())
"""


@pytest.fixture
def kit(cli: Cli, store_url: str) -> Iterator[Kit]:
    app = Lateshift("bank", store=store_url)
    payments = app.agent("payments", breaker=Breaker(failures=2, open_for=timedelta(hours=10)))

    @payments.task(retry=NO_RETRY)
    def charge(order: int) -> str:
        if order < 0:
            raise ConnectionError("refused")
        return f"receipt {order}"

    with testing(app, store=store_url) as kit:
        declare(app.store, app.tasks)
        yield kit


def enqueue(kit: Kit, *orders: int) -> None:
    charge = kit.app.find_task("charge")
    for order in orders:
        charge.enqueue(order)
    kit.drain()


def test_the_list_says_which_are_open_why_and_what_is_parked(cli: Cli, kit: Kit) -> None:
    assert cli("breakers", "list", "--open").out == "No breaker is open.\n"
    enqueue(kit, 1, -1, -1)
    enqueue(kit, 2, 3, 4)
    said = cli("breakers", "list").out
    assert re.search(r"payments +open since (\d{4}-\d\d-\d\d )?\d\d:\d\d +3 +2 +1 ", said), said
    assert "ConnectionError: refused" in said
    [document] = cli("breakers", "list", "--open", "--json").document["breakers"]
    assert (document["name"], document["state"], document["parked"], document["tasks"]) == (
        "payments", "open", 3, ["charge"],
    )  # fmt: skip


def test_a_breaker_is_opened_and_closed_by_hand(cli: Cli, kit: Kit) -> None:
    assert "is parked" in cli("breakers", "open", "payments").out
    assert cli("breakers", "open", "payments").out == "payments was opened by hand before.\n"
    enqueue(kit, 1)
    assert "by " in cli("breakers", "list").out
    assert cli("breakers", "close", "payments").out == "payments is closed: what was parked goes on.\n"
    assert cli("breakers", "close", "payments", "--json").document == {"breaker": "payments", "closed": False}
    [ran] = kit.drain()
    assert ran.task == "charge"


def test_one_that_is_not_there_is_told_with_those_that_are(cli: Cli, kit: Kit) -> None:
    said = cli("breakers", "close", "payment")
    assert (said.code, said.out) == (4, "")
    assert said.err == "lateshift: There is no breaker payment. There are: payments.\n"
    assert cli("breakers", "open", "x").code == 4


def test_where_there_is_none_it_says_so(cli: Cli, store_url: str) -> None:
    app = Lateshift("bank", store=store_url)
    app.store.ready()
    app.close()
    assert cli("breakers", "list").out == "No breaker is declared.\n"


def test_the_live_view_says_which_is_open(cli: Cli, kit: Kit) -> None:
    enqueue(kit, -1, -1)
    enqueue(kit, 2, 3, 4)
    view = View(kit.app, StringIO(), deque())
    view.sight = view.look()
    shown = Console(file=StringIO(), width=120, height=40, record=True)
    shown.print(view.screen(120, 40))
    assert re.search(r"payments: open since [\d:-]+, 3 parked", shown.export_text())


def test_the_program_of_the_page_does_what_it_says(store_url: str, tmp_path: Path) -> None:
    program = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)[0]
    (tmp_path / "payments.py").write_text(program + DRIVE)
    assert run(tmp_path / "payments.py", store_url) == ["receipt 7"]


def test_a_run_shows_what_keeps_the_job_of_its_step(cli: Cli, kit: Kit) -> None:
    @kit.app.workflow
    async def fulfil(flow: Flow, order: int) -> str:
        return await flow.step(charge, order, time_limit=timedelta(hours=1))

    charge = kit.app.find_task("charge")
    kit.app.store.breakers.open("payments", by="ann")
    job = fulfil.enqueue(7)
    kit.drain()
    said = " ".join(cli("workflows", "show", str(job.id)).out.split())
    assert "charge(order=7) blocked" in said, said
    assert "The breaker payments was opened by ann" in said
    assert "complete by" in said
