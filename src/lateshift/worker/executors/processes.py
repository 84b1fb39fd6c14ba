"""Tasks with `process=True`, each attempt in a child process: started when first needed, kept warm, one attempt at a
time in each, and killed when its attempt must end and does not."""

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import timedelta

import msgspec

from lateshift.errors import Cancel, Snooze, StoreError
from lateshift.model.outcome import Called, Ended, Failed, Killed, Stopped
from lateshift.model.remote import RemoteError
from lateshift.model.words import duration
from lateshift.runtime.log import log
from lateshift.telemetry.keeping import log_of
from lateshift.worker.attempt import Attempt
from lateshift.worker.executors.contract import Report
from lateshift.worker.executors.memory import megabytes, resident
from lateshift.worker.executors.pipe import (
    Answer,
    Logged,
    Raised,
    Ready,
    Returned,
    Run,
    Said,
    Save,
    Saved,
    Unable,
)
from lateshift.worker.executors.process import Process, in_words

GRACE = timedelta(seconds=5)  # from the news that its job is cancelled until a body is killed
STOP_GRACE = timedelta(milliseconds=500)  # the same when the worker's stop time is over, or the lease is lost
START = timedelta(minutes=2)  # for a child to import the program
PAUSE = timedelta(milliseconds=500)  # before another child after one that could not start; doubled each time
LONGEST_PAUSE = timedelta(seconds=30)
LOOK_EVERY = 0.1  # seconds between looks at memory, and at what an attempt should be told
CLOSING = 5.0  # seconds for killed processes to be gone

PAST_COMPLETE_BY = Killed("complete_by", "it ran past its complete-by")
NOT_STARTED = Killed("complete_by", "its process was still starting at its complete-by")


