"""One stretch of a run's life in a worker: its code goes on from what is recorded until it ends, or until nothing is left to do but to wait."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

from lateshift.errors import WorkflowInvalid
from lateshift.model.job import NewJob
from lateshift.model.outcome import clip
from lateshift.model.workflow.step import STEPS_MOST, Kind, StepRow, StepState, path_of, shown_path
from lateshift.runtime.log import log
from lateshift.workflow.control import (
    STOPS,
    Branch,
    CancelledItself,
    Diverged,
    Evicted,
    Stint,
    Stop,
    Unawaited,
    Undoable,
    drop,
    stop_in,
    without_exit,
)
from lateshift.workflow.record import Lost, Record

T = TypeVar("T")

QUIET_TURNS = 12  # of the loop, in which nothing of a run moves, until it is taken to wait
LOOK_EVERY = 1.0  # seconds between looks for news while one branch works and another waits
ARGUMENTS_SHOWN = 200  # characters of them, where two differ
WAITS_SHOWN = 3  # things that a run waits for, of which it is told


class Run:
    """Steps ask it for their record, and wait through it. `active`: branches that do something; at none, the run sleeps."""

    def __init__(
        self, stint: Stint, record: Record, jobs_of_event: Callable[[str, Any], Awaitable[list[NewJob]]], *,
        looks: bool = False,
    ) -> None:  # fmt: skip
        self.looks = looks  # only whether the code fits: nothing begins, nothing goes on
        self.jobs_of_event = jobs_of_event
        self.stint = stint
        self.record = record
        record.refused = self._wake_all
        self.next_turns: Callable[[], Iterable[str]] = lambda: ()  # asked when nothing moves: who goes on
        self.active = 1
        self.inline = 0
        self.over = False
        self.evicted = False
        self.undoing = False
        self.undos: dict[str, Undoable] = {}
        self._met: set[str] = set()
        self.asked = Unawaited()
        self._waits: dict[str, tuple[asyncio.Future[None], str]] = {}
        self._sleeping: asyncio.Task[None] | None = None
        self._main: asyncio.Task[Any] | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._lost = False
        self._landed = asyncio.Event()
        self._turns_left = 0

    # -- what steps ask ---------------------------------------------------------------------------------------------

    def number(self, branch: Branch, kind: Kind, name: str, payload: bytes | None = None) -> str:
        """The path of the next step. What is recorded there must be the same step, with the same arguments; a patch that the code
        has dropped is passed over."""
        if self.evicted:
            raise Evicted
        if not self.stops:
            self.asked.refuse_dropped()
        while True:
            branch.number += 1
            if branch.number > STEPS_MOST:
                raise WorkflowInvalid(
                    f"A run has at most {STEPS_MOST:,} steps in a line. Let a child do a part of them: flow.child(…)."
                )
            path = path_of(branch.prefix, branch.number)
            there = self.record.steps.get(path)
            if there is None or (there.kind == kind and there.name == name and self._same(there, payload)):
                break
            if there.kind is not Kind.PATCH:
                raise Diverged(
                    f"at step {shown_path(path)} it has recorded {_said(there.kind, there.name, there.payload)}, and the code asks for "
                    f"{_said(kind, name, payload)}"
                )
            self._met.add(path)
        self._met.add(path)
        return path

    def _same(self, there: StepRow, payload: bytes | None) -> bool:
        """Whether a step has the arguments that are recorded, as far as they can be compared."""
        return (
            payload is None
            or there.payload is None
            or payload == there.payload
            or there.path in self.record.mended
        )

    def dropped(self, path: str) -> None:
        """Nobody has this step any more: if it was not awaited, it never will be."""
        if not (self.evicted or self.over or self.stops):
            self.asked.drop(path)

    def next_is(self, branch: Branch, kind: Kind, name: str) -> bool | None:
        """Whether the next step is recorded so; None if nothing is recorded there."""
        there = self.record.steps.get(path_of(branch.prefix, branch.number + 1))
        return None if there is None else (there.kind, there.name) == (kind, name)

    @property
    def stops(self) -> bool:
        """Whether nothing new is to begin."""
        return self.looks or self.record.phase.is_undone or self.record.cancel_by is not None

    def begin(self) -> None:
        """Before a step that is not recorded."""
        if self.evicted:
            raise Evicted
        if self.stops or self.over:
            raise Stop

    @contextmanager
    def in_hand(self) -> Iterator[None]:
        """While the worker itself does something for the run."""
        self.inline += 1
        try:
            yield
        finally:
            self.inline -= 1
            self._landed.set()
            self.look_soon()

    async def commit(self) -> None:
        with self.in_hand():
            try:
                await self.record.commit()
            except Lost:
                self._lose()
                raise Evicted from None

    async def rest(self, path: str, label: str) -> None:
        """Wait without a worker, until there is news or the step is due; it then looks at its record again."""
        if self.evicted:
            raise Evicted
        if self.over:
            raise Stop
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waits[path] = future, label
        left = self.record.left(path)
        if left is not None:
            loop = asyncio.get_running_loop()
            self._timers[path] = loop.call_later(max(0.0, left.total_seconds()), self._wake, path)
        self.active -= 1
        self.look_soon()
        try:
            await future
        finally:
            self.active += 1
            self._waits.pop(path, None)
            timer = self._timers.pop(path, None)
            if timer is not None:
                timer.cancel()

    async def pause(self, wait: timedelta) -> None:
        """Wait in the worker, for a moment."""
        with self.in_hand():
            await asyncio.sleep(wait.total_seconds())

    async def alert(self, what: str, why: str) -> None:
        """Tell whoever subscribed to alerts, in the next commit. That nobody can be told must not keep the run."""
        data = {
            "run": str(self.record.lease.id),
            "workflow": self.record.lease.task,
            "what": what,
            "why": why,
        }
        try:
            self.record.enqueue(await self.jobs_of_event(f"alert.{what}", data))
        except Exception:
            log.exception("workflow %s: the alert could not be enqueued", self.record.lease.id)

    async def give_up(self, path: str) -> None:
        """The worker stops: another goes on with this."""
        await self.rest(path, "another worker")

    def look_soon(self) -> None:
        """Whether everything waits is seen when the loop has turned some times: an end takes a turn for each gather that it goes
        through, until the code that waits for it hears of it."""
        if not self._waits:
            return
        looking, self._turns_left = self._turns_left > 0, QUIET_TURNS
        if not looking:
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._turns_left -= 1
        if self._turns_left > 0:
            asyncio.get_running_loop().call_soon(self._turn)
        else:
            self._look()

    async def together(self, branches: list[Coroutine[Any, Any, T]]) -> list[T]:
        """All of them, until each has ended; then the first error, if there was one."""
        self.active += len(branches) - 1
        try:
            ended = await asyncio.gather(*(self._part(branch) for branch in branches), return_exceptions=True)
        finally:
            self.active += 1
            drop(branches)
        for kind in (*STOPS, BaseException):
            for outcome in ended:
                if isinstance(outcome, kind):
                    raise outcome
        return ended  # type: ignore[return-value]

    async def _part(self, branch: Coroutine[Any, Any, T]) -> T:
        try:
            return await branch
        except BaseExceptionGroup as group:
            raise stop_in(group) or group from None
        finally:
            self.active -= 1
            self.look_soon()

    # -- sleeping ---------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        if self.over or self.evicted or self._sleeping is not None or not self._waits:
            return
        loop = asyncio.get_running_loop()
        if self.active <= 0 and self.inline == 0:
            self._sleeping = loop.create_task(self._sleep())
        elif self.inline:
            self.record.write_soon()  # jobs begin, though a function goes on for long
            if "news" not in self._timers:
                self._timers["news"] = loop.call_later(LOOK_EVERY, self._look_for_news)

    def _look_for_news(self) -> None:
        self._timers.pop("news", None)
        if self._waits and not (self.over or self.evicted) and self._sleeping is None:
            self._sleeping = asyncio.get_running_loop().create_task(self._hear())

    async def _hear(self) -> None:
        try:
            answer = await self.record.commit(ask=True)
            if answer.news != self.record.news:
                await self.record.load()
                self._wake_all()
        except Lost:
            self._lose()
        finally:
            self._sleeping = None
        self.look_soon()

    async def _sleep(self) -> None:
        try:
            await self._fall_asleep()
        except Lost:
            self._lose()
        except Exception:
            log.exception("the workflow %s could not be put to sleep", self.record.lease.id)
            self._lose()
        finally:
            self._sleeping = None

    async def _fall_asleep(self) -> None:
        if self.stops and not (self.undoing or self.stint.stopping):
            self._wake_all()
            return
        left = [wait for path in self._waits if (wait := self.record.left(path)) is not None]
        if not self.stint.stopping and left and min(left) <= timedelta(0):
            self._wake_all()
            return
        turns = [] if self.stint.stopping else list(self.next_turns())
        for path in turns:
            self._wake(path)
        if turns:
            return
        answer = await self.record.sleep(self._waits, self._waiting_for(), at_once=self.stint.stopping)
        if answer.asleep:
            self.evict()
        else:
            await self.record.load()
            self._wake_all()

    def _waiting_for(self) -> str:
        labels = list(dict.fromkeys(label for _, label in self._waits.values()))
        more = f" and {len(labels) - WAITS_SHOWN} more" if len(labels) > WAITS_SHOWN else ""
        return ", ".join(labels[:WAITS_SHOWN]) + more

    def _wake(self, path: str) -> None:
        waiting = self._waits.get(path)
        if waiting is not None and not waiting[0].done():
            waiting[0].set_result(None)

    def _wake_all(self) -> None:
        for path in list(self._waits):
            self._wake(path)

    def evict(self) -> None:
        """Nothing of the code goes on: whatever it waits for raises."""
        self.evicted = True
        for future, _ in list(self._waits.values()):
            if not future.done():
                future.set_exception(Evicted())

    def _lose(self) -> None:
        if not self._lost:
            self._lost = self.stint.lost = True
            log.warning(
                "workflow %s was taken by another worker: this one came too late, and stops",
                self.record.lease.id,
            )
            self.evict()
            if self._main is not None:
                self._main.cancel()

    # -- the code itself --------------------------------------------------------------------------------------------

    async def drive(self, code: Callable[[], Awaitable[T]]) -> T:
        """Run the code to its end, or until it is evicted. When the worker is told to stop the attempt, what is in flight is ended
        first if an operator wants that, and is dropped if the worker must go."""
        self.over, self.active = False, 1
        main = self._main = asyncio.ensure_future(without_exit(code))
        while not main.done():
            try:
                await asyncio.wait({main})
            except asyncio.CancelledError:
                if self.stint.cancelled_by is not None and not (self.stint.lost or self.stint.stopping):
                    self._hear_of_cancelling()
                    continue
                self.evict()
                main.cancel()
                await asyncio.wait({main}, timeout=1)
                raise
        if not main.cancelled():
            main.exception()  # it is raised below, if it is ours to tell
        await self._end_branches()
        if self._lost:
            raise asyncio.CancelledError
        if main.cancelled():
            raise CancelledItself("the workflow's code raised CancelledError, though nobody had cancelled it")
        result: T = main.result()
        return result

    async def _end_branches(self) -> None:
        """What the code began and did not wait for begins nothing more; what is in flight of it comes to its end."""
        self.over = True
        for future, _ in list(self._waits.values()):
            if not future.done():
                future.set_exception(Stop())
        while self.inline and not self._lost:
            self._landed.clear()
            await self._landed.wait()
        await asyncio.sleep(0)

    def _hear_of_cancelling(self) -> None:
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        self.record.cancel_by = self.record.cancel_by or self.stint.cancelled_by
        self._wake_all()

    def unmet(self) -> StepRow | None:
        """A recorded step that the code never asked for, though it has ended."""
        left = sorted(self.record.steps.keys() - self._met)
        return next(
            (self.record.steps[path] for path in left if self.record.steps[path].kind is not Kind.PATCH), None
        )

    def in_flight(self) -> list[StepRow]:
        """Steps that are jobs of their own and have not ended."""
        rows = self.record.steps.values()
        return [row for row in rows if row.state is StepState.RUNNING and row.job is not None]


def _said(kind: Kind, name: str, payload: bytes | None) -> str:
    what = name if kind in (Kind.CALL, Kind.JOB) else f"{kind.label} {name}".strip()
    return (
        what if payload is None else f"{what} with {clip(payload.decode(errors='replace'), ARGUMENTS_SHOWN)}"
    )
