"""Named points at which a test kills or stops this process: a no-op unless LATESHIFT_CRASH names one.

LATESHIFT_CRASH="worker.before_settle" kills at the first pass, "worker.before_settle:3" at the third, and
"worker.before_settle:1:stop" sends SIGSTOP instead, so that the test can let the process go on later. With a path,
"worker.before_settle:1:kill:/tmp/once", only the first process to get there is hit: it makes the file, with its pid.
"""

import os
import signal
import threading
from itertools import count

_point, _nth, _how, _once = (*os.environ.get("LATESHIFT_CRASH", "").split(":", 3), "", "", "")[:4]
_passes = count(1)


def crashpoint(name: str) -> None:
    if name == _point and next(_passes) == int(_nth or 1) and _first():
        # To this thread: a SIGSTOP that another thread receives lets this one run on for a while.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP if _how == "stop" else signal.SIGKILL)


def _first() -> bool:
    if not _once:
        return True
    try:
        descriptor = os.open(_once, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    os.write(descriptor, f"{os.getpid()}\n".encode())
    os.close(descriptor)
    return True
