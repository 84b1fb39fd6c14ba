"""What is known of a run while it is at hand: its steps as they are, and what of them is to be written."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec import Struct

from lateshift.model.instants import to_number
from lateshift.model.job import Lease, NewJob
from lateshift.model.workflow.run import NEVER, Advance, Advanced, Asleep, Loaded, Phase, Signal
from lateshift.model.workflow.step import StepRow, StepState, StepView, Undo
from lateshift.runtime.log import log
from lateshift.workflow.calls import kept
from lateshift.workflow.journal import Journal, again

WRITTEN_WITHIN = 0.02  # seconds after a step has completed, if no other step asks for it before


class Draft(Struct, kw_only=True):
    """What one commit writes. Jobs stand under the path of the step that makes them; those of none, such as an alert's, under ""."""

    steps: dict[str, StepRow] = {}
    jobs: dict[str, list[NewJob]] = {}
    taken: list[tuple[int, str]] = []  # signals, and the steps that took them
    status: str | None = None
    phase: Phase | None = None


class Lost(BaseException):
    """The lease is another's: whatever this run would do is not its own any more."""


class Record:
    """Steps are put in; a commit writes all that was put in before it. One commit is under way at a time; what it was
    to write is written by the next if nobody waits for it any more. `refused`: called when the store would not have a job, or a step."""

    def __init__(
        self, lease: Lease, journal: Journal, name: str, version: str, monotonic: Callable[[], float]
    ) -> None:
        self.lease = lease
        self.refused: Callable[[], None] = lambda: None
        self.dropped = False  # whether a step was not begun after all, because the run is to be stopped
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
        self._draft = Draft()
        self._place = 0
        self._changes = 0
        self._written = 0
        self._lock = asyncio.Lock()
        self._later: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Advanced]] = set()

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
        if self._draft.phase is None:
            self.phase, self.why = run.phase, run.why
        self.cancel_by = self.cancel_by or run.cancel_by
        taken = {number for number, _ in self._draft.taken}
        self.signals = [signal for signal in loaded.signals if signal.number not in taken]
        for view in loaded.steps:
            if view.path in self._draft.steps:
                continue
            self.steps[view.path] = _row(view)
            if view.mended and view.payload is not None:
                self.mended[view.path] = view.payload
            if view.due_at is not None and view.state is StepState.RUNNING:
                self._due[view.path] = view.due_at
            self._place = max(self._place, view.place or 0)

    def put(self, row: StepRow, jobs: Sequence[NewJob] = ()) -> None:
        self.steps[row.path] = self._draft.steps[row.path] = row
        self._due.pop(row.path, None)
        self.enqueue(jobs, row.path)

    def enqueue(self, jobs: Sequence[NewJob], path: str = "") -> None:
        if jobs:
            self._draft.jobs.setdefault(path, []).extend(jobs)
        self._change()

    def complete(self, row: StepRow, result: bytes | None) -> None:
        """It has its place among those that have completed. Written with what comes next, or soon."""
        done = msgspec.structs.replace(
            row,
            state=StepState.COMPLETED,
            result=result,
            error=None,
            place=self.next_place(),
            wait=None,
            limit=None,
        )
        self.put(done)
        self.write_soon()

    def next_place(self) -> int:
        """Of a step that was done just now."""
        self._place = max(self._place + 1, self._now())
        return self._place

    def _now(self) -> int:
        """By the store's clock, about, in microseconds: what others complete meanwhile gets its place by that."""
        if self._clock is None:
            return 0
        said, at = self._clock
        return to_number(said) + int((self._monotonic() - at) * 1_000_000)

    def take(self, signal: Signal, path: str) -> None:
        self.signals.remove(signal)
        self._draft.taken.append((signal.number, path))

    def say(self, *, status: str | None = None, phase: Phase | None = None, why: str | None = None) -> None:
        self._draft.status = self._draft.status if status is None else status
        if phase is not None:
            self.phase = self._draft.phase = phase
            self.why = why
        self._change()

    def delay(self, path: str, wait: timedelta) -> None:
        """Something that is not written waits so long, from the last that was."""
        if self._clock is not None:
            self._due[path] = self._clock[0] + wait

    def left(self, path: str) -> timedelta | None:
        """How long until the step is due; None if it is due for nothing. Its time runs from when it is written."""
        if path in self._draft.steps and self._draft.steps[path].wait is not None:
            return self._draft.steps[path].wait
        due = self._due.get(path)
        if due is None or self._clock is None:
            return None
        said, at = self._clock
        return due - said - timedelta(seconds=self._monotonic() - at)

    async def sleep(self, paths: Iterable[str], waits_for: str, *, at_once: bool = False) -> Advanced:
        """Write all, and give the lease up until the first of these is due; `at_once`: to whoever comes next. Raises Lost.

        What is known now must be all the news there is; but when they are due is known only once what is on its way is written."""
        waiting, news = list(paths), self.news
        if at_once:
            return await self.commit(lambda: Asleep(timedelta(0), None, news, waits_for))
        return await self.commit(lambda: self._asleep(waiting, news, waits_for))

    def _asleep(self, paths: Sequence[str], news: int, waits_for: str) -> Asleep:
        waits, dues = [NEVER], []
        for path in paths:
            row = self._draft.steps.get(path)
            if row is not None and row.wait is not None:
                waits.append(row.wait)
            elif path in self._due:
                dues.append(self._due[path])
        return Asleep(min(waits), min(dues, default=None), news, waits_for)

    def _change(self) -> None:
        self._changes += 1

    def write_soon(self) -> None:
        """What nobody waits for is written with what comes next, or in a moment."""
        if self._later is None and self._written < self._changes:
            self._later = asyncio.get_running_loop().call_later(WRITTEN_WITHIN, self._write_now)

    def _write_now(self) -> None:
        self._later = None
        if self._written < self._changes:
            task = asyncio.get_running_loop().create_task(self.commit())
            self._tasks.add(task)
            task.add_done_callback(self._written_now)

    def _written_now(self, task: asyncio.Task[Advanced]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # if it is lost, the next commit says so

    async def commit(self, sleep: Callable[[], Asleep] | None = None, *, ask: bool = False) -> Advanced:
        """Write all that was put in before; several who want that together share it. `ask`: for the store's answer, even if there
        is nothing to write. `sleep`: asked when nothing else is on its way. Raises Lost."""
        wanted = self._changes
        async with self._lock:
            if sleep is None and not ask and self._written >= wanted and self._begin is None:
                return Advanced(news=self.news, phase=self.phase, cancel_by=self.cancel_by)
            if self._later is not None:
                self._later.cancel()
                self._later = None
            asleep = None if sleep is None else sleep()
            changes, draft, self._draft = self._changes, self._draft, Draft()
            try:
                answer = await self._write(draft, asleep)
            except (Exception, asyncio.CancelledError) as error:
                answer = await self._write_after_all(draft, error)
            self._written = max(self._written, changes)
            return answer

    async def _write_after_all(self, draft: Draft, error: BaseException) -> Advanced:
        """What was not written, as far as is known, comes with the next commit; unless the store only would not have the jobs, which are all
        in it that is of the program's making."""
        if isinstance(error, Exception) and draft.jobs:
            try:
                return await self._write_apart(draft, error)
            except (Exception, asyncio.CancelledError) as another:
                error = another
        self._draft = _joined(_doubtful(draft), self._draft)
        raise error

    async def _write_apart(self, draft: Draft, error: Exception) -> Advanced:
        """The store will not have one of the jobs: each step that makes some is written by itself, and has failed if its are refused.
        Nothing sleeps on that."""
        alone = len(draft.jobs) == 1
        others = {path: row for path, row in draft.steps.items() if path not in draft.jobs}
        answer = await self._write(msgspec.structs.replace(draft, steps=others, jobs={}), None)
        for path in draft.jobs:
            steps = {path: draft.steps[path]} if path in draft.steps else {}
            try:
                if alone:
                    raise error
                answer = await self._write(Draft(steps=steps, jobs={path: draft.jobs[path]}), None)
            except Exception as refusal:
                log.error("workflow %s: the store refuses a job: %s", self.lease.id, refusal)
                for row in steps.values():
                    self.steps[path] = steps[path] = _failed(row, refusal)
                answer = await self._write(Draft(steps=steps), None)
        self.refused()
        return answer

    async def _write(self, draft: Draft, sleep: Asleep | None) -> Advanced:
        forward = [path for path in draft.jobs if path in draft.steps and not draft.steps[path].undo_state]
        answer = await self._journal.advance(
            Advance(
                lease=self.lease, steps=list(draft.steps.values()), jobs=[job for made in draft.jobs.values() for job in made],
                taken=draft.taken, begin=self._begin, status=draft.status, phase=draft.phase,
                why=self.why if draft.phase is not None else None, sleep=sleep, forward=bool(forward),
            )
        )  # fmt: skip
        if answer.lost:
            raise Lost
        if answer.stopped:
            return await self._write_without(draft, forward, answer)
        if answer.now is not None:
            self._clock = answer.now, self._monotonic()
        for row in draft.steps.values():
            if row.wait is not None and self.steps[row.path] is row:
                self.delay(row.path, row.wait)
        self._begin = None
        if self._draft.phase is None:
            self.phase = answer.phase
        self.cancel_by = self.cancel_by or answer.cancel_by
        return answer

    async def _write_without(self, draft: Draft, forward: Sequence[str], told: Advanced) -> Advanced:
        """Somebody wants the run stopped, so these steps do not begin: they are not there. Nothing sleeps on that."""
        if self._draft.phase is None:
            self.phase = told.phase
        self.cancel_by = self.cancel_by or told.cancel_by
        self.dropped = True
        for path in forward:
            self.steps.pop(path, None)
        steps = {path: row for path, row in draft.steps.items() if path not in forward}
        jobs = {path: made for path, made in draft.jobs.items() if path not in forward}
        answer = await self._write(msgspec.structs.replace(draft, steps=steps, jobs=jobs), None)
        self.refused()
        return answer


def _doubtful(draft: Draft) -> Draft:
    """Whose jobs may be there already, and may have run."""
    jobs = {path: [again(job) for job in made] for path, made in draft.jobs.items()}
    return msgspec.structs.replace(draft, jobs=jobs)


def _joined(old: Draft, new: Draft) -> Draft:
    """What was not written, and what came since."""
    return Draft(
        steps={**old.steps, **new.steps}, jobs={**old.jobs, **new.jobs}, taken=[*old.taken, *new.taken],
        status=new.status or old.status, phase=old.phase if new.phase is None else new.phase,
    )  # fmt: skip


def _failed(row: StepRow, error: Exception) -> StepRow:
    """A step, or an undo, whose job the store refuses."""
    if row.undo_state is Undo.RUNNING:
        return msgspec.structs.replace(row, undo_state=Undo.FAILED, undo_error=kept(error), undo_job=None)
    return msgspec.structs.replace(
        row,
        state=StepState.FAILED,
        error=kept(error),
        failures=row.failures + 1,
        job=None,
        limit=None,
        place=0,
    )


def _row(view: StepView) -> StepRow:
    return StepRow(
        path=view.path, kind=view.kind, name=view.name, state=view.state, payload=view.payload, result=view.result,
        error=view.error, place=view.place, failures=view.failures, job=view.job, undo=view.undo,
        undo_state=view.undo_state, undo_failures=view.undo_failures, undo_error=view.undo_error, undo_job=view.undo_job,
    )  # fmt: skip
