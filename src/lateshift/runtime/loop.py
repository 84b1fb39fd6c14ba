"""The one shape of every loop: `turn()` does one pass and says how long to pause."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Protocol

from lateshift.runtime.aside import aside
from lateshift.runtime.log import log
from lateshift.telemetry.liveness import has_failed, living

AFTER_A_FAULT = timedelta(seconds=1)


class Part(Protocol):
    async def turn(self) -> timedelta: ...


async def drive(part: Part, stopping: asyncio.Event) -> None:
    """Turn until told to stop. A turn that raises is logged and tried again: no loop stops in silence, and one that always fails is late."""
    with living(type(part).__name__) as loop:
        while not stopping.is_set():
            try:
                pause = await part.turn()
            except Exception:
                log.exception("%s failed; it goes on in %s", type(part).__name__, AFTER_A_FAULT)
                pause = AFTER_A_FAULT
                has_failed()
            loop.has_turned(pause.total_seconds())
            if pause <= timedelta(0):
                await asyncio.sleep(0)
            elif hasattr(part, "wait"):
                await part.wait(pause)
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause.total_seconds()):
                        await stopping.wait()


async def resign(*parts: Part) -> None:
    """Those that lead let others lead at once."""
    for part in parts:
        if hasattr(part, "resign"):
            await aside(part.resign)
