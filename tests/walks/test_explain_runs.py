"""A run is told as what it is: it has one life, and no attempts."""

from collections.abc import Iterator

import pytest

from lateshift import Flow
from lateshift.testing import Kit
from tests.walks.commands import Cli
from tests.walks.workflow_shop import Shop, shop_on


@pytest.fixture
def shop(cli: Cli, store_url: str) -> Iterator[Shop]:
    with shop_on(store_url) as shop:
        yield shop


@pytest.fixture
def kit(shop: Shop) -> Kit:
    return shop.kit


def test_the_explanation_of_a_run_knows_no_attempts(kit: Kit, shop: Shop) -> None:
    while_it_ran: list[str] = []

    def look(id: str) -> None:
        while_it_ran.append(str(kit.app.job(id).explain()))

    @kit.app.workflow
    async def looking(flow: Flow) -> None:
        await flow.step(look, str(flow.id))

    well, badly = looking.enqueue(), shop.failing.enqueue()
    kit.drain()
    said = [*while_it_ran, str(well.explain()), str(badly.explain())]
    assert "Its workflow runs since" in said[0]
    assert "Its workflow completed at" in said[1]
    assert "It died at" in said[2]
    assert not [text for text in said if "ttempt" in text]


def test_nor_do_the_commands_that_list_and_show_it(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.failing.enqueue()
    kit.drain()
    listed, shown = cli("jobs", "list"), cli("jobs", "show", str(job.id))
    assert "1000000" not in listed.out + shown.out
    assert "attempt" not in shown.out
