"""Lateshift's producer: the public API, as a program would call it."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.producer import Producer, main
from bench.program import app, noop, noop_on_a_thread, ten_steps
from bench.replay import replay
from bench.sleepers import put_to_sleep
from lateshift.model.scheduling.plan import Plan
from lateshift.model.scheduling.schedule import NewSchedule
from lateshift.model.scheduling.timing import Timing

MANY = {"sessions": 10_000, "limits": 1_000, "tenants": 1_000}
GUARDS: dict[str, Callable[[int], dict[str, Any]]] = {
    "sessions": lambda place: {"session": f"session {place}"},
    "limits": lambda place: {"limit_key": f"key:{place}"},
    "tenants": lambda place: {"tenant": f"tenant {place}"},
}


class Ours(Producer):
    async def close(self) -> None:
        app.close()

    def send(self, number: int) -> None:
        noop.enqueue(number)

    async def asend(self, number: int) -> None:
        await noop.aenqueue(number)

    async def send_many(self, numbers: Sequence[int]) -> None:
        app.enqueue_many(noop.call(number) for number in numbers)

    async def fill(self, jobs: int, kind: str) -> None:
        if kind == "schedules":
            self._schedule(jobs)
            return
        if kind == "asleep":
            put_to_sleep(jobs)
            return
        if kind == "threads":
            calls = (noop_on_a_thread.call(number) for number in range(jobs))
        elif kind == "workflows":
            calls = (ten_steps.call(number) for number in range(jobs))
        elif kind == "later":
            later = noop.options(delay=timedelta(days=1))
            calls = (later.call(number) for number in range(jobs))
        elif kind in GUARDS:
            guards = [noop.options(**GUARDS[kind](place)) for place in range(min(jobs, MANY[kind]))]
            calls = (guards[number % len(guards)].call(number) for number in range(jobs))
        else:
            calls = (noop.call(number) for number in range(jobs))
        app.enqueue_many(calls)

    async def batch(self, numbers: Iterable[int], then: int) -> None:
        app.batch((noop.call(number) for number in numbers), then=noop.call(then))

    async def schedule(self, schedules: int) -> float:
        begin = datetime.now(UTC) + timedelta(seconds=5 + schedules / 500)
        plan = Plan(timing=Timing(every=timedelta(hours=1), start=begin))
        told = [
            NewSchedule(name=f"schedule {n:06}", plan=plan, job=noop.call(n).job) for n in range(schedules)
        ]
        app.store.schedules.declare(told, app="bench")
        return (begin - datetime.now(UTC)).total_seconds()

    def _schedule(self, schedules: int) -> None:
        """None of them due. Of another app: what its code does not have, a scheduler takes away."""
        plan = Plan(timing=Timing(every=timedelta(days=365), start=datetime.now(UTC) + timedelta(days=30)))
        told = [
            NewSchedule(name=f"waiting {n:06}", plan=plan, job=noop.call(n).job) for n in range(schedules)
        ]
        app.store.schedules.declare(told, app="another")

    async def replay(self, steps: int) -> float:
        return await replay(steps)

    def fire(self) -> int:
        count, ticker = 0, app.ticker()
        while fired := ticker.fire().count:
            count += fired
        return count


if __name__ == "__main__":
    main(Ours())
