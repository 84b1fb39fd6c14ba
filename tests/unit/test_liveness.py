"""How old a loop is: only a turn that ended well counts, so that one which fails at every turn is as late as one that does not turn."""

import ast
import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import lateshift
from lateshift.clock import SYSTEM
from lateshift.errors import StoreUnavailable
from lateshift.model.ids import new_member_id
from lateshift.replies.courier import Courier
from lateshift.runtime import loop
from lateshift.runtime.heartbeat import Heartbeat
from lateshift.runtime.loop import Part, drive
from lateshift.scheduler.ticker import Ticker
from lateshift.store.contract import Members, Store
from lateshift.supervisor.sweep import Sweep
from lateshift.telemetry import liveness
from lateshift.telemetry.liveness import LATE_AFTER, LEAST_INTERVAL, ages, living, turns
from lateshift.worker.control import Control

LONG = LATE_AFTER * LEAST_INTERVAL + 1
# Of the parts that loops turn: the commands' live views turn by themselves.
SOURCES = sorted(path for path in Path(lateshift.__file__).parent.rglob("*.py") if path.parent.name != "cli")


class Away:
    """A store that answers nothing, whatever it is asked."""

    def __getattr__(self, name: str) -> "Away":
        return self

    def __call__(self, *_: object, **__: object) -> Any:
        raise StoreUnavailable("nobody is there")


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of the loops, which a test moves on."""
    time = [SYSTEM.monotonic()]
    monkeypatch.setattr(liveness, "SYSTEM", type("Moved", (), {"monotonic": staticmethod(lambda: time[0])}))
    return time


async def turned(part: Part, times: int, each: Callable[[], None]) -> dict[str, tuple[float, float]]:
    """When its loop turned well last, after so many turns."""
    stopping, done = asyncio.Event(), 0
    found: dict[str, tuple[float, float]] = {}

    class Counted:
        async def turn(self) -> timedelta:
            nonlocal done, found
            each()
            done += 1
            if done > times:
                found = turns()
                stopping.set()
                return timedelta(0)
            await part.turn()
            return timedelta(0)

    await drive(Counted(), stopping)
    return found


def parts() -> dict[str, Callable[[], Part]]:
    store = cast(Store, Away())
    return {
        "Courier": lambda: Courier(store, new_member_id(), SYSTEM),
        "Sweep": lambda: Sweep(store, new_member_id(), SYSTEM, heartbeat=timedelta(seconds=30)),
        "Ticker": lambda: Ticker(store, "shop", list),
    }


@pytest.mark.anyio
@pytest.mark.parametrize("name", parts())
async def test_a_part_whose_store_is_away_at_every_turn_is_late(name: str, now: list[float]) -> None:
    def later() -> None:
        now[0] += LONG

    begun = now[0]
    found = await turned(parts()[name](), 3, later)

    assert found["Counted"][0] == begun
    assert liveness.ages_of(found)[0].is_late


@pytest.mark.anyio
async def test_a_part_that_raises_at_every_turn_is_late_until_one_ends_well(
    now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "AFTER_A_FAULT", timedelta(0))
    stopping, late = asyncio.Event(), list[bool]()

    class Failing:
        async def turn(self) -> timedelta:
            now[0] += LONG / 2
            [age] = [age for age in ages() if age.loop == "Failing"]
            late.append(age.is_late)
            if len(late) == 7:
                stopping.set()
            if len(late) != 4:
                raise RuntimeError("again")
            return timedelta(0)

    await drive(Failing(), stopping)

    assert late == [False, True, True, True, False, True, True]


def test_a_heartbeat_that_fails_at_every_beat_is_late(now: list[float]) -> None:
    heartbeat = Heartbeat(cast(Members, Away()), timedelta(days=1))
    heartbeat.add(new_member_id(), alive=lambda: True, lost=lambda: None)
    beats = iter(range(4))

    class Stopping:
        def wait(self, seconds: float) -> bool:
            now[0] += LONG
            told.append(turns()["Heartbeat"][0])
            return next(beats, None) is None

    told: list[float] = []
    heartbeat._stopping = cast(Any, Stopping())
    begun = now[0]
    heartbeat._run()

    assert told == [begun] * 5


@pytest.mark.anyio
async def test_a_turn_between_two_looks_into_a_store_that_is_away_is_none_that_was_well(
    now: list[float],
) -> None:
    worker = SimpleNamespace(held=[], hand_back_waiting=lambda before: None)
    control, away, late = Control(cast(Any, worker), cast(Any, None), SYSTEM), [True], []

    async def speak() -> None:
        if away[0]:
            raise StoreUnavailable("away")

    control._speak = speak  # type: ignore[method-assign]
    with living("Control") as loop:
        for turn in range(8):
            away[0] = turn < 5
            now[0] += LONG / 2
            pause = await control.turn()
            loop.has_turned(pause.total_seconds())
            late.append(loop.turned != now[0])

    assert late == [False, True, True, True, True, False, False, False]


def handlers() -> Iterator[tuple[str, ast.ExceptHandler]]:
    """Of all parts: what a turn does when the store does not answer it."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.AsyncFunctionDef) and node.name == "turn":
                for each in ast.walk(node):
                    if isinstance(each, ast.ExceptHandler) and "StoreError" in ast.dump(each.type or node):
                        yield f"{path.stem}:{each.lineno}", each


@pytest.mark.parametrize("handler", [each for _, each in handlers()], ids=[where for where, _ in handlers()])
def test_every_turn_that_lives_with_a_store_that_is_away_says_that_it_has_failed(
    handler: ast.ExceptHandler,
) -> None:
    assert "has_failed" in ast.dump(handler)


def test_parts_that_live_with_a_store_that_is_away_are_found() -> None:
    assert {where.split(":")[0] for where, _ in handlers()} >= {
        "courier", "sweep", "ticker", "worker", "control", "reader", "declaring",
    }  # fmt: skip
