"""The live view: what it shows beside queues, workers and jobs."""

from collections import deque
from collections.abc import Iterator
from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console

from lateshift import Flow, Lateshift, Permanent
from lateshift.cli.view import View
from lateshift.testing import Kit, testing
from lateshift.worker.declaring import declare


@pytest.fixture
def kit(store_url: str) -> Iterator[Kit]:
    app = Lateshift("shop", store=store_url)

    @app.workflow(on_failure="hold")
    async def fulfil(flow: Flow, order: int) -> None:
        await flow.step(charge, order)

    def charge(order: int) -> None:
        raise Permanent(f"no card for {order}")

    with testing(app, store=store_url) as kit:
        declare(app.store, app.tasks)
        yield kit


def screen(kit: Kit, width: int = 120, height: int = 40) -> str:
    view = View(kit.app, StringIO(), deque())
    view.sight = view.look()
    shown = Console(file=StringIO(), width=width, height=height, record=True)
    shown.print(view.screen(width, height))
    return shown.export_text()


def test_without_a_held_run_there_is_no_room_for_any(kit: Kit) -> None:
    assert "held workflows" not in screen(kit)


@pytest.mark.parametrize(("width", "height"), [(120, 40), (80, 24)])
def test_runs_that_wait_for_an_operator_are_shown_with_their_reason(
    kit: Kit, width: int, height: int
) -> None:
    fulfil = kit.app.find_task("fulfil")
    jobs = [fulfil.enqueue(number) for number in range(8)]
    kit.drain()
    shown = screen(kit, width, height)
    assert "held workflows" in shown
    assert f"fulfil …{str(jobs[-1].id)[-6:]} step 1" in shown
    assert "and " in shown.partition("held workflows")[2]
    assert "dead letters" in shown


def test_the_link_to_the_dashboard_stands_whole_until_it_is_used(kit: Kit) -> None:
    door = SimpleNamespace(shown="http://127.0.0.1:8642/sign-in?code=" + "x" * 43)
    view = View(kit.app, StringIO(), deque(), door)  # type: ignore[arg-type]
    assert f"dashboard {door.shown}" in shown(view, 100)
    narrow = shown(view, 60).replace("\n", "")
    assert "".join(narrow.split()).count("code=" + "x" * 43) == 1
    door.shown = "http://127.0.0.1:8642"
    assert "dashboard http://127.0.0.1:8642 " in shown(view, 100)


def shown(view: View, width: int) -> str:
    console = Console(file=StringIO(), width=width, height=30, color_system=None)
    with console.capture() as drawn:
        console.print(view.screen(width, 30))
    return drawn.get()
