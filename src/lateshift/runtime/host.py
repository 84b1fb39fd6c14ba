"""The host: keeps worker processes running, beats for them, and buries one the moment it dies, so that its jobs run
again within a second or two. It runs no user code: nothing a job does can stop its heartbeats."""

import asyncio
import contextlib
import os
import platform
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta

import psutil

from lateshift.clock import Clock
from lateshift.config import Settings
from lateshift.errors import StoreError
from lateshift.model.ids import MemberId, new_member_id
from lateshift.runtime.aside import aside
from lateshift.runtime.heartbeat import Heartbeat
from lateshift.runtime.log import log
from lateshift.runtime.patience import either, patiently, pause
from lateshift.runtime.wire import Hearing, own_loops
from lateshift.store.contract import MemberView, Store

AFTER_STOP_TIME = timedelta(seconds=10)  # what a worker gets on top of its stop time before it is killed
FIRST_RESTART = 0.05
LAST_RESTART = 10.0
SETTLED_IN = 1.0  # seconds after which a worker that dies is not counted as failing at its start


class Host:
    """`processes` workers, each a child of this process with a member id of its own at every start."""

    def __init__(
        self, store: Store, program: str, processes: int, settings: Settings, clock: Clock, *,
        environment: Mapping[str, str] | None = None, died: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self._store = store
        self._program = program
        self._processes = processes
        self._settings = settings
        self._clock = clock
        self._environment = {**os.environ, **(environment or {})}
        self._died = died
        self._heartbeat = Heartbeat(store.members, settings.heartbeat, one_machine=store.one_machine)

    async def run(self, stopping: asyncio.Event) -> None:
        """Until told to stop, and all workers have ended."""
        self._heartbeat.start()
        presence = asyncio.create_task(self._be_there(stopping))
        try:
            await asyncio.gather(*(self._keep_one(number, stopping) for number in range(self._processes)))
        finally:
            member = await presence if stopping.is_set() else None
            if member is not None:
                self._heartbeat.remove(member)
                with contextlib.suppress(StoreError, TimeoutError):
                    await patiently(aside(self._store.members.leave, [member]), stopping)
            presence.cancel()
            await aside(self._heartbeat.stop)

    async def _be_there(self, stopping: asyncio.Event) -> MemberId | None:
        """A member too, so that how old its own loops are is told, in the write that keeps its workers alive. Gives under which name, when
        told to stop. One that was declared dead comes back under another."""
        joined: MemberId | None = None
        while not stopping.is_set():
            joined, lost = new_member_id(), asyncio.Event()
            try:
                if await self._join(self._view(joined, "host", "host", os.getpid()), stopping):
                    self._heartbeat.add(joined, alive=lambda: True, lost=_setting(lost), loops=own_loops)
                    await either(lost, stopping)
                    continue
            except Exception:  # its workers must not suffer
                log.exception("this host cannot be told of; it is tried again")
            joined = None
            await pause(1, stopping)
        return joined

    async def _keep_one(self, number: int, stopping: asyncio.Event) -> None:
        seconds = FIRST_RESTART
        while not stopping.is_set():
            begun = self._clock.monotonic()
            try:
                await self._live_one(number, stopping)
            except Exception:  # no process or no pipe to be had now: the other workers must not suffer
                log.exception("a worker could not be run; it is tried again")
            if stopping.is_set():
                return
            seconds = (
                FIRST_RESTART
                if self._clock.monotonic() - begun > SETTLED_IN
                else min(seconds * 2, LAST_RESTART)
            )
            await pause(seconds, stopping)

    async def _live_one(self, number: int, stopping: asyncio.Event) -> None:
        """One worker's life, from its start to its burial."""
        member = new_member_id()
        ours, theirs = socket.socketpair()  # the child ends when our end closes, whatever ends us
        try:
            end = theirs.fileno()
            command = [sys.executable, "-m", "lateshift.worker.main", self._program, str(member), str(end)]
            try:
                child = await asyncio.create_subprocess_exec(*command, env=self._environment, pass_fds=[end])
            finally:
                theirs.close()
            view = self._view(member, f"worker {number + 1}", "worker", child.pid)
            if await self._join(view, stopping, going=lambda: child.returncode is None):
                self._heartbeat.add(
                    member, alive=lambda: _is_going(child.pid), lost=lambda: _kill(child), loops=Hearing(ours).loops
                )  # fmt: skip
            ended = asyncio.create_task(child.wait())
            told = asyncio.create_task(stopping.wait())
            await asyncio.wait({ended, told}, return_when=asyncio.FIRST_COMPLETED)
            told.cancel()
            if not ended.done():
                await self._stop(child, ended)
            await self._bury(member, await ended, stopping)
        finally:
            ours.close()

    def _view(self, member: MemberId, name: str, kind: str, pid: int) -> MemberView:
        now = self._clock.now()
        return MemberView(
            id=member, name=name, kind=kind, host=platform.node(), pid=pid, started_at=now, expires_at=now, dead=False, stats={}
        )  # fmt: skip

    async def _join(
        self, view: MemberView, stopping: asyncio.Event, *, going: Callable[[], bool] = lambda: True
    ) -> bool:
        while going() and not stopping.is_set():
            try:
                await patiently(aside(self._store.members.join, view, self._settings.heartbeat), stopping)
            except TimeoutError:
                return False
            except StoreError as error:
                log.warning("a %s cannot join yet: %s", view.kind, error)
                await pause(1, stopping)
            else:
                return True
        return False

    async def _stop(self, child: asyncio.subprocess.Process, ended: asyncio.Task[int]) -> None:
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(signal.SIGTERM)
        limit = self._settings.stop_time + AFTER_STOP_TIME
        done, _ = await asyncio.wait({ended}, timeout=limit.total_seconds())
        if not done:
            log.error("worker %d has not stopped within %s: killed", child.pid, limit)
            _kill(child)

    async def _bury(self, member: MemberId, status: int, stopping: asyncio.Event) -> None:
        self._heartbeat.remove(member)
        as_told = stopping.is_set() and status in (0, -signal.SIGTERM)  # which ends it, before it listens
        if not as_told:
            log.error("a worker process ended (%s); what it ran goes back", _in_words(status))
        with contextlib.suppress(StoreError, TimeoutError):  # without it, the silence of its heartbeat tells
            await patiently(aside(self._store.members.bury, [member]), stopping)
        self._died()


def _setting(event: asyncio.Event) -> Callable[[], None]:
    """From another thread."""
    loop = asyncio.get_running_loop()

    def set_it() -> None:
        loop.call_soon_threadsafe(event.set)

    return set_it


def _is_going(pid: int) -> bool:
    """Not dead, and not stopped: a stopped process must not keep its leases."""
    try:
        return psutil.Process(pid).status() not in (
            psutil.STATUS_STOPPED,
            psutil.STATUS_ZOMBIE,
            psutil.STATUS_DEAD,
        )
    except psutil.NoSuchProcess:
        return False
    except (psutil.Error, OSError):  # it cannot be looked at now: no proof of a death
        return True


def _kill(child: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        child.kill()


def _in_words(status: int) -> str:
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"status {status}"
