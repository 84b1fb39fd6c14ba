"""Process tasks of every temper, for tests/unit/test_processes.py."""

import ctypes
import mmap
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from typing import Any

from lateshift import (
    Cancel,
    Lateshift,
    Permanent,
    Retry,
    Snooze,
    checkpoint,
    current,
    last_checkpoint,
    progress,
)

app = Lateshift("cpu")

MEGABYTE = 1024**2


class OutOfStock(Exception):
    """Has a rule of its own."""


class Nonsense(ValueError):
    """Is never tried again, being a ValueError."""


class Busy(Exception):
    retry_after = timedelta(minutes=7)


RETRY = Retry(attempts=3, never=(ValueError,), rules={OutOfStock: Retry(attempts=9, base=timedelta(0))})


@app.task(process=True)
def pid() -> int:
    return os.getpid()


@app.task(process=True)
def echo(text: str) -> str:
    print(f"echo of {len(text)} characters")
    return text


@app.task(process=True)
def who_am_i() -> dict[str, Any]:
    me = current()
    left = me.time_left
    return {
        "id": str(me.job_id), "fence": me.fence, "attempt": me.attempt, "left": left.total_seconds() if left else None,
        "last": last_checkpoint(), "stop": me.should_stop,
    }  # fmt: skip


@app.task(process=True)
def counts_then_waits() -> None:
    for done in range(1000):
        progress(done + 1, 1000, "counting")
    _forever()


@app.task(process=True)
def counts() -> None:
    for done in range(1000):
        progress(done + 1, 1000)


@app.task(process=True)
def saves(state: str) -> str:
    checkpoint(state)
    return str(last_checkpoint())


@app.task(process=True, retry=RETRY)
def raises(what: str) -> None:
    errors: dict[str, BaseException] = {
        "plain": RuntimeError("it is broken"),
        "rule": OutOfStock("no cats left"),
        "never": Nonsense("that is no cat"),
        "busy": Busy("ask again"),
        "odd": OSError("no file \udcff.png"),
        "snooze": Snooze(timedelta(minutes=3)),
        "snooze for ever": Snooze(timedelta.max),
        "permanent": Permanent("give it up"),
        "cancel": Cancel("not needed"),
        "exit": SystemExit(4),
    }
    raise errors[what]


@app.task(process=True)
def unkeepable() -> object:
    return threading.Lock()


@app.task(process=True)
def reports_until_cancelled() -> None:
    checkpoint("began")
    while True:
        progress(1)


@app.task(process=True)
def watches_should_stop() -> str:
    checkpoint("began")
    while not current().should_stop:
        pass
    return "stopped by itself"


@app.task(process=True)
def deaf() -> None:
    checkpoint(os.getpid())
    _forever()


@app.task(process=True)
def holds_the_gil() -> None:
    checkpoint(os.getpid())
    re.match(r"(a+)+$", "a" * 64 + "b")


@app.task(process=True)
def deaf_with_offspring() -> None:
    offspring = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    checkpoint(offspring.pid)
    _forever()


@app.task(process=True, memory=128 * MEGABYTE)
def allocates(megabytes: int) -> int:
    return len(bytearray(megabytes * MEGABYTE))


@app.task(process=True, memory=128 * MEGABYTE)
def fills_shared_memory(megabytes: int) -> None:
    """What no limit on private data sees."""
    area = mmap.mmap(-1, megabytes * MEGABYTE)
    for start in range(0, len(area), mmap.PAGESIZE):
        area[start] = 1
    _forever()


@app.task(process=True)
def data_limit() -> list[int]:
    return [os.getpid(), resource.getrlimit(resource.RLIMIT_DATA)[0]]


@app.task(process=True)
def runs_out_uncapped() -> None:
    raise MemoryError("of its own making")


@app.task(process=True)
def dies(how: str) -> None:
    match how:
        case "segfault":
            ctypes.string_at(0)
        case "exit":
            os._exit(3)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "silent":
            os.closerange(3, 256)  # its result can reach nobody


@app.task(process=True)
def signals_itself() -> str:
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGTERM)
    return "still here"


def _forever() -> None:
    threading.Event().wait()
