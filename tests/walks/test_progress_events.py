"""Progress as somebody hears it who watches: each word once, at its place, in time, and the last one before the end."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from lateshift import JobEvent, Lateshift, progress

pytestmark = pytest.mark.anyio

STEPS = 5
SLOW = 0.4  # seconds between two words: between two looks of the worker there is one, or none


@pytest.fixture
def app(store_url: str) -> Iterator[Lateshift]:
    app = Lateshift("shop", store=store_url)
    yield app
    app.close()


def counting(app: Lateshift, lane: str) -> Any:
    if lane == "thread":

        @app.task(name="count")
        def count(pause: float) -> None:
            for done in range(1, STEPS + 1):
                progress(done, STEPS)
                time.sleep(pause)

        return count

    @app.task(name="count")
    async def count_async(pause: float) -> None:
        for done in range(1, STEPS + 1):
            progress(done, STEPS)
            await asyncio.sleep(pause)

    return count_async


async def watched(app: Lateshift, lane: str, pause: float, **options: Any) -> list[JobEvent]:
    count = counting(app, lane)
    async with app.running():
        job = await count.options(**options).aenqueue(pause)
        return [event async for event in job.events()]


@pytest.mark.parametrize("lane", ["thread", "coroutine"])
@pytest.mark.parametrize("pause", [0.0, SLOW])
async def test_each_word_has_its_own_id_and_time_and_the_last_is_told_before_the_end(
    app: Lateshift, lane: str, pause: float
) -> None:
    heard = await watched(app, lane, pause)
    words = [event for event in heard if event.kind == "progress"]
    times = [event.at for event in heard]

    assert [event.kind for event in heard][-2:] == ["progress", "completed"]
    assert words[-1].progress is not None
    assert words[-1].progress.done == STEPS
    assert len({event.id for event in heard}) == len(heard)
    assert times == sorted(times)
    if pause:
        assert len(words) >= 2
        assert len({event.at for event in words}) == len(words)
        last = (times[-1] - words[-1].at).total_seconds()
        assert SLOW / 2 < last < SLOW * 3  # when it was told, not when somebody looked
