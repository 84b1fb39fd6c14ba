"""Steps of a run that are jobs of other queues: to a token that is not for those nothing is shown of what they hold, and it makes no job
there, be it by the step or by the way that it sends the whole run."""

from collections import deque
from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec
from msgspec import structs

from lateshift.api.bounds import JUDGED_ON_PAGE, STEPS_JUDGED
from lateshift.api.items import lists_elsewhere, own_shape
from lateshift.api.problem import Refused
from lateshift.api.route import Asked
from lateshift.documents.hiding import shown_logs, shown_runs
from lateshift.documents.workflows import RunDocument, run_document
from lateshift.model.attempt_log import AttemptLog
from lateshift.model.ids import JobId
from lateshift.model.job import JobView, State
from lateshift.model.pipeline.ahead import is_list
from lateshift.model.sealed import without_steps
from lateshift.model.workflow.run import ANEW, RunView
from lateshift.model.workflow.step import (
    StepError,
    StepOutline,
    StepState,
    StepView,
    shown_path,
    written_error,
)
from lateshift.operating.steps import is_task
from lateshift.store.outlines import outlines
from lateshift.store.workflow_contract import Child, ToUndo

ELSEWHERE = "[another queue]"  # stands for what is not shown
LOOKED_UP = 200  # jobs of steps at once, or runs

_MARK = msgspec.json.encode(ELSEWHERE)
_ERROR = written_error(StepError(error=ELSEWHERE))


def allow_step(asked: Asked, view: RunView, step: StepView, *, changed: bool) -> None:
    """Raises Refused unless the token is for the queue of the step's job; of one that is gone nobody knows whose it was. Of a list for a
    fan_out, unless it is for all those that its elements go to. `changed`: it gets other arguments."""
    if lists_elsewhere(asked, view, [step]):
        _refuse(_said(view, step))
    if is_task(step):
        job = None if step.job is None else asked.store.reports.job(step.job)
        asked.allow(None if job is None else job.queue)
        if changed and job is not None:
            asked.allow_task(job.task)


def allow_again(asked: Asked, view: RunView) -> None:
    """Raises Refused if one that goes on would have a job made in a queue that the token is not for: of a step that holds it, or of an undo."""
    _refuse(made_elsewhere(asked, view, forth=True))


def allow_undone(asked: Asked, view: RunView) -> None:
    """The same of one that is ended: what it has done is undone, by jobs that its code names."""
    _refuse(made_elsewhere(asked, view, forth=False))


def allow_sent(asked: Asked, job: JobView) -> None:
    """The same of a job that may be a run: if it is cancelled, or if one that has ended is resubmitted."""
    _refuse(_sent(asked, job))


def looks_at_steps(asked: Asked) -> bool:
    """Of a route about a run."""
    return True


def sends_a_run(asked: Asked) -> bool:
    """Of one about a job, which may be one."""
    return asked.job().is_run


def sent_elsewhere(asked: Asked, job: JobView) -> bool:
    """Whether that is refused."""
    return _sent(asked, job) is not None


def _sent(asked: Asked, job: JobView) -> str | None:
    """One that begins anew is no different from one that is started."""
    anew = job.state is State.CANCELLED or job.reason in ANEW
    if asked.sees_all or not job.is_run or anew:
        return None
    view = asked.store.workflows.look(job.id, limit=0)
    return None if view is None else made_elsewhere(asked, view, forth=job.state.settled)


def made_elsewhere(asked: Asked, view: RunView, *, forth: bool) -> str | None:
    """Of which step a job would be made in a queue that the token is not for, if the run goes on (`forth`) or is undone: the first one, in
    words."""
    if asked.sees_all:
        return None
    held = _held_elsewhere(asked, view) if forth and not view.state.settled else None
    undone = not forth or _goes_back(view)
    return _undone_elsewhere(asked, view, STEPS_JUDGED) if held is None and undone else held


def has_button(asked: Asked, view: RunView, held: RunView, *, forth: bool) -> bool:
    """Whether a page that shows these held steps of a run has a button for it: not if they, or the first JUDGED_ON_PAGE steps that would be
    undone, tell that it is refused. What more there is, is judged when the button is pressed, and not at each look."""
    if asked.sees_all:
        return True
    if forth and not view.state.settled and elsewhere(asked, held):
        return False
    if forth and not _goes_back(view):
        return True
    asked.judged = 0
    return _undone_elsewhere(asked, view, JUDGED_ON_PAGE) is None or asked.judged > JUDGED_ON_PAGE


def _goes_back(view: RunView) -> bool:
    """Whether it is undone if it goes on."""
    return view.run.phase.is_undone or view.run.cancel_by is not None


def _held_elsewhere(asked: Asked, view: RunView) -> str | None:
    """Of a step that begins anew."""
    lists: list[StepOutline] = []
    for held in outlines(asked.store.workflows, view.run.id, state=StepState.HELD):
        if not _may_judge(asked, len(held), STEPS_JUDGED):
            return _too_many(view)
        others = _elsewhere(held, _own(asked, held))
        if (step := next((step for step in held if step.path in others), None)) is not None:
            return _said(view, step)
        lists += filter(is_list, held)
    others = lists_elsewhere(asked, view, lists)
    return next((_said(view, step) for step in lists if step.path in others), None)


