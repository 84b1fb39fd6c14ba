"""Where a crash test plays: a store, the ledgers, the processes that were started and what was done to them."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import psutil

import lateshift
from tests.crash.caller import enqueue
from tests.crash.checker import Counts, Fault, Row, check, query, read_rows, writable
from tests.crash.ledger import VARIABLE, BodyLine, Ledger
from tests.crash.program import make_app

T = TypeVar("T")

PROGRAM = "tests.crash.program:app"
ROOT = Path(__file__).resolve().parents[2]
PATH = os.pathsep.join([str(ROOT), str(Path(lateshift.__file__).resolve().parents[1])])
PATIENCE = 60.0  # seconds for what must come; how long it may take is asserted apart, from the ledger


def until(condition: Callable[[], T], what: str, seconds: float = PATIENCE) -> T:
    """Look until the condition holds, and give what it gave."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(0.01)
    return answer


class Group:
    """A process and all that it starts, in a session of its own, so that it can be ended as a whole."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.pid = self._process.pid

    def workers(self) -> list[int]:
        """The worker processes that live now."""
        with contextlib.suppress(psutil.NoSuchProcess):
            children = psutil.Process(self.pid).children()
            return [child.pid for child in children if child.status() != psutil.STATUS_ZOMBIE]
        return []

    def pids(self) -> frozenset[int]:
        """Everybody in it who lives now."""
        return frozenset({self.pid, *(child.pid for child in self._descendants())})

    def send(self, number: signal.Signals) -> None:
        """To the host alone."""
        self._process.send_signal(number)

    def wait(self, seconds: float = PATIENCE) -> int:
        """Its exit status, once it has ended."""
        return self._process.wait(timeout=seconds)

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def says(self, words: str) -> bool:
        """Whether its log has a line with these words."""
        return words in self.log.read_text(errors="replace")

    def kill(self) -> None:
        """All of it at once, as when the machine goes: one after the other, the host would see and act."""
        beneath = self._descendants()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        for process in beneath:  # whoever has a group of its own
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()

    def _descendants(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid).children(recursive=True)
        return []


class Scene:
    """Starts processes on one store, hurts them, and asks the checker what became of the jobs."""

    def __init__(self, folder: Path, url: str, *, heartbeat: float = 30.0) -> None:
        self.folder = folder
        self.url = url
        self.heartbeat = heartbeat
        self.ledger = Ledger(folder)
        self.faults: list[Fault] = []
        self.groups: list[Group] = []
        self.app = make_app(url)
        self.once = (
            folder / "no crash"
        )  # made by the process that was hit at the crash point that was given last
        self.poisons: set[int] = set()  # numbers of jobs that end their worker
        self._numbers = 0
        _ = self.app.store  # made and migrated before anybody else opens it

    def close(self) -> None:
        for group in self.groups:
            group.kill()
        self.app.close()

    def story(self) -> str:
        """What the processes said last."""
        logs = [group.log for group in self.groups]
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}" for log in logs)

    # -- who plays ----------------------------------------------------------------------------------------------

    def host(
        self,
        processes: int = 1,
        *,
        crash: str | None = None,
        stop_time: float | None = None,
        url: str | None = None,
        ready: bool = True,
    ) -> Group:
        """`lateshift work`, with its workers. `crash` is a crash point, for the first process that gets there."""
        options = ["--processes", str(processes), "--concurrency", "64"]
        options += [] if stop_time is None else ["--stop-time", str(stop_time)]
        group = self._start(["-m", "lateshift", "work", PROGRAM, *options], crash, url)
        if ready:
            until(lambda: len(group.workers()) >= processes or group.ended, "the host has its workers")
            assert not group.ended, group.log.read_text()
        return group

    def rescuer(self, *, crash: str | None = None) -> Group:
        """A supervisor without workers."""
        return self._start(["-m", "tests.crash.rescuer"], crash, None)

    def embedded(self) -> Group:
        """A program with a worker in its own process."""
        return self._start(["-m", "tests.crash.embedded"], None, None)

    def caller(
        self,
        *,
        number: int = 0,
        key: str | None = None,
        crash: str | None = None,
        url: str | None = None,
    ) -> Group:
        """A process that enqueues one job."""
        rest = [] if key is None else [key]
        return self._start(["-m", "tests.crash.caller", str(number), *rest], crash, url)

    def server(self, *, crash: str | None = None, url: str | None = None) -> Group:
        """`lateshift serve`, on a free port. Ready when its log has its address."""
        group = self._start(["-m", "lateshift", "serve", PROGRAM, "--port", "0"], crash, url)
        until(lambda: group.says("http://127.0.0.1:") or group.ended, "the server has its address")
        assert not group.ended, group.log.read_text()
        return group

    def producer(self, count: int, *, crash: str | None = None) -> Group:
        """A process that makes a batch, or goes on with it."""
        return self._start(["-m", "tests.crash.producer", str(count)], crash, None)

    def _start(self, command: list[str], crash: str | None, url: str | None) -> Group:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LATESHIFT_")}
        environment |= {
            "PYTHONPATH": PATH,
            "LATESHIFT_STORE": url or self.url,
            "LATESHIFT_HEARTBEAT": str(self.heartbeat),
            "LATESHIFT_LOG": "INFO",
            VARIABLE: str(self.folder),
        }
        if crash is not None:
            self.once = self.folder / f"{len(self.groups)}.hit"
            environment["LATESHIFT_CRASH"] = f"{crash}:{self.once}"
        group = Group(command, environment, self.folder / f"{len(self.groups)}.log")
        self.groups.append(group)
        return group

    # -- what is asked of them ------------------------------------------------------------------------------------

    def number(self) -> int:
        """One that no job has yet."""
        self._numbers += 1
        return self._numbers

    def send(self, task: str, *rest: object, count: int = 1) -> list[str]:
        """Enqueue `count` jobs, numbered on; gives the ids of those that were accepted."""
        numbers = [self.number() for _ in range(count)]
        self.poisons |= set(numbers) if task == "poison" else set()
        sent = [enqueue(self.app, self.ledger, task, number, *rest) for number in numbers]
        return [job for job in sent if job is not None]

    # -- what is done to them -------------------------------------------------------------------------------------

    def note(
        self, kind: str, at: float, pids: frozenset[int], *, pauses: bool = False, everyone: bool = False
    ) -> None:
        """Write a fault down, once its effect is over."""
        self.faults.append(Fault(kind, at, time.time(), pids, pauses, everyone))

    def kill(self, pid: int) -> float:
        """kill -9, of one process. Gives when."""
        at = time.time()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        self.note("kill", at, frozenset({pid}))
        return at

    def kill_group(self, group: Group) -> float:
        at, pids = time.time(), group.pids()
        group.kill()
        self.note("group kill", at, pids)
        return at

    def hit(self, *, pauses: bool = False) -> int:
        """Wait until a process was hit at its crash point; gives its pid. One that stopped is noted when it wakes."""
        until(
            lambda: self.once.exists() and self.once.read_text().endswith("\n"),
            "a process at its crash point",
        )
        pid, at = int(self.once.read_text()), self.once.stat().st_mtime
        if pauses:
            until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED, "it has stopped")
        else:
            until(lambda: not _runs(pid), "it is dead")
        self.faults.append(Fault("crash point", at, time.time(), frozenset({pid}), pauses))
        return pid

    @contextlib.contextmanager
    def paused(self, pid: int) -> Iterator[None]:
        """SIGSTOP, and SIGCONT when the block ends. Not in the middle of a transaction: that is another test."""
        at = time.time()
        while True:
            os.kill(pid, signal.SIGSTOP)
            # Or it has just died, and its parent, which is paused too, cannot bury it.
            until(
                lambda: psutil.Process(pid).status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE),
                "it has stopped",
            )
            time.sleep(0.1)
            if writable(self.url):
                break
            os.kill(pid, signal.SIGCONT)
            time.sleep(random.random() / 50)
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
            self.note("pause", at, frozenset({pid}), pauses=True)

    # -- what became of it ----------------------------------------------------------------------------------------

    def rows(self) -> dict[str, Row]:
        return {row.job: row for row in read_rows(self.url)}

    def members(self) -> set[int]:
        """The pids of the members that are alive, as the store has them."""
        sql = "SELECT pid FROM {}member WHERE dead_at IS NULL"
        return {pid for (pid,) in query(self.url, sql.format(""), sql.format("lateshift."))}

    def lines(self, kind: str, job: str | None = None) -> list[BodyLine]:
        return [line for line in self.ledger.bodies() if line.kind == kind and job in (None, line.job)]

    def until_started(self, *jobs: str, times: int = 1) -> None:
        def all_have() -> bool:
            starts = [line.job for line in self.lines("start")]
            return all(starts.count(job) >= times for job in jobs)

        until(all_have, f"{len(jobs)} jobs have started {times} times")

    def until_settled(self, *jobs: str, seconds: float = PATIENCE) -> None:
        """These jobs, or all that were accepted."""
        wanted = set(jobs) or {line.job for line in self.ledger.calls() if line.kind == "ok"}

        def all_are() -> bool:
            rows = self.rows()
            return all((row := rows.get(job)) is None or row.settled_at is not None for job in wanted)

        try:
            until(all_are, "", seconds)
        except AssertionError:
            left = [row for row in self.rows().values() if row.job in wanted and row.settled_at is None]
            raise AssertionError(f"not settled within {seconds:g} s: {left[:5]} and so on") from None

    def check(self) -> Counts:
        """Ask the checker; every count that must be 0 is."""
        counts = check(self.ledger, read_rows(self.url), self.faults)
        print(counts)
        assert counts.clean, f"\n{counts}"
        return counts


def _runs(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    return False
