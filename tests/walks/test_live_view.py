"""The live view: what it shows beside queues, workers and jobs."""

from collections import deque
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.text import Text

from lateshift import Flow, Lateshift, Permanent
from lateshift.cli.narrow import staying
from lateshift.cli.view import View
from lateshift.cli.watch import Sight
from lateshift.model.ids import new_member_id
from lateshift.store.contract import MemberView, QueueView
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


def crowded(kit: Kit, width: int, height: int) -> str:
    """Ten queues, the one with dead letters the idlest of them; and a worker that has been busy for long."""
    view = View(kit.app, StringIO(), deque())
    view.sight = Sight(
        queues=[
            QueueView(
                name=f"{name}-for-customers", ready=ready, scheduled=0, running=1, blocked=0, dead=dead,
                oldest_ready=timedelta(minutes=14, seconds=52), paused_by=None, paused_at=None,
            )
            for name, ready, dead in [*((f"busy-{number}", 9_000, 0) for number in range(9)), ("quiet", 0, 6)]
        ],
        workers=[
            MemberView(
                id=new_member_id(), kind="worker", host="here", pid=4_194_303, name="here",
                started_at=kit.app.clock.now() - timedelta(minutes=14, seconds=52), expires_at=kit.app.clock.now(), dead=False,
                stats={"running": 500, "completed": 1_234_567},
            )
        ],
    )  # fmt: skip
    console = Console(file=StringIO(), width=width, height=height, color_system=None)
    with console.capture() as drawn:
        console.print(view.screen(width, height))
    return drawn.get()


@pytest.mark.parametrize(("width", "height"), [(120, 30), (80, 24), (60, 20)])
def test_no_heading_is_cut_and_each_queue_has_a_name_and_one_with_dead_letters_comes_first(
    kit: Kit, width: int, height: int
) -> None:
    told = crowded(kit, width, height)
    lines = [line for line in told.splitlines() if "-for" in line]
    assert lines[0].split()[1].startswith("quiet-for")
    assert "6" in lines[0].split()
    assert all(line.split()[1].startswith("busy-") for line in lines[1:])
    heads = told[told.index("queue ") :].splitlines()[0]
    assert "…" not in heads
    assert heads.split()[:2] == ["queue", "ready"]
    assert "dead" in heads.split()
    if width >= 80:
        [worker] = [line for line in told.splitlines() if "4194303" in line]
        assert "…" not in worker.partition("4194303")[2]
    else:
        assert "jobs/s" in told


def test_what_says_nothing_gives_way_first(kit: Kit) -> None:
    heads = (("queue", "1"), ("ready", ">"), ("later", ">"), ("dead", ">"))
    rows = [[Text("a" * 30), Text("7"), Text("0"), Text("0")]]
    assert staying(heads, rows, 40, ("ready", "later")) == [0, 1, 2, 3]
    assert staying(heads, rows, 30, ("ready", "later")) == [0, 1, 3]
    assert staying(heads, rows, 10, ("ready", "later")) == [0, 3]