def _undone_elsewhere(asked: Asked, view: RunView, most: int) -> str | None:
    """Of a step that is undone. With a run are undone those that are steps of it and under way, and theirs; their steps are named by the one of this
    run that they are below. `most`: so many steps are looked at."""
    workflows = asked.store.workflows
    below: deque[tuple[JobId, Child | None]] = deque([(view.run.id, None)])
    while below:
        runs = dict(below.popleft() for _ in range(min(LOOKED_UP, len(below))))
        ways = workflows.to_undo([*runs], limit=max(0, most - asked.judged) + 1)
        own = _own_jobs(asked, [way.job for way in ways if way.job is not None])
        for way in ways:
            if _undoes_elsewhere(asked, way, own):
                return _said(view, runs[way.run] or workflows.step(way.run, way.path))
        if not _may_judge(asked, sum(way.steps for way in ways), most):
            return _too_many(view)
        children = workflows.children([*runs], limit=most)
        below += [(child.job, runs[child.run] or child) for child in children]
    return None


def _may_judge(asked: Asked, steps: int, most: int) -> bool:
    """Whether so many more are no more than are looked at for one request."""
    asked.judged += steps
    return asked.judged <= most


def _too_many(view: RunView) -> str:
    return f"The run {view.run.id} has more steps than are looked at for one request ({STEPS_JUDGED:,}), with those of runs below it. A token for all queues may."


def _undoes_elsewhere(asked: Asked, way: ToUndo, own: set[JobId]) -> bool:
    """Of an undo that was tried its job says which queue; of another one its task, if that is one of the app's: a function is run by the run."""
    if way.job is not None:
        return way.job not in own
    task = None if way.undo is None else asked.app.tasks.get(way.undo)
    return task is not None and not asked.shows(task.limits.queue)


def _said(view: RunView, step: StepOutline | Child | None) -> str:
    named = "A step" if step is None else f"Step {shown_path(step.path)} {step.name}"
    return f"{named} of the run {view.run.id} would have a job made in a queue that this token is not for."


def _refuse(why: str | None) -> None:
    if why is not None:
        raise Refused(403, "queue-forbidden", why)


def elsewhere(asked: Asked, view: RunView) -> set[str]:
    """The paths of those steps that are jobs of queues for which the token is not, or lists that lead there."""
    if asked.sees_all:
        return set()
    return _elsewhere(view.steps, _own(asked, view.steps)) | lists_elsewhere(asked, view, view.steps)


def own_view(asked: Asked, view: RunView, *, whole: bool = True) -> RunView:
    """The run as the token may see it. `whole`: all of its steps are there, so that it is known whether `why` tells of another queue."""
    if asked.sees_all:
        return view
    own = _own(asked, view.steps)
    hidden = _elsewhere(view.steps, own) | lists_elsewhere(asked, view, view.steps)
    seen = [own_shape(asked, step, ELSEWHERE) for step in view.steps]
    steps = [_shown(step, own, hide=step.path in hidden) for step in seen]
    tells = not whole or any(_ERROR in (step.error, step.undo_error) for step in steps)
    why = ELSEWHERE if tells and view.run.why else view.run.why
    return structs.replace(view, run=structs.replace(view.run, why=why), steps=steps)


def own_logs(asked: Asked, job: JobView) -> list[AttemptLog]:
    """What the attempts of a job have logged, as the token may see it."""
    logs = shown_logs(asked.store, job, asked.store.logs.of(job.id))
    return logs if asked.sees_all or not job.is_run else [without_steps(log, ELSEWHERE) for log in logs]


def own_runs(asked: Asked, views: Sequence[RunView], now: datetime) -> list[RunDocument]:
    """Those of a listing that the token may see, as it may see them."""
    shown = [view for view in shown_runs(asked.store, views) if asked.shows(view.queue)]
    return [run_document(_listed(asked, view), now) for view in shown]


def _listed(asked: Asked, view: RunView) -> RunView:
    """Of one whose steps were not read: what it says of them is left to the run itself."""
    return view if asked.sees_all else structs.replace(view, run=structs.replace(view.run, why=None))


def _own(asked: Asked, steps: Sequence[StepOutline]) -> set[JobId]:
    return _own_jobs(asked, [id for step in steps for id in (step.job, step.undo_job) if id is not None])


def _own_jobs(asked: Asked, ids: Sequence[JobId]) -> set[JobId]:
    return {
        id
        for start in range(0, len(ids), LOOKED_UP)
        for id, queue in asked.store.workflows.queues_of(ids[start : start + LOOKED_UP]).items()
        if asked.shows(queue)
    }


def _elsewhere(steps: Iterable[StepOutline], own: set[JobId]) -> set[str]:
    return {step.path for step in steps if is_task(step) and step.job not in own}


def _shown(step: StepView, own: set[JobId], *, hide: bool) -> StepView:
    if hide or (step.undo_job is not None and step.undo_job not in own):
        step = structs.replace(step, undo_error=step.undo_error and _ERROR, undo_job=None)
    if not hide:
        return step
    return structs.replace(
        step, payload=step.payload and _MARK, result=step.result and _MARK, error=step.error and _ERROR, job=None
    )  # fmt: skip
