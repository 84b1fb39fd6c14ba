"""Resubmitting a lot: looked through first, then a few to see how they fare, then the rest, due one after another if there is a rate."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import islice
from typing import Any, TypeAlias

from msgspec import Struct, field

from lateshift.clock import Clock
from lateshift.errors import ArgumentsInvalid, OptionInvalid, SealKeyMissing, TaskUnknown, UsageError
from lateshift.model.arguments import Change
from lateshift.model.edit import Edit, changes
from lateshift.model.ids import JobId
from lateshift.model.job import RESUBMITTED, JobView, State
from lateshift.model.queue import is_sensitive
from lateshift.model.rate import Rate
from lateshift.model.sealed import is_sealed
from lateshift.model.workflow import among
from lateshift.store.contract import Store
from lateshift.task import Task

BATCH = 200  # jobs in one transaction
# Of arguments that are changed, before and after, and what the last of them is over; others stay where they are.
BATCH_BYTES = 8 * 1024 * 1024
EXAMPLES = 20
# Of their arguments, likewise: of large ones that are changed, or read whole, fewer are shown.
EXAMPLES_BYTES = 1024 * 1024
PROBLEMS_KEPT = 20  # kinds of problem that are told apart
LOOK_EVERY = 0.2  # seconds between two looks at those that went first

Tasks: TypeAlias = Mapping[str, Task[..., Any]]


class Planned(Struct, frozen=True):
    """What would become of one job; without an edit it runs again as it is."""

    view: JobView
    edit: Edit | None

    @property
    def size(self) -> int:
        """Bytes of arguments that are shown of it."""
        return len(self.view.payload) if self.edit is None else self.edit.size


class Batch(Struct):
    """What goes in one transaction: of those that were `found`, each with its fence, the `ids` that can go, some of them with other
    arguments."""

    found: dict[JobId, int] = field(default_factory=dict)
    ids: list[JobId] = field(default_factory=list)
    edits: dict[JobId, Edit] = field(default_factory=dict)


class Plan(Struct, kw_only=True):
    """What a resubmission would do, and to which: `ids` are those that somebody says yes to."""

    count: int = 0
    ids: list[JobId] = field(default_factory=list)
    edited: int = 0
    runs: among.Resubmitted = field(default_factory=among.Resubmitted)
    examples: list[Planned] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    problems: dict[str, int] = field(default_factory=dict)


class Resubmitted(Struct, kw_only=True):
    """What a resubmission did. `stopped` says why it ended early, `failed` which of the first ones did not fare well. `spread`: how
    long after the rest was resubmitted the last of it is due."""

    ids: list[JobId] = field(default_factory=list)
    edited: int = 0
    skipped: list[JobId] = field(default_factory=list)
    failed: list[JobId] = field(default_factory=list)
    stopped: str | None = None
    spread: timedelta = timedelta(0)


class Course(Struct, frozen=True, kw_only=True):
    """How to go about it: `first` so many and wait for them, at most `wait`; the rest is due at `rate`, which nobody waits for."""

    first: int = 0
    wait: timedelta = timedelta(minutes=5)
    rate: Rate | None = None


class Resubmission:
    """Of jobs that somebody found. With `tasks`, arguments are checked by the types of this code first."""

    def __init__(
        self, store: Store, *, by: str, change: Change | None = None, tasks: Tasks | None = None
    ) -> None:
        self._store = store
        self._by = by
        self._change = change
        self._tasks = tasks

    def plan(self, views: Iterable[JobView], told: Callable[[int], None] = lambda count: None) -> Plan:
        """Nothing is written. Of what `views` gives the ids are kept, and a few examples."""
        plan, shown = Plan(), 0
        for view in views:
            plan.count += 1
            plan.runs.add(view)
            plan.ids.append(view.id)
            told(1)
            try:
                edit = self._edit(view)
            except UsageError as error:
                kind = str(error)
                if kind not in plan.problems and len(plan.problems) >= PROBLEMS_KEPT:
                    kind = "other problems"
                plan.problems[kind] = plan.problems.get(kind, 0) + 1
                continue
            if edit is not None:
                plan.edited += 1
                plan.changed.update(each.name for each in changes(edit))
            more = len(plan.examples) < EXAMPLES and shown < EXAMPLES_BYTES
            if more and (edit is not None or self._change is None):
                plan.examples.append(Planned(view, edit))
                shown += plan.examples[-1].size
        return plan

    def carry_out(
        self,
        views: Iterable[JobView],
        course: Course,
        clock: Clock,
        *,
        told: Callable[[int], None] = lambda count: None,
        stopping: Callable[[], bool] = lambda: False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Resubmitted:
        """Batch by batch, each one transaction. A job that has changed since it was found is skipped."""
        left, done = iter(views), Resubmitted()
        few, tried = islice(left, course.first), dict[JobId, int]()
        while (batch := self._batch(few)).found:
            self._send(batch, done)
            tried |= batch.found
            told(len(batch.found))
        self._wait_for(tried, course.wait, clock, done, stopping, sleep)
        gone = 0
        while done.stopped is None and (batch := self._batch(left)).found:
            if stopping():
                done.stopped = "interrupted"
                break
            self._send(batch, done, course.rate, gone)
            gone += len(batch.found)
            told(len(batch.found))
        return done

    def _batch(self, left: Iterator[JobView]) -> Batch:
        """The next that go in one transaction."""
        batch, size = Batch(), 0
        for view in islice(left, BATCH):
            batch.found[view.id] = view.fence
            try:
                edit = self._edit(view)
            except UsageError:  # it died after the others were looked through
                continue
            batch.ids.append(view.id)
            if edit is not None:
                batch.edits[view.id] = edit
                size += edit.size
                if size > BATCH_BYTES:
                    break
        return batch

    def _send(self, batch: Batch, done: Resubmitted, rate: Rate | None = None, after: int = 0) -> None:
        ids, edits = batch.ids, batch.edits
        delays = {} if rate is None else rate.delays(ids, after=after)
        sent = set(self._store.jobs.resubmit(ids, by=self._by, edits=edits, delays=delays)) if ids else set()
        done.spread = max([done.spread, *(delay for id, delay in delays.items() if id in sent)])
        done.ids += [id for id in ids if id in sent]
        done.edited += len(sent & edits.keys())
        done.skipped += [id for id in batch.found if id not in sent]

    def _edit(self, view: JobView) -> Edit | None:
        if self._tasks is None:
            return None
        task = self._tasks.get(view.task)
        if task is None:
            raise TaskUnknown(f"The app has no task {view.task!r}. Narrow the filter, or keep the task.")
        if self._change is not None:
            refuse_own(task)
        of_queue = view.sensitive or is_sensitive(task.sender.queues, view.queue)
        if is_sealed(view.payload) or task.is_sensitive or of_queue:
            return self._sealed_edit(view, task)
        try:
            if self._change is None:
                task.arguments.decode(view.payload)
                return None
            edit = Edit(view.payload, task.arguments.edit(view.payload, self._change))
        except UsageError:
            raise
        except Exception as error:  # the caller's own function, or a type of the task's own
            raise ArgumentsInvalid(f"{view.task}: {type(error).__name__}: {error}.") from error
        return edit if changes(edit) else None

    def _sealed_edit(self, view: JobView, task: Task[..., Any]) -> Edit | None:
        """Only where the key ring is. What came unsealed is sealed now: an operator has looked at it. Of what goes
        wrong the type alone is said. What is asked for decides whether it is an edit, never what the job has: else whoever
        may ask would find out by trying what it is."""
        seal = task.sender.ring().of_job(view.id)
        try:
            plain = seal.open("payload", view.payload) if is_sealed(view.payload) else view.payload
            if self._change is None:
                task.arguments.decode(plain)
                after = plain
            else:
                after = task.arguments.edit(plain, self._change)
        except SealKeyMissing:
            raise
        except Exception as error:
            raise ArgumentsInvalid(
                f"{view.task}: {type(error).__name__}. What it says is not shown: the queue is sensitive."
            ) from None
        if is_sealed(view.payload) and not self._asks:
            return None
        return Edit(view.payload, seal.close("payload", after))

    @property
    def _asks(self) -> bool:
        """Whether other arguments are asked for; `{}` asks for none."""
        return callable(self._change) or bool(self._change)

    def _wait_for(
        self, tried: Mapping[JobId, int], wait: timedelta, clock: Clock, done: Resubmitted,
        stopping: Callable[[], bool], sleep: Callable[[float], None],
    ) -> None:  # fmt: skip
        """Until each of the first has completed. One that failed, if only an attempt, stops it all."""
        sent = set(done.ids)
        open_ = {id: fence for id, fence in tried.items() if id in sent}
        end = clock.monotonic() + wait.total_seconds()
        while open_ and done.stopped is None:
            for id, fence in list(open_.items()):
                now = self._store.reports.job(id)
                if now is None or now.state is State.COMPLETED:
                    del open_[id]
                elif fared_badly(now, fence):
                    done.failed.append(id)
            if done.failed:
                done.stopped = "failed"
            elif stopping():
                done.stopped = "interrupted"
            elif open_ and clock.monotonic() >= end:
                done.stopped = "waited"
            elif open_:
                sleep(LOOK_EVERY)


def fared_badly(view: JobView, fence: int) -> bool:
    """Whether a job that was resubmitted at this fence has ended otherwise than completed, or has failed since."""
    failed = any(record.fence > fence and record.reason != RESUBMITTED for record in view.history)
    return failed or view.state.uncompleted


def refuse_own(task: Task[..., Any]) -> None:
    """What Lateshift itself is given, such as what a delivery signs, is changed by nobody. Raises OptionInvalid."""
    if task.limits.own:
        raise OptionInvalid(f"{task.name} is of Lateshift itself: nobody else says what it is given.")


def up_to(limit: int, views: Iterable[JobView]) -> Iterator[JobView]:
    return islice(iter(views), limit)
