"""The process executor, with real child processes: what bodies can do in one, and how every way they end is told."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from lateshift.errors import StoreUnavailable
from lateshift.model.ids import new_job_id
from lateshift.model.job import AttemptRecord, Lane, Lease, Progress
from lateshift.model.outcome import (
    Called,
    Cancelled,
    DeadLettered,
    Decided,
    Ended,
    Failed,
    Killed,
    Later,
    Outcome,
    Stopped,
    outcome_of,
)
from lateshift.worker.attempt import Attempt
from lateshift.worker.executors.processes import Processes
from lateshift.worker.program import find_app

PROGRAMS = Path(__file__).parents[1] / "programs"
PROGRAM = str(PROGRAMS / "cpu_tasks.py")
HOUR = timedelta(hours=1)
SOON = timedelta(milliseconds=50)
NEVER = timedelta(days=1)
PATIENCE = 30.0

pytestmark = pytest.mark.anyio


class Returned(msgspec.Struct, frozen=True):
    result: Any


class Ear:
    """A worker that writes down what it is told."""

    def __init__(self) -> None:
        self._heard: asyncio.Queue[tuple[Attempt, Returned | Ended]] = asyncio.Queue()

    def returned(self, attempt: Attempt, result: Any) -> None:
        raise AssertionError("a process's result comes encoded")

    def returned_encoded(self, attempt: Attempt, result: bytes | None) -> None:
        self._heard.put_nowait((attempt, Returned(None if result is None else msgspec.json.decode(result))))

    def decided(self, attempt: Attempt, how: Decided) -> None:
        raise AssertionError("no workflow runs in a process of its own")

    def ended(self, attempt: Attempt, how: Ended) -> None:
        self._heard.put_nowait((attempt, how))

    async def next(self) -> tuple[Attempt, Returned | Ended]:
        return await asyncio.wait_for(self._heard.get(), PATIENCE)

    async def of(self, attempt: Attempt) -> Returned | Ended:
        heard, how = await self.next()
        assert heard is attempt
        return how

    @property
    def silent(self) -> bool:
        return self._heard.empty()


class FakeDesk:
    """Keeps checkpoints, unless told that the lease is lost or the store away."""

    def __init__(self) -> None:
        self.lost = False
        self.away = False
        self._saved: asyncio.Queue[Any] = asyncio.Queue()

    async def asave_checkpoint(self, lease: Lease, state: bytes) -> bool:
        if self.away:
            raise StoreUnavailable("the store sleeps")
        self._saved.put_nowait(msgspec.json.decode(state))
        return not self.lost

    async def next(self) -> Any:
        """The next checkpoint: a body's sign that it runs."""
        return await asyncio.wait_for(self._saved.get(), PATIENCE)

    def now(self) -> float:
        return time.monotonic()


class Bench:
    """An executor, and what a test needs around it."""

    def __init__(self, program: str = PROGRAM, slots: int = 1, **times: Any) -> None:
        self.ear = Ear()
        self.desk = FakeDesk()
        self.processes = Processes(program, slots, self.ear, time.monotonic, **times)
        self._tasks = find_app(PROGRAM).tasks

    def attempt(
        self, task: str, *, limit: timedelta | None = HOUR, checkpoint: bytes | None = None, **arguments: Any
    ) -> Attempt:  # fmt: skip
        payload = msgspec.json.encode(arguments)
        lease = Lease(
            new_job_id(), 7, task, payload, 2, 3, limit, "default", Lane.PROCESS, checkpoint=checkpoint,
            history=b"[]",
        )  # fmt: skip
        return Attempt(lease, self._tasks[task], time.monotonic(), self.desk)

    def submit(self, task: str, **options: Any) -> Attempt:
        attempt = self.attempt(task, **options)
        self.processes.submit([attempt])
        return attempt

    async def run(self, task: str, **options: Any) -> Returned | Ended:
        return await self.ear.of(self.submit(task, **options))

    async def result(self, task: str, **options: Any) -> Any:
        how = await self.run(task, **options)
        assert isinstance(how, Returned), how
        return how.result

    async def failure(self, task: str, **options: Any) -> tuple[Outcome, list[AttemptRecord]]:
        """What follows from it, as the worker decides, and the history that is kept."""
        attempt = self.submit(task, **options)
        how = await self.ear.of(attempt)
        assert not isinstance(how, Returned)
        outcome = outcome_of(
            how, attempt.lease, attempt.task.limits.retry, at=datetime.now(UTC), ran_for=0.0, keep=HOUR, member="me"
        )  # fmt: skip
        history = getattr(outcome, "history", None) or b"[]"
        return outcome, msgspec.json.decode(history, type=list[AttemptRecord])


