"""Who is measured: Lateshift and the ceiling on each store, and the peers that are installed."""

import importlib.util
import sys
from dataclasses import dataclass
from typing import Literal, get_args

from bench.children import python
from bench.places import POSTGRES, REDIS, SQLITE, redis_refusal

Ability = Literal[
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
    "idle",
    "batch",
    "http",
]

LATESHIFT, CEILING = "Lateshift", "ceiling"
PROGRAM = "bench.program"
EVERYTHING: tuple[Ability, ...] = get_args(Ability)
USUAL: tuple[Ability, ...] = ("one", "drain", "drain 2", "latency", "idle")


@dataclass(frozen=True, slots=True)
class Subject:
    """One system on one store. `unfinished` finds a row while jobs are not settled; None where none can be asked."""

    name: str
    store: str
    module: str
    can: tuple[Ability, ...]
    worker: tuple[str, ...] = ()
    unfinished: str | None = None
    share: float = 1.0  # of the run's number of jobs: the slower, the fewer
    hosted: bool = False  # the worker command starts several processes itself

    @property
    def is_peer(self) -> bool:
        return self.name not in (LATESHIFT, CEILING)

    def producer(self, *arguments: object) -> list[str]:
        return python(self.module, *arguments)

    def workers(self, processes: int) -> list[list[str]]:
        """The commands that start so many worker processes."""
        if self.hosted:
            return [[*self.worker, "--processes", str(processes)]]
        return [list(self.worker) for _ in range(processes)]


def ours(store: str) -> Subject:
    """Workers are started as users do: `lateshift work PROGRAM --processes K`."""
    command = (sys.executable, "-c", "from lateshift.cli.main import main; main()", "work", PROGRAM)
    table = "lateshift.job" if store == POSTGRES else "job"
    return Subject(
        LATESHIFT, store, "bench.ours", EVERYTHING, command, f"SELECT 1 FROM {table} LIMIT 1", hosted=True
    )  # fmt: skip


def ceiling(store: str) -> Subject:
    module = "bench.ceilings.postgres" if store == POSTGRES else "bench.ceilings.sqlite"
    return Subject(CEILING, store, module, ("one", "bulk", "drain", "latency"), tuple(python(module, "walk")))


def peers() -> tuple[list[Subject], list[str]]:
    """Those installed, with the settings found to be their fastest; and why others are missing."""
    found: list[Subject] = []
    missing: list[str] = []
    no_redis = redis_refusal()
    for package, subject in _PEERS:
        if importlib.util.find_spec(package) is None:
            missing.append(f"{subject.name}: not installed")
        elif subject.store == REDIS and no_redis:
            missing.append(f"{subject.name}: {no_redis}")
        else:
            found.append(subject)
    return found, missing


_PEERS = (
    ("pgqueuer", Subject(
        "pgqueuer", POSTGRES, "bench.peers.pgqueuer", (*USUAL, "together", "bulk"),
        tuple(python("bench.peers.pgqueuer", "work")),
        "SELECT 1 FROM pgqueuer LIMIT 1", share=0.5,
    )),
    ("procrastinate", Subject(
        "procrastinate", POSTGRES, "bench.peers.procrastinate", (*USUAL, "together", "bulk"),
        (sys.executable, "-m", "procrastinate", "--app=bench.peers.procrastinate.app", "--log-level", "warning", "worker",
         "--concurrency", "30", "--delete-jobs", "always"),
        "SELECT 1 FROM procrastinate_jobs WHERE status IN ('todo', 'doing') LIMIT 1", share=0.05,
    )),
    ("huey", Subject(
        "huey", SQLITE, "bench.peers.huey", USUAL,
        tuple(python("bench.peers.huey", "work")),
        "SELECT 1 FROM task LIMIT 1", share=0.2,
    )),
    ("dbos", Subject(
        "DBOS", SQLITE, "bench.peers.dbos", (*USUAL, "workflows"), tuple(python("bench.peers.dbos", "work")),
        "SELECT 1 FROM workflow_status WHERE status IN ('ENQUEUED', 'PENDING') LIMIT 1", share=0.05,
    )),
    ("dbos", Subject(
        "DBOS", POSTGRES, "bench.peers.dbos", ("workflows",), tuple(python("bench.peers.dbos", "work")),
        "SELECT 1 FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING') LIMIT 1", share=0.1,
    )),
    ("celery", Subject(
        "celery", REDIS, "bench.peers.celery", (*USUAL, "bulk"),
        (sys.executable, "-m", "celery", "-A", "bench.peers.celery", "worker", "-l", "warning", "-P", "prefork", "-c", "2",
         "--prefetch-multiplier", "128", "--without-gossip", "--without-mingle", "--without-heartbeat"),
        share=0.1,
    )),
    ("dramatiq", Subject(
        "dramatiq", REDIS, "bench.peers.dramatiq", (*USUAL, "bulk"),
        (sys.executable, "-m", "dramatiq", "bench.peers.dramatiq", "-p", "1", "-t", "8"),
        share=0.2,
    )),
)  # fmt: skip
