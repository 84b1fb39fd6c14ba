"""What was measured: for each line of the table, store and subject some samples, and their median."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.measures import Sample


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table, for each store."""

    key: str
    label: str
    unit: str = "jobs/s"
    more_is_better: bool = True


LINES = (
    Line("one", "enqueue one at a time, 1 caller"),
    Line("together", "enqueue, 100 async callers"),
    Line("bulk", "enqueue in bulk, 1,000 a call"),
    Line("schedules", "fire 10,000 schedules at one tick"),
    Line("drain", "drain, async, 1 process"),
    Line("drain 2", "drain, async, 2 processes"),
    Line("threads", "drain, sync on threads, 1 process"),
    Line("sessions", "drain, 10,000 sessions, 1 process"),
    Line("limits", "drain, 1,000 keys with 5 at once, 1 process"),
    Line("tenants", "drain, 1,000 tenants, 1 process"),
    Line("workflows", "workflows of 10 functions, 1 process", "runs/s"),
    Line("steps", "their steps", "steps/s"),
    Line("replay", "replay of 1,000 steps beside the reading of their rows", "×", more_is_better=False),
    Line(
        "none asleep cpu",
        "idle host and worker, no workflow asleep, processor",
        "% of a core",
        more_is_better=False,
    ),
    Line(
        "asleep cpu",
        "idle host and worker, 100,000 workflows asleep, processor",
        "% of a core",
        more_is_better=False,
    ),
    Line("p50", "start latency on an idle worker, p50", "ms", more_is_better=False),
    Line("p95", "start latency, p95", "ms", more_is_better=False),
    Line("p99", "start latency, p99", "ms", more_is_better=False),
    Line("worker rss", "idle worker process, memory (RSS)", "MB", more_is_better=False),
    Line("worker pss", "idle worker process, memory (PSS)", "MB", more_is_better=False),
    Line("worker cpu", "idle worker process, processor", "% of a core", more_is_better=False),
    Line("all rss", "idle host and worker, memory (RSS)", "MB", more_is_better=False),
    Line("all pss", "idle host and worker, memory (PSS)", "MB", more_is_better=False),
    Line("all cpu", "idle host and worker, processor", "% of a core", more_is_better=False),
    Line("http bare", "HTTP, an endpoint that decodes and answers, 100 connections", "requests/s"),
    Line("http enqueue", "HTTP, durable enqueues", "requests/s"),
    Line("http read", "HTTP, status of a job", "requests/s"),
    Line("serve cpu", "idle server, processor", "% of a core", more_is_better=False),
    Line("none settled", "drain, empty history"),
    Line("million settled", "drain, 1,000,000 settled before"),
    Line("few ready", "drain, 10,000 ready"),
    Line("million ready", "drain, 1,000,000 ready"),
    Line(
        "waiting cpu",
        "idle host and worker, 1,000,000 delayed jobs, 100,000 schedules, processor",
        "% of a core",
        more_is_better=False,
    ),
    Line(
        "page grown",
        "the page that grew most, 1,000,000 jobs beside 1,000 of each kind",
        "×",
        more_is_better=False,
    ),
    Line(
        "page slowest",
        "the slowest page, 1,000,000 jobs ready and as many settled",
        "ms",
        more_is_better=False,
    ),
    Line("search slowest", "the slowest search there, which finds nothing", "ms", more_is_better=False),
    Line("pages", "pages looked at", "pages"),
    Line("batch jobs", "one batch, its size", "jobs"),
    Line("batch enqueue", "one batch, enqueue"),
    Line("batch complete", "one batch, complete, 1 process"),
    Line("batch memory", "one batch, largest process, memory (RSS)", "MB", more_is_better=False),
)


@dataclass(slots=True)
class Figures:
    """Samples by (line, store, subject)."""

    samples: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def add(self, store: str, subject: str, sample: Sample) -> None:
        for line, value in sample.items():
            self.samples.setdefault((line, store, subject), []).append(value)

    def get(self, line: str, store: str, subject: str) -> float | None:
        found = self.samples.get((line, store, subject))
        return median(found) if found else None

    def of_line(self, line: str) -> Iterator[tuple[str, str, float]]:
        """(store, subject, median), in the order of measuring."""
        for (key, store, subject), values in self.samples.items():
            if key == line:
                yield store, subject, median(values)

    def as_json(self) -> list[dict[str, Any]]:
        return [
            {"line": line, "store": store, "subject": subject, "median": median(values), "samples": values}
            for (line, store, subject), values in self.samples.items()
        ]
