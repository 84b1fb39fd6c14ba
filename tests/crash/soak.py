"""Load and faults of all kinds for as long as you like: `python -m tests.crash.soak --minutes 60`.

Then everything is drained, the checker counts, and a table is printed. The exit status is 1 if a count that must be 0
is not. `make crash MINUTES=60` calls it.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg

from lateshift.errors import StoreError
from tests.crash import guards
from tests.crash.caller import enqueue
from tests.crash.checker import Counts, Fault, check, query, read_rows
from tests.crash.proxy import Proxy
from tests.crash.scene import Group, Scene, until
from tests.postgres_server import PostgresServer

HEARTBEAT = 5.0
HOSTS = 2
BACKLOG = 1500  # jobs that may wait before the load pauses
DRAIN = 300.0
SESSIONS = 20
KEYS = 5
BATCH = 50  # jobs in one
WORKER_POINTS = (
    "worker.before_claim", "worker.after_claim_commit", "worker.after_claim", "worker.before_settle",
    "worker.after_settle_commit",
)  # fmt: skip
HOST_POINTS = ("sweep.before_dead", "sweep.after_read", "sweep.mid_batch")
CALLER_POINTS = ("enqueue.before_commit", "enqueue.after_commit", "client.after_send")
STATEMENTS = (
    "INSERT INTO lateshift.job ",
    "INSERT INTO lateshift.settled",
    "UPDATE lateshift.job SET state = 2",
)
TERMINATE = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.5"""


