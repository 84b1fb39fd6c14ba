"""Which figures to take, in which order: repetition by repetition, so that a machine that slows down slows all alike."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from bench.batches import Batches
from bench.history import History
from bench.http import measure as http
from bench.measures import Bench, Sample
from bench.pages import Pages
from bench.subjects import Ability, Subject

LEAST = 1000  # jobs, so that a slow peer's first poll does not make its figure
PEER_CALLS = 60  # whose start latency is taken: peers are there for scale
GUARDED = 100_000  # jobs at most in a drain with guards: ten in each of ten thousand sessions
STEPS = 10  # of a workflow
REPLAYED = 1000  # steps
SCHEDULES = 10_000  # that fire at one tick, at most
GROUPS = ("enqueue", "drain", "guards", "workflows", "latency", "idle", "http", "history", "pages", "batch")
LONG = ("history", "pages", "batch")  # taken only if asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much of everything."""

    jobs: int = 40_000
    repetitions: int = 3
    calls: int = 200  # whose start latency is taken
    idle_seconds: float = 10.0
    http_seconds: float = 5.0  # for each kind of request
    sleeping: int = 100_000  # runs of workflows
    million: int = 1_000_000
    batch: int = 1_000_000


@dataclass(frozen=True, slots=True)
class Step:
    """One sample to take."""

    title: str
    subject: Subject
    take: Callable[[], Sample]


def steps(bench: Bench, subjects: Iterable[Subject], groups: Iterable[str], size: Size) -> Iterator[Step]:
    chosen, wanted = list(subjects), set(groups)
    for _ in range(size.repetitions):
        for ability in (
            "one",
            "together",
            "bulk",
            "schedules",
            "drain",
            "drain 2",
            "threads",
            "sessions",
            "limits",
            "tenants",
            "workflows",
            "replay",
            "latency",
            "http",
        ):
            if _GROUP_OF[ability] in wanted:
                for subject in chosen:
                    if ability in subject.can:
                        yield Step(ability, subject, partial(_take, bench, subject, ability, size))
    if "workflows" in wanted:  # nor does what is idle want repetitions
        for subject in chosen:
            if "replay" in subject.can:  # Lateshift itself
                yield Step("beside runs asleep", subject, partial(_beside_sleepers, bench, subject, size))
    if "idle" in wanted:  # a figure over ten seconds needs no repetition
        for subject in chosen:
            if "idle" in subject.can:
                yield Step("idle", subject, partial(bench.idle, subject, size.idle_seconds))
    if "http" in wanted:
        for subject in chosen:
            if "http" in subject.can:
                yield Step("idle server", subject, partial(http.idle, bench, subject, size.idle_seconds))
    if "history" in wanted:
        history = History(bench.places, size.million, size.jobs, size.repetitions)
        for subject in chosen:
            if "threads" in subject.can:  # Lateshift itself
                yield Step("with a long history", subject, partial(history.settled, subject))
                yield Step("with many ready", subject, partial(history.ready, subject))
                yield Step("beside what waits", subject, partial(_beside, bench, subject, size))
    if "pages" in wanted:
        pages = Pages(bench.places, size.million)
        for subject in chosen:
            if "threads" in subject.can:
                yield Step("pages of a full store", subject, partial(pages.take, subject))
    if "batch" in wanted:  # nor does one of a million jobs
        batches = Batches(bench.places, size.batch)
        for subject in chosen:
            if "batch" in subject.can:
                yield Step("one batch", subject, partial(batches.one, subject))


_GROUP_OF: dict[str, str] = {
    "one": "enqueue", "together": "enqueue", "bulk": "enqueue", "schedules": "enqueue", "drain": "drain", "drain 2": "drain",
    "threads": "drain", "sessions": "guards", "limits": "guards", "tenants": "guards", "workflows": "workflows",
    "replay": "workflows", "latency": "latency", "http": "http",
}  # fmt: skip


def _beside(bench: Bench, subject: Subject, size: Size) -> Sample:
    """Many jobs that wait for their time, and schedules that do."""
    waiting = {"later": size.million, "schedules": size.million // 10}
    return {"waiting cpu": bench.idle(subject, size.idle_seconds, waiting)["all cpu"]}


def _beside_sleepers(bench: Bench, subject: Subject, size: Size) -> Sample:
    """Many runs that sleep, and none."""
    none = bench.idle(subject, size.idle_seconds)["all cpu"]
    many = bench.idle(subject, size.idle_seconds, {"asleep": size.sleeping})["all cpu"]
    return {"none asleep cpu": none, "asleep cpu": many}


def _take(bench: Bench, subject: Subject, ability: Ability, size: Size) -> Sample:
    jobs = max(min(size.jobs, LEAST), int(size.jobs * subject.share))
    match ability:
        case "one":
            return {ability: bench.enqueue(subject, "one", max(100, min(jobs, size.jobs // 10)))["rate"]}
        case "together":
            return {ability: bench.enqueue(subject, "together", max(100, min(jobs, size.jobs // 4)))["rate"]}
        case "bulk":
            return {ability: bench.enqueue(subject, "bulk", jobs)["rate"]}
        case "schedules":
            return {ability: bench.enqueue(subject, "schedules", min(jobs, SCHEDULES))["rate"]}
        case "drain":
            return {ability: bench.drain(subject, jobs)["rate"]}
        case "drain 2":
            return {ability: bench.drain(subject, 2 * jobs, processes=2)["rate"]}
        case "threads":
            return {ability: bench.drain(subject, jobs, kind="threads")["rate"]}
        case "sessions" | "limits" | "tenants":
            jobs = jobs if jobs < Size().jobs else GUARDED
            return {ability: bench.drain(subject, jobs, kind=ability)["rate"]}
        case "workflows":
            rate = bench.drain(subject, max(100, int(size.jobs / STEPS / 2 * subject.share)), kind=ability)[
                "rate"
            ]
            return {"workflows": rate, "steps": rate * STEPS}
        case "replay":
            return {ability: bench.enqueue(subject, "replay", REPLAYED)["times"]}
        case "latency":
            return bench.latency(subject, min(size.calls, PEER_CALLS) if subject.is_peer else size.calls)
        case "http":
            return http.under_load(bench, subject, size.http_seconds)
        case _:
            raise ValueError(ability)
