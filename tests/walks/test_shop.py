"""The example shop, as `make run` starts it: real processes, on both stores."""

import contextlib
import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lateshift import JobFilter, JobView, State
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from tests.walks.commands import command, environment, eventually, interrupted, started

EXAMPLES = Path(__file__).parents[2] / "examples"
STOP_TIME = 25.0  # seconds, the default
HURRY = {"SHOP_PACE": "4"}


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    store = open_store(store_url)
    store.ready()
    yield store
    store.close()


def some(store: Store, matches: Callable[[JobView], bool], **wanted: object) -> Callable[[], bool]:
    """Whether one of the newest thousand jobs is such a one."""
    narrowed = JobFilter(**wanted)  # type: ignore[arg-type]
    return lambda: any(matches(view) for view in store.reports.jobs(narrowed, 1000))


def died_once(view: JobView) -> bool:
    return any(record.reason == "permanent" for record in view.history)


@pytest.mark.slow
def test_the_shop_sells_retries_buries_resubmits_and_closes(
    store: Store, store_url: str, tmp_path: Path
) -> None:
    shop = str(EXAMPLES / "shop.py")
    with started("up", shop, "--no-view", cwd=tmp_path, LATESHIFT_STORE=store_url, **HURRY) as process:
        done = {"state": State.COMPLETED}
        eventually(some(store, lambda view: True, task="place_order", **done), "an order")
        eventually(some(store, lambda view: view.result is not None, task="charge_card", **done), "a receipt")
        eventually(
            some(store, lambda view: view.attempt > 1, task="charge_card", **done), "a retry that helped"
        )
        eventually(some(store, lambda view: True, task="thumbnail", **done), "a thread's job")
        eventually(some(store, lambda view: True, task="daily_report", **done), "a process's job")
        eventually(some(store, lambda view: True, task="send_mail", **done), "a delayed job")
        eventually(some(store, lambda view: True, task="wrap_gift", **done), "a workflow")
        eventually(some(store, died_once, task="pack", **done), "a dead letter, resubmitted and packed")
        assert interrupted(process, STOP_TIME) == 0
    output = (tmp_path / "output").read_text()
    assert "Traceback" not in output
    assert "stopped after" in output
    assert store.reports.running(10) == []
    assert [member for member in store.reports.members() if not member.dead] == []


@pytest.mark.slow
def test_the_shop_goes_on_where_it_stopped(store: Store, store_url: str, tmp_path: Path) -> None:
    shop = str(EXAMPLES / "shop.py")
    orders = JobFilter(task="place_order")

    def more_than(count: int) -> Callable[[], bool]:
        return lambda: len(store.reports.jobs(orders, 1000)) > count

    for _ in range(2):
        before = len(store.reports.jobs(orders, 1000))
        with started("work", shop, cwd=tmp_path, LATESHIFT_STORE=store_url, **HURRY) as process:
            eventually(more_than(before + 5), "new orders")
            assert interrupted(process, STOP_TIME) == 0
    payloads = [view.payload for view in store.reports.jobs(orders, 1000)]
    assert len(set(payloads)) == len(payloads)  # no order twice
    crowd = [view for view in store.reports.jobs(JobFilter(task="customers"), 10) if not view.state.settled]
    assert len(crowd) == 1  # nor the customers


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (160, 50)])
def test_the_live_view_fits_the_terminal(columns: int, lines: int, tmp_path: Path) -> None:
    screen = _Screen(columns, lines, tmp_path)
    try:
        screen.until("thumbnail", "last minute", "workers", "dead letters", "Ctrl-C stops gracefully")
        screen.process.send_signal(signal.SIGINT)
        screen.until("stopping…")
        screen.until("stopped after", "\x1b[?1049l")  # the alternate screen has been left
        assert screen.process.wait(STOP_TIME) == 0
        assert "Traceback" not in screen.seen
    finally:
        screen.close()


def test_a_terminal_that_is_closed_ends_the_shop_in_order(tmp_path: Path) -> None:
    """As when a window is shut: what runs is let finish, and nothing is complained of."""
    errors = tmp_path / "errors"
    screen = _Screen(120, 40, tmp_path, errors)
    try:
        screen.until("workers", "jobs/s")
        screen.hang_up()
        assert screen.process.wait(60) == 0
        assert errors.read_text() == ""
    finally:
        screen.close()


def test_the_first_program_runs_on_either_store(store_url: str, tmp_path: Path) -> None:
    program = shutil.copy(EXAMPLES / "first_program.py", tmp_path)
    done = subprocess.run(
        [command()[0], program], cwd=tmp_path, env=environment(LATESHIFT_STORE=store_url), capture_output=True,
        text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "cat.png at 100 pixels",
        "dog.png at 200 pixels",
        "one key, one job: True",
        "1000 in one durable commit",
    ]


class _Screen:
    """The shop with a terminal before it."""

    def __init__(self, columns: int, lines: int, folder: Path, errors: Path | None = None) -> None:
        """`errors`: where standard error goes, if not to the terminal."""
        self.seen = ""
        self._ours, theirs = pty.openpty()
        os.set_blocking(self._ours, False)

        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        with contextlib.nullcontext(theirs) if errors is None else errors.open("w") as told:
            self.process = subprocess.Popen(
                command("up", str(EXAMPLES / "shop.py")), stdin=theirs, stdout=theirs, stderr=told, cwd=folder,
                env=environment(TERM="xterm-256color"), close_fds=True,
            )  # fmt: skip
        os.close(theirs)

    def until(self, *words: str, seconds: float = 40) -> None:
        end = time.monotonic() + seconds
        while missing := [word for word in words if word not in self.seen]:
            assert time.monotonic() < end, f"not seen: {missing}"
            select.select([self._ours], [], [], 0.1)
            try:
                self.seen += os.read(self._ours, 65536).decode(errors="replace")
            except BlockingIOError:
                pass
            except OSError:  # the other end was closed
                missing = [word for word in words if word not in self.seen]
                assert not missing, f"not seen: {missing}"
                return

    def hang_up(self) -> None:
        os.close(self._ours)
        self._ours = -1
        self.process.send_signal(signal.SIGHUP)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self._ours >= 0:
            os.close(self._ours)