class Load:
    """Enqueues on a thread of its own: quick and slow, sync and async, with keys, in sessions, under limits, in batches,
    some that fail, few that kill."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self._scene = scene
        self._draw = random.Random(seed)
        self.batches: list[int] = []  # the numbers of those that were made
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        sent = 0
        while not self._over.is_set():
            self._send_one()
            sent += 1
            if sent % 50 == 0:
                self._over.wait(0.2 if waiting(self._scene) < BACKLOG else 3.0)

    def _send_one(self) -> None:
        scene, draw = self._scene, self._draw
        kind = draw.random()
        if kind < 0.0005:
            scene.send("poison", draw.choice(["kill", "exit", "segfault"]))
        elif kind < 0.001:
            scene.send("hog", HEARTBEAT + 1)
        elif kind < 0.01:
            scene.send("cpu", draw.random())
        elif kind < 0.05:
            scene.send("flaky")
        elif kind < 0.15:
            scene.send(draw.choice(["slow", "slow_sync"]), draw.random() * 2)
        elif kind < 0.3:
            self._send_guarded()
        elif kind < 0.3005:
            self._send_batch()
        elif kind < 0.35:
            number = scene.number()
            for _ in range(2):
                enqueue(scene.app, scene.ledger, "quick", number, key=f"order-{number}")
        else:
            scene.send(draw.choice(["quick", "quick_sync"]))

    def _send_guarded(self) -> None:
        scene, draw = self._scene, self._draw
        seconds = draw.choice([0.0, 0.0, 0.0, 0.02])
        if draw.random() < 0.5:
            name = f"session {draw.randrange(SESSIONS)}"
            enqueue(
                scene.app,
                scene.ledger,
                "step",
                scene.number(),
                name,
                seconds,
                session=name,
                tenant=draw.choice("ab"),
            )
        else:
            key = f"key:{draw.randrange(KEYS)}"
            enqueue(scene.app, scene.ledger, "limited", scene.number(), key, seconds, limit_key=key)

    def _send_batch(self) -> None:
        """Until it is made: with its key, each try goes on where the last one stood."""
        scene = self._scene
        quick = scene.app.find_task("quick")
        batch_number = scene.number()
        numbers = [scene.number() for _ in range(BATCH)]
        while True:
            try:
                batch = scene.app.batch(
                    [quick.call(number) for number in numbers], key=f"batch {batch_number}",
                    then=quick.call(guards.CALLBACKS + batch_number),
                )  # fmt: skip
                break
            except StoreError:
                if self._over.wait(0.5):
                    return
        self.batches.append(batch_number)
        for place, number in enumerate(numbers):
            for step in ("attempted", "ok"):
                scene.ledger.call(step, batch.job_id(place).hex, number)


def waiting(scene: Scene) -> int:
    """Jobs that have not ended."""
    try:
        return int(query(scene.url, "SELECT count(*) FROM job", "SELECT count(*) FROM lateshift.job")[0][0])
    except psycopg.Error:
        return BACKLOG  # the server is being restarted


class Faults:
    """Every way to hurt what runs. One at a time is drawn; each is written down with the processes it hit."""

    def __init__(self, scene: Scene, server: PostgresServer | None, proxy: Proxy | None, seed: int) -> None:
        self.tally: Counter[str] = Counter()
        self._scene = scene
        self._server = server
        self._proxy = proxy
        self._draw = random.Random(seed)
        self._hosts: list[Group] = []
        self._hits: dict[Path, Group] = {}  # files that a process at its crash point makes
        self._family: dict[int, set[int]] = {}  # each host, and who has ever been seen beneath it
        self._over = threading.Event()
        self._looker = threading.Thread(target=self._look, name="looker", daemon=True)
        self._looker.start()
        self.keep_hosts()

    def keep_hosts(self) -> None:
        """As many as there should be; one that was killed is replaced, one whose crash point is not met goes."""
        self._hosts = [host for host in self._hosts if not host.ended]
        if len(self._hosts) > HOSTS + 1:
            with self._stopping(self._hosts[0]):
                self._hosts.pop(0).send(signal.SIGTERM)
        while len(self._hosts) < HOSTS:
            self._start_host()

    def strike(self) -> None:
        """One fault."""
        always: list[tuple[int, Callable[[], None]]] = [
            (6, self.kill_worker),
            (2, self.kill_host),
            (2, self.kill_group),
            (3, self.stop_and_start),
            (1, self.signal_storm),
            (2, self.pause_worker),
            (2, self.pause_group),
            (2, self.pause_briefly),
            (4, self.crash_at_a_point),
            (2, self.crash_a_caller),
        ]
        postgres: list[tuple[int, Callable[[], None]]] = [
            (2, self.restart_postgres),
            (1, self.kill_postgres),
            (2, self.terminate_backends),
            (4, self.lose_an_answer),
            (1, self.cut_connections),
        ]
        faults = always + (postgres if self._server is not None else [])
        [fault] = self._draw.choices([fault for _, fault in faults], weights=[weight for weight, _ in faults])
        self.tally[fault.__name__.replace("_", " ")] += 1
        fault()

    def end(self) -> None:
        """Stop what runs, in good order, and write down what befell processes out of our sight."""
        for host in self._hosts:
            host.send(signal.SIGTERM)
        for host in self._hosts:
            host.wait(60)
        self._over.set()
        self._looker.join()
        for path in self._hits:
            if path.exists():
                at, pid = path.stat().st_mtime, int(path.read_text())
                self._note("crash point", at, at + 1.0, {pid, *self._family.get(pid, ())})
        poisons = {line.job for line in self._scene.ledger.bodies() if line.number in self._scene.poisons}
        for line in self._scene.lines("start"):
            if line.job in poisons:
                self._note("poison", line.at, line.at + 10.0, {line.pid})

    # -- processes ------------------------------------------------------------------------------------------------

    def kill_worker(self) -> None:
        workers = [worker for host in self._hosts for worker in host.workers()]
        if workers:
            self._scene.kill(self._draw.choice(workers))

    def kill_host(self) -> None:
        """Alone: its workers see it, and end."""
        host = self._draw.choice(self._hosts)
        at, pids = time.time(), host.pids() | self._family.get(host.pid, set())
        os.kill(host.pid, signal.SIGKILL)
        host.wait()
        self._note("host kill", at, time.time() + 1.0, pids)

    def kill_group(self) -> None:
        self._scene.kill_group(self._draw.choice(self._hosts))

    def stop_and_start(self) -> None:
        host = self._draw.choice(self._hosts)
        with self._stopping(host):
            host.send(signal.SIGTERM)

    def signal_storm(self) -> None:
        host = self._draw.choice(self._hosts)
        with self._stopping(host):
            for pid in [host.pid, *host.workers()] * 6:
                with suppress(ProcessLookupError):
                    os.kill(pid, self._draw.choice([signal.SIGTERM, signal.SIGINT]))
                time.sleep(0.05)
            if not host.ended:
                host.send(signal.SIGTERM)

    def pause_worker(self) -> None:
        """Beyond its lease; its host ends it then."""
        workers = [worker for host in self._hosts for worker in host.workers()]
        if workers:
            worker = self._draw.choice(workers)
            with suppress(ProcessLookupError, psutil.NoSuchProcess), self._scene.paused(worker):
                time.sleep(HEARTBEAT + 2 * self._draw.random())

    def pause_group(self) -> None:
        """Beyond the lease: it wakes, and nothing is its own any more."""
        host = self._draw.choice(self._hosts)
        at, pids = time.time(), host.pids()
        with self._all_paused(host):
            time.sleep(HEARTBEAT + 3 * self._draw.random())
        self._note("group pause", at, time.time() + HEARTBEAT, pids, pauses=True)

    def pause_briefly(self) -> None:
        """Within the lease: nothing is lost, nothing runs twice."""
        host = self._draw.choice(self._hosts)
        with self._all_paused(host):
            time.sleep(HEARTBEAT / 5 * self._draw.random())

    def crash_at_a_point(self) -> None:
        point = self._draw.choice(WORKER_POINTS + HOST_POINTS)
        group = self._start_host(f"{point}:{self._draw.randint(1, 5)}:kill")
        self._hits[self._scene.once] = group

    def crash_a_caller(self) -> None:
        number = self._scene.number()
        key = f"caller-{number}"
        crash = f"{self._draw.choice(CALLER_POINTS)}:1:kill"
        for given in (crash, None):
            caller = self._scene.caller(key=key, number=number, crash=given)
            caller.wait(60)
            self._scene.groups.remove(caller)

    # -- PostgreSQL -----------------------------------------------------------------------------------------------

    def restart_postgres(self) -> None:
        assert self._server is not None
        with self._outage("postgres restart"):
            self._server.restart(self._draw.choice(("fast", "immediate")))

    def kill_postgres(self) -> None:
        assert self._server is not None
        with self._outage("postgres kill"):
            self._server.kill()
            self._server.start()

    def terminate_backends(self) -> None:
        query(self._scene.url, TERMINATE)

    def lose_an_answer(self) -> None:
        assert self._proxy is not None
        self._proxy.lose_answer(self._draw.choice(STATEMENTS)).done.wait(5)

    def cut_connections(self) -> None:
        assert self._proxy is not None
        self._proxy.cut()

    # -- how it is done -------------------------------------------------------------------------------------------

    def _start_host(self, crash: str | None = None) -> Group:
        url = self._proxy.url if self._proxy is not None else None
        host = self._scene.host(2, crash=crash, stop_time=1.0, url=url, ready=False)
        self._hosts.append(host)
        return host

    def _look(self) -> None:
        """Who is whose child: when a host dies by itself, those beneath it die with it."""
        while not self._over.wait(0.1):
            for host in list(self._hosts):
                self._family.setdefault(host.pid, set()).update(host.pids())

    @contextmanager
    def _stopping(self, host: Group) -> Iterator[None]:
        at = time.time()
        yield
        while not host.ended:
            self._family.setdefault(host.pid, set()).update(host.pids())
            time.sleep(0.05)
        self._note("stop", at, time.time(), self._family[host.pid])

    @contextmanager
    def _all_paused(self, host: Group) -> Iterator[None]:
        """The host first: it would see that its workers are stopped."""
        with ExitStack() as stack:
            for pid in [host.pid, *(host.pids() - {host.pid})]:
                with suppress(ProcessLookupError, psutil.NoSuchProcess):
                    stack.enter_context(self._scene.paused(pid))
            yield

    @contextmanager
    def _outage(self, kind: str) -> Iterator[None]:
        """Nobody can beat while the server is away, so a lease may end."""
        at = time.time()
        yield
        self._scene.faults.append(Fault(kind, at, time.time() + HEARTBEAT, everyone=True))

    def _note(
        self, kind: str, at: float, over: float, pids: set[int] | frozenset[int], *, pauses: bool = False
    ) -> None:
        self._scene.faults.append(Fault(kind, at, over, frozenset(pids), pauses))


@dataclass
class Outcome:
    """What one store's soak came to."""

    store: str
    counts: Counts
    faults: Counter[str]


