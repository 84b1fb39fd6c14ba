"""What sensitive queues hold of runs, schedules and refused events, hidden from whoever looks: by the queue, sealed or not, as it may have come
before the queue was marked. Jobs are hidden by model/sealed."""

from collections.abc import Collection, Sequence

import msgspec
from msgspec import structs

from lateshift.model.attempt_log import AttemptLog
from lateshift.model.job import JobView
from lateshift.model.sealed import MASK, hidden, hidden_text, masked_log, without_steps
from lateshift.model.triggering.trigger import RefusedView
from lateshift.model.workflow.run import RunView
from lateshift.model.workflow.step import StepView, error_of, written_error
from lateshift.store.contract import Store

_UNSAID = ""  # the queue of what was refused before that was kept
_LATE = "complete_by"  # a code, where others may be the text of a cancel


def shown_run(store: Store, view: RunView) -> RunView:
    return shown_runs(store, [view])[0]


def shown_runs(store: Store, views: Sequence[RunView]) -> list[RunView]:
    """As everybody may see them. Where no queue is sensitive, this costs one look at an empty table."""
    concealed = store.queues.concealed()
    return [_shown(store, view, concealed) for view in views] if concealed else list(views)


def shown_logs(store: Store, job: JobView, logs: Sequence[AttemptLog]) -> list[AttemptLog]:
    """What a job has logged, as everybody may see it. Of a run, what its steps raised is hidden as soon as there is a sensitive queue: they
    may have been replaced since, and nobody can say where they stood."""
    shown = [masked_log(log, hide=job.sensitive) for log in logs]
    if job.is_run and not job.sensitive and store.queues.concealed():
        return [without_steps(log, MASK) for log in shown]
    return shown


def shown_refused(view: RefusedView, concealed: Collection[str]) -> RefusedView:
    """`concealed`: the queues that are sensitive. One that does not say for which queue it was is hidden as soon as there is one."""
    if not concealed or msgspec.json.decode(view.rest).get("queue", _UNSAID) not in {*concealed, _UNSAID}:
        return view
    rest = msgspec.json.encode({"seen": MASK})
    return structs.replace(view, event=MASK, raw=MASK.encode(), rest=rest, reason=MASK)


def _shown(store: Store, view: RunView, concealed: Collection[str]) -> RunView:
    if view.queue in concealed:
        run = structs.replace(
            view.run, why=hidden_text(view.run.why or None), status=hidden_text(view.run.status)
        )
        return structs.replace(view, run=run, steps=[_hidden_step(step) for step in view.steps])
    apart = _apart(store, view.steps, concealed)
    steps = [_hidden_step(step) if step.path in apart else step for step in view.steps]
    if not view.run.why or not (apart or _tells_of_another(store, view, concealed)):
        return structs.replace(view, steps=steps)
    return structs.replace(view, run=structs.replace(view.run, why=MASK), steps=steps)


def _tells_of_another(store: Store, view: RunView, concealed: Collection[str]) -> bool:
    """Whether `why` may be what a step raised that is not among those that were read, in a sensitive queue."""
    whole = store.workflows.view(view.run.id)
    return whole is not None and bool(_apart(store, whole.steps, concealed))


def _apart(store: Store, steps: Sequence[StepView], concealed: Collection[str]) -> set[str]:
    """The steps whose jobs stand in a sensitive queue, or are gone: then nobody can say where they stood."""
    jobs = [(step.path, id) for step in steps for id in (step.job, step.undo_job) if id is not None]
    found = store.reports.named([id for _, id in jobs], whole=False)
    return {path for (path, _), job in zip(jobs, found, strict=True) if job is None or job.queue in concealed}


def _hidden_step(step: StepView) -> StepView:
    """Its type of error is the code's, and stays."""
    return structs.replace(
        step, payload=hidden(step.payload), result=hidden(step.result), error=_hidden_error(step.error),
        undo_error=_hidden_error(step.undo_error),
    )  # fmt: skip


def _hidden_error(kept: bytes | None) -> bytes | None:
    error = error_of(kept)
    if error is None or error.reason == _LATE:
        return kept
    if error.error == error.reason:  # of a job that raised nothing: why it was cancelled, in somebody's words
        error = structs.replace(error, error=MASK, reason=MASK)
    return written_error(
        structs.replace(error, message=MASK if error.message else "", traceback=hidden_text(error.traceback))
    )
