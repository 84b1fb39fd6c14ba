"""Dead letters that a program or an operator means: to look at, in groups, to resubmit, with other arguments if need be, and to
discard. Made by `app.dead_letters(…)`."""

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import timedelta
from itertools import islice

from msgspec import structs

from lateshift.clock import Clock
from lateshift.dead_letters import discarding
from lateshift.dead_letters.discarding import DISCARD_MOST, DiscardPlan
from lateshift.dead_letters.resubmission import Course, Plan, Resubmission, Resubmitted, Tasks, up_to
from lateshift.errors import ArgumentsInvalid, OptionInvalid
from lateshift.model.arguments import Change
from lateshift.model.discard import Discarded, Kept
from lateshift.model.fingerprint import FINGERPRINT, fingerprint
from lateshift.model.groups import Groups
from lateshift.model.ids import JobId
from lateshift.model.job import JobFilter, JobView, State
from lateshift.model.rate import Rate
from lateshift.model.workflow.run import is_over, is_step
from lateshift.store.contract import Store

PAGE = 200
WHOLE_AT_ONCE = 10  # of those whose arguments are changed
DEAD_LOOKED_AT = 100_000  # newest dead letters that grouping, `like` and a discard look at
UNDONE_MOST = 2_000  # runs that were undone, besides, which groups pass over
KEPT_TOLD = 1_000  # dead letters that a discard passes over and names


