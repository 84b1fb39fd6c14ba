"""A supervisor alone in a process: `python -m tests.crash.rescuer`. A host has one too, but cannot be without workers."""

import asyncio
import logging
import signal

from lateshift.app.app import Lateshift
from lateshift.model.ids import new_member_id
from lateshift.runtime.loop import drive
from lateshift.runtime.stopping import stop_on_signals
from lateshift.supervisor.sweep import Sweep


async def main() -> None:
    app = Lateshift("rescuer")
    stopping = asyncio.Event()
    stop_on_signals(stopping, signal.SIGTERM)
    sweep = Sweep(app.store, new_member_id(), app.clock, heartbeat=app.settings.heartbeat)
    await drive(sweep, stopping)
    sweep.resign()


if __name__ == "__main__":
    logging.basicConfig(level="INFO", format="%(levelname)s %(name)s: %(message)s")
    asyncio.run(main())
