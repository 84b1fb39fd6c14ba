"""How long a workflow with many stored steps takes until its code is where it was, beside the reading of their rows."""

import asyncio
import time
from statistics import median
from typing import Any

from bench.program import app, long_life
from lateshift.clock import SYSTEM
from lateshift.model.ids import JobId
from lateshift.model.job import Lane, Lease, State
from lateshift.model.outcome import Deciding
from lateshift.model.workflow.run import Advance, Advanced
from lateshift.workflow.journal import Journal

TIMES = 15


class Still(Journal):
    """Reads the store, and writes nothing: the run that goes on is put to sleep by word alone."""

    async def advance(self, one: Advance) -> Advanced:
        return Advanced(SYSTEM.now(), asleep=one.sleep is not None)


class Desk:
    def __init__(self) -> None:
        self.journal = Still(app.store)

    def now(self) -> float:
        return SYSTEM.monotonic()


class Stretch:
    """An attempt, as a workflow sees it."""

    def __init__(self, id: JobId, steps: int) -> None:
        payload = long_life.arguments.encode((steps,), {})
        self.lease = Lease(id, 2, long_life.name, payload, 1, 1, None, "default", Lane.COROUTINE)
        self.args, self.kwargs = long_life.arguments.decode(payload)
        self.desk = Desk()
        self.cancelled_by = None
        self.stopping = self.lost = False


async def replay(steps: int) -> float:
    id = await _asleep(steps)
    took: list[float] = []
    read: list[float] = []
    for _ in range(TIMES):
        begun = time.perf_counter()
        await asyncio.to_thread(app.store.workflows.load, [id])
        read.append(time.perf_counter() - begun)
        stretch: Any = Stretch(id, steps)
        begun = time.perf_counter()
        try:
            await long_life.start(stretch)
        except Deciding:
            took.append(time.perf_counter() - begun)
    if len(took) < TIMES:
        raise SystemExit("the run did not sleep again")
    return median(took) / median(read)


async def _asleep(steps: int) -> JobId:
    job = await long_life.aenqueue(steps)
    async with app.running():
        for _ in range(6000):
            view = await asyncio.to_thread(app.store.reports.job, job.id)
            if view is not None and view.state is State.SCHEDULED:
                return job.id
            await asyncio.sleep(0.01)
    raise SystemExit("the run does not come to rest")
