"""A worker process, as a host starts it: PROGRAM MEMBER DESCRIPTOR."""

import asyncio
import ctypes
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import UUID

from lateshift.config import load
from lateshift.runtime.collecting import settle_down
from lateshift.runtime.log import log_level, set_up
from lateshift.runtime.stopping import stop_on_signals
from lateshift.runtime.wire import Telling
from lateshift.telemetry.structured import identify
from lateshift.worker.executors.processes import Processes
from lateshift.worker.program import find_app
from lateshift.worker.service import Service


def main(program: str, member: str, descriptor: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the host decides
    host = _end_with_the_host(int(descriptor))
    set_up(log_level("WARNING"), load(), bodies=True)
    app = find_app(program)
    identify(app=app.name, version=app.version, member=member)
    settle_down()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_work(app, program, UUID(member), host))
    # Threads that run jobs which do not listen would keep us; their jobs have gone back.
    logging.shutdown()
    os._exit(0)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed (the extra `uvloop`): no-op jobs drained quicker with it."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _work(app: Any, program: str, member: UUID, host: socket.socket) -> None:
    stopping = asyncio.Event()
    stop_on_signals(stopping, signal.SIGTERM)
    settings = app.settings
    service = Service(
        app.store, app.tasks, member, settings, app.clock,
        processes=lambda report: Processes(
            program, settings.process_slots, report, app.clock.monotonic, member=str(member)
        ),
        program=app.program, beside=[Telling(host)],
    )  # fmt: skip
    await service.run(stopping)


def _end_with_the_host(descriptor: int) -> socket.socket:
    """The host holds the other end: when that closes, nobody beats for us any more."""
    end = socket.socket(fileno=descriptor)
    end.setblocking(True)  # a program that has a default timeout for sockets made it otherwise
    if sys.platform == "linux":
        parent_death_signal = 1
        ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)

    def watch() -> None:
        with suppress(OSError):
            end.recv(1)
        os._exit(70)

    threading.Thread(target=watch, name="lateshift-host", daemon=True).start()
    return end


if __name__ == "__main__":
    main(*sys.argv[1:])
