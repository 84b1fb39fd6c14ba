"""What keeps a waiting job from being given out: a pause, its own time, another job of its session, its task or a limit."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from shlex import quote

from lateshift.model.explaining.facts import OTHERS_LOOKED_AT, Facts, Limit, OfRun, Other, Run, Session
from lateshift.model.explaining.gates import shut
from lateshift.model.explaining.reason import Reason
from lateshift.model.explaining.words import Words, bounded, listed, one_line, said
from lateshift.model.guard import ENOUGH
from lateshift.model.history import attempts
from lateshift.model.ids import JobId
from lateshift.model.job import AttemptRecord, Holds, State
from lateshift.model.words import counted, duration, short
from lateshift.model.workflow.holding import held
from lateshift.model.workflow.run import ITS_TIME, NEVER, Phase
from lateshift.model.workflow.step import shown_path

ENDED = {
    "failed": "failed",
    "complete_by": "ran past its complete-by",
    "memory": "was stopped: it took more memory than its task may",
    "process_died": "ended when its process died",
    "worker_lost": "was lost with its worker",
}


def held_back(facts: Facts, words: Words) -> Iterator[Reason]:
    """Every reason, not only the first."""
    yield from _paused(facts, words)
    seen = [
        *_session(facts, words),
        *_singleton(facts, words),
        *_concurrency(facts, words),
        *shut(facts, words),
    ]
    yield from seen
    rates = list(_rates(facts))
    if facts.job.state is State.BLOCKED and not seen and not rates:
        yield _let_go(facts)
    yield from rates
    if facts.job.state is State.SCHEDULED and not rates:
        yield _time(facts, words)


def _paused(facts: Facts, words: Words) -> Iterator[Reason]:
    if facts.paused is not None:
        yield Reason(
            code="queue_paused",
            says=f"Queue {facts.job.queue} was paused by {facts.paused.by} at {words.gone(facts.paused.at)}.",
            by=facts.paused.by,
            since=facts.paused.at,
            clears_when="when somebody resumes the queue",
            do=f"lateshift queues resume {facts.job.queue}",
        )


# -- its own time ----------------------------------------------------------------------------------------------------


def _time(facts: Facts, words: Words) -> Reason:
    job, failed = facts.job, _last_attempt(facts)
    waits_for = facts.guard.blocked_by or ""
    if job.due_at <= facts.at:
        return Reason(
            code="due",
            says=f"It was due at {words.gone(job.due_at)}; the next look of a worker makes it ready.",
            since=job.due_at,
            clears_when="within a second of a live worker",
        )
    if waits_for.startswith("rate:"):
        return Reason(
            code="rate_limit",
            says=f"It waits for a token of the limit {waits_for.removeprefix('rate:')}, which was withdrawn since.",
            clears_at=job.due_at,
        )
    begins_anew = failed is not None and failed.fence == job.fence and job.attempt == 0
    if facts.run is not None and not begins_anew:
        return _asleep(facts, facts.run, words)
    if failed is not None and failed.fence == job.fence:
        fresh = ": it was resubmitted for later, or that attempt did not count" if begins_anew else ""
        return Reason(
            code="retry_wait",
            says=f"Attempt {failed.attempt} of {job.attempts} {ENDED.get(failed.reason, failed.reason)} at "
            f"{words.gone(failed.at)}, and the next one waits{fresh}.{said(failed)}",
            since=failed.at,
            clears_at=job.due_at,
        )
    if job.fence > 0:
        return Reason(
            code="put_off",
            says="A worker had it and put it off: its task asked for that (Snooze), or that worker had no such task, or not the key that opens "
            "what it holds. Or it was cancelled, and resubmitted for later.",
            clears_at=job.due_at,
        )
    return Reason(
        code="delayed",
        says=f"It was enqueued at {words.gone(job.created_at)} for later.",
        clears_at=job.due_at,
    )


def _asleep(facts: Facts, run: Run, words: Words) -> Reason:
    """Of a workflow. What it waits for may come before its time; and of one that waits for somebody, that is in years: no time to
    tell."""
    job = facts.job
    look = f"lateshift workflows show {job.id}"
    if (found := held(run.phase, run.why)) is not None:
        return Reason(
            code="workflow_held",
            says=f"Its workflow is held: {one_line(run.why or 'an operator wants it so').rstrip('.')}.",
            clears_when=found.clears_when,
            do=look,
        )
    undoing = " is being undone, and" if run.phase is Phase.UNDOING else ""
    waits_for = run.waits_for or ITS_TIME
    latest = f", at {words.coming(job.due_at)} at the latest" if job.due_at - facts.at < NEVER / 2 else ""
    return Reason(
        code="workflow_waits",
        says=f"Its workflow{undoing} waits for {one_line(waits_for).rstrip('.')}.",
        clears_at=job.due_at if waits_for == ITS_TIME else None,
        clears_when=None if waits_for == ITS_TIME else f"when that comes{latest}",
        do=look,
    )


def _last_attempt(facts: Facts) -> AttemptRecord | None:
    return next(reversed(attempts(facts.job.history)), None)


# -- other jobs ------------------------------------------------------------------------------------------------------


def _session(facts: Facts, words: Words) -> Iterator[Reason]:
    session = facts.session
    if session is None:
        return
    if session.held_why is not None:
        yield _held(facts, session)
    if session.before:
        yield _in_session(facts, session, words)
    if session.held_why is None and _has_gap(facts, session):
        yield _gap(facts, session, words)


def _held(facts: Facts, session: Session) -> Reason:
    release = f"lateshift sessions release {quote(session.name)} --queue {facts.job.queue}"
    if session.held_by is None:
        return Reason(
            code="session_held",
            says=f"Session {session.name} is held: its number {session.expects} has not come in time.",
            clears_when=f"when number {session.expects} is enqueued, or somebody lets the session go on",
            do=release,
        )
    whose = "" if session.held_of is None else f", a step of the workflow run {session.held_of.run}"
    end, do = _mended_by(session.held_by, session.held_of, release)
    return Reason(
        code="session_held",
        says=f"Session {session.name} is held by dead letter {session.held_by}{whose}: nothing else of it runs.",
        jobs=[session.held_by],
        clears_when=f"when {end}the session is released ({release})",
        do=do,
    )


def _mended_by(job: JobId, of: OfRun | None, release: str) -> tuple[str, str]:
    """What else lets the session go on, and the command to begin with. A step is no job to be resubmitted by itself, and one that its
    run has gone past is not resubmitted at all."""
    if of is None:
        return "that job is resubmitted, or ", f"lateshift jobs resubmit {job}"
    if of.path is None:
        return "", release
    command = f"lateshift workflows resubmit-step {of.run} {shown_path(of.path)}"
    return "that step is resubmitted, or ", command


def _in_session(facts: Facts, session: Session, words: Words) -> Reason:
    head, rest = session.before[0], len(session.before) - 1
    more = f" {bounded(rest, OTHERS_LOOKED_AT, 'more job')} of it stand before this one." if rest > 1 else ""
    more = " 1 more job of it stands before this one." if rest == 1 else more
    return Reason(
        code="session_busy",
        says=f"The jobs of session {session.name} run one at a time, in order. It is the turn of "
        f"{words.other(head, alive=_attended(facts, head))}.{more}",
        jobs=[other.id for other in session.before],
        clears_when="when that job has ended" if not rest else "when those jobs have ended",
        do=f"lateshift jobs explain {head.id}",
    )


def _has_gap(facts: Facts, session: Session) -> bool:
    if (facts.guard.blocked_by or "").startswith("sequence:"):
        return True
    mine = facts.guard.sequence
    # Seen by a worker, or to be seen by the first that looks.
    missing = session.gap_until is not None or not session.before
    return missing and mine is not None and mine > session.expects


def _gap(facts: Facts, session: Session, words: Words) -> Reason:
    mine = "one" if facts.guard.sequence is None else f"number {facts.guard.sequence}"
    comes, until = f"when number {session.expects} is enqueued and has run", session.gap_until
    patient = until is None or bool(session.before) or bool(facts.guard.holds & Holds.ON_GAP)
    held = (
        f"; at {words.coming(until)} the session is held"
        if until and facts.guard.holds & Holds.ON_GAP
        else ""
    )
    return Reason(
        code="sequence_gap",
        says=f"It is {mine} of session {session.name}, and number {session.expects} has not come.",
        clears_at=None if patient else until,
        clears_when=f"{comes}{held}"
        if patient
        else "when the session goes on without that number, if it does not come",
    )


def _singleton(facts: Facts, words: Words) -> Iterator[Reason]:
    holder = facts.singleton
    if holder is not None and holder.id != facts.job.id:
        latest = _latest(holder.complete_by, words)
        yield Reason(
            code="singleton_busy",
            says=f"One job of {(facts.job.exclusive or '').removeprefix('task:')} runs at a time over all machines, and "
            f"that is {words.other(holder, alive=_attended(facts, holder))}.",
            jobs=_told([holder]),
            since=holder.started_at,
            clears_when=f"when that job has ended{latest}",
            do=None if holder.elsewhere else f"lateshift jobs explain {holder.id}",
        )


def _let_go(facts: Facts) -> Reason:
    what = facts.guard.blocked_by or facts.job.exclusive or "something"
    return Reason(
        code="blocked",
        says=f"It waits for {what}, which nothing holds any more.",
        clears_when="at the supervisor's next round, within a second or two",
    )


# -- limits ----------------------------------------------------------------------------------------------------------


def _concurrency(facts: Facts, words: Words) -> Iterator[Reason]:
    for limit in facts.limits:
        if limit.concurrency is None:
            continue
        named = facts.guard.blocked_by == f"limit:{limit.scope}:{limit.key}"
        more = len(limit.running) >= OTHERS_LOOKED_AT  # than were looked at, perhaps
        if len(limit.running) >= limit.concurrency or (named and more):
            yield _full(limit, words, at=f"{len(limit.running):,}{' or more' if more else ''}")
        elif named:
            yield Reason(
                code="limit_reached",
                says=f"{_called(limit)} was full, and is at {len(limit.running):,} of {limit.concurrency:,} now.",
                jobs=_told(limit.running),
                by=limit.set_by or None,
                clears_when="at the supervisor's next round, within a second or two",
            )


def _full(limit: Limit, words: Words, at: str) -> Reason:
    there = [other for other in limit.running if not other.elsewhere]
    soonest = sorted(there, key=lambda other: (other.complete_by is None, other.complete_by, other.id))
    first = soonest[0] if soonest else None
    jobs = f": {_named(soonest, len(limit.running) - len(soonest))}" if limit.running else ""
    ended = (
        "one of them has ended"
        if len(limit.running) > 1
        else "that job has ended"
        if limit.running
        else "the limit is raised"
    )
    return Reason(
        code="limit_reached",
        says=f"{_called(limit)} is at {at} of {counted(limit.concurrency or 0, 'job')} at once{jobs}.",
        jobs=_told(soonest),
        by=limit.set_by or None,
        clears_when=f"when {ended}{_latest(first.complete_by, words) if first else ''}",
        do=f"lateshift jobs explain {first.id}" if first and len(limit.running) == 1 else None,
    )


def _named(others: list[Other], elsewhere: int) -> str:
    """Those that may be named, and how many more there are of other queues."""
    rest = [counted(elsewhere, "job") + " of other queues"] if elsewhere else []
    shown = listed([short(other.id) for other in others])
    return " and ".join([*([shown] if shown else []), *rest])


def _told(others: list[Other]) -> list[JobId]:
    return [other.id for other in others if not other.elsewhere]


def _rates(facts: Facts) -> Iterator[Reason]:
    waits_for = facts.guard.blocked_by or ""
    for limit in facts.limits:
        waits = (
            facts.job.state is State.SCHEDULED
            and facts.job.due_at > facts.at
            and waits_for == f"rate:{limit.scope}:{limit.key}"
        )
        token_at = facts.job.due_at if waits else _token_at(limit, facts)
        if facts.job.state is State.BLOCKED and waits_for == f"rate:{limit.scope}:{limit.key}":
            each = (limit.per or timedelta(0)) / (limit.rate or 1)
            token_at = max(limit.promised or facts.at, facts.at) + each
        if limit.rate is not None and limit.per is not None and token_at is not None:
            yield Reason(
                code="rate_limit",
                says=f"{_called(limit)} lets {limit.rate:,} start in {duration(limit.per)}, and its tokens are used up or "
                "promised to others.",
                by=limit.set_by or None,
                clears_at=token_at,
                clears_when="when there is a token for it",
            )


def _token_at(limit: Limit, facts: Facts) -> datetime | None:
    """When a ready job that has none gets a token: after those to whom the next ones are promised. None if there is one
    now, or no rate."""
    if facts.job.state is not State.READY or limit.rate is None or limit.per is None:
        return None
    if limit.tokens is None or limit.tokens_at is None:
        return None
    each = limit.per / limit.rate
    have = min(float(limit.burst), limit.tokens + max(timedelta(0), facts.at - limit.tokens_at) / each)
    if limit.promised is not None and limit.promised > facts.at:
        return limit.promised + each
    return None if have >= ENOUGH else facts.at + (1 - have) * each


def _called(limit: Limit) -> str:
    name = f"Limit {limit.key}" if limit.scope == "key" else f"The limit of {limit.scope} {limit.key}"
    return f"{name}, set by the code of {limit.set_by}," if limit.set_by else name


def _latest(moment: datetime | None, words: Words) -> str:
    return "" if moment is None or moment <= words.at else f", at the latest {words.coming(moment)}"


def _attended(facts: Facts, other: Other) -> bool:
    """A running job whose worker is gone holds on until the supervisor takes it back."""
    if other.state is not State.RUNNING or other.holder is None:
        return True
    return any(member.id == other.holder and not member.dead for member in facts.members)


def waits_on_the_dead(facts: Facts) -> bool:
    others = [
        *(facts.session.before[:1] if facts.session else []),
        *([facts.singleton] if facts.singleton else []),
    ]
    others += [other for limit in facts.limits for other in limit.running]
    return not all(_attended(facts, other) for other in others)