@pytest.fixture(autouse=True)
def own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
async def make() -> AsyncIterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make_bench(*args: Any, **options: Any) -> Bench:
        made.append(Bench(*args, **options))
        return made[-1]

    yield make_bench
    for bench in made:
        await bench.processes.close()


@pytest.fixture
async def bench(make: Callable[..., Bench]) -> Bench:
    return make()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():  # noqa: ASYNC110 - what is awaited has no event
            await asyncio.sleep(0.005)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


# -- running ----------------------------------------------------------------------------------------------------


async def test_a_body_runs_in_another_process_that_is_kept_for_the_next(bench: Bench) -> None:
    first = await bench.result("pid")
    assert first != os.getpid()
    assert await bench.result("pid") == first


async def test_no_process_is_started_before_it_is_needed(bench: Bench) -> None:
    before = psutil.Process().children()
    bench.processes.submit([])
    assert psutil.Process().children() == before


async def test_large_arguments_and_results_cross_whole(bench: Bench) -> None:
    text = "ä" * 120_000
    assert await bench.result("echo", text=text) == text


async def test_what_a_body_prints_is_seen_when_it_ends(
    bench: Bench, capfd: pytest.CaptureFixture[str]
) -> None:
    await bench.result("echo", text="cats")
    assert capfd.readouterr().out == "echo of 4 characters\n"


async def test_as_many_run_at_once_as_there_are_slots_and_the_rest_can_be_given_back(
    make: Callable[..., Bench],
) -> None:
    bench = make(slots=2)
    attempts = [bench.attempt("deaf") for _ in range(3)]
    bench.processes.submit(attempts)
    pids = {await bench.desk.next(), await bench.desk.next()}
    assert len(pids) == 2
    assert [attempt.started is not None for attempt in attempts] == [True, True, False]
    assert bench.processes.give_back(attempts[2].received) == []
    assert bench.processes.give_back(None) == [attempts[2]]
    assert bench.processes.give_back(None) == []


async def test_a_waiting_attempt_begins_when_another_ends(bench: Bench) -> None:
    attempts = [bench.attempt("pid") for _ in range(5)]
    bench.processes.submit(attempts)
    ended = [await bench.ear.next() for _ in attempts]
    assert [attempt for attempt, _ in ended] == attempts
    assert len({str(how) for _, how in ended}) == 1, "one process ran them all"


async def test_a_body_knows_who_it_is(bench: Bench) -> None:
    attempt = bench.submit("who_am_i", checkpoint=b'"half"', limit=timedelta(minutes=10))
    how = await bench.ear.of(attempt)
    assert isinstance(how, Returned)
    left = how.result.pop("left")
    assert 500 < left <= 600
    lease = attempt.lease
    assert how.result == {"id": str(lease.id), "fence": 7, "attempt": 2, "last": "half", "stop": False}


async def test_a_body_without_a_time_limit_has_no_time_left_to_know(bench: Bench) -> None:
    assert (await bench.result("who_am_i", limit=None))["left"] is None


async def test_the_last_progress_arrives_however_fast_it_was_reported(bench: Bench) -> None:
    attempt = bench.submit("counts_then_waits")
    await until(lambda: attempt.progress == Progress(1000, 1000, "counting"))


async def test_the_last_progress_arrives_before_the_end_however_soon_that_came(bench: Bench) -> None:
    for _ in range(3):
        attempt = bench.submit("counts")
        assert await bench.ear.of(attempt) == Returned(None)
        assert attempt.progress == Progress(1000, 1000)


async def test_a_checkpoint_is_saved_by_the_worker_before_the_body_goes_on(bench: Bench) -> None:
    attempt = bench.submit("saves", state="half")
    assert await bench.ear.of(attempt) == Returned("half")
    assert await bench.desk.next() == "half"
    assert attempt.checkpoint == b'"half"'


async def test_a_checkpoint_that_comes_too_late_stops_the_body(bench: Bench) -> None:
    bench.desk.lost = True
    attempt = bench.submit("saves", state="half")
    assert await bench.ear.of(attempt) == Stopped()
    assert attempt.lost
    assert attempt.checkpoint is None


