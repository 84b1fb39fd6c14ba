"""The jobs that the crash tests run. Each body writes to the ledger when it starts and when its effect is done."""

import asyncio
import ctypes
import hashlib
import os
import signal
import time
from base64 import b64encode
from datetime import timedelta
from pathlib import Path

from lateshift import Flow, JobEvent, Lateshift, Limit, Retry, current
from tests.crash.guards import AT_ONCE
from tests.crash.ledger import VARIABLE, BodyKind, append, here

MANY = Retry(attempts=25, base=timedelta(milliseconds=200), cap=timedelta(seconds=1))
LIMIT = timedelta(minutes=5)
SECRET = f"whsec_{b64encode(bytes(32)).decode()}"


def note(kind: BodyKind, number: int) -> None:
    attempt = current()
    here().body(kind, attempt.job_id.hex, number, attempt.attempt, attempt.fence)


async def quick(number: int) -> int:
    note("start", number)
    note("effect", number)
    return number


def quick_sync(number: int) -> int:
    note("start", number)
    note("effect", number)
    return number


async def slow(number: int, seconds: float) -> int:
    note("start", number)
    await asyncio.sleep(seconds)
    note("effect", number)
    return number


def slow_sync(number: int, seconds: float) -> int:
    """Ignores that it is asked to stop."""
    note("start", number)
    time.sleep(seconds)
    note("effect", number)
    return number


def polite(number: int, seconds: float) -> int:
    """Looks whether it should stop, says so in the ledger, and gives up."""
    note("start", number)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if current().should_stop:
            note("told", number)
            return -1
        time.sleep(0.02)
    note("effect", number)
    return number


async def polite_async(number: int, seconds: float) -> int:
    note("start", number)
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        note("told", number)
        raise
    note("effect", number)
    return number


def cpu(number: int, seconds: float) -> int:
    """In a process of its own."""
    note("start", number)
    end = time.monotonic() + seconds
    digest = b""
    while time.monotonic() < end:
        digest = hashlib.sha256(digest * 1000).digest()
    note("effect", number)
    return number


def hog(number: int, seconds: float) -> int:
    """Holds the interpreter lock in one call of C code, as a careless extension module does."""
    note("start", number)
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))  # unlike CDLL, PyDLL does not let go of the lock
    note("effect", number)
    return number


async def slow_then_quick(number: int) -> int:
    """Long at its first two attempts, done at once at the third."""
    note("start", number)
    if current().attempt < 3:
        await asyncio.sleep(60)
    note("effect", number)
    return number


def flaky(number: int) -> int:
    """Raises at its first attempt."""
    note("start", number)
    if current().attempt == 1:
        note("failed", number)
        raise RuntimeError("as it does the first time")
    note("effect", number)
    return number


async def step(number: int, session: str, seconds: float) -> int:
    """In a session. One in ten raises at its first attempt."""
    note("start", number)
    if number % 10 == 0 and current().attempt == 1:
        note("failed", number)
        raise RuntimeError("as every tenth does the first time")
    await asyncio.sleep(seconds)
    note("effect", number)
    return number


def limited(number: int, key: str, seconds: float) -> int:
    """Two of a key at once, over all machines."""
    note("start", number)
    time.sleep(seconds)
    note("effect", number)
    return number


def poison(number: int, how: str) -> None:
    """Ends its worker process, every time."""
    note("start", number)
    match how:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)
        case "exit":
            os._exit(1)
        case "segfault":
            ctypes.string_at(0)


def tell(what: str) -> None:
    """One line of a workflow's own ledger."""
    append(Path(os.environ[VARIABLE]) / "steps", f"{what} {os.getpid()}")


def reserve(step: int) -> int:
    tell(f"do {step}")
    return step * 10


def release(step: int, result: int) -> None:
    tell(f"undo {step}-{result}")


async def order(flow: Flow, number: int, ends: str) -> str:
    """Three steps; then it ends well, or fails and is undone."""
    for step in range(3):
        await flow.step(reserve, step, undo=release)
    if ends == "fails":
        raise ValueError(f"no {number}")
    return ends


def hear(event: JobEvent) -> None:
    """One line for each time that an event was delivered."""
    append(Path(os.environ[VARIABLE]) / "heard", f"{event.job_id.hex} {event.id} {event.kind}")


def make_app(store: str | None = None) -> Lateshift:
    """The app on this store; without one, on that of LATESHIFT_STORE."""
    app = Lateshift("crash", store=store)
    app.task(retry=MANY, time_limit=LIMIT)(quick)
    app.task(retry=MANY, time_limit=LIMIT)(slow)
    app.task(retry=MANY, time_limit=LIMIT)(slow_then_quick)
    app.task(retry=MANY, time_limit=LIMIT)(polite_async)
    app.task(retry=MANY, time_limit=LIMIT)(step)
    app.task(retry=MANY, time_limit=LIMIT)(limited)
    app.limit("key", Limit(concurrency=AT_ONCE))
    for body in (quick_sync, slow_sync, polite, hog, flaky, poison):
        app.task(retry=MANY, time_limit=LIMIT)(body)
    app.task(retry=MANY, time_limit=LIMIT, process=True)(cpu)
    app.workflow(order)
    app.task(retry=MANY, queue="replies")(hear)
    webhook = Path(os.environ.get(VARIABLE, ".")) / "webhook"
    if webhook.exists():  # of a test that has a receiver
        app.reply_webhook(webhook.read_text(), secret=SECRET, internal=True, name="crash")
    return app


app = make_app()
