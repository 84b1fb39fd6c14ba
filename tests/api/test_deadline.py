"""One timer for all requests: who is late is told so, who was cancelled by somebody else is not."""

import asyncio
from datetime import timedelta

import pytest

from lateshift.api.deadline import Deadline

SOON = timedelta(milliseconds=20)


async def never() -> None:
    await asyncio.Event().wait()


@pytest.mark.anyio
async def test_everybody_who_is_late_is_told_so_and_who_is_not_gets_the_answer() -> None:
    deadline = Deadline(SOON)
    late = [asyncio.create_task(deadline.keep(never())) for _ in range(3)]
    assert await deadline.keep(asyncio.sleep(0, "answered")) == "answered"
    told = await asyncio.gather(*late, return_exceptions=True)
    assert [type(each) for each in told] == [TimeoutError] * 3
    with pytest.raises(TimeoutError):  # the timer had ended, and begins again
        await deadline.keep(never())


@pytest.mark.anyio
async def test_who_came_later_is_late_later() -> None:
    deadline = Deadline(SOON)
    order: list[int] = []

    async def ask(number: int) -> None:
        with pytest.raises(TimeoutError):
            await deadline.keep(never())
        order.append(number)

    first = asyncio.create_task(ask(1))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(never(), SOON.total_seconds() / 2)
    await asyncio.gather(first, ask(2))
    assert order == [1, 2]


@pytest.mark.anyio
async def test_who_is_cancelled_by_somebody_else_is_cancelled() -> None:
    deadline = Deadline(timedelta(hours=1))
    asked = asyncio.create_task(deadline.keep(never()))
    await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked


def test_another_loop_begins_anew() -> None:
    deadline = Deadline(SOON)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            asyncio.run(deadline.keep(never()))