async def test_a_checkpoint_that_the_store_cannot_take_raises_in_the_body(bench: Bench) -> None:
    bench.desk.away = True
    _, [record] = await bench.failure("saves", state="half")
    assert (record.error, record.message) == ("StoreUnavailable", "the store sleeps")


# -- raising ----------------------------------------------------------------------------------------------------


async def test_an_error_is_recorded_as_it_was_raised(bench: Bench) -> None:
    outcome, [record] = await bench.failure("raises", what="plain")
    assert isinstance(outcome, Later)
    assert outcome.counts
    assert (record.error, record.message, record.reason) == ("RuntimeError", "it is broken", "failed")
    assert record.traceback is not None
    assert "cpu_tasks.py" in record.traceback
    assert "child.py" not in record.traceback
    assert record.traceback.endswith("RuntimeError: it is broken\n")


async def test_a_retry_rule_applies_by_the_type_that_was_raised(bench: Bench) -> None:
    outcome, [record] = await bench.failure("raises", what="rule")
    assert outcome == Later(timedelta(0), counts=True, history=getattr(outcome, "history", None))
    assert record.error == "OutOfStock"


async def test_never_applies_by_a_base_of_the_type_that_was_raised(bench: Bench) -> None:
    outcome, [record] = await bench.failure("raises", what="never")
    assert isinstance(outcome, DeadLettered)
    assert (outcome.reason, record.error) == ("permanent", "Nonsense")


async def test_an_error_may_say_when_to_try_again(bench: Bench) -> None:
    outcome, _ = await bench.failure("raises", what="busy")
    assert isinstance(outcome, Later)
    assert outcome.delay == timedelta(minutes=7)


async def test_an_error_that_is_hard_to_send_is_told_all_the_same(bench: Bench) -> None:
    _, [record] = await bench.failure("raises", what="odd")
    assert (record.error, record.message) == ("OSError", "no file \\udcff.png")
    outcome, _ = await bench.failure("raises", what="snooze for ever")
    assert isinstance(outcome, Later)
    assert outcome.delay >= timedelta(days=3650)


async def test_a_body_may_snooze_give_up_and_cancel(bench: Bench) -> None:
    assert (await bench.failure("raises", what="snooze"))[0] == Later(timedelta(minutes=3), counts=False)
    dead, _ = await bench.failure("raises", what="permanent")
    assert isinstance(dead, DeadLettered)
    assert dead.reason == "permanent"
    cancelled, [record] = await bench.failure("raises", what="cancel")
    assert isinstance(cancelled, Cancelled)
    assert (cancelled.reason, record.reason) == ("not needed", "cancelled")


async def test_a_body_that_exits_the_python_way_has_failed_and_its_process_lives(bench: Bench) -> None:
    before = await bench.result("pid")
    _, [record] = await bench.failure("raises", what="exit")
    assert record.error == "SystemExit"
    assert await bench.result("pid") == before


async def test_a_result_that_cannot_be_kept_is_a_permanent_failure(bench: Bench) -> None:
    dead, [record] = await bench.failure("unkeepable")
    assert isinstance(dead, DeadLettered)
    assert (record.message or "").startswith("the result cannot be kept: ")


# -- cancelling and stopping ------------------------------------------------------------------------------------


async def test_a_cancelled_body_hears_of_it_in_progress(make: Callable[..., Bench]) -> None:
    bench = make(grace=NEVER)
    before = await bench.result("pid")
    attempt = bench.submit("reports_until_cancelled")
    await bench.desk.next()
    attempt.cancelled_by = "ann"
    bench.processes.cancel(attempt)
    assert await bench.ear.of(attempt) == Called("ann")
    assert await bench.result("pid") == before, "it was not killed"


async def test_a_cancelled_body_may_see_should_stop_and_return(make: Callable[..., Bench]) -> None:
    bench = make(grace=NEVER)
    attempt = bench.submit("watches_should_stop")
    await bench.desk.next()
    attempt.cancelled_by = "ann"
    bench.processes.cancel(attempt)
    assert await bench.ear.of(attempt) == Returned("stopped by itself")
    assert (await bench.result("who_am_i"))["stop"] is False, "the next is not told what was said to the last"


