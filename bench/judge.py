"""The ratios that must hold within one run. A ratio whose figures were not all taken is not judged."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.figures import Figures
from bench.places import POSTGRES, SQLITE, STORES
from bench.subjects import CEILING, LATESHIFT

IDLE_MEMORY = 60.0  # MB
IDLE_PROCESSOR = 0.5  # % of a core
REPLAY_MOST = 5.0  # times as long as their rows take to read
PAGE_GROWN = 2.0  # times, a page with a million jobs beside one with a thousand
SEARCH_SLOWEST = 250.0  # ms, of what no index knows and no job has
BATCH_MEMORY = 200.0  # MB, however many jobs


@dataclass(frozen=True, slots=True)
class Verdict:
    """One requirement. `reached` is None where something was not measured."""

    what: str
    store: str
    asked: str
    reached: float | None
    unit: str
    holds: bool | None


def judge(figures: Figures) -> list[Verdict]:
    return list(_verdicts(figures))


def _verdicts(figures: Figures) -> Iterator[Verdict]:
    def at_least(
        what: str, store: str, line: str, times: float, other: tuple[str, str], beside: str
    ) -> Verdict:
        """Lateshift's figure is so many times another one of the same store: (line, subject)."""
        mine, theirs = figures.get(line, store, LATESHIFT), figures.get(other[0], store, other[1])
        reached = mine / theirs if mine is not None and theirs else None
        return Verdict(
            what,
            store,
            f"≥ {times:g} × {beside}",
            reached,
            "×",
            None if reached is None else reached >= times,
        )

    def at_most(what: str, store: str, line: str, times: float) -> Verdict:
        mine, theirs = figures.get(line, store, LATESHIFT), figures.get(line, store, CEILING)
        reached = mine / theirs if mine is not None and theirs else None
        holds = None if reached is None else reached <= times
        return Verdict(what, store, f"≤ {times:g} × a bare walk", reached, "×", holds)

    def below(what: str, store: str, line: str, limit: float, unit: str) -> Verdict:
        reached = figures.get(line, store, LATESHIFT)
        return Verdict(
            what, store, f"≤ {limit:g} {unit}", reached, unit, None if reached is None else reached <= limit
        )

    one_process = "drain, async, 1 process"
    yield at_least(one_process, POSTGRES, "drain", 0.5, ("drain", CEILING), "the ceiling")
    yield at_least(one_process, POSTGRES, "drain", 2.0, ("drain", "pgqueuer"), "pgqueuer")
    yield at_least(one_process, SQLITE, "drain", 0.4, ("drain", CEILING), "the ceiling")
    yield at_least(one_process, SQLITE, "drain", 10.0, ("drain", "huey"), "huey")
    for store in STORES:
        yield at_least(
            "drain, async, 2 processes", store, "drain 2", 1.25, ("drain", LATESHIFT), "one process"
        )
    for store in STORES:
        yield at_least("drain, sync on threads", store, "threads", 0.5, ("drain", LATESHIFT), "async")
    for store in STORES:
        for guard in ("sessions", "limits", "tenants"):
            yield at_least(f"drain, {guard}", store, guard, 0.5, ("drain", LATESHIFT), "plain")
    for store, share in ((POSTGRES, 0.85), (SQLITE, 0.7)):
        yield at_least("enqueue one at a time", store, "one", share, ("one", CEILING), "a bare insert")
    for store in STORES:
        yield at_least("enqueue, 100 async callers", store, "together", 5.0, ("one", LATESHIFT), "one caller")
    for store in STORES:
        yield at_least("enqueue in bulk", store, "bulk", 0.5, ("bulk", CEILING), "a bare batch insert")
    yield at_least("enqueue in bulk", POSTGRES, "bulk", 1.0, ("bulk", "pgqueuer"), "pgqueuer")
    for store in STORES:
        yield at_least("fire schedules", store, "schedules", 0.5, ("bulk", LATESHIFT), "a bulk enqueue")
    for store in STORES:
        yield at_least("workflows of 10 functions", store, "workflows", 3.0, ("workflows", "DBOS"), "DBOS")
        yield below("replay of 1,000 steps", store, "replay", REPLAY_MOST, "× the reading of their rows")
        asleep = "idle host and worker, 100,000 workflows asleep"
        yield below(asleep, store, "asleep cpu", 2 * IDLE_PROCESSOR, "% of a core")
    for store in STORES:
        yield below("the page that grew most", store, "page grown", PAGE_GROWN, "×")
        yield below("the slowest search", store, "search slowest", SEARCH_SLOWEST, "ms")
    for store in STORES:
        yield at_most("start latency, p50", store, "p50", 2.0)
        yield at_most("start latency, p99", store, "p99", 6.0)
    for store in STORES:
        yield below("idle worker, memory", store, "worker rss", IDLE_MEMORY, "MB")
        yield below("idle worker, processor", store, "worker cpu", IDLE_PROCESSOR, "% of a core")
    for store in STORES:
        bare = ("http bare", LATESHIFT)
        yield at_least("HTTP, durable enqueues", store, "http enqueue", 0.5, bare, "a bare endpoint")
        yield at_least("HTTP, status of a job", store, "http read", 0.5, bare, "a bare endpoint")
        yield below("idle server, processor", store, "serve cpu", IDLE_PROCESSOR, "% of a core")
    for store in STORES:
        none = ("none settled", LATESHIFT)
        yield at_least("drain, 1,000,000 settled before", store, "million settled", 0.9, none, "none settled")
        few = ("few ready", LATESHIFT)
        yield at_least("drain, 1,000,000 ready", store, "million ready", 0.8, few, "10,000 ready")
        waits = "idle host and worker, 1,000,000 delayed, 100,000 schedules"
        yield below(waits, store, "waiting cpu", 2 * IDLE_PROCESSOR, "% of a core")
    for store in STORES:
        yield below("one batch, memory of any process", store, "batch memory", BATCH_MEMORY, "MB")
