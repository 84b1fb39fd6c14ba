"""What each kind of step does: at first, and when its record is there already."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from lateshift.errors import Permanent, ResultInvalid, StepFailed, UsageError
from lateshift.model.ids import JobId, new_job_id
from lateshift.model.job import NewJob
from lateshift.model.outcome import ResultNotKept, clip
from lateshift.model.remote import is_a
from lateshift.model.retry import Retry
from lateshift.model.workflow.policy import Again, GiveUp, Policy, decide
from lateshift.model.workflow.run import ITS_TIME, Phase
from lateshift.model.workflow.step import Kind, StepRow, StepState, error_of, shown_path
from lateshift.runtime.log import log
from lateshift.telemetry.tracing import context, of_step
from lateshift.workflow.calls import Inline, decoded, encoded, is_cancelled, kept
from lateshift.workflow.control import Diverged, Stop
from lateshift.workflow.run import Run

NO_TIME = timedelta(0)
FOR_GOOD = 0  # in the place of a step that failed: no policy is asked again
NULL = b"null"
DATA_SHOWN = 200  # characters of a signal's data that is not of the type that is wanted
AT_HAND = timedelta(seconds=1)  # a retry after no more than this waits in the worker


class Stopped(Exception):
    """A step was not begun, because the run was cancelled; or nobody waited for it any more."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What holds of one step."""

    retry: Retry
    limit: timedelta | None
    policy: Policy
    undo: str | None = None


async def call(run: Run, path: str, name: str, inline: Inline, payload: bytes | None, rules: Rules) -> Any:
    """A function, here. Written as running before it begins, so that a worker which lost the run begins nothing."""
    record = run.record
    while True:
        row = record.steps.get(path)
        if row is not None and row.state is StepState.COMPLETED:
            return _read(path, lambda result: decoded(inline.function, result), row.result)
        if row is not None and row.state is not StepState.RUNNING:
            await _held(run, row)
            continue
        if row is None or run.looks:
            run.begin()
        elif row.failures and (left := record.left(path)) is not None and left > timedelta(0):
            if run.stops:
                raise Stop  # it has failed as often as it was tried: not done
            await (run.pause(left) if left <= AT_HAND else run.rest(path, f"the next try of {name}"))
            continue
        if run.stint.stopping:
            await run.give_up(path)
            continue
        begun, failures = row is not None, 0 if row is None else row.failures
        row = StepRow(
            path=path, kind=Kind.CALL, name=name, state=StepState.RUNNING, failures=failures, undo=rules.undo,
            payload=None if begun else payload, limit=rules.limit,
        )  # fmt: skip
        record.put(row)
        await run.commit()
        if run.stops and not begun:  # which was told just now: it does not begin
            record.put(
                msgspec.structs.replace(
                    row, state=StepState.FAILED, error=kept(Stopped("the run was cancelled"))
                )
            )
            raise Stop
        tried = await _try(run, row, inline, rules)
        if tried is not None:
            return tried[0]


def _read(path: str, decode: Callable[[bytes | None], Any], result: bytes | None) -> Any:
    """What is recorded. That the code cannot read it says nothing of what the run is for: it is not undone for that."""
    try:
        return decode(result)
    except ResultInvalid as error:
        raise Diverged(f"at step {shown_path(path)} {error}") from None


async def _try(run: Run, row: StepRow, inline: Inline, rules: Rules) -> tuple[Any] | None:
    """Its result, as a replay reads it; None if it is to be tried again."""
    record = run.record
    with run.in_hand():
        try:
            if row.path in record.mended:
                inline = inline.mended(record.mended[row.path])
            with of_step(record.lease, "step", shown_path(row.path), row.name):
                result = encoded(inline.function, await inline.run(rules.limit))
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if is_cancelled(error):
                if not run.evicted:  # the code itself did it: see flow.Step
                    called_off = Stopped("the code stopped waiting for it")
                    record.put(
                        msgspec.structs.replace(
                            row, state=StepState.FAILED, error=kept(called_off), limit=None
                        )
                    )
                raise
            failures = row.failures + 1
            last = is_a(error, Permanent) or rules.retry.never_for(error)
            if last or rules.retry.exhausted(failures, rules.retry.attempts, error):
                place = record.next_place() if is_a(error, ResultNotKept) else FOR_GOOD
                failed = msgspec.structs.replace(row, failures=failures, error=kept(error), place=place)
                await _fail(run, failed, rules, error)
                return None
            delay = rules.retry.delay(failures, error)
            log.warning(
                "step %s of workflow %s failed, and is tried again: %s", row.name, record.lease.id, error
            )
            again = msgspec.structs.replace(row, failures=failures, error=kept(error), wait=delay, limit=None)
            record.put(again)
            await run.commit()
            return None
        record.complete(row, result)
        return (decoded(inline.function, result),)


