"""Signals that ask for a stop, in a process of their own."""

import subprocess
import sys

PROGRAM = """
import asyncio, os, signal, subprocess, sys
from lateshift.runtime.stopping import stop_on_signals

class Last:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

async def main():
    stopping = asyncio.Event()
    stop_on_signals(stopping, signal.SIGINT, signal.SIGTERM)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
        os.kill(os.getpid(), number)
    await stopping.wait()
    asking = "import signal; print(*(signal.getsignal(each).__name__ if callable(signal.getsignal(each)) else " \
        "signal.getsignal(each).name for each in (signal.SIGINT, signal.SIGTERM)), flush=True)"
    subprocess.run([sys.executable, "-c", asking], check=True)

last = Last()
asyncio.run(main())
os.kill(os.getpid(), signal.SIGINT)
print("ended well", flush=True)
"""


def test_signals_stop_once_to_the_very_end_and_who_is_started_meanwhile_hears_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["default_int_handler SIG_DFL", "ended well"]
    assert done.returncode == 0  # a signal in the last moment, when the interpreter takes itself down
