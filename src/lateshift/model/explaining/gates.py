"""What is parked: a breaker before its task is open, or the queue behind it is full."""

from collections.abc import Iterator
from shlex import quote

from lateshift.model.breaker import CircuitView
from lateshift.model.explaining.facts import Facts, Room
from lateshift.model.explaining.reason import Reason
from lateshift.model.explaining.words import Words, one_line
from lateshift.model.words import counted


def shut(facts: Facts, words: Words) -> Iterator[Reason]:
    for breaker in facts.breakers:
        yield _open(facts, breaker, words)
    for room in facts.rooms:
        yield _full(facts, room)


def _full(facts: Facts, room: Room) -> Reason:
    """One that has no name is not to be named."""
    where = (
        f"queue {room.queue}, where {room.waiting:,} of at most {room.most:,} wait"
        if room.queue
        else "another queue, which is full"
    )
    begun = f"jobs of queue {room.queue}" if room.queue else "jobs of that queue"
    return Reason(
        code="queue_behind_full",
        says=f"What {facts.job.task} returns goes to {where}.",
        clears_when=f"when {begun} have begun, within a second or two",
        do="lateshift queues list" if room.queue else None,
    )


def _open(facts: Facts, breaker: CircuitView, words: Words) -> Reason:
    since = "" if breaker.opened_at is None else f" since {words.gone(breaker.opened_at)}"
    why = f": {one_line(breaker.reason).rstrip('.')}" if breaker.reason else ""
    parked = f" {counted(breaker.parked, 'job')} {'is' if breaker.parked == 1 else 'are'} parked."
    if breaker.opened_by is not None:
        return Reason(
            code="breaker_open",
            says=f"The breaker {breaker.name} was opened by {breaker.opened_by}, and is open{since}.{parked}",
            by=breaker.opened_by,
            since=breaker.opened_at,
            clears_when="when somebody closes it",
            do=f"lateshift breakers close {quote(breaker.name)}",
        )
    probe = breaker.next_probe_at
    due = "" if breaker.probe or probe is None or probe <= facts.at else f", due at {words.coming(probe)}"
    other = "" if breaker.version is None else ", or workers of another version take it"
    return Reason(
        code="breaker_open",
        says=f"The breaker {breaker.name} is open{since}{why}.{parked}",
        jobs=[] if breaker.probe is None else [breaker.probe],
        since=breaker.opened_at,
        clears_when=f"when a job that probes has succeeded{due}{other}",
        do="lateshift breakers list",
    )