async def _fail(run: Run, row: StepRow, rules: Rules, error: BaseException | None) -> None:
    """For good: the code is told, or an operator."""
    state = StepState.HELD if rules.policy.then == "hold" and not run.stops else StepState.FAILED
    row = msgspec.structs.replace(row, state=state, wait=None, limit=None, place=row.place or FOR_GOOD)
    run.record.put(row)
    if state is StepState.FAILED:
        raise _told(row) from error
    why = why_held(row)
    log.error(
        "workflow %s is held by step %s %s, %s",
        run.record.lease.id,
        shown_path(row.path),
        row.name,
        to_log(row),
    )
    run.record.say(phase=Phase.HELD, why=why)
    await run.alert("workflow_held", why)


def to_log(row: StepRow) -> str:
    """What the run's log says of a step that failed. What one raised that is a job stands at the step, where it is hidden from those who may
    not see that job's queue: whoever may see the run's own reads this."""
    return f"which failed: {error_of(row.error)}" if row.kind is Kind.CALL else "where its error stands"


def why_held(row: StepRow) -> str:
    return f"{_held_by(row)}{error_of(row.error)}"


def is_why(why: str | None) -> Callable[[StepRow], bool]:
    """Whether this is said because of a step."""
    return lambda row: (why or "").startswith(_held_by(row))


def _held_by(row: StepRow) -> str:
    return f"step {shown_path(row.path)} {row.name} failed: "


def _failed(row: StepRow, error: BaseException) -> StepRow:
    return msgspec.structs.replace(row, failures=row.failures + 1, error=kept(error))


async def refuse(run: Run, path: str, kind: Kind, name: str, rules: Rules, error: Exception) -> None:
    """Where the code cannot go on with what a step gave it: as if this step had failed. Returns only to be asked again."""
    row = run.record.steps.get(path)
    if row is None:
        run.begin()
    if row is None or row.state is StepState.RUNNING:
        row = StepRow(path=path, kind=kind, name=name, state=StepState.RUNNING)
        await _fail(run, _failed(row, error), rules, error)
    await _held(run, run.record.steps[path])


async def _held(run: Run, row: StepRow) -> None:
    """Of a step that failed: the code is told, unless it waits for an operator."""
    if row.state is StepState.FAILED or run.stops:
        raise _told(row)
    await run.rest(row.path, "an operator")


async def job(
    run: Run,
    path: str,
    kind: Kind,
    name: str,
    make: Callable[[bytes | None, timedelta], NewJob],
    decode: Callable[[bytes | None], Any],
    rules: Rules,
) -> Any:
    """A job of its own, which names the run as its batch. Enqueued in the commit that writes the step."""
    record = run.record
    while True:
        row = record.steps.get(path)
        if row is not None and row.state is StepState.COMPLETED:
            return _read(path, decode, row.result)
        if row is None:
            run.begin()
        wait, limit = NO_TIME, rules.limit
        if row is not None and row.state is StepState.FAILED and row.place != FOR_GOOD and not run.stops:
            match decide(rules.policy, row.failures, rules.limit, error_of(row.error)):
                case Again(wait, limit):
                    row = msgspec.structs.replace(row, state=StepState.RUNNING, job=None)
                case GiveUp("raise") if row.is_done:
                    raise _told(row)
                case GiveUp():
                    await _fail(run, row, rules, None)
                    continue
        if row is not None and row.state is not StepState.RUNNING:
            await _held(run, row)
            continue
        if row is None or row.job is None:
            try:
                new = make(record.mended.get(path), wait)
            except UsageError as error:  # no job can be made of what it is given
                row = row or StepRow(
                    path=path, kind=kind, name=name, state=StepState.RUNNING, undo=rules.undo
                )
                await _fail(run, _failed(row, error), rules, error)
                continue
            row = StepRow(
                path=path, kind=kind, name=name, state=StepState.RUNNING, job=new.id, payload=new.payload,
                failures=0 if row is None else row.failures, limit=None if limit is None else wait + limit, undo=rules.undo,
            )  # fmt: skip
            record.put(row, [new])
        if run.stops:
            raise Stop  # its end is waited for before anything is undone
        await run.rest(path, f"{name} (job {row.job})")


async def sleep(run: Run, path: str, wait: timedelta) -> None:
    record = run.record
    if path not in record.steps:
        run.begin()
        row = StepRow(
            path=path, kind=Kind.SLEEP, name="", state=StepState.RUNNING, wait=max(wait, timedelta(0))
        )
        record.put(row)
    while (row := record.steps[path]).state is StepState.RUNNING:
        left = record.left(path)
        if left is None or left <= timedelta(0):
            record.complete(row, None)
            return
        if run.stops:
            raise Stop
        await run.rest(path, ITS_TIME)


