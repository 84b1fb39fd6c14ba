"""Metrics of processes that have no port, as they tell the store of them: with their counts, and with the heartbeats that are written anyhow."""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from lateshift.model.draining import Told
from lateshift.store.contract import MemberView
from lateshift.telemetry.exposition import Family, Sample
from lateshift.telemetry.liveness import Age
from lateshift.telemetry.measures import BUCKETS, Histogram

MEMBERS_TIMED = 100  # whose leases and settlements are told of in histograms, those that are longest there


def ages_told(member: MemberView) -> list[Age]:
    """Of each loop at the last heartbeat, by name."""
    return [Age(loop, age, interval) for loop, (age, interval) in sorted(member.loops.items())]


def told_by(members: Sequence[MemberView]) -> Told:
    """What the workers among them tell of the jobs that they end."""
    workers = [it for it in members if it.kind == "worker" and not it.dead]
    return Told((() if it.serves is None else it.serves.queues, it.stats) for it in workers)


def parts_of(histogram: Histogram, labels: dict[str, str]) -> list[Sample]:
    """Nothing, where nothing was observed."""
    upto = list(accumulate(histogram.counts))
    if not upto[-1]:
        return []
    bounds = [*(repr(bound) for bound in histogram.bounds), "+Inf"]
    buckets = [
        Sample(count, labels | {"le": bound}, "_bucket") for bound, count in zip(bounds, upto, strict=True)
    ]
    return [*buckets, Sample(histogram.seconds, labels, "_sum"), Sample(upto[-1], labels, "_count")]


def of_exchanges(alive: Sequence[MemberView]) -> Iterator[Family]:
    """Leases and settlements."""
    timed = sorted(
        (member for member in alive if "lease" in member.stats),
        key=lambda member: (member.started_at, member.id),
    )
    for name, said in (("lease", "leased"), ("settle", "settled")):
        samples = [
            sample
            for member in timed[:MEMBERS_TIMED]
            for sample in parts_of(_read(member.stats.get(name)), {"member": str(member.id)})
        ]
        yield Family(
            f"lateshift_member_{name}_seconds",
            "histogram",
            f"Exchanges in which a member {said} jobs.",
            samples,
        )


def of_loops(alive: Sequence[MemberView]) -> Iterator[Family]:
    """The late ones first: they are the ones that must not be cut off."""
    told = [(str(member.id), it) for member in alive for it in ages_told(member)]
    told.sort(key=lambda each: (not each[1].is_late, each[0], each[1].loop))
    for name, said, field in (
        ("age_seconds", "Since the last turn of each loop of a member, at its last heartbeat.", "age"),
        ("interval_seconds", "How long it means to pause between two turns.", "interval"),
        ("late", "1 for a loop that had not turned for more than three intervals.", "is_late"),
    ):
        samples = [Sample(getattr(it, field), {"member": member, "loop": it.loop}) for member, it in told]
        yield Family(f"lateshift_member_loop_{name}", "gauge", said, samples)


def _read(told: Any) -> Histogram:
    """An empty one, if a member of another release tells it in another form."""
    return Histogram.read(told, BUCKETS) or Histogram()
