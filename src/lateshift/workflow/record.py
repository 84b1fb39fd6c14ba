"""What is known of a run while it is at hand: its steps as they are, and what of them is to be written."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

import msgspec

from lateshift.model.instants import to_number
from lateshift.model.job import Lease, NewJob
from lateshift.model.workflow.run import NEVER, Advance, Advanced, Asleep, Loaded, Phase, Signal
from lateshift.model.workflow.step import StepRow, StepState, StepView, Undo
from lateshift.workflow.calls import kept
from lateshift.workflow.journal import Journal

WRITTEN_WITHIN = 0.02  # seconds after a step has completed, if no other step asks for it before


Sent: TypeAlias = tuple[dict[str, StepRow], list[NewJob], list[tuple[int, str]], str | None, Phase | None]
"""What one commit writes: steps, jobs, signals, the status and the phase."""


class Lost(BaseException):
    """The lease is another's: whatever this run would do is not its own any more."""


class Record:
    """Steps are put in; a commit writes all that was put in before it. One commit is under way at a time."""

    def __init__(
        self, lease: Lease, journal: Journal, name: str, version: str, monotonic: Callable[[], float]
    ) -> None:
        self.lease = lease
        self._monotonic = monotonic
        self.steps: dict[str, StepRow] = {}
        self.mended: dict[str, bytes] = {}  # the arguments that an operator gave to a step
        self.signals: list[Signal] = []
        self.phase = Phase.FORWARD
        self.why: str | None = None
        self.cancel_by: str | None = None
        self.news = 0
        self._journal = journal
        self._begin: tuple[str, str] | None = (name, version)
        self._due: dict[str, datetime] = {}  # by the store's clock
        self._clock: tuple[datetime, float] | None = None  # what the store said, and when
        self._fresh: dict[str, StepRow] = {}
        self._jobs: list[NewJob] = []
        self._taken: list[tuple[int, str]] = []
        self._status: str | None = None
        self._said: Phase | None = None
        self._place = 0
        self._changes = 0
        self._written = 0
        self._lock = asyncio.Lock()
        self._later: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Advanced]] = set()
        self._sent: Sent = {}, [], [], None, None

    async def load(self) -> None:
        """As it stands in the store; what has not been written yet stays as it is here."""
        async with self._lock:  # what is on its way to the store is newer than what is read there
            loaded = await self._journal.load(self.lease.id)
            if loaded is not None:
                self._begin = None
                self._take(loaded)

    def _take(self, loaded: Loaded) -> None:
        run, self._clock = loaded.run, (loaded.now, self._monotonic())
        self.news = run.news
        if self._said is None:
            self.phase, self.why = run.phase, run.why
        self.cancel_by = self.cancel_by or run.cancel_by
        taken = {number for number, _ in self._taken}
        self.signals = [signal for signal in loaded.signals if signal.number not in taken]
        for view in loaded.steps:
            if view.path in self._fresh:
                continue
            self.steps[view.path] = _row(view)
            if view.mended and view.payload is not None:
                self.mended[view.path] = view.payload
            if view.due_at is not None and view.state is StepState.RUNNING:
                self._due[view.path] = view.due_at
            self._place = max(self._place, view.place or 0)

    def put(self, row: StepRow, jobs: Sequence[NewJob] = ()) -> None:
        self.steps[row.path] = self._fresh[row.path] = row
        self._jobs += jobs
        self._due.pop(row.path, None)
        self._change()

    def enqueue(self, jobs: Sequence[NewJob]) -> None:
        self._jobs += jobs
        self._change()

    def complete(self, row: StepRow, result: bytes | None) -> None:
        """It has its place among those that have completed. Written with what comes next, or soon."""
        self._place = max(self._place + 1, self._now())
        done = msgspec.structs.replace(
            row,
            state=StepState.COMPLETED,
            result=result,
            error=None,
            place=self._place,
            wait=None,
            limit=None,
        )
        self.put(done)
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(WRITTEN_WITHIN, self._write_soon)

    def _now(self) -> int:
        """By the store's clock, about, in microseconds: what others complete meanwhile gets its place by that."""
        if self._clock is None:
            return 0
        said, at = self._clock
        return to_number(said) + int((self._monotonic() - at) * 1_000_000)

    def take(self, signal: Signal, path: str) -> None:
        self.signals.remove(signal)
        self._taken.append((signal.number, path))

    def say(self, *, status: str | None = None, phase: Phase | None = None, why: str | None = None) -> None:
        self._status = self._status if status is None else status
        if phase is not None:
            self.phase = self._said = phase
            self.why = why
        self._change()

    def delay(self, path: str, wait: timedelta) -> None:
        """Something that is not written waits so long, from the last that was."""
        if self._clock is not None:
            self._due[path] = self._clock[0] + wait

    def left(self, path: str) -> timedelta | None:
        """How long until the step is due; None if it is due for nothing. Its time runs from when it is written."""
        if path in self._fresh and self._fresh[path].wait is not None:
            return self._fresh[path].wait
        due = self._due.get(path)
        if due is None or self._clock is None:
            return None
        said, at = self._clock
        return due - said - timedelta(seconds=self._monotonic() - at)

    def asleep(self, paths: Iterable[str], waits_for: str) -> Asleep:
        """Until the first of these is due."""
        waits, dues = [NEVER], []
        for path in paths:
            row = self._fresh.get(path)
            if row is not None and row.wait is not None:
                waits.append(row.wait)
            elif path in self._due:
                dues.append(self._due[path])
        return Asleep(min(waits), min(dues, default=None), self.news, waits_for)

    def _change(self) -> None:
        self._changes += 1

    def _write_soon(self) -> None:
        self._later = None
        if self._written < self._changes:
            task = asyncio.get_running_loop().create_task(self.commit())
            self._tasks.add(task)
            task.add_done_callback(self._written_soon)

    def _written_soon(self, task: asyncio.Task[Advanced]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # if it is lost, the next commit says so

    async def commit(self, sleep: Asleep | None = None, *, ask: bool = False) -> Advanced:
        """Write all that was put in before; several who want that together share it. `ask`: for the store's answer, even if there
        is nothing to write. Raises Lost."""
        wanted = self._changes
        async with self._lock:
            if sleep is None and not ask and self._written >= wanted and self._begin is None:
                return Advanced(news=self.news, phase=self.phase, cancel_by=self.cancel_by)
            try:
                return await self._write(sleep)
            except Exception as error:  # the store will not have it as it is: the jobs are the only thing of the program's making
                if not self._refused(error):
                    raise
                return await self._write(None)

    def _refused(self, error: Exception) -> bool:
        """Steps whose jobs are refused have failed; the rest is written without them. False if there are none such."""
        fresh, jobs, taken, status, said = self._sent
        self._status = self._status or status
        self._said = said if self._said is None else self._said
        ids = {job.id for job in jobs}
        self._fresh = {**fresh, **self._fresh}
        self._taken = [*taken, *self._taken]
        refused = [row for row in fresh.values() if row.job in ids or row.undo_job in ids]
        for row in refused:
            if row.job in ids:
                failed = msgspec.structs.replace(
                    row,
                    state=StepState.FAILED,
                    error=kept(error),
                    failures=row.failures + 1,
                    job=None,
                    limit=None,
                    place=0,
                )
            else:
                failed = msgspec.structs.replace(
                    row, undo_state=Undo.FAILED, undo_error=kept(error), undo_job=None
                )
            self.steps[row.path] = self._fresh[row.path] = failed
        return bool(jobs)

    async def _write(self, sleep: Asleep | None) -> Advanced:
        if self._later is not None:
            self._later.cancel()
            self._later = None
        changes, fresh, jobs, taken = self._changes, self._fresh, self._jobs, self._taken
        status, said, begin = self._status, self._said, self._begin
        self._sent = fresh, jobs, taken, status, said
        self._fresh, self._jobs, self._taken, self._status, self._said = {}, [], [], None, None
        answer = await self._journal.advance(
            Advance(
                lease=self.lease, steps=list(fresh.values()), jobs=jobs, taken=taken, begin=begin, status=status, phase=said,
                why=self.why if said is not None else None, sleep=sleep,
            )
        )  # fmt: skip
        if answer.lost:
            raise Lost
        if answer.now is not None:
            self._clock = answer.now, self._monotonic()
        for row in fresh.values():
            if row.wait is not None and self.steps[row.path] is row:
                self.delay(row.path, row.wait)
        self._begin = None
        self._written = max(self._written, changes)
        if self._said is None:
            self.phase = answer.phase
        self.cancel_by = self.cancel_by or answer.cancel_by
        return answer


def _row(view: StepView) -> StepRow:
    return StepRow(
        path=view.path, kind=view.kind, name=view.name, state=view.state, payload=view.payload, result=view.result,
        error=view.error, place=view.place, failures=view.failures, job=view.job, undo=view.undo,
        undo_state=view.undo_state, undo_failures=view.undo_failures, undo_error=view.undo_error, undo_job=view.undo_job,
    )  # fmt: skip
