"""Before a release: can this code run what is in the store? Every job that may still run, follow a batch or come of a
schedule, is decoded with its types; workflows under way are replayed over what they have recorded; and its triggers are looked at, without connecting to anything."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any
from uuid import UUID

from msgspec import Struct, field

from lateshift.errors import ArgumentsInvalid, TaskInvalid
from lateshift.model.batch import BatchId
from lateshift.model.fingerprint import blanked
from lateshift.model.ids import JobId
from lateshift.model.job import JobFilter, JobView, State
from lateshift.model.sealed import is_sealed
from lateshift.model.workflow.run import ANEW, Phase, is_step
from lateshift.store.contract import Store
from lateshift.task import Task
from lateshift.triggers.fitting import fault
from lateshift.triggers.trigger import Trigger
from lateshift.workflow.pipeline import Pipeline
from lateshift.workflow.replaying import difference
from lateshift.workflow.workflow import Workflow

PAGE = 500
EXAMPLES = 3
FINDINGS_KEPT = 200  # what comes after so many different ones is only counted

TO_COME = "to come"  # of what a batch enqueues when it is done
SCHEDULED = "of a schedule"  # what its ticks will enqueue
GONE, UNDECODABLE, INVALID = "task_gone", "arguments_undecodable", "task_invalid"
DIVERGED, FILTER_GONE = "workflow_diverged", "filter_gone"
TRIGGER_INVALID, TRIGGER_TAKEN = "trigger_invalid", "trigger_taken"


class Finding(Struct, kw_only=True):
    """Jobs of one task that this code cannot run for one reason. `counts` by state; the examples are the newest."""

    task: str
    kind: str
    error: str
    counts: dict[str, int] = field(default_factory=dict)
    examples: list[JobId | str] = field(default_factory=list)

    def add(self, met: "Met") -> None:
        self.counts[met.state] = self.counts.get(met.state, 0) + 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(met.id)


class Met(Struct, frozen=True):
    """What this code would meet: a job, or one that a batch enqueues when it is done, or a schedule at its ticks."""

    id: JobId | str
    task: str
    payload: bytes
    state: str
    reason: str | None = None


class Report(Struct, kw_only=True):
    """What a check found. `looked_at`: jobs by state. `triggers_going`: those of this app in the store that its code does not have
    any more; they go when it starts."""

    looked_at: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    left_out: int = 0
    triggers_going: list[str] = field(default_factory=list)


def check(
    store: Store,
    tasks: Mapping[str, Task[..., Any]],
    told: Callable[[int], None] = lambda count: None,
    *,
    app: str | None = None,
    triggers: Mapping[str, Trigger] = MappingProxyType({}),
) -> Report:
    """Reads what waits and runs, the dead letters, then what batches enqueue at their end and schedules at their ticks, page by
    page; what has completed costs nothing. Schedules that the code of `app` declares are not looked at: its next start tells
    the store what they are then."""
    report = Report()
    found: dict[tuple[str, ...], Finding] = {}
    for task in tasks.values():
        try:
            _ = task.arguments
        except TaskInvalid as error:
            found[task.name, INVALID] = Finding(task=task.name, kind=INVALID, error=str(error))
    for wrong_trigger in _of_triggers(store, triggers, app):
        found[wrong_trigger.task, wrong_trigger.kind, *map(str, wrong_trigger.examples)] = wrong_trigger
    if app is not None:
        report.triggers_going = [
            view.name for view in store.triggers.all() if view.app == app and view.name not in triggers
        ]
    for met in _what_there_is(store, app):
        report.looked_at[met.state] = report.looked_at.get(met.state, 0) + 1
        told(1)
        wrong = _what_is_wrong(tasks, met)
        if wrong is None or (wrong[0] == UNDECODABLE and _is_under_way(store, tasks, met)):
            wrong = _what_diverges(store, tasks, met)
        if wrong is None:
            continue
        kind, words = wrong
        # Values in a message differ from job to job; the name of the argument, which stands first, does not.
        argument, colon, what = words.partition(": ")
        key: tuple[str, ...] = (met.task, kind)
        if kind == UNDECODABLE:
            key = (met.task, kind, argument, colon, blanked(what))
        elif kind == FILTER_GONE:
            key = (met.task, kind, words)
        finding = found.get(key)
        if finding is None and len(found) < FINDINGS_KEPT:
            finding = found[key] = Finding(task=met.task, kind=kind, error=words)
        if finding is None:
            report.left_out += 1
        else:
            finding.add(met)
    report.findings = sorted(
        found.values(), key=lambda finding: (finding.task, -sum(finding.counts.values()))
    )
    return report


def _of_triggers(store: Store, triggers: Mapping[str, Trigger], app: str | None) -> Iterator[Finding]:
    """Those that would not work, and those whose name an app has that has workers."""
    owners = {view.name: view.app for view in store.triggers.all()}
    alive = {
        member.serves.app
        for member in store.reports.members()
        if member.serves is not None and not member.dead
    }
    for name, trigger in triggers.items():
        task, examples = trigger.task.name, [f"trigger {name}"]
        wrong = fault(trigger, store)
        if wrong is not None:
            yield Finding(task=task, kind=TRIGGER_INVALID, error=wrong, examples=[*examples])
        owner = owners.get(name, app)
        if owner != app and owner in alive:
            told = f"the app {owner} has a trigger of this name, too, and has workers"
            yield Finding(task=task, kind=TRIGGER_TAKEN, error=told, examples=[*examples])


def _what_there_is(store: Store, app: str | None) -> Iterator[Met]:
    for view in _jobs(store):
        yield Met(view.id, view.task, view.payload, view.state.label, view.reason)
    before: BatchId | None = None
    while page := store.batches.newest(before, PAGE):
        for batch in page:
            for call in batch.to_come:
                yield Met(call.id, call.spec.task, call.payload, TO_COME)
        before = page[-1].id
    after: str | None = None
    while schedules := store.schedules.list(after, PAGE):
        for schedule in schedules:
            if schedule.app is None or schedule.app != app:
                name = f"schedule {schedule.name}"
                yield Met(name, schedule.job.spec.task, schedule.job.payload, SCHEDULED)
        after = schedules[-1].name


def _jobs(store: Store) -> Iterator[JobView]:
    """What waits and runs, then what is dead; but no dead step of a run, which is not run again by itself: the run is what counts."""
    before: JobId | None = None
    while page := store.reports.unsettled(before, PAGE):
        yield from page
        before = page[-1].id
    before = None
    while page := store.reports.jobs(JobFilter(state=State.DEAD, before=before), PAGE):
        runs = store.workflows.begun([view.batch for view in page if view.batch is not None])
        yield from (view for view in page if not is_step(view, runs))
        before = page[-1].id


def _is_under_way(store: Store, tasks: Mapping[str, Task[..., Any]], met: Met) -> bool:
    """Whether it is an item of a pipeline that has begun: what it was put in with is for its first filter to read."""
    if not isinstance(tasks[met.task], Pipeline) or not isinstance(met.id, UUID):
        return False
    return bool(store.workflows.begun([met.id]))


def _what_diverges(store: Store, tasks: Mapping[str, Task[..., Any]], met: Met) -> tuple[str, str] | None:
    """Of a run of a workflow: whether this code fits what it has recorded."""
    task = tasks[met.task]
    if not isinstance(task, Workflow) or not isinstance(met.id, UUID) or met.state == TO_COME:
        return None
    for loaded in store.workflows.load([met.id]):
        if loaded.run.phase is Phase.UNDOING and met.reason in ANEW:
            continue
        gone = task.gone(loaded) if isinstance(task, Pipeline) else []
        if gone:
            which = f"the filter {gone[0]}" if len(gone) == 1 else f"the filters {', '.join(gone)}"
            return FILTER_GONE, f"items have yet to pass {which}, and this code has no task of that name"
        found = difference(task, loaded, met.payload)
        if found is not None:
            return DIVERGED, found
    return None


def _what_is_wrong(tasks: Mapping[str, Task[..., Any]], met: Met) -> tuple[str, str] | None:
    """The kind of finding, and the error in words."""
    task = tasks.get(met.task)
    if task is None:
        return GONE, "this code has no task of that name"
    if is_sealed(met.payload):  # whoever may read it finds out when it runs
        return None
    try:
        task.arguments.decode(met.payload)
    except TaskInvalid as error:
        return INVALID, str(error)
    except ArgumentsInvalid as error:
        return UNDECODABLE, str(error).removeprefix(f"{met.task}: ")
    except Exception as error:  # a user's own type may raise anything
        return UNDECODABLE, f"{type(error).__name__}: {error}"
    return None
