"""What was done is undone: exactly the steps that have completed and say how, the last one first."""

import asyncio
from datetime import timedelta

import msgspec

from lateshift.errors import Permanent
from lateshift.model.remote import is_a
from lateshift.model.retry import Retry
from lateshift.model.workflow.run import Phase
from lateshift.model.workflow.step import StepRow, StepState, Undo, shown_path
from lateshift.runtime.log import log
from lateshift.task import Bound, Task
from lateshift.workflow.calls import Inline, is_cancelled, kept
from lateshift.workflow.control import Diverged, Undoable
from lateshift.workflow.journal import Journal
from lateshift.workflow.run import Run
from lateshift.workflow.steps import AT_HAND, of_run

UNDO_RETRY = Retry(attempts=10)  # of an undo that is a function; one that is a task has its own


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
        if isinstance(how.undo, Task | Bound):
            await _undo_by_job(run, row, how)
        else:
            await _undo_here(run, row, how)
    left = [row.name for row in run.record.steps.values() if row.undo_state is Undo.FAILED]
    if left:
        await run.alert("compensation_failed", f"{why}; not undone: {', '.join(left)}")
    await run.commit()
    return not left


async def resolve(run: Run, journal: Journal) -> None:
    """Jobs of steps that nobody waits for any more are called off, and their ends waited for."""
    run.undoing = True
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
        if row.state is StepState.COMPLETED
        and row.undo is not None
        and row.undo_state not in (Undo.DONE, Undo.FAILED)
    ]
    return sorted(done, key=lambda row: (row.place or 0, row.path), reverse=True)


async def _undo_here(run: Run, row: StepRow, how: Undoable) -> None:
    record, failures = run.record, row.undo_failures
    inline = Inline(how.undo, how.args, _arguments(row, how))
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
                await inline.run(None)
            except (Exception, SystemExit, asyncio.CancelledError) as error:
                if is_cancelled(error):
                    raise
                failures += 1
                tried = msgspec.structs.replace(row, undo_failures=failures, undo_error=kept(error))
                if is_a(error, Permanent) or UNDO_RETRY.exhausted(failures, UNDO_RETRY.attempts, error):
                    log.error("step %s of workflow %s cannot be undone: %s", row.name, record.lease.id, error)
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


async def _undo_by_job(run: Run, row: StepRow, how: Undoable) -> None:
    undo = how.undo
    assert isinstance(undo, Task | Bound)
    if row.undo_job is None:
        try:
            new = of_run(undo.call(*how.args, **_arguments(row, how)).job, run.record.lease.id)
        except Exception as error:  # arguments that no job can have
            log.error("step %s of workflow %s cannot be undone: %s", row.name, run.record.lease.id, error)
            run.record.put(msgspec.structs.replace(row, undo_state=Undo.FAILED, undo_error=kept(error)))
            return
        run.record.put(msgspec.structs.replace(row, undo_state=Undo.RUNNING, undo_job=new.id), [new])
    while run.record.steps[row.path].undo_state is Undo.RUNNING:
        await run.rest(_timer(row), f"{row.undo} (job {run.record.steps[row.path].undo_job})")
    if run.record.steps[row.path].undo_state is Undo.FAILED:
        log.error("step %s of workflow %s cannot be undone: its job failed", row.name, run.record.lease.id)


def _arguments(row: StepRow, how: Undoable) -> dict[str, object]:
    return {**how.kwargs, **({"result": how.decode(row.result)} if how.wants_result else {})}


def _timer(row: StepRow) -> str:
    return f"undo {row.path}"
