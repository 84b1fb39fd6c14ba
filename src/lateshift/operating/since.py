"""Since when a run that is held has needed somebody, from what is recorded of it."""

from datetime import datetime

from lateshift.model.workflow.holding import Cause, Held
from lateshift.model.workflow.run import NEVER, RunView
from lateshift.model.workflow.step import StepState
from lateshift.store.contract import Store

HELD_LOOKED_AT = 20  # held steps of a run, of which the first to fail is told


def held_since(store: Store, view: RunView, held: Held) -> datetime:
    """Since when a run has been held: when the first of the steps that hold it failed. Of one that no step holds, since it was put to sleep for good,
    which whatever it is told puts off."""
    if held.cause is Cause.STEP:
        found = store.workflows.outline(view.run.id, limit=HELD_LOOKED_AT, state=StepState.HELD)
        ends = [step.ended_at for step in found if step.ended_at is not None]
        return min(ends, default=view.run.started_at)
    return max(view.run.started_at, view.due_at - NEVER)