async def test_a_cancelled_body_that_does_not_listen_is_killed_after_the_grace(
    make: Callable[..., Bench],
) -> None:
    bench = make(grace=SOON)
    attempt = bench.submit("deaf")
    pid = await bench.desk.next()
    attempt.cancelled_by = "ann"
    bench.processes.cancel(attempt)
    assert await bench.ear.of(attempt) == Called("ann")
    assert gone(pid)
    assert await bench.result("pid") != pid


async def test_a_body_is_told_that_its_worker_stops_and_has_time_to_end(make: Callable[..., Bench]) -> None:
    bench = make(grace=NEVER, stop_grace=NEVER)
    attempt = bench.submit("watches_should_stop")
    await bench.desk.next()
    attempt.stopping = True  # as the service does it, without a call
    assert await bench.ear.of(attempt) == Returned("stopped by itself")


@pytest.mark.parametrize("why", ["stopping", "lost"])
async def test_a_body_that_runs_on_after_the_stop_time_or_without_a_lease_is_killed(
    make: Callable[..., Bench], why: str
) -> None:
    bench = make(grace=NEVER, stop_grace=SOON)
    attempt = bench.submit("deaf")
    pid = await bench.desk.next()
    setattr(attempt, why, True)
    bench.processes.cancel(attempt)
    assert await bench.ear.of(attempt) == Stopped()
    assert gone(pid)


async def test_a_waiting_attempt_that_is_cancelled_never_begins(bench: Bench) -> None:
    bench.submit("deaf")
    waiting = bench.submit("pid")
    waiting.cancelled_by = "ann"
    bench.processes.cancel(waiting)
    assert await bench.ear.of(waiting) == Called("ann")
    assert bench.processes.give_back(None) == []


async def test_a_body_past_its_complete_by_is_killed_with_all_that_it_started(bench: Bench) -> None:
    attempt = bench.submit("deaf_with_offspring")
    offspring = await bench.desk.next()
    bench.processes.overdue(attempt)
    bench.processes.overdue(attempt)
    how = await bench.ear.of(attempt)
    assert how == Killed("complete_by", "it ran past its complete-by")
    await until(lambda: gone(offspring))
    assert isinstance(await bench.result("pid"), int)
    assert bench.ear.silent


async def test_closing_kills_every_process_and_hands_back_what_they_ran(make: Callable[..., Bench]) -> None:
    bench = make(slots=2)
    idle = await bench.result("pid")
    attempts = {bench.submit("deaf"), bench.submit("deaf")}
    pids = [await bench.desk.next(), await bench.desk.next()]
    await bench.processes.close()
    assert idle in pids
    assert all(gone(pid) for pid in pids)
    assert {(await bench.ear.next())[0] for _ in attempts} == attempts


# -- memory -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's private data")
async def test_an_allocation_over_the_cap_fails_and_is_told_as_memory(bench: Bench) -> None:
    assert await bench.run("allocates", megabytes=4000) == Killed("memory", "it asked for more than 128 MB")
    assert await bench.result("allocates", megabytes=16) == 16 * 1024**2


async def test_memory_that_no_allocation_limit_sees_is_watched_and_the_process_killed(bench: Bench) -> None:
    assert await bench.run("fills_shared_memory", megabytes=200) == Killed(
        "memory", "it used more than 128 MB"
    )
    assert await bench.result("echo", text="on") == "on"


async def test_a_cap_ends_with_its_attempt(bench: Bench) -> None:
    before = await bench.result("data_limit")
    await bench.result("allocates", megabytes=1)
    assert await bench.result("data_limit") == before


async def test_a_memory_error_without_a_cap_is_a_failure_like_any_other(bench: Bench) -> None:
    _, [record] = await bench.failure("runs_out_uncapped")
    assert (record.reason, record.error) == ("failed", "MemoryError")


# -- dying ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("segfault", r"its process died with signal 11 \(SIGSEGV\)"),
        ("exit", "its process exited with status 3"),
        ("kill", r"its process died with signal 9 \(SIGKILL\)"),
        # Its end of the pipe is gone: whichever of its threads sees that first ends it.
        ("silent", r"its process (exited with status 1|died with signal 9 \(SIGKILL\))"),
    ],
)
async def test_a_process_that_dies_is_told_as_it_died_and_replaced(
    bench: Bench, how: str, message: str
) -> None:
    before = await bench.result("pid")
    ended = await bench.run("dies", how=how)
    assert isinstance(ended, Killed)
    assert ended.reason == "process_died"
    assert re.fullmatch(message, ended.message)
    assert await bench.result("pid") != before


