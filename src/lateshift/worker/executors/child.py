"""What runs in a child process, `python -m lateshift.worker.executors.child PROGRAM SOCKET PARENT MEMBER`: imports
the program, then runs one attempt after the other as the worker hands them over. Bodies run on the main thread."""

import ctypes
import math
import os
import signal
import socket
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from contextvars import copy_context
from datetime import timedelta
from typing import Any

from lateshift.config import load
from lateshift.errors import Cancel, LeaseLost, Snooze, TaskUnknown
from lateshift.model.outcome import MESSAGE_LIMIT, TRACEBACK_LIMIT, ResultNotKept, clip, clip_middle
from lateshift.model.remote import full_name
from lateshift.runtime.log import log_level, set_up
from lateshift.task import Task
from lateshift.telemetry.context import running
from lateshift.telemetry.keeping import keep_from
from lateshift.telemetry.structured import identify
from lateshift.telemetry.tracing import spans
from lateshift.worker.executors.link import ChildAttempt, Link
from lateshift.worker.executors.memory import capped
from lateshift.worker.executors.pipe import Answer, Raised, Ready, Returned, Unable
from lateshift.worker.program import find_app

PR_SET_PDEATHSIG = 1
FAR = 100 * 365 * 86_400.0  # seconds: a wish beyond what a date can hold
LEFT_TO_THE_WORKER = (signal.SIGINT, signal.SIGTERM)


def main(program: str, connection: socket.socket, parent: int, member: str) -> None:
    _leave_signals_to_the_worker()
    _die_with(parent)
    connection.set_inheritable(False)
    connection.setblocking(True)  # a program that has a default timeout for sockets made it otherwise
    os.register_at_fork(after_in_child=lambda: _let_go(connection))
    link = Link(connection)
    link.open()
    try:
        set_up(log_level("WARNING"), load(), bodies=True)
        app = find_app(program)
        tasks: Mapping[str, Task[..., Any]] = app.tasks
        identify(app=app.name, version=app.version, **({"member": member} if member else {}))
        keep_from(app.settings.job_log)
    except BaseException as error:
        link.send(Unable(clip(_text(error), MESSAGE_LIMIT)))
        _flush()
        os._exit(1)  # not sys.exit: the program may have started threads
    link.send(Ready())
    while True:
        attempt = link.next_attempt()
        answer = copy_context().run(_run, attempt, tasks)
        _flush()
        link.end(answer)
        del attempt, answer  # an idle process holds nothing of the last job


def _run(attempt: ChildAttempt, tasks: Mapping[str, Task[..., Any]]) -> Answer:
    running.set(attempt)
    if attempt.lease.trace is not None and (traced := spans()) is not None:
        traced.enter(attempt.lease.trace)
    cap: int | None = None
    begun = attempt.desk.now()
    try:
        task = tasks.get(attempt.lease.task)
        if task is None:
            raise TaskUnknown(
                f"The program has no task {attempt.lease.task!r} any more: start its worker again."
            )
        cap = task.limits.memory
        args, kwargs = task.arguments.decode(attempt.lease.payload)
        with capped(cap):
            begun = attempt.desk.now()
            result = task.function(*args, **kwargs)
            ran = attempt.desk.now() - begun
            return Returned(_encoded(task, result), attempt.session_state, ran)
    except BaseException as error:
        ran = attempt.desk.now() - begun
        return _raised(error, ran, over_memory=cap is not None and isinstance(error, MemoryError))


def _encoded(task: Task[..., Any], result: Any) -> bytes | None:
    try:
        return task.results.encode(result)
    except MemoryError:
        raise
    except Exception as error:
        raise ResultNotKept(f"the result cannot be kept: {error}") from error


def _raised(error: BaseException, ran: float, *, over_memory: bool) -> Raised:
    return Raised(
        snooze=_seconds(error.delay) if isinstance(error, Snooze) else None,
        cancel=isinstance(error, Cancel),
        lease_lost=isinstance(error, LeaseLost),
        over_memory=over_memory,
        name=type(error).__qualname__,
        message=clip(_text(error), MESSAGE_LIMIT),
        lineage=tuple(full_name(kind) for kind in type(error).__mro__),
        trace=clip_middle(_trace(error), TRACEBACK_LIMIT),
        retry_after=_retry_after(error),
        ran=ran,
    )


def _retry_after(error: BaseException) -> float | None:
    try:
        return _seconds(getattr(error, "retry_after", None))
    except Exception:  # a property of the user's own
        return None


def _seconds(wish: object) -> float | None:
    """A timedelta or a number, as Retry understands it; anything else is no wish."""
    if isinstance(wish, timedelta):
        return min(wish.total_seconds(), FAR)
    if isinstance(wish, int | float) and not isinstance(wish, bool) and math.isfinite(wish):
        return float(min(wish, FAR))
    return None


def _text(error: BaseException) -> str:
    try:
        return _sendable(str(error))
    except Exception:
        return f"<a {type(error).__qualname__} that cannot be shown>"


def _sendable(text: str) -> str:
    """A file's name in an error may hold what UTF-8 does not."""
    return text.encode(errors="backslashreplace").decode()


def _trace(error: BaseException) -> str:
    """From the body on: the frame of this module says nothing to a user."""
    frames = error.__traceback__
    below = frames.tb_next if frames is not None else None
    return _sendable("".join(traceback.format_exception(type(error), error, below or frames)))


def _flush() -> None:
    """What a body printed is seen when it ends, not when a buffer is full or lost in a kill."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


def _leave_signals_to_the_worker() -> None:
    """Ctrl-C and a service manager's stop may reach every process; the worker decides what runs on. Handlers, not
    SIG_IGN: programs that a body starts get the usual behaviour."""
    for number in LEFT_TO_THE_WORKER:
        signal.signal(number, lambda *_: None)


def _let_go(connection: socket.socket) -> None:
    """In a process that a body has forked: it is not the worker's child."""
    connection.close()
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _die_with(parent: int) -> None:
    """Even while a body holds the GIL, so that nobody reads the pipe. Elsewhere than on Linux the pipe must do."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked to be told
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1], socket.socket(fileno=int(sys.argv[2])), int(sys.argv[3]), sys.argv[4])
