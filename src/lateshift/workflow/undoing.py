"""What was done is undone: exactly the steps that were done and say how, the last one first."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from lateshift.errors import Permanent
from lateshift.model.job import NewJob
from lateshift.model.outcome import ResultNotKept
from lateshift.model.remote import is_a
from lateshift.model.retry import Retry
from lateshift.model.workflow.run import Phase
from lateshift.model.workflow.step import Kind, StepRow, StepState, Undo, shown_path
from lateshift.runtime.log import log
from lateshift.task import HOUR, Bound, Task
from lateshift.telemetry.tracing import of_step
from lateshift.workflow.asked import refuse_sensitive
from lateshift.workflow.calls import Inline, is_cancelled, kept
from lateshift.workflow.control import Diverged, Undoable, Wants
from lateshift.workflow.journal import Journal
from lateshift.workflow.run import Run
from lateshift.workflow.steps import AT_HAND, of_run

UNDO_RETRY = Retry(attempts=10)  # of an undo that is a function; one that is a task has its own
UNDO_LIMIT = HOUR  # of each try of such a function, as of a step's


async def undo_all(run: Run, journal: Journal, why: str) -> bool:
    """Whether all of it could be undone. What is in flight is called off first, and its end waited for."""
    run.undoing = True
    if run.record.phase is not Phase.UNDOING:
        run.record.say(phase=Phase.UNDOING, why=why)
    await run.commit()
    await resolve(run, journal)
    for row in _to_undo(run):
        how = run.undos.get(row.path)
        if how is None:
            raise Diverged(
                f"step {shown_path(row.path)} {row.name} is to be undone by {row.undo}, and the code does not ask for that step any more"
            )
        await _undo(run, row, how)
    left = [row.name for row in run.record.steps.values() if row.undo_state is Undo.FAILED]
    if left:
        await run.alert("compensation_failed", f"{why}; not undone: {', '.join(left)}")
    await run.commit()
    return not left


async def resolve(run: Run, journal: Journal) -> None:
    """Jobs of steps that nobody waits for any more are called off, and their ends waited for."""
    run.undoing = True
    if run.record.dropped:  # what is recorded there, if its jobs were written before and the answer was lost
        await run.record.load()
    flying = run.in_flight()
    if flying:
        await journal.cancel(
            [row.job for row in flying if row.job is not None], f"workflow {run.record.lease.id}"
        )
    while flying := run.in_flight():
        await run.rest(_timer(flying[0]), f"the end of {flying[0].name}")


def _to_undo(run: Run) -> list[StepRow]:
    done = [
        row
        for row in run.record.steps.values()
        if row.is_done and row.undo is not None and row.undo_state not in (Undo.DONE, Undo.FAILED)
    ]
    return sorted(done, key=lambda row: (row.place or 0, row.path), reverse=True)


async def _undo(run: Run, row: StepRow, how: Undoable) -> None:
    if row.undo_job is None:
        try:
            call = _call(run, row, how)
        except Exception as error:  # what it needs is not there
            said = error if row.kind is Kind.CALL else "its undo says why"  # of what a job gave, maybe
            log.error("step %s of workflow %s cannot be undone (%s)", row.name, run.record.lease.id, said)
            run.record.put(msgspec.structs.replace(row, undo_state=Undo.FAILED, undo_error=kept(error)))
            return
        if isinstance(call, Inline):
            await _undo_here(run, row, call)
            return
        run.record.put(msgspec.structs.replace(row, undo_state=Undo.RUNNING, undo_job=call.id), [call])
    while run.record.steps[row.path].undo_state is Undo.RUNNING:
        await run.rest(_timer(row), f"{row.undo} (job {run.record.steps[row.path].undo_job})")
    if run.record.steps[row.path].undo_state is Undo.FAILED:
        log.error("step %s of workflow %s cannot be undone (its job failed)", row.name, run.record.lease.id)


async def _undo_here(run: Run, row: StepRow, inline: Inline) -> None:
    record, failures = run.record, row.undo_failures
    while True:
        while (left := record.left(_timer(row))) is not None and left > timedelta(0):
            await (
                run.pause(left)
                if left <= AT_HAND
                else run.rest(_timer(row), f"the next try to undo {row.name}")
            )
        if run.stint.stopping:
            await run.give_up(row.path)
            continue
        record.put(msgspec.structs.replace(row, undo_state=Undo.RUNNING, undo_failures=failures))
        await run.commit()
        with run.in_hand():
            try:
                with of_step(record.lease, "undo", shown_path(row.path), row.name):
                    await inline.run(UNDO_LIMIT)
            except (Exception, SystemExit, asyncio.CancelledError) as error:
                if is_cancelled(error):
                    raise
                failures += 1
                tried = msgspec.structs.replace(row, undo_failures=failures, undo_error=kept(error))
                if is_a(error, Permanent) or UNDO_RETRY.exhausted(failures, UNDO_RETRY.attempts, error):
                    log.error(
                        "step %s of workflow %s cannot be undone (%s)", row.name, record.lease.id, error
                    )
                    record.put(msgspec.structs.replace(tried, undo_state=Undo.FAILED))
                    return
                log.warning(
                    "step %s of workflow %s: its undo is tried again: %s", row.name, record.lease.id, error
                )
                record.put(msgspec.structs.replace(tried, undo_state=Undo.RUNNING))
                record.delay(_timer(row), UNDO_RETRY.delay(failures, error))
                await run.commit()
            else:
                record.put(msgspec.structs.replace(row, undo_state=Undo.DONE, undo_failures=failures))
                return


def _call(run: Run, row: StepRow, how: Undoable) -> Inline | NewJob:
    """Raises whatever is wrong with its arguments."""
    args, kwargs = _arguments(run, row, how)
    if isinstance(how.undo, Task | Bound):
        refuse_sensitive(how.undo)
        return of_run(how.undo.call(*args, **kwargs).job, run.record.lease.id)
    return Inline(how.undo, args, kwargs)


def _arguments(run: Run, row: StepRow, how: Undoable) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Those of the step as it was done, which an operator may have changed; and its result."""
    given = run.record.mended.get(row.path)
    args, kwargs = (how.args, how.kwargs) if given is None else how.mended(given)
    if how.wants is Wants.NOTHING or (
        how.wants is Wants.RESULT_OR_DEFAULT and row.state is not StepState.COMPLETED
    ):
        return args, kwargs
    if row.state is not StepState.COMPLETED:
        raise ResultNotKept(
            f"the result of {row.name} could not be kept, and its undo {row.undo} needs it. Undo it by hand; or give its parameter "
            "result a default, and resubmit the run"
        )
    return args, {**kwargs, "result": how.decode(row.result)}


def _timer(row: StepRow) -> str:
    return f"undo {row.path}"
