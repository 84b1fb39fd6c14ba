"""What becomes of a job that runs, and what became of one that has ended."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from lateshift.model.explaining.facts import Facts
from lateshift.model.explaining.reason import Reason
from lateshift.model.explaining.words import Words, one_line, said
from lateshift.model.fingerprint import last_failure
from lateshift.model.job import LOSSES_UNTIL_DEAD, JobView, Lane, State
from lateshift.model.member import MemberView
from lateshift.model.sealed import NOT_SEALED, SEAL_BROKEN
from lateshift.model.words import counted, duration
from lateshift.model.workflow.run import is_step

QUIET = 0.6  # of the time to its death: a heartbeat that comes in thirds has missed one

DIED_OF = {
    "exhausted": "its last attempt failed",
    "permanent": "it raised an error that is not worth another attempt",
    "complete_by": "its last attempt ran past its complete-by",
    "worker_lost": "its worker died too often while it ran, or at its last attempt",
    "undecodable": "its arguments do not fit the task any more",
    "result_not_kept": "it was done, but its result could not be kept",
    NOT_SEALED: "it was not sealed, and its queue, or its task's own, is sensitive, so it was not run",
    SEAL_BROKEN: "what was sealed of it was changed, or is another job's, so it was not run",
    "memory": "its last attempt took more memory than its task may",
    "process_died": "its process died at its last attempt",
    "failed": "its workflow failed, and had done nothing that is undone",
    "undone": "its workflow failed or was told to, and what it had done is undone",
    "compensation_failed": "its workflow could not undo all that it had done",
}


def running(facts: Facts, words: Words) -> Iterator[Reason]:
    job = facts.job
    holder = next((member for member in facts.members if member.id == job.holder), None)
    started = job.started_at or facts.at
    where = f" in {_where(holder)}" if holder is not None else ""
    yield Reason(
        code="running",
        says=f"{_which(job)} runs since {words.gone(started)}{where}."
        f"{_progress(facts)}{_heartbeat(holder, facts.at)}{_complete_by(job.complete_by, words)}",
        holds=False,
        since=started,
    )
    if facts.guard.cancel_by is not None or job.cancel_requested:
        by = facts.guard.cancel_by
        yield Reason(
            code="cancel_requested",
            says=f"{by or 'Somebody'} asked for its end; the attempt is told within a second. A thread ends when it asks: "
            "progress, checkpoint or should_stop.",
            holds=False,
            by=by,
            clears_when="when the attempt has stopped, or at its complete-by",
        )
    gone = holder is None or holder.dead
    if gone:
        name = "Its worker" if holder is None or not holder.name else _where(holder)
        yield Reason(
            code="holder_dead",
            says=f"{name} is dead: the job is taken back, and runs again or is a dead letter.",
            holds=False,
            clears_when="at the supervisor's next round, within a second or two",
        )
    if job.complete_by is not None and job.complete_by <= facts.at:
        yield Reason(
            code="overdue",
            says=f"It should have completed by {words.gone(job.complete_by)}; a completion is refused from then on.",
            holds=False,
            since=job.complete_by,
            clears_when="at the supervisor's next round, within a few seconds",
        )


def _complete_by(moment: datetime | None, words: Words) -> str:
    if moment is None:
        return " It has no complete-by."
    return f" It must complete by {words.coming(moment)}." if moment > words.at else ""


def _where(member: MemberView) -> str:
    program = f", {member.serves.program}" if member.serves is not None else ""
    if not member.name:
        return "a worker" if member.serves is None else f"a worker of {member.serves.program}"
    return f"{member.name} on {member.host} (pid {member.pid}{program})"


def _progress(facts: Facts) -> str:
    progress = facts.job.progress
    if progress is None:
        return ""
    total = f" of {progress.total:g}" if progress.total else ""
    return f" It is at {progress.done:g}{total}{f', {one_line(progress.note)}' if progress.note else ''}."


def _heartbeat(holder: MemberView | None, at: datetime) -> str:
    if holder is None or holder.dead or holder.serves is None:
        return ""
    ttl = timedelta(seconds=holder.serves.heartbeat)
    age = max(timedelta(0), ttl - (holder.expires_at - at))
    quiet = f", and is dead after {duration(ttl)}" if age > QUIET * ttl else ""
    return f" Its worker's last heartbeat was {duration(age)} ago{quiet}."


def suspected(facts: Facts) -> Iterator[Reason]:
    """Good to know of a job that has lost workers."""
    if not facts.job.losses or facts.job.state.settled:
        return
    solo = facts.guard.lane is Lane.SOLO
    rest = " From now on it runs beside no other such job, one at a time in a worker." if solo else ""
    yield Reason(
        code="suspect" if solo else "worker_lost",
        says=f"Its worker died {counted(facts.job.losses, 'time')} while it ran; at {LOSSES_UNTIL_DEAD} it becomes a dead letter.{rest}",
        holds=False,
    )


def no_leader(facts: Facts, words: Words) -> Reason:
    last = "" if facts.led_until is None else f" The last term ended at {words.gone(facts.led_until)}."
    return Reason(
        code="no_leader",
        says=f"No supervisor leads: nothing is taken back from dead workers, and nothing blocked is let go.{last}",
        holds=not facts.job.state.settled and facts.job.state is not State.RUNNING,
        since=facts.led_until,
        clears_when="when a host is started; each brings a supervisor",
        do="lateshift work PROGRAM",
    )


def ended(facts: Facts, words: Words) -> Iterator[Reason]:
    job = facts.job
    when = words.gone(job.settled_at) if job.settled_at is not None else ""
    kept = (
        "" if facts.guard.kept_until is None else f" It is kept until {words.coming(facts.guard.kept_until)}."
    )
    again = f"lateshift jobs resubmit {job.id}"
    if facts.of_run is not None and is_step(job, (facts.of_run,)):
        again = f"lateshift workflows show {facts.of_run}"
    match job.state:
        case State.COMPLETED:
            yield Reason(
                code="completed",
                says=f"{_which(job)} completed at {when}{_took(facts)}.{kept}",
                holds=False,
                since=job.settled_at,
            )
        case State.CANCELLED:
            why = job.reason or "cancelled"
            yield Reason(
                code="cancelled",
                says=f"It ended at {when}: {one_line(why)}.{kept}",
                holds=False,
                by=why.removeprefix("cancelled by ") if why.startswith("cancelled by ") else None,
                since=job.settled_at,
                do=again,
            )
        case _:
            last = last_failure(job)
            reason = job.reason or "dead"
            yield Reason(
                code="dead_letter",
                says=f"It died at {when}{'' if job.is_run else f', at attempt {job.attempt} of {job.attempts}'}: {DIED_OF.get(reason, reason)} "
                f"({reason}).{said(last)}{kept}",
                holds=False,
                since=job.settled_at,
                do=again,
            )


def _which(job: JobView) -> str:
    return "Its workflow" if job.is_run else f"Attempt {job.attempt} of {job.attempts}"


def _took(facts: Facts) -> str:
    job = facts.job
    if job.settled_at is None or job.started_at is None:
        return ""
    return f", {duration(job.settled_at - job.started_at)} after its start"
