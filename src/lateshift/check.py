"""Before a release: can this code run what is in the store? Every job that may still run is decoded with its types."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from lateshift.errors import ArgumentsInvalid, TaskInvalid
from lateshift.model.fingerprint import blanked
from lateshift.model.ids import JobId
from lateshift.model.job import JobFilter, JobView, State
from lateshift.store.contract import Store
from lateshift.task import Task

PAGE = 500
EXAMPLES = 3
FINDINGS_KEPT = 200  # what comes after so many different ones is only counted

GONE, UNDECODABLE, INVALID = "task_gone", "arguments_undecodable", "task_invalid"


class Finding(Struct, kw_only=True):
    """Jobs of one task that this code cannot run for one reason. `counts` by state; the examples are the newest."""

    task: str
    kind: str
    error: str
    counts: dict[str, int] = field(default_factory=dict)
    examples: list[JobId] = field(default_factory=list)

    def add(self, view: JobView) -> None:
        self.counts[view.state.label] = self.counts.get(view.state.label, 0) + 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(view.id)


class Report(Struct, kw_only=True):
    """What a check found. `looked_at`: jobs by state."""

    looked_at: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    left_out: int = 0


def check(
    store: Store, tasks: Mapping[str, Task[..., Any]], told: Callable[[int], None] = lambda count: None
) -> Report:
    """Reads what waits and runs, then the dead letters, page by page; what has completed costs nothing."""
    report = Report()
    found: dict[tuple[str, ...], Finding] = {}
    for task in tasks.values():
        try:
            _ = task.arguments
        except TaskInvalid as error:
            found[task.name, INVALID] = Finding(task=task.name, kind=INVALID, error=str(error))
    for view in _jobs(store):
        report.looked_at[view.state.label] = report.looked_at.get(view.state.label, 0) + 1
        told(1)
        wrong = _what_is_wrong(tasks, view)
        if wrong is None:
            continue
        kind, words = wrong
        # Values in a message differ from job to job; the name of the argument, which stands first, does not.
        argument, colon, what = words.partition(": ")
        key = (view.task, kind) if kind != UNDECODABLE else (view.task, kind, argument, colon, blanked(what))
        finding = found.get(key)
        if finding is None and len(found) < FINDINGS_KEPT:
            finding = found[key] = Finding(task=view.task, kind=kind, error=words)
        if finding is None:
            report.left_out += 1
        else:
            finding.add(view)
    report.findings = sorted(
        found.values(), key=lambda finding: (finding.task, -sum(finding.counts.values()))
    )
    return report


def _jobs(store: Store) -> Iterator[JobView]:
    before: JobId | None = None
    while page := store.reports.unsettled(before, PAGE):
        yield from page
        before = page[-1].id
    before = None
    while page := store.reports.jobs(JobFilter(state=State.DEAD, before=before), PAGE):
        yield from page
        before = page[-1].id


def _what_is_wrong(tasks: Mapping[str, Task[..., Any]], view: JobView) -> tuple[str, str] | None:
    """The kind of finding, and the error in words."""
    task = tasks.get(view.task)
    if task is None:
        return GONE, "this code has no task of that name"
    try:
        task.arguments.decode(view.payload)
    except TaskInvalid as error:
        return INVALID, str(error)
    except ArgumentsInvalid as error:
        return UNDECODABLE, str(error).removeprefix(f"{view.task}: ")
    except Exception as error:  # a user's own type may raise anything
        return UNDECODABLE, f"{type(error).__name__}: {error}"
    return None