async def signal(run: Run, path: str, name: str, timeout: timedelta | None, type: Any) -> Any:
    record = run.record
    while True:
        row = record.steps.get(path)
        if row is not None and row.state is not StepState.RUNNING:
            break
        told = next((each for each in record.signals if each.name == name), None)
        if row is None:
            if told is None or run.stops:
                run.begin()
            row = StepRow(path=path, kind=Kind.SIGNAL, name=name, state=StepState.RUNNING, wait=timeout)
            record.put(row)
        left = record.left(path) if timeout is not None else None
        if told is not None:
            misfit = _misfit(told.data, type)
            if misfit and run.stops:
                raise Stop
            record.take(told, path)
            if misfit:  # set aside: another may come, and be taken
                await _hold_for(run, path, f"the signal {name} {misfit}")
                continue
            record.complete(row, told.data)
        elif left is not None and left <= timedelta(0):
            error = TimeoutError(f"no signal {name!r} came within {timeout}")
            record.put(msgspec.structs.replace(row, state=StepState.FAILED, error=kept(error), wait=None))
        else:
            if run.stops:
                raise Stop
            await run.rest(path, f"the signal {name}")
    row = record.steps[path]
    if row.state is StepState.FAILED:
        raise TimeoutError(f"no signal {name!r} came within {timeout}")
    if misfit := _misfit(row.result, type):
        raise Diverged(f"at step {shown_path(path)} the signal {name} {misfit}")
    return msgspec.json.decode(row.result or NULL, type=type)


def _misfit(data: bytes | None, type: Any) -> str | None:
    """What is wrong with the data of a signal; None if it is of the type that is wanted."""
    try:
        msgspec.json.decode(data or NULL, type=type)
    except msgspec.DecodeError as error:
        wanted = getattr(type, "__name__", None) if not getattr(type, "__args__", ()) else None
        came = clip((data or NULL).decode(errors="replace"), DATA_SHOWN)
        return f"came with {came}, and the code wants {wanted or type}: {error}"
    return None


async def _hold_for(run: Run, path: str, why: str) -> None:
    """Until an operator lets the run go on."""
    log.error("workflow %s is held: %s", run.record.lease.id, why)
    run.record.say(phase=Phase.HELD, why=why)
    await run.alert("workflow_held", why)
    while run.record.phase is Phase.HELD and not run.stops:
        await run.rest(f"{path} held", "an operator")  # whatever time it has left


def moment(run: Run, path: str, now: datetime) -> datetime:
    """The time, as it was when the code first asked."""
    row = run.record.steps.get(path)
    if row is None:
        run.begin()
        row = StepRow(path=path, kind=Kind.NOW, name="", state=StepState.RUNNING)
        run.record.complete(row, msgspec.json.encode(now))
        return now
    return msgspec.json.decode(row.result or b"null", type=datetime)


async def emit(run: Run, path: str, name: str, make: Callable[[], Any]) -> None:
    """The jobs of all who subscribed, in the commit that writes the step; it fails if the store refuses one of them."""
    record = run.record
    if path not in record.steps:
        run.begin()
        jobs = await make()
        row = StepRow(path=path, kind=Kind.EMIT, name=name, state=StepState.RUNNING)
        record.enqueue(jobs, path)
        record.complete(row, None)
        if jobs:
            await run.commit()
        if path not in record.steps:
            raise Stop  # which was told just now: it does not begin
    if record.steps[path].state is StepState.FAILED:
        raise _told(record.steps[path])


def of_run(new: NewJob, run: JobId, payload: bytes | None = None, wait: timedelta = NO_TIME) -> NewJob:
    """The job of a step: it is the run's, and nobody else's duplicate."""
    spec = msgspec.structs.replace(new.spec, batch=run)
    if wait > NO_TIME:
        spec = msgspec.structs.replace(spec, delay=wait, at=None)
    return NewJob(
        new_job_id(),
        spec,
        new.payload if payload is None else payload,
        None,
        True,
        new.place,
        None,
        context(),
        new.tags,
    )


def fixed(run: Run, path: str, name: str, value: bytes) -> bytes:
    """This, as it was when the code first came by here."""
    row = run.record.steps.get(path)
    if row is None:
        run.begin()
        run.record.complete(StepRow(path=path, kind=Kind.FIXED, name=name, state=StepState.RUNNING), value)
        return value
    return row.result or b"null"


def _told(row: StepRow) -> BaseException:
    error = error_of(row.error)
    return (
        StepFailed(row.name, "failed") if error is None else StepFailed(row.name, error.error, error.message)
    )


def mark(run: Run, path: str, kind: Kind, name: str) -> None:
    """That the code came by here: with this patch, or with so many branches."""
    if path not in run.record.steps:
        run.begin()
        run.record.complete(StepRow(path=path, kind=kind, name=name, state=StepState.RUNNING), None)
