"""Outlives the test run by a moment: when the process that started it is gone, however it went, ends that
process's PostgreSQL server and removes its folder. Run as a script by `postgres_server`; imports nothing else.
"""

import os
import select
import shutil
import signal
import sys
import time
from pathlib import Path


def _end(pid: int, base: str) -> None:
    for sent in (signal.SIGQUIT, signal.SIGKILL):
        try:
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, sent)
        except ProcessLookupError:
            return
        # A server that went in order has removed this file; its process may stay a zombie until init reaps it.
        until = time.monotonic() + 5
        while time.monotonic() < until:
            if not Path(base, "data", "postmaster.pid").exists():
                return
            time.sleep(0.02)


def _watch(parent: int) -> int:
    """The pid of the server that is left when the parent is gone; 0 for none. The parent tells each change."""
    pid, told = 0, b""
    while True:
        # End of file is the usual sign; a forked child may hold the pipe open, hence the look at the parent.
        readable, _, _ = select.select([0], [], [], 0.5)
        if readable:
            data = os.read(0, 4096)
            if not data:
                return pid
            *lines, told = (told + data).split(b"\n")
            pid = int(lines[-1]) if lines else pid
        elif os.getppid() != parent:
            return pid


if __name__ == "__main__":
    left = _watch(int(sys.argv[1]))
    if left:
        _end(left, sys.argv[2])
    shutil.rmtree(sys.argv[2], ignore_errors=True)
