"""One figure at a time: makes a place, fills it, starts workers, looks at the clock."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from bench import children
from bench.memory import MEGABYTE
from bench.places import Place, Places
from bench.record import VARIABLE, Record
from bench.subjects import CEILING, Subject
from lateshift.store.open import open_store

DRAINED_WITHIN = 180.0  # seconds
PERIOD = 0.05  # seconds between two calls when the start latency is measured: the worker rests in between
SETTLING_IN = 3.0  # seconds from a worker's first job until it counts as idle

NOTHING: Mapping[str, int] = {}

Sample = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Bench:
    """Measures a subject in a fresh place, once."""

    places: Places

    def enqueue(self, subject: Subject, how: str, jobs: int) -> Sample:
        """`one`, `together` or `bulk`, without a worker."""
        with self.places.place(subject.store) as place:
            install(subject, place)
            place.rest()
            return children.ask(subject.producer(how, jobs), environment(place), cwd=place.folder)

    def drain(self, subject: Subject, jobs: int, processes: int = 1, kind: str = "async") -> Sample:
        """From when all processes are at work until the store says that all jobs are settled."""
        with self.places.place(subject.store) as place:
            fill(subject, place, jobs, kind)
            place.rest()
            if subject.name == CEILING:
                return children.ask(subject.producer("drain", jobs), environment(place), cwd=place.folder)
            return drained(subject, place, jobs, processes)

    def latency(self, subject: Subject, jobs: int) -> Sample:
        with self.places.place(subject.store) as place:
            Record.make(place.folder / "record", jobs + 1)
            install(subject, place)
            with children.running(subject.workers(1), environment(place), cwd=place.folder):
                return children.ask(
                    subject.producer("latency", jobs, PERIOD), environment(place), cwd=place.folder
                )

    def idle(self, subject: Subject, seconds: float, beside: Mapping[str, int] = NOTHING) -> Sample:
        """Memory and processor time of a worker that has run one job and has nothing to do; `beside` so many of each kind that
        wait for their time."""
        with self.places.place(subject.store) as place:
            record = Record.make(place.folder / "record", 1)
            for kind, count in beside.items():
                fill(subject, place, count, kind)
            fill(subject, place, 1, "async")
            with children.running(subject.workers(1), environment(place), cwd=place.folder) as started:
                children.wait_until(record.complete, started, cwd=place.folder, limit=60)
                time.sleep(SETTLING_IN)
                return _watch([process for child in started for process in children.tree(child)], seconds)


def install(subject: Subject, place: Place) -> None:
    """Lateshift's tables, which are the ceiling's too, are made here; a peer makes its own, in a process of its own."""
    if subject.is_peer:
        children.ask(subject.producer("install"), environment(place), cwd=place.folder)
        return
    store = open_store(place.url)
    store.ready()
    store.close()


def fill(subject: Subject, place: Place, jobs: int, kind: str) -> None:
    install(subject, place)
    children.ask(subject.producer("fill", jobs, kind), environment(place), cwd=place.folder)


def drained(subject: Subject, place: Place, jobs: int, processes: int) -> Sample:
    """Both clocks: the bodies' (first start to last) and the store's. The slower one is the figure."""
    record = Record.make(place.folder / "record", jobs)
    with (
        place.asking(subject.unfinished) as all_settled,
        children.running(subject.workers(processes), environment(place), cwd=place.folder) as started,
    ):
        wait = partial(children.wait_until, children=started, cwd=place.folder, limit=DRAINED_WITHIN)
        wait(record.complete, pause=0.01)
        wait(all_settled, pause=0.005)
        settled = time.time_ns()
    starts, begun = sorted(record.starts()), record.all_at_work()
    if subject.unfinished is None:
        settled = starts[-1]
    counted = sum(1 for start in starts if start >= begun)
    by_bodies = counted / max(1, starts[-1] - begun) * 1e9
    by_store = counted / max(1, settled - begun) * 1e9
    return {"rate": min(by_bodies, by_store), "by bodies": by_bodies, "by store": by_store}


def begun(subject: Subject, place: Place, jobs: int) -> float:
    """The rate at which the first so many jobs began; more may wait behind them."""
    record = Record.make(place.folder / "record", jobs)
    with children.running(subject.workers(1), environment(place), cwd=place.folder) as started:
        children.wait_until(record.complete, started, cwd=place.folder, limit=DRAINED_WITHIN, pause=0.01)
    starts = record.starts()
    return (jobs - 1) / (max(starts) - min(starts)) * 1e9


def environment(place: Place) -> dict[str, str]:
    return {**place.environment, VARIABLE: str(place.folder / "record")}


def _watch(processes: list[psutil.Process], seconds: float) -> Sample:
    """The worker is the process that runs the bodies: Lateshift's says so in its command, of others it is the youngest."""
    before = [seconds_of(process) for process in processes]
    time.sleep(seconds)
    used = [max(0.0, seconds_of(process) - was) for process, was in zip(processes, before, strict=True)]
    memory = [process.memory_full_info() for process in processes]
    worker = max(range(len(processes)), key=lambda number: _runs_bodies(processes[number]))
    return {
        "worker rss": memory[worker].rss / MEGABYTE,
        "worker pss": _pss(memory[worker]) / MEGABYTE,
        "worker cpu": 100 * used[worker] / seconds,
        "all rss": sum(each.rss for each in memory) / MEGABYTE,
        "all pss": sum(_pss(each) for each in memory) / MEGABYTE,
        "all cpu": 100 * sum(used) / seconds,
        "processes": len(processes),
    }


def _runs_bodies(process: psutil.Process) -> tuple[bool, float]:
    return "lateshift.worker.main" in process.cmdline(), process.create_time()


def _pss(memory: Any) -> float:
    """Shared pages counted in part; not every system tells."""
    return float(getattr(memory, "pss", memory.rss))


def seconds_of(process: psutil.Process) -> float:
    """Of processor time; where there is one, the kernel's count for each thread: finer than psutil's hundredths."""
    threads = list(Path(f"/proc/{process.pid}/task").glob("*/schedstat"))
    try:
        counted = [int(thread.read_text().split()[0]) for thread in threads]
    except (OSError, ValueError, IndexError):
        counted = []
    times = process.cpu_times()
    return sum(counted) / 1e9 if counted else float(times.user + times.system)
