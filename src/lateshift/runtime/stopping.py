"""Signals: the first asks for a graceful stop; more of them change nothing."""

import asyncio
import signal


def stop_on_signals(stopping: asyncio.Event, *signals: signal.Signals) -> None:
    """Set `stopping` when one of these arrives. Called on the loop of the main thread."""
    loop = asyncio.get_running_loop()
    for number in signals:
        loop.add_signal_handler(number, stopping.set)
