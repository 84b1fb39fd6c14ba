"""What a run knows of itself is never older than what it has done."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from msgspec.structs import replace

from lateshift.model.ids import new_job_id
from lateshift.model.job import Lane, Lease, NewJob, Spec
from lateshift.model.workflow.run import Advance, Advanced, Loaded, Phase, RunRow, Signal
from lateshift.model.workflow.step import Kind, StepRow, StepState
from lateshift.workflow.journal import Journal
from lateshift.workflow.record import Record

NOW = datetime(2030, 1, 31, tzinfo=UTC)
STEP = StepRow(path="00001", kind=Kind.CALL, name="charge", state=StepState.RUNNING)


class Slow:
    """A journal whose reading gives what was there when it was asked, and takes until it is let go."""

    def __init__(self, run: RunRow) -> None:
        self._run = run
        self.asked = asyncio.Event()
        self.go = asyncio.Event()
        self.written: list[Advance] = []

    async def load(self, id: object) -> Loaded:
        found = Loaded(self._run, [], [Signal(1, "go", b"1")], NOW)
        self.asked.set()
        await self.go.wait()
        return found

    async def advance(self, one: Advance) -> Advanced:
        self.written.append(one)
        return Advanced(NOW)


@pytest.mark.anyio
async def test_what_is_written_while_it_reads_is_not_overwritten() -> None:
    lease = Lease(new_job_id(), 2, "order", b"{}", 1, 1, None, "default", Lane.COROUTINE)
    run = RunRow(
        id=lease.id, name="order", version="", phase=Phase.FORWARD, why=None, news=1, status=None, cancel_by=None,
        waits_for=None, started_at=NOW,
    )  # fmt: skip
    journal = Slow(run)
    record = Record(lease, cast(Journal, cast(Any, journal)), "order", "", time.monotonic)
    journal.go.set()
    await record.load()
    journal.asked.clear()
    journal.go.clear()

    reading = asyncio.create_task(record.load())
    await journal.asked.wait()
    record.take(record.signals[0], STEP.path)
    record.complete(replace(STEP), b"1")
    writing = asyncio.create_task(record.commit())
    await asyncio.sleep(0)
    assert journal.written == []  # it waits for the reading
    journal.go.set()
    await asyncio.gather(reading, writing)
    assert record.steps[STEP.path].state is StepState.COMPLETED
    assert record.signals == []
    assert [step.state for step in journal.written[0].steps] == [StepState.COMPLETED]


class Deaf:
    """A journal that gives no answer until it is let go."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.asked: list[Advance] = []

    async def advance(self, one: Advance) -> Advanced:
        self.asked.append(one)
        await self.go.wait()
        return Advanced(NOW)


@pytest.mark.anyio
async def test_what_nobody_waited_for_any_more_is_written_with_the_next_commit() -> None:
    lease = Lease(new_job_id(), 1, "order", b"{}", 1, 1, None, "default", Lane.COROUTINE)
    journal = Deaf()
    record = Record(lease, cast(Journal, cast(Any, journal)), "order", "", time.monotonic)
    spec = Spec(task="charge", queue="default", lane=Lane.THREAD)
    job = NewJob(new_job_id(), spec, b"{}", first=True)
    record.put(STEP, [job])
    committing = asyncio.create_task(record.commit())
    await asyncio.sleep(0)
    committing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await committing

    journal.go.set()
    await record.commit()
    first, second = journal.asked
    assert second.steps == first.steps == [STEP]
    assert [(each.id, each.first) for each in second.jobs] == [(job.id, False)]  # it may be there already


@pytest.mark.anyio
async def test_a_run_that_falls_asleep_while_its_timer_is_being_written_wakes_in_time() -> None:
    lease = Lease(new_job_id(), 1, "order", b"{}", 1, 1, None, "default", Lane.COROUTINE)
    journal = Deaf()
    record = Record(lease, cast(Journal, cast(Any, journal)), "order", "", time.monotonic)
    record.put(replace(STEP, kind=Kind.SLEEP, wait=timedelta(hours=8)))
    writing = asyncio.create_task(record.commit())
    await asyncio.sleep(0)
    falling = asyncio.create_task(record.sleep([STEP.path], "its time"))
    await asyncio.sleep(0)
    assert len(journal.asked) == 1  # the timer is on its way, and when it is due is not known yet
    journal.go.set()
    await asyncio.gather(writing, falling)
    sleep = journal.asked[1].sleep
    assert sleep is not None
    assert sleep.until == NOW + timedelta(hours=8)
