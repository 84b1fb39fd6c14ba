"""What to do about the dead job of a step: its run would not hear of it if it ran again by itself."""

from uuid import UUID

from lateshift.model.words import counted, short
from lateshift.model.workflow.run import GOES_ON, RunView, is_step
from lateshift.model.workflow.step import StepOutline, StepState, shown_path
from lateshift.store.contract import Store


def why_step(store: Store, id: str) -> str | None:
    """Why a job was not resubmitted, and what is to be done instead; None if it was no step of a workflow."""
    job = store.reports.job(UUID(id))
    run = None if job is None or job.batch is None else store.workflows.look(job.batch, limit=0)
    if job is None or run is None or not is_step(job, (run.run.id,)):
        return None
    step = next(iter(store.workflows.outline(run.run.id, limit=1, job=job.id)), None)
    return f"job {id} {_said(run, step, undo=step is not None and step.undo_job == job.id)}"


def _said(run: RunView, step: StepOutline | None, *, undo: bool) -> str:
    id = short(run.run.id)
    if step is None:
        return f"was a step of the workflow {run.run.name} ({id}), which has another job for it, or has begun anew: it stays as it is."
    which = f"step {shown_path(step.path)} {step.name} of the workflow {run.run.name} ({id})"
    if undo and run.reason in GOES_ON:
        return f"was to undo {which}: `lateshift workflows resume {id}` tries that again."
    if step.state is StepState.HELD and not run.state.settled:
        return f"is {which}, which is held: `lateshift workflows resubmit-step {id} {shown_path(step.path)}` runs it again."
    return f"was {which}, which has gone on without it and would not hear of it: it stays as it is. See `lateshift workflows show {id}`."


def steps_left_out(count: int) -> str:
    which = "was a step of a workflow and is" if count == 1 else "were steps of workflows and are"
    return (
        f"{counted(count, 'dead letter')} {which} left out: `lateshift workflows list --state held` shows what waits for you, and "
        "`lateshift workflows resubmit-step` runs a step again."
    )
