"""Steps of a run that are jobs of other queues: to a token that is not for those nothing is shown of what they hold, and it makes no job
there, be it by the step or by the way that it sends the whole run."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import structs

from lateshift.api.problem import Refused
from lateshift.api.route import Asked
from lateshift.documents.hiding import shown_logs
from lateshift.model.attempt_log import AttemptLog
from lateshift.model.ids import JobId
from lateshift.model.job import JobView, State
from lateshift.model.sealed import without_steps
from lateshift.model.workflow.run import ANEW, RunView
from lateshift.model.workflow.step import (
    StepError,
    StepState,
    StepView,
    Undo,
    shown_path,
    written_error,
)
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


def allow_again(asked: Asked, view: RunView) -> None:
    """Raises Refused if one that goes on would have a job made in a queue that the token is not for: of a step that holds it, or of an undo."""
    _refuse(view, made_elsewhere(asked, view, forth=True))


def allow_undone(asked: Asked, view: RunView) -> None:
    """The same of one that is ended: what it has done is undone, by jobs that its code names."""
    _refuse(view, made_elsewhere(asked, view, forth=False))


def allow_sent(asked: Asked, job: JobView) -> None:
    """The same of a job that may be a run: if it is cancelled, or if one that has ended is resubmitted."""
    if (found := _sent(asked, job)) is not None:
        _refuse(*found)


def sent_elsewhere(asked: Asked, job: JobView) -> bool:
    """Whether that is refused."""
    return _sent(asked, job) is not None


def _sent(asked: Asked, job: JobView) -> tuple[RunView, StepView] | None:
    """One that begins anew is no different from one that is started."""
    anew = job.state is State.CANCELLED or job.reason in ANEW
    if asked.sees_all or not job.is_run or anew or (view := asked.store.workflows.view(job.id)) is None:
        return None
    step = made_elsewhere(asked, view, forth=job.state.settled)
    return None if step is None else (view, step)


def made_elsewhere(asked: Asked, view: RunView, *, forth: bool) -> StepView | None:
    """The first step of which a job would be made in a queue that the token is not for, if the run goes on (`forth`) or is undone. Of an
    undo that was tried its job says which queue; of another one its task, if that is one of the app's: a function is run by the run."""
    if asked.sees_all:
        return None
    own = _own(asked, view.steps)
    undone, tried = not forth or view.run.phase.is_undone, forth and not view.state.settled
    for step in view.steps:
        again = tried and step.state is StepState.HELD and is_task(step) and step.job not in own
        if again or (undone and _undoes_elsewhere(asked, step, own)):
            return step
    return None


def _undoes_elsewhere(asked: Asked, step: StepView, own: set[JobId]) -> bool:
    """One that is under way may be done by the time that it is undone."""
    never_done = step.state in (StepState.FAILED, StepState.HELD) and not step.place
    if step.undo is None or step.undo_state is Undo.DONE or never_done:
        return False
    if step.undo_job is not None:
        return step.undo_job not in own
    task = asked.app.tasks.get(step.undo)
    return task is not None and not asked.shows(task.limits.queue)


def _refuse(view: RunView, step: StepView | None) -> None:
    if step is not None:
        raise Refused(
            403, "queue-forbidden",
            f"Step {shown_path(step.path)} {step.name} of the run {view.run.id} would have a job made in a queue that this token is not for.",
        )  # fmt: skip


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


def own_logs(asked: Asked, job: JobView) -> list[AttemptLog]:
    """What the attempts of a job have logged, as the token may see it."""
    logs = shown_logs(asked.store, job, asked.store.logs.of(job.id))
    return logs if asked.sees_all or not job.is_run else [without_steps(log, ELSEWHERE) for log in logs]


def listed(asked: Asked, view: RunView) -> RunView:
    """Of one whose steps were not read: what it says of them is left to the run itself."""
    return view if asked.sees_all else structs.replace(view, run=structs.replace(view.run, why=None))


def _own(asked: Asked, steps: Sequence[StepView]) -> set[JobId]:
    ids = [id for step in steps for id in (step.job, step.undo_job) if id is not None]
    return {
        job.id
        for start in range(0, len(ids), LOOKED_UP)
        for job in asked.store.reports.named(ids[start : start + LOOKED_UP], whole=False)
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