def soak(store: str, seconds: float, seed: int) -> Outcome:
    """Load and faults for so long, then peace, and the count. The ledgers and logs are kept if it is not clean."""
    folder = Path(tempfile.mkdtemp(prefix=f"lateshift-soak-{store}-"))
    if store == "sqlite":
        outcome = _soak(
            store, Scene(folder, f"sqlite:///{folder}/jobs.db", heartbeat=HEARTBEAT), None, seconds, seed
        )
    else:
        with PostgresServer() as server:
            scene = Scene(folder, server.create_database("jobs"), heartbeat=HEARTBEAT)
            outcome = _soak(store, scene, server, seconds, seed)
    if outcome.counts.clean:
        shutil.rmtree(folder)
    else:
        outcome.counts.words.append(f"ledgers, faults and logs: {folder}")
    return outcome


def _soak(store: str, scene: Scene, server: PostgresServer | None, seconds: float, seed: int) -> Outcome:
    proxy = Proxy(scene.url) if server is not None else None
    draw = random.Random(seed)
    with closing(scene):
        faults = Faults(scene, server, proxy, seed)
        load = Load(scene, seed)
        end = time.monotonic() + seconds
        shown = 0.0
        while time.monotonic() < end:
            time.sleep(min(draw.expovariate(0.5), 6.0))
            faults.strike()
            faults.keep_hosts()
            if time.monotonic() - shown > 30:
                shown = time.monotonic()
                print(
                    f"{store}: {end - shown:,.0f} s to go, {faults.tally.total()} faults, {waiting(scene)} waiting",
                    flush=True,
                )
        load.stop()
        faults.keep_hosts()
        with suppress(AssertionError):  # what is left is counted as stuck
            until(lambda: waiting(scene) == 0, "everything is drained", DRAIN)
        faults.end()
        counts = check(scene.ledger, read_rows(scene.url), scene.faults, batches=load.batches)
        counts.told["batches"] = len(load.batches)
        (scene.folder / "faults").write_text("\n".join(map(str, scene.faults)))
    if proxy is not None:
        proxy.close()
    return Outcome(store, counts, faults.tally)


