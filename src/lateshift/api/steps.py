"""Steps of a run that are jobs of other queues: to a token that is not for those nothing is shown of what they hold, and it makes no job
there."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import structs

from lateshift.api.route import Asked
from lateshift.model.ids import JobId
from lateshift.model.workflow.run import RunView
from lateshift.model.workflow.step import StepError, StepView, written_error
from lateshift.operating.steps import is_task

ELSEWHERE = "[another queue]"  # stands for what is not shown
LOOKED_UP = 200  # jobs of steps at once

_MARK = msgspec.json.encode(ELSEWHERE)
_ERROR = written_error(StepError(error=ELSEWHERE))


def allow_step(asked: Asked, step: StepView, *, changed: bool) -> None:
    """Raises Refused unless the token is for the queue of the step's job; of one that is gone nobody knows whose it was. `changed`: it gets
    other arguments."""
    if is_task(step):
        job = None if step.job is None else asked.store.reports.job(step.job)
        asked.allow(None if job is None else job.queue)
        if changed and job is not None:
            asked.allow_task(job.task)


def elsewhere(asked: Asked, steps: Sequence[StepView]) -> set[str]:
    """The paths of those that are jobs of queues for which the token is not."""
    return set() if asked.sees_all else _elsewhere(steps, _own(asked, steps))


def own_view(asked: Asked, view: RunView, *, whole: bool = True) -> RunView:
    """The run as the token may see it. `whole`: all of its steps are there, so that it is known whether `why` tells of another queue."""
    if asked.sees_all:
        return view
    own = _own(asked, view.steps)
    hidden = _elsewhere(view.steps, own)
    steps = [_shown(step, own, hide=step.path in hidden) for step in view.steps]
    tells = not whole or any(_ERROR in (step.error, step.undo_error) for step in steps)
    why = ELSEWHERE if tells and view.run.why else view.run.why
    return structs.replace(view, run=structs.replace(view.run, why=why), steps=steps)


def listed(asked: Asked, view: RunView) -> RunView:
    """Of one whose steps were not read: what it says of them is left to the run itself."""
    return view if asked.sees_all else structs.replace(view, run=structs.replace(view.run, why=None))


def _own(asked: Asked, steps: Sequence[StepView]) -> set[JobId]:
    ids = [id for step in steps for id in (step.job, step.undo_job) if id is not None]
    return {
        job.id
        for start in range(0, len(ids), LOOKED_UP)
        for job in asked.store.reports.named(ids[start : start + LOOKED_UP])
        if job is not None and asked.shows(job.queue)
    }


def _elsewhere(steps: Iterable[StepView], own: set[JobId]) -> set[str]:
    return {step.path for step in steps if is_task(step) and step.job not in own}


def _shown(step: StepView, own: set[JobId], *, hide: bool) -> StepView:
    if hide or (step.undo_job is not None and step.undo_job not in own):
        step = structs.replace(step, undo_error=step.undo_error and _ERROR, undo_job=None)
    if not hide:
        return step
    return structs.replace(
        step, payload=step.payload and _MARK, result=step.result and _MARK, error=step.error and _ERROR, job=None
    )  # fmt: skip
