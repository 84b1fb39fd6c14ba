"""Runs of workflows that a command names or looks for; and what is said of one that is not there, or not as the command needs it."""

import re

from lateshift.cli.missing import others
from lateshift.cli.output import short
from lateshift.cli.short_ids import one
from lateshift.cli.workflow_view import in_words, state_of, waits_for
from lateshift.errors import OptionInvalid, RunEnded, RunUnknown
from lateshift.model.ids import JobId
from lateshift.model.job import JobView, State
from lateshift.model.workflow.run import Phase, RunView
from lateshift.model.workflow.step import StepState, StepView, path_from, shown_path
from lateshift.store.contract import Store

PAGE = 200  # runs read at once, where a state is looked for
LOOKED_AT = 10_000  # runs among which it is
_PHASES = {
    "held": Phase.HELD, "undoing": Phase.UNDOING, "undone": Phase.UNDOING, "failed": Phase.UNDOING,
    "compensation_failed": Phase.UNDOING,
}  # in which alone a run of that state can be, so that an index finds it  # fmt: skip
_GOES_ON = ("compensation_failed", "worker_lost")  # dead letters that are resubmitted where they stood
_STEP = re.compile(r"\d{1,5}(\.\d{1,5})*")


def newest(
    store: Store, before: JobId | None, limit: int, name: str | None, state: str | None
) -> tuple[list[RunView], JobId | None]:
    """Up to so many, and the one after which there may be more. A state is looked for page by page."""
    phase = None if state is None else _PHASES.get(state)
    if state is None:
        runs = store.workflows.newest(before, limit, name=name)
        return runs, runs[-1].run.id if len(runs) == limit else None
    runs, looked_at, last = [], 0, before
    while looked_at < LOOKED_AT:
        page = store.workflows.newest(last, PAGE, name=name, phase=phase)
        for view in page:
            last = view.run.id
            if state_of(view) == state:
                runs.append(view)
            if len(runs) == limit:
                return runs, last
        if len(page) < PAGE:
            return runs, None
        looked_at += len(page)
    return runs, last


def nothing_found(store: Store, name: str | None, state: str | None) -> str:
    recent = {view.run.name for view in store.workflows.newest(None, PAGE)}
    if not recent:
        return "No runs. @app.workflow makes a workflow in code, and its enqueue(…) starts a run."
    if name is not None and name not in recent:
        return f"No runs of {name}.{others(name, sorted(recent))}"
    said = "" if state is None else f" in the state {in_words(state)}"
    return f"No run{'' if name is None else f' of {name}'}{said}."


def found(store: Store, named: str) -> tuple[RunView, JobView]:
    """Raises JobUnknown if there is no such job, RunUnknown if it is no run, or none yet."""
    id = one(store, named)
    view, job = store.workflows.view(id), store.reports.job(id)
    if view is not None and job is not None:
        return view, job
    raise RunUnknown(
        f"There is no run {id} in the store; it may have passed its retention."
        if job is None
        else no_run(job)
    )


def no_run(job: JobView) -> str:
    """Of a job without a run: only a worker that takes it up makes one."""
    if job.fence or job.state.settled:
        return (
            f"The job {job.id} is no workflow: it is a job of the task {job.task}. See `lateshift jobs show`."
        )
    return (
        f"The job {job.id} of {job.task} has not begun. If that is a workflow, its run is there as soon as a worker takes it up; "
        "`lateshift jobs explain` says why none does."
    )


def can_go_on(view: RunView) -> bool:
    return view.reason in _GOES_ON or view.run.phase is not Phase.UNDOING


def waits_for_an_operator(view: RunView) -> bool:
    """A run goes on when one of its held steps is mended; the others hold their branches still."""
    if view.run.cancel_by is not None or view.run.phase is Phase.UNDOING:
        return False
    return view.run.phase is Phase.HELD or any(step.state is StepState.HELD for step in view.steps)


def nothing_to_resume(view: RunView) -> str:
    id, state, waits = view.run.id, in_words(state_of(view)), waits_for(view)
    if view.state is State.COMPLETED:
        return f"The run {id} has completed: there is nothing to resume."
    if view.state.settled:
        return (
            f"The run {id} is {state}: nothing of it is left to go on with. `lateshift jobs resubmit {short(id)}` begins it anew, "
            "from its first step."
        )
    if waits is not None:
        hint = f" `lateshift workflows signal {short(id)} NAME` tells it." if "signal" in waits else ""
        return f"The run {id} is {state}, not held: it waits for {waits}.{hint}"
    return f"The run {id} is {state}: nothing holds it. `lateshift jobs explain {short(id)}` says more."


def held_step(view: RunView, number: str) -> StepView:
    """Raises RunEnded if it is not to be mended, RunUnknown if there is no such step."""
    id = view.run.id
    if not _STEP.fullmatch(number):
        raise OptionInvalid(f"{number!r} is no number of a step, such as 3 or 3.1.2.1.")
    step = next((step for step in view.steps if step.path == path_from(number)), None)
    held = [step for step in view.steps if step.state is StepState.HELD]
    named = ", ".join(f"{shown_path(each.path)} {each.name}" for each in held[:5])
    hint = f"Held: {named}." if held else "None of its steps is held."
    if step is None:
        raise RunUnknown(f"The run {id} has no step {number}. {hint} `lateshift workflows show` lists them.")
    if view.state.settled:
        raise RunEnded(f"The run {id} has ended ({in_words(state_of(view))}): no step of it runs again.")
    if step.state is not StepState.HELD:
        raise RunEnded(
            f"Step {number} {step.name} of the run {id} is {step.state.label}, not held: only a held one is resubmitted. {hint}"
        )
    return step