def table(outcomes: list[Outcome]) -> str:
    def line(name: str, values: list[object]) -> str:
        return f"{name:<32}" + "".join(f"{value:>14}" for value in values)

    def block(title: str, numbers: list[dict[str, int]]) -> list[str]:
        names = dict.fromkeys(name for each in numbers for name in each)
        rows = [
            line(f"  {name}", [f"{each[name]:,}" if name in each else "-" for each in numbers])
            for name in names
        ]
        return [title, *rows]

    lines = [line("", [outcome.store for outcome in outcomes])]
    lines += block("jobs", [outcome.counts.told for outcome in outcomes])
    lines += block("faults injected", [dict(outcome.faults) for outcome in outcomes])
    lines += block("must be 0", [outcome.counts.zeros for outcome in outcomes])
    return "\n".join(
        [*lines, *(f"{outcome.store}: {word}" for outcome in outcomes for word in outcome.counts.words)]
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long, over all stores (60)")
    parser.add_argument("--store", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--seed", type=int, default=None, help="to draw the same faults again")
    asked = parser.parse_args()
    seed = random.SystemRandom().randrange(2**32) if asked.seed is None else asked.seed
    stores = ["sqlite", "postgres"] if asked.store == "both" else [asked.store]
    print(f"{asked.minutes:g} minutes on {' and '.join(stores)}, seed {seed}", flush=True)
    outcomes = []
    for store in stores:
        outcomes.append(soak(store, asked.minutes * 60 / len(stores), seed))
        print(table(outcomes), flush=True)
    return 0 if all(outcome.counts.clean for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
