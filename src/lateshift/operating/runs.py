"""Runs of workflows: looked for, told how to go on; and what is said of one that is not there, or in no state for that."""

import re
from typing import Any

import msgspec

from lateshift.documents.workflows import in_words, state_of, waits_for
from lateshift.errors import OptionInvalid, PayloadTooLarge, RunEnded, RunUnknown, no_run
from lateshift.model.depth import PAYLOAD_DEPTH, refuse_deep
from lateshift.model.ids import JobId
from lateshift.model.job import PAYLOAD_LIMIT, JobView, State
from lateshift.model.words import short
from lateshift.model.workflow.run import GOES_ON, Phase, RunView
from lateshift.model.workflow.step import Kind, StepState, StepView, path_from, shown_path
from lateshift.store.contract import Store

PAGE = 200  # runs read at once, where a state is looked for
LOOKED_AT = 10_000  # runs among which it is
HELD_NAMED = 5  # held steps, to whoever means another one
_PHASES = {
    "held": (Phase.HELD, Phase.UNDO_HELD), "undoing": (Phase.UNDOING,), "undone": (Phase.UNDOING,), "failed": (Phase.UNDOING,),
    "compensation_failed": (Phase.UNDOING,),
}  # in which alone a run of that state can be, so that an index finds it  # fmt: skip
_ENDING = ("cancelling", "undoing")
_STEP = re.compile(r"\d{1,5}(\.\d{1,5})*")


def newest(
    store: Store, before: JobId | None, limit: int, name: str | None, state: str | None, *, most: int | None = None
) -> tuple[list[RunView], JobId | None]:  # fmt: skip
    """Up to so many, and the one after which there may be more. A state is looked for page by page, among the newest LOOKED_AT, or so many as are said."""
    phases = (None,) if state is None else _PHASES.get(state, (None,))
    if state is None:
        runs = store.workflows.newest(before, limit, name=name)
        return runs, runs[-1].run.id if len(runs) == limit else None
    runs, looked_at, last = [], 0, before
    while looked_at < (LOOKED_AT if most is None else most):
        found = [
            view for phase in phases for view in store.workflows.newest(last, PAGE, name=name, phase=phase)
        ]
        page = sorted(found, key=lambda view: view.run.id, reverse=True)[:PAGE]
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


def found(store: Store, id: JobId) -> tuple[RunView, JobView]:
    """Without its steps. Raises RunUnknown if there is no such job, or it is no run, or none yet."""
    view, job = store.workflows.look(id, limit=0), store.reports.job(id)
    if view is not None and job is not None:
        return view, job
    raise no_run(id) if job is None else RunUnknown(without_run(job))


def without_run(job: JobView) -> str:
    """Of a job without a run: only a worker that takes it up makes one."""
    if not job.is_run:
        return (
            f"The job {job.id} is no workflow: it is a job of the task {job.task}. See `lateshift jobs show`."
        )
    return (
        f"The job {job.id} of {job.task} has not begun. Its run is there as soon as a worker takes it up; "
        "`lateshift jobs explain` says why none does."
    )


def can_resume(store: Store, view: RunView) -> bool:
    """Whether it goes on if somebody says so. It does when one of its held steps is mended; the others hold their branches still."""
    if view.state.settled:
        return goes_on(view)
    if state_of(view) in _ENDING:
        return False
    return view.run.phase.is_held or bool(store.workflows.outline(view.run.id, limit=1, state=StepState.HELD))


def goes_on(view: RunView) -> bool:
    """Whether it is a dead letter that goes on where it stood: the others begin from nothing."""
    return view.state is State.DEAD and (view.reason in GOES_ON or not view.run.phase.is_undone)


def can_undo(view: RunView) -> bool:
    return not view.state.settled and state_of(view) not in _ENDING


def resume(store: Store, view: RunView, *, by: str) -> None:
    """Let a run go on that is held, or try again what could not be undone. Raises RunEnded."""
    id = view.run.id
    if not can_resume(store, view):
        raise RunEnded(_nothing_to_resume(view))
    if view.state.settled:
        done = store.jobs.resubmit([id], by=by) == [id]
    else:
        done = store.workflows.direct(id, Phase.FORWARD, why="", by=by)
    if not done:
        raise RunEnded(f"The run {id} has changed meanwhile: look at it again. Nothing was done.")


def undo(store: Store, view: RunView, why: str, *, by: str) -> None:
    """Undo what a run has done, the last step first. Raises RunEnded if it has ended, or is undone already."""
    id, state = view.run.id, in_words(state_of(view))
    if not can_undo(view):
        ended = f"has ended ({state}): what it did stays as it is"
        raise RunEnded(
            f"The run {id} {ended if view.state.settled else f'is {state} already'}. Nothing was done."
        )
    if not store.workflows.direct(id, Phase.UNDOING, why=why, by=by):
        raise RunEnded(f"The run {id} has ended meanwhile. Nothing was done.")


def resubmit_step(store: Store, view: RunView, step: StepView, payload: bytes | None, *, by: str) -> None:
    """Run a held step again, with other arguments if some are given. Raises RunEnded if it is not held any more."""
    if not store.workflows.mend(view.run.id, step.path, payload, by=by):
        raise RunEnded(
            f"Step {shown_path(step.path)} of the run {view.run.id} is not held any more, or the run is not. Nothing was done."
        )


def new_arguments(step: StepView, given: Any) -> bytes | None:
    """Other arguments for a held step, as they are kept; None leaves it those that it has. Raises RunEnded where it would only be held
    again, OptionInvalid, PayloadTooLarge."""
    named = f"Step {shown_path(step.path)} {step.name}"
    if step.kind is Kind.FIXED:
        raise RunEnded(
            f"{named} holds its run for what the filters before it gave, and takes no arguments: it would be held again. "
            "Undo the run to give it up, or resume it to let it go on with other code."
        )
    if given is None and step.kind is Kind.GATHER:
        raise RunEnded(
            f"{named} would get the same list, and be held again. Give it another, or undo the run."
        )
    if given is None:
        return None
    if step.kind is Kind.GATHER and not isinstance(given, list):
        raise OptionInvalid(
            f"{named} takes a list with an element for each branch, such as [1, 2].", "arguments"
        )
    if step.kind is not Kind.GATHER and not isinstance(given, dict):
        raise OptionInvalid(
            f'{named} takes an object with the arguments by name, such as {{"card": "new"}}.', "arguments"
        )
    payload = msgspec.json.encode(given)
    if len(payload) > PAYLOAD_LIMIT:
        raise PayloadTooLarge(
            f"The arguments are {len(payload):,} bytes, over the limit of {PAYLOAD_LIMIT:,}."
        )
    refuse_deep(payload, "The arguments have", PAYLOAD_DEPTH)
    return payload


def _nothing_to_resume(view: RunView) -> str:
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


def held_step(store: Store, view: RunView, number: str) -> StepView:
    """With all that it holds. Raises RunEnded if it is not to be mended, RunUnknown if there is no such step."""
    id = view.run.id
    if not _STEP.fullmatch(number):
        raise OptionInvalid(f"{number!r} is no number of a step, such as 3 or 3.1.2.1.")
    step = store.workflows.step(id, path_from(number))
    held = store.workflows.outline(id, limit=HELD_NAMED, state=StepState.HELD)
    named = ", ".join(f"{shown_path(each.path)} {each.name}" for each in held)
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