class Processes:
    """See contract.Executor. `app` is the program as it was given on the command line; `member`, whose log lines those of bodies are."""

    def __init__(
        self, app: str, slots: int, report: Report, now: Callable[[], float], *, grace: timedelta = GRACE,
        stop_grace: timedelta = STOP_GRACE, pause: timedelta = PAUSE, member: str = "",
    ) -> None:  # fmt: skip
        self._app = app
        self._member = member
        self._slots = slots
        self._report = report
        self._now = now
        self._grace = grace
        self._stop_grace = stop_grace
        self._pause = pause
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Attempt] = deque()
        self._processes: set[Process] = set()
        self._idle: list[Process] = []  # without an attempt; some may be starting still
        self._failed_starts = 0
        self._resumption: asyncio.TimerHandle | None = None
        self._looking: asyncio.Task[None] | None = None
        self._closed = False

    # -- what the worker asks ---------------------------------------------------------------------------------

    def submit(self, attempts: list[Attempt]) -> None:
        self._waiting.extend(attempts)
        self._start()

    def cancel(self, attempt: Attempt) -> None:
        """Tell the body; kill its process if it has not ended after a grace."""
        if attempt in self._waiting:
            self._waiting.remove(attempt)
            self._report.ended(attempt, _why(attempt))
            return
        process = self._process_of(attempt)
        if process is None:
            return
        if not process.ready:
            self._take_from(process, _why(attempt))
            return
        process.tell()
        urgent = attempt.stopping or attempt.lost
        seconds = (self._stop_grace if urgent else self._grace).total_seconds()
        process.set_timer(self._loop.call_later(seconds, self._kill_unheeding, process, attempt))

    def overdue(self, attempt: Attempt) -> None:
        process = self._process_of(attempt)
        if process is not None and process.ready:
            self._kill(process, PAST_COMPLETE_BY if attempt.cancelled_by is None else _why(attempt))
        elif process is not None:
            self._take_from(process, NOT_STARTED)  # it goes on starting, for the next

    def give_back(self, older_than: float | None) -> list[Attempt]:
        given = [attempt for attempt in self._waiting if older_than is None or attempt.received < older_than]
        if given:
            self._waiting = deque(attempt for attempt in self._waiting if attempt not in given)
        return given

    async def close(self) -> None:
        self._closed = True
        if self._resumption is not None:
            self._resumption.cancel()
        self._idle.clear()
        lives = [process.life for process in self._processes if process.life is not None]
        for process in self._processes:
            self._kill(process, Stopped())
        if lives:
            _, alive = await asyncio.wait(lives, timeout=CLOSING)
            for life in alive:
                life.cancel()
        if self._looking is not None:
            self._looking.cancel()

    # -- handing attempts to processes ------------------------------------------------------------------------

    def _start(self) -> None:
        while self._waiting and (process := self._free()) is not None:
            attempt = process.attempt = self._waiting.popleft()
            attempt.started = self._now()
            if process.ready:
                self._run(process, attempt)
            if self._looking is None or self._looking.done():
                self._looking = self._loop.create_task(self._look())

    def _free(self) -> Process | None:
        if self._idle:
            return self._idle.pop()
        if self._closed or len(self._processes) >= self._slots or self._resumption is not None:
            return None
        try:
            process = Process(self._app, self._member)
        except OSError as error:
            self._start_failed(str(error))
            return None
        self._processes.add(process)
        process.life = self._loop.create_task(self._live(process))
        return process

    def _run(self, process: Process, attempt: Attempt) -> None:
        now = self._now()
        if not attempt.begin(now):
            self._take_from(process, Stopped())
            return
        time_left = None if attempt.deadline is None else attempt.deadline - now
        trace = None if attempt.span is None else attempt.span.context()
        lease = msgspec.structs.replace(attempt.lease, history=None, trace=trace)
        process.send(Run(lease, time_left, attempt.sealed))
        process.tell()

    def _process_of(self, attempt: Attempt) -> Process | None:
        """None also where its process is being killed: it ends as was decided then."""
        return next(
            (each for each in self._processes if each.attempt is attempt and each.verdict is None), None
        )

    def _take_from(self, process: Process, how: Ended) -> None:
        """Its attempt ends before it began."""
        attempt = process.attempt
        self._free_again(process)
        if attempt is not None:
            self._report.ended(attempt, how)
        self._start()

    def _kill(self, process: Process, verdict: Ended) -> None:
        """Reported when it is dead: not before may another attempt begin."""
        if process.verdict is None:
            process.verdict = verdict
            process.kill()

    def _kill_unheeding(self, process: Process, attempt: Attempt) -> None:
        self._kill(process, _why(attempt))

    # -- the life of a process --------------------------------------------------------------------------------

    async def _live(self, process: Process) -> None:
        start_limit = self._loop.call_later(START.total_seconds(), self._kill_unready, process)
        try:
            async for answer in process.answers():
                if isinstance(answer, Ready):
                    start_limit.cancel()
                self._hear(process, answer)
        except Exception:
            log.exception("the process %d said what cannot be understood; it is killed", process.pid)
        finally:
            start_limit.cancel()
        self._gone(process, await process.bury())

    def _kill_unready(self, process: Process) -> None:
        process.trouble = f"it did not import {self._app} within {START}"
        process.kill()

    def _hear(self, process: Process, answer: Answer) -> None:
        attempt = process.attempt
        if isinstance(answer, Logged) and attempt is not None:  # of one that is being killed too
            log_of(attempt).extend(answer.lines, answer.dropped)
        if process.verdict is not None:
            return  # too late
        match answer:
            case Ready():
                process.ready = True
                self._failed_starts = 0
                if attempt is not None:
                    self._run(process, attempt)
            case Unable(why):
                process.trouble = why
            case _ if attempt is None:
                pass
            case Said(progress):
                attempt.progress = progress
            case Save(state):
                process.saving = self._loop.create_task(self._save(process, attempt, state))
            case Returned(result, session_state, ran):
                attempt.ran(ran)
                self._free_again(process)
                attempt.session_state = session_state
                self._report.returned_encoded(attempt, result)
                self._start()
            case Raised(over_memory=True):
                cap = megabytes(attempt.task.limits.memory or 0)
                self._kill(process, Killed("memory", f"it asked for more than {cap}"))
            case Raised():
                attempt.ran(answer.ran)
                how = _how(attempt, answer)
                self._free_again(process)
                self._report.ended(attempt, how)
                self._start()

    def _free_again(self, process: Process) -> None:
        process.release()
        self._idle.append(process)

    async def _save(self, process: Process, attempt: Attempt, state: bytes) -> None:
        try:
            kept = await attempt.desk.asave_checkpoint(attempt.lease, state)
        except StoreError as error:
            process.send(Saved(kept=False, trouble=str(error)))
            return
        if kept:
            attempt.checkpoint = state
        else:
            attempt.lost = True
        process.send(Saved(kept))

    def _gone(self, process: Process, status: int) -> None:
        self._processes.discard(process)
        if process in self._idle:
            self._idle.remove(process)
        attempt = process.attempt
        process.release()
        how = process.verdict or Killed("process_died", f"its process {in_words(status)}")
        if not process.ready and process.verdict is None:
            trouble = process.trouble or f"it {in_words(status)}"
            how = Killed("process_died", f"its process could not start: {trouble}")
            self._start_failed(trouble)
        if attempt is not None:
            self._report.ended(attempt, how)
        self._start()

    def _start_failed(self, trouble: str) -> None:
        """Wait a little before the next. What waits meanwhile is handed back, and may run on another worker."""
        if self._resumption is None and not self._closed:
            seconds = min(self._pause.total_seconds() * 2**self._failed_starts, LONGEST_PAUSE.total_seconds())
            self._failed_starts = min(self._failed_starts + 1, 30)
            self._resumption = self._loop.call_later(seconds, self._resume)
            log.error(
                "a process for jobs could not start; the next try is in %s: %s", duration(seconds), trouble
            )

    def _resume(self) -> None:
        self._resumption = None
        self._start()

    # -- while bodies run -------------------------------------------------------------------------------------

    async def _look(self) -> None:
        """Kill what is over its memory; pass on what attempts were told by others than `cancel`."""
        while busy := [process for process in self._processes if process.attempt is not None]:
            for process in busy:
                attempt = process.attempt
                if attempt is None or process.verdict is not None:
                    continue
                if not process.ready:
                    if attempt.stopping or attempt.lost:
                        self._take_from(process, _why(attempt))
                    continue
                process.tell()
                cap = attempt.task.limits.memory
                if cap is not None and resident(process.pid) > cap:
                    self._kill(process, Killed("memory", f"it used more than {megabytes(cap)}"))
            await asyncio.sleep(LOOK_EVERY)


def _why(attempt: Attempt) -> Ended:
    return Called(attempt.cancelled_by) if attempt.cancelled_by is not None else Stopped()


def _how(attempt: Attempt, raised: Raised) -> Ended:
    """As if the body had raised it here."""
    if raised.cancel:
        return _why(attempt) if attempt.cancelled_by is not None else Failed(Cancel(raised.message))
    if raised.lease_lost and attempt.lost:
        return Stopped()
    if raised.snooze is not None:
        return Failed(Snooze(timedelta(seconds=raised.snooze)))
    retry_after = None if raised.retry_after is None else timedelta(seconds=raised.retry_after)
    return Failed(RemoteError(raised.name, raised.message, raised.lineage, raised.trace, retry_after))