async def test_an_idle_process_that_dies_is_replaced(bench: Bench) -> None:
    pid = await bench.result("pid")
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not psutil.pid_exists(pid))  # dead, and the executor has seen it
    assert await bench.result("pid") != pid


async def test_a_child_leaves_ctrl_c_and_termination_to_its_worker(bench: Bench) -> None:
    assert await bench.result("signals_itself") == "still here"


@pytest.mark.parametrize(
    "task",
    [
        "deaf",
        pytest.param(
            "holds_the_gil",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's parent-death signal"),
        ),
    ],
)
def test_children_end_when_their_worker_is_killed(task: str) -> None:
    command = [sys.executable, str(PROGRAMS / "process_host.py"), task]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        child = psutil.Process(int(worker.stdout.readline()))
        worker.kill()
        child.wait(timeout=PATIENCE)


# -- starting ---------------------------------------------------------------------------------------------------


async def test_a_program_that_cannot_be_imported_ends_the_attempt_with_its_error(
    make: Callable[..., Bench], tmp_path: Path
) -> None:
    program = tmp_path / "broken_program.py"
    program.write_text("import no_such_library\n")
    bench = make(str(program), pause=NEVER)
    how = await bench.run("pid")
    assert how == Killed(
        "process_died",
        f"its process could not start: {program} could not be imported: ModuleNotFoundError: No module named "
        f"'no_such_library' ({program}, line 1)",
    )
    waiting = bench.submit("pid")
    assert bench.processes.give_back(None) == [waiting], "no second process was tried at once"


async def test_a_process_that_dies_while_it_starts_ends_the_attempt(
    make: Callable[..., Bench], tmp_path: Path
) -> None:
    program = tmp_path / "dying_program.py"
    program.write_text("import os\nos._exit(9)\n")
    bench = make(str(program), pause=NEVER)
    how = await bench.run("pid")
    assert how == Killed("process_died", "its process could not start: it exited with status 9")


async def test_after_a_pause_another_start_is_tried(make: Callable[..., Bench], tmp_path: Path) -> None:
    program = tmp_path / "mended_program.py"
    program.write_text("1 / 0\n")
    bench = make(str(program), pause=SOON)
    how = await bench.run("pid")
    assert isinstance(how, Killed)
    program.write_text(f"import sys\nsys.path.insert(0, {str(PROGRAMS)!r})\nfrom cpu_tasks import app\n")
    assert isinstance(await bench.result("pid"), int)


@pytest.fixture
def slow_program(tmp_path: Path) -> Path:
    """Imports only when its gate is opened for writing."""
    os.mkfifo(tmp_path / "gate")
    program = tmp_path / "slow_program.py"
    program.write_text(
        f"import sys\nopen({str(tmp_path / 'gate')!r}).close()\n"
        f"sys.path.insert(0, {str(PROGRAMS)!r})\nfrom cpu_tasks import app\n"
    )
    return program


async def open_gate(program: Path) -> None:
    await asyncio.to_thread(lambda: program.with_name("gate").open("w").close())


@pytest.mark.parametrize("end", ["overdue", "cancel", "stopping"])
async def test_an_attempt_ends_while_its_process_starts_and_the_process_serves_the_next(
    make: Callable[..., Bench], slow_program: Path, end: str
) -> None:
    bench = make(str(slow_program))
    first = bench.submit("echo", text="one")
    match end:
        case "overdue":
            expected: Ended = Killed("complete_by", "its process was still starting at its complete-by")
            bench.processes.overdue(first)
        case "cancel":
            expected = Called("ann")
            first.cancelled_by = "ann"
            bench.processes.cancel(first)
        case _:
            expected = Stopped()
            first.stopping = True
    assert await bench.ear.of(first) == expected
    second = bench.submit("echo", text="two")
    await open_gate(slow_program)
    assert await bench.ear.of(second) == Returned("two")


async def test_failures_of_a_body_are_values_that_hold_no_foreign_class(bench: Bench) -> None:
    how = await bench.run("raises", what="rule")
    assert isinstance(how, Failed)
    assert type(how.error).__name__ == "RemoteError"
