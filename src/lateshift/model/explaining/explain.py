"""From facts to reasons: all of them, those that somebody must see to first."""

from collections.abc import Iterator
from datetime import tzinfo

from msgspec import structs

from lateshift.model.explaining.facts import Facts
from lateshift.model.explaining.holding import held_back, waits_on_the_dead
from lateshift.model.explaining.reason import Explanation, Reason
from lateshift.model.explaining.serving import Crew, in_line, nobody_can
from lateshift.model.explaining.standing import ended, no_leader, running, suspected
from lateshift.model.explaining.words import Words
from lateshift.model.job import State
from lateshift.model.sealed import hidden_text, key_of, masked_view


def explain(facts: Facts, zone: tzinfo | None = None) -> Explanation:
    """Times in the sentences are those of `zone`; without one, the reader's own."""
    job = facts.job
    facts = structs.replace(facts, job=masked_view(job), sealed_with=key_of(job.payload))
    if job.sensitive and facts.run is not None:
        facts = structs.replace(facts, run=structs.replace(facts.run, why=hidden_text(facts.run.why or None)))
    reasons = sorted(_reasons(facts, Words(facts.at, zone)), key=_urgency)
    return Explanation(
        id=job.id, task=job.task, queue=job.queue, state=job.state, at=facts.at, reasons=reasons, zone=zone
    )  # fmt: skip


def _reasons(facts: Facts, words: Words) -> Iterator[Reason]:
    if facts.job.state.settled:
        yield from ended(facts, words)
        return
    if facts.job.state is State.RUNNING:
        yield from running(facts, words)
    else:
        crew = Crew(facts)
        yield from nobody_can(crew, words)
        yield from held_back(facts, words)
        yield from in_line(crew, words)
    if _needs_a_leader(facts):
        yield no_leader(facts, words)
    yield from suspected(facts)


def _needs_a_leader(facts: Facts) -> bool:
    if facts.led_until is not None and facts.led_until > facts.at:
        return False
    job = facts.job
    if job.state is State.RUNNING:
        alive = any(member.id == job.holder and not member.dead for member in facts.members)
        return not alive or (job.complete_by is not None and job.complete_by <= facts.at)
    return job.state is State.BLOCKED or waits_on_the_dead(facts)


def _urgency(reason: Reason) -> int:
    """What waits for somebody, what clears by itself, what is good to know."""
    if not reason.holds:
        return 2
    return 1 if reason.clears_at is not None else 0
