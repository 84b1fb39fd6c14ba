"""Signals: the first asks for a graceful stop; more of them change nothing, to the very end of the process."""

import asyncio
import atexit
import signal
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType


def stop_on_signals(stopping: asyncio.Event, *signals: signal.Signals) -> None:
    """Set `stopping` when one of these arrives. Called on the loop of the main thread."""
    loop = asyncio.get_running_loop()

    def stop(number: int, frame: FrameType | None) -> None:
        with suppress(RuntimeError):  # the loop has closed: we are on our way out
            loop.call_soon_threadsafe(stopping.set)

    # Not the loop's own handlers: when it closes they are gone, and the next signal would kill what is nearly done.
    for number in signals:
        signal.signal(number, stop)
    # And not SIG_IGN after the first: whoever is started then would inherit it, and not hear that it is to stop.
    atexit.register(_ignore, signals)


def _ignore(signals: Sequence[signal.Signals]) -> None:
    """Where the interpreter puts the default back, and nobody is started any more."""
    for number in signals:
        signal.signal(number, signal.SIG_IGN)
