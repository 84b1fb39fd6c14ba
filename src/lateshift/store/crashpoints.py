"""Named points at which a test kills or stops this process: a no-op unless LATESHIFT_CRASH names one.

LATESHIFT_CRASH="worker.before_settle" kills at the first pass, "worker.before_settle:3" at the third, and
"worker.before_settle:1:stop" sends SIGSTOP instead, so that the test can let the process go on later.
"""

import os
import signal
from itertools import count

_point, _, _rest = os.environ.get("LATESHIFT_CRASH", "").partition(":")
_nth, _, _how = _rest.partition(":")
_passes = count(1)


def crashpoint(name: str) -> None:
    if name == _point and next(_passes) == int(_nth or 1):
        os.kill(os.getpid(), signal.SIGSTOP if _how == "stop" else signal.SIGKILL)