class DeadLetters:
    """The dead letters of a task, a queue, a reason, or one fingerprint; those of `ids` that are dead; all of them if nothing narrows.
    Reading them takes bounded memory; the newest come first, those of `ids` in their order."""

    def __init__(
        self, store: Store, tasks: Tasks, clock: Clock, *, queue: str | None = None, task: str | None = None,
        reason: str | None = None, like: str | None = None,
    ) -> None:  # fmt: skip
        if like is not None and not FINGERPRINT.fullmatch(like):
            raise OptionInvalid(
                f"{like!r} is no fingerprint: eight hexadecimal digits, as `lateshift jobs dead` shows them."
            )
        self.like = like
        self.ids: tuple[JobId, ...] | None = None  # these alone, as far as they are dead
        self.most = DEAD_LOOKED_AT  # of the newest that grouping, `like` and a discard look at
        self.whole = True  # whether they are read as they are kept, PAGE at a time; else slim, where it is not the whole that is changed
        self.cut = False  # whether the last look at them ended at the most
        self.bounded = (
            False  # whether a look ends where the store has looked at many that do not fit, as a page does
        )
        self.apart = False  # whether groups leave out runs that were undone, and only count them
        self.ended_at: JobId | None = None  # where it ended so
        self.steps = 0  # of workflows, which the last look at those that can be resubmitted left out
        self.kept: dict[
            JobId, Kept
        ] = {}  # of KEPT_TOLD, why the last look at those that can be discarded left them out
        self.leaves: Callable[[JobView], bool] = lambda view: False  # which are not resubmitted besides
        self.wanted = JobFilter(queue=queue, task=task, reason=reason, state=State.DEAD)
        self._store = store
        self._tasks = tasks
        self._clock = clock

    def __iter__(self) -> Iterator[JobView]:
        self.cut = False
        for looked_at, view in enumerate(self._all()):
            if self.like is not None and looked_at == self.most:
                self.cut = True
                return
            if self.like is None or fingerprint(view) == self.like:
                yield view
        self.cut = self.ended_at is not None

    def resubmittable(self) -> Iterator[JobView]:
        """All but those that were steps of workflows: a run has another job made of its step."""
        self.steps, views = 0, iter(self)
        while page := list(islice(views, PAGE)):
            runs = self._runs_of(page)
            for view in page:
                if is_step(view, runs):
                    self.steps += 1
                elif not self.leaves(view):
                    yield view

    def discardable(self) -> Iterator[JobView]:
        """All but those that something still needs. Looks at the newest of them; `cut` says if there are more."""
        self.kept, views, looked_at = {}, iter(self), 0
        while page := list(islice(views, min(PAGE, self.most - looked_at))):
            looked_at += len(page)
            kept = self._store.reports.kept([view.id for view in page])
            self.kept |= dict(islice(kept.items(), KEPT_TOLD - len(self.kept)))
            yield from (view for view in page if view.id not in kept)
        self.cut = self.cut or next(views, None) is not None

    def groups(self, told: Callable[[int], None] = lambda count: None) -> Groups:
        """Those that died of the same, together. Looks at the newest of them; `cut` says if there are more."""
        groups = Groups()
        views, looked_at = self._all(), 0
        while page := list(
            islice(
                views,
                max(0, min(PAGE, self.most - looked_at, self.most + UNDONE_MOST - looked_at - groups.undone)),
            )
        ):
            runs = self._runs_of(page)
            over = self._over(runs)
            for view in page:
                if self.apart and view.is_run and view.reason == "undone":
                    groups.undone += 1
                    groups.last = view.id
                    continue
                looked_at += 1
                if self.like is None or fingerprint(view) == self.like:
                    groups.add(view, step=is_step(view, runs), over=view.batch in over)
                groups.last = view.id
                told(1)
        groups.cut = next(views, None) is not None
        if self.ended_at is not None:
            groups.cut, groups.last = True, self.ended_at
        return groups

    def are_over(self, views: Sequence[JobView]) -> bool:
        """Whether nothing runs any of them again: they were steps, and their runs have ended."""
        for start in range(0, len(views), PAGE):
            page = views[start : start + PAGE]
            over = self._over(runs := self._runs_of(page))
            if not all(is_step(view, runs) and view.batch in over for view in page):
                return False
        return True

    def plan(self, change: Change | None = None, *, limit: int = 1_000) -> Plan:
        """What `resubmit` would do with the same arguments; nothing is written."""
        return self._resubmission(change, "").plan(up_to(limit, self._to_edit(change)))

    def resubmit(
        self, change: Change | None = None, *, by: str = "the caller", limit: int = 1_000, first: int = 0,
        wait: timedelta = timedelta(minutes=5), rate: str | None = None,
    ) -> Resubmitted:  # fmt: skip
        """Make them ready again with fresh attempts, but for steps of workflows, which their runs would not hear of; and with some arguments changed: `{"width": 300}`, or a function from
        the old arguments to the new ones. All are checked by this code's types before anything is written.

        `first`: let so many go, and the rest only when they have completed within `wait`; blocks until then. `rate`: the rest at
        `10/s`, `300/min` or `5000/h`: resubmitted at once, each due at its time, so that nobody has to wait for that.
        """
        course = Course(first=first, wait=wait, rate=None if rate is None else Rate.read(rate))
        resubmission = self._resubmission(change, by)
        letters = self
        if change is not None:
            plan = resubmission.plan(up_to(limit, self._to_edit(change)))
            refuse_problems(plan)
            if self.ids is None:  # one that has died meanwhile was not checked
                letters = self.these(plan.ids)
        done = resubmission.carry_out(up_to(limit, letters._to_edit(change)), course, self._clock)
        done.skipped = letters.without(done)
        return done

    def these(self, ids: Sequence[JobId]) -> "DeadLetters":
        """Of the same store those with these ids, as far as they are dead letters: what was looked through is what is done."""
        letters = DeadLetters(self._store, self._tasks, self._clock)
        letters.ids, letters.leaves = tuple(dict.fromkeys(ids)), self.leaves
        letters.whole = self.whole
        return letters

    def without(self, done: Resubmitted) -> list[JobId]:
        """Which of them were skipped; of `ids`, all that were not resubmitted though it was their turn."""
        if self.ids is None or done.stopped is not None:
            return done.skipped
        sent = set(done.ids)
        return [id for id in self.ids if id not in sent]

    def plan_discard(self, *, limit: int = DISCARD_MOST) -> DiscardPlan:
        """What `discard` would do with the same limit; nothing is written."""
        found = discarding.plan(up_to(limit, self.discardable()))
        found.leave(self._store, self.kept)
        return found

    def discard(self, *, by: str = "the caller", limit: int = DISCARD_MOST) -> Discarded:
        """Delete them, with their logs and tags, as retention would; up to DISCARD_MOST in each transaction. One that something still
        needs, such as the session that it holds, stays: `kept` says why."""
        ids = (view.id for view in up_to(limit, self.discardable()))
        done = discarding.discard(self._store, ids, by=by)
        done.kept = self.kept | done.kept
        return done

    def _to_edit(self, change: Change | None) -> Iterator[JobView]:
        """Those that can be resubmitted, with the arguments that are changed."""
        views = self.resubmittable()
        if self.whole or change is None:
            return views
        return wholes(self._store, views)

    def _resubmission(self, change: Change | None, by: str) -> Resubmission:
        tasks = None if change is None else self._tasks
        return Resubmission(self._store, by=by, change=change, tasks=tasks)

    def _runs_of(self, views: Sequence[JobView]) -> Collection[JobId]:
        within = [view.batch for view in views if view.batch is not None]
        return self._store.workflows.begun(within) if within else ()

    def _over(self, runs: Collection[JobId]) -> set[JobId]:
        """Which of them have ended, so that nothing runs their steps again."""
        found = self._store.reports.named([*runs], whole=False) if runs else []
        return {run.id for run in found if run is not None and is_over(run)}

    def _all(self) -> Iterator[JobView]:
        if self.ids is not None:
            for start in range(0, len(self.ids), PAGE):
                found = self._store.reports.named(self.ids[start : start + PAGE], whole=self.whole)
                yield from (view for view in found if view is not None and view.state is State.DEAD)
            return
        wanted, self.ended_at = self.wanted, None
        while True:
            seen = self._store.reports.search(wanted, PAGE, whole=self.whole)
            yield from seen.jobs
            if seen.before is None:
                return
            if seen.cut and self.bounded:
                self.ended_at = seen.before
                return
            wanted = structs.replace(wanted, before=seen.before)


def wholes(store: Store, views: Iterator[JobView]) -> Iterator[JobView]:
    """The same as they are kept, few of them in memory together."""
    while few := list(islice(views, WHOLE_AT_ONCE)):
        found = store.reports.named([view.id for view in few])
        yield from (view for view in found if view is not None and view.state is State.DEAD)


def refuse_problems(plan: Plan) -> None:
    """Raises ArgumentsInvalid if one of the jobs cannot be resubmitted as planned."""
    if plan.problems:
        count = sum(plan.problems.values())
        said = "; ".join(
            error if len(plan.problems) == 1 else f"{number:,} times {error.removesuffix('.')}"
            for error, number in plan.problems.items()
        )
        raise ArgumentsInvalid(
            f"{count:,} of {plan.count:,} cannot be resubmitted so, nothing was written: {said}", "change"
        )
