"""What a producer process does, for Lateshift, the ceilings and the peers alike: COMMAND and arguments in, one line of
JSON out. The first call of a stretch is made before the clock starts, so that nobody's connecting is measured."""

import asyncio
import json
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import chain
from statistics import quantiles
from typing import Any

import psutil

from bench.memory import peak
from bench.record import Record

CALLERS = 100
CHUNK = 1000  # jobs in one bulk call
FIRST, CALLBACK = 0, 1  # in a batch, the numbers of the first job and of what follows the last
IDLE_FIRST = 1.0  # seconds of rest before the start latency is measured
BEGINS_WITHIN = 40.0  # seconds, a worker's own start included


class Producer:
    """What each side fills in; what it leaves out it cannot do. `send` blocks, `asend` does not: one of them is enough."""

    asynchronous = False  # one caller at a time uses `asend`

    async def install(self) -> None:
        """Make the schema, in an empty place."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    def send(self, number: int) -> Any:
        raise NotImplementedError

    async def asend(self, number: int) -> Any:
        raise NotImplementedError

    async def send_many(self, numbers: Sequence[int]) -> Any:
        """In one call, if there is such a call."""
        for number in numbers:
            await self.one(number)

    async def fill(self, jobs: int, kind: str) -> None:
        """Jobs 0 to n - 1, for a drain."""
        for first in range(0, jobs, CHUNK):
            await self.send_many(range(first, min(first + CHUNK, jobs)))

    async def batch(self, numbers: Iterable[int], then: int) -> Any:
        """One batch, and a job that follows when all of it have completed."""
        raise NotImplementedError

    async def schedule(self, schedules: int) -> float:
        """Make so many, all due at one instant. Gives in how many seconds that is."""
        raise NotImplementedError

    async def replay(self, steps: int) -> float:
        """How many times as long a workflow with so many stored steps takes to go on as their rows take to read."""
        raise NotImplementedError

    def fire(self) -> int:
        """Make the jobs of those that are due. Gives how many were."""
        raise NotImplementedError

    async def one(self, number: int) -> None:
        if self.asynchronous:
            await self.asend(number)
        else:
            self.send(number)


async def _one(producer: Producer, jobs: int) -> dict[str, float]:
    await producer.one(0)
    begun = time.perf_counter()
    if producer.asynchronous:
        for number in range(jobs):
            await producer.asend(number)
    else:
        for number in range(jobs):
            producer.send(number)
    return {"rate": jobs / (time.perf_counter() - begun)}


async def _together(producer: Producer, jobs: int) -> dict[str, float]:
    """CALLERS callers, each of them one call after the other."""
    each = max(1, jobs // CALLERS)

    async def call() -> None:
        for number in range(each):
            await producer.asend(number)

    await producer.asend(0)
    begun = time.perf_counter()
    await asyncio.gather(*(call() for _ in range(CALLERS)))
    return {"rate": each * CALLERS / (time.perf_counter() - begun)}


async def _bulk(producer: Producer, jobs: int) -> dict[str, float]:
    await producer.send_many(range(2))
    begun = time.perf_counter()
    for first in range(0, jobs, CHUNK):
        await producer.send_many(range(first, min(first + CHUNK, jobs)))
    return {"rate": jobs / (time.perf_counter() - begun)}


async def _batch(producer: Producer, jobs: int) -> dict[str, float]:
    """Its first job and its callback leave a mark; the others have numbers past the end of the record."""
    await producer.one(jobs + 1)
    begun = time.perf_counter()
    await producer.batch(chain([FIRST], range(CALLBACK + 1, jobs + 1)), then=CALLBACK)
    return {"rate": jobs / (time.perf_counter() - begun), "memory": peak(psutil.Process())}


async def _schedules(producer: Producer, schedules: int) -> dict[str, float]:
    """Many schedules have one tick: from that until all their jobs are in."""
    await asyncio.sleep(max(0.0, await producer.schedule(schedules)) + 0.1)
    begun = time.perf_counter()
    fired = producer.fire()
    seconds = time.perf_counter() - begun
    if fired != schedules:
        raise SystemExit(f"{fired} of {schedules} schedules fired")
    return {"rate": schedules / seconds}


async def _latency(producer: Producer, jobs: int, period: float) -> dict[str, float]:
    """From the call to the start of the body. The worker is at rest before each."""
    record = Record.existing()
    await producer.one(jobs)  # the worker is up when this one has begun
    await _begun(record, jobs, BEGINS_WITHIN)
    await asyncio.sleep(IDLE_FIRST)
    called: list[int] = []
    due = time.perf_counter()
    for number in range(jobs):
        called.append(time.time_ns())
        await producer.one(number)
        due += period
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
    for number in range(jobs):
        await _begun(record, number, 10.0)
    waits = sorted((start - call) / 1e6 for start, call in zip(record.starts(), called, strict=False))
    cuts = quantiles(waits, n=100, method="inclusive")
    return {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98]}


async def _begun(record: Record, number: int, limit: float) -> None:
    until = time.monotonic() + limit
    while not record.begun(number):
        if time.monotonic() > until:
            raise SystemExit(f"job {number} has not begun within {limit:.0f} s")
        await asyncio.sleep(0.02)


async def _run(producer: Producer, command: str, arguments: list[str]) -> dict[str, float]:
    if command == "install":
        await producer.install()
        return {}
    await producer.open()
    try:
        match command, arguments:
            case "one", [jobs]:
                return await _one(producer, int(jobs))
            case "together", [jobs]:
                return await _together(producer, int(jobs))
            case "bulk", [jobs]:
                return await _bulk(producer, int(jobs))
            case "schedules", [schedules]:
                return await _schedules(producer, int(schedules))
            case "replay", [steps]:
                return {"times": await producer.replay(int(steps))}
            case "batch", [jobs]:
                return await _batch(producer, int(jobs))
            case "latency", [jobs, period]:
                return await _latency(producer, int(jobs), float(period))
            case "fill", [jobs, kind]:
                await producer.fill(int(jobs), kind)
                return {}
            case _:
                raise SystemExit(f"unknown: {command} {arguments}")
    finally:
        await producer.close()


def main(producer: Producer) -> None:
    print(json.dumps(asyncio.run(_run(producer, sys.argv[1], sys.argv[2:]))), flush=True)
