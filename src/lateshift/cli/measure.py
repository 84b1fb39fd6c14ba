"""What `lateshift bench` measures, and how: a scratch queue, real enqueues, one real worker process."""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit
from uuid import uuid4

from lateshift.app.app import Lateshift
from lateshift.cli.noop import FILE, JOBS, make_app
from lateshift.errors import StoreUnavailable
from lateshift.model.ids import JobId
from lateshift.runtime.aside import aside
from lateshift.runtime.host import Host
from lateshift.task import Call

ONE_BY_ONE_SECONDS = 2.0
LATENCY_ROUNDS = 100
REST = 0.03  # seconds between two enqueues: the worker is idle again
PATIENCE = 60.0
ERASED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Per second, and seconds."""

    jobs: int
    enqueue_one: float
    enqueue_bulk: float
    drain: float
    start_p50: float
    start_p95: float
    start_p99: float


@contextlib.contextmanager
def scratch(url: str) -> Iterator[str]:
    """A store to measure in: a new file beside a SQLite one; PostgreSQL itself."""
    if not url.startswith("sqlite:"):
        yield url
        return
    folder = Path(unquote(urlsplit(url).path[1:])).absolute().parent
    if not folder.is_dir():
        raise StoreUnavailable(f"There is no folder {folder} to measure in. Create it first.")
    with tempfile.TemporaryDirectory(
        prefix=".lateshift-bench-", dir=folder, ignore_cleanup_errors=True
    ) as made:
        yield f"sqlite:///{quote(made)}/bench.db"


async def measure(url: str, jobs: int) -> Figures:
    """All figures, one after another. What was enqueued is gone afterwards."""
    app = make_app(url)
    used: list[JobId] = []
    with tempfile.TemporaryDirectory(prefix="lateshift-bench-") as folder:
        file = Path(folder) / "times"
        file.touch()
        try:
            return await _measure(app, jobs, file, used)
        finally:
            await aside(_erase, app, used)
            app.close()


async def _measure(app: Lateshift, jobs: int, file: Path, used: list[JobId]) -> Figures:
    queue = f"bench-{uuid4().hex}"
    noop = app.find_task("noop").options(queue=queue)
    stamp = app.find_task("stamp").options(queue=queue)
    _ = await aside(lambda: app.store)

    def one_by_one() -> float:
        begun = time.monotonic()
        while (seconds := time.monotonic() - begun) < ONE_BY_ONE_SECONDS and len(used) < jobs:
            used.append(noop.enqueue().id)
        return len(used) / seconds

    def bulk() -> float:
        def calls() -> Iterator[Call[None]]:
            for _ in range(jobs):
                call = noop.call()
                used.append(call.id)
                yield call

        begun = time.monotonic()
        app.enqueue_many(calls())
        return jobs / (time.monotonic() - begun)

    enqueue_one, enqueue_bulk = await aside(one_by_one), await aside(bulk)
    count = len(used)
    async with _worker(app, queue, count, file):
        [drained] = await _lines(file, "drained", 1)
        for _ in range(LATENCY_ROUNDS):
            await asyncio.sleep(REST)
            used.append((await aside(lambda: stamp.enqueue(sent=time.monotonic()))).id)
        started = sorted(await _lines(file, "started", LATENCY_ROUNDS))
    return Figures(
        jobs=count, enqueue_one=enqueue_one, enqueue_bulk=enqueue_bulk, drain=count / drained,
        start_p50=_percentile(started, 50), start_p95=_percentile(started, 95), start_p99=_percentile(started, 99),
    )  # fmt: skip


@contextlib.asynccontextmanager
async def _worker(app: Lateshift, queue: str, jobs: int, file: Path) -> AsyncIterator[None]:
    environment = {
        "LATESHIFT_STORE": app.settings.store, "LATESHIFT_QUEUES": queue, "LATESHIFT_LOG": "ERROR", FILE: str(file),
        JOBS: str(jobs),
    }  # fmt: skip
    stopping = asyncio.Event()
    host = Host(app.store, "lateshift.cli.noop", 1, app.settings, app.clock, environment=environment)
    running = asyncio.create_task(host.run(stopping))
    try:
        yield
    finally:
        stopping.set()
        await running


async def _lines(file: Path, kind: str, count: int) -> list[float]:
    """The worker's words, once there are as many as we wait for."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = [line.split() for line in (await aside(file.read_text)).splitlines()]
        times = [float(words[1]) for words in found if len(words) == 2 and words[0] == kind]
        if len(times) >= count:
            return times
        await asyncio.sleep(0.02)
    raise StoreUnavailable(
        f"The worker has not answered within {PATIENCE:.0f} s. `lateshift bench --debug` may tell why."
    )


def _erase(app: Lateshift, used: list[JobId]) -> None:
    """Also after a failure or Ctrl-C: what still waits is cancelled first."""
    for start in range(0, len(used), ERASED_AT_ONCE):
        ids = used[start : start + ERASED_AT_ONCE]
        if app.store.upkeep.erase(ids) < len(ids):
            app.store.jobs.cancel(ids, by="lateshift bench")
            app.store.upkeep.erase(ids)


def _percentile(ordered: list[float], percent: int) -> float:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
