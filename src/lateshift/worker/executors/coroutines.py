"""Async tasks, on the worker's own loop."""

import asyncio
from collections import deque
from collections.abc import Callable

from lateshift.model.outcome import Called, Deciding, Failed, Killed, Stopped
from lateshift.telemetry.context import running
from lateshift.worker.attempt import Attempt
from lateshift.worker.executors.contract import Report


class Coroutines:
    """See contract.Executor."""

    def __init__(self, slots: int, report: Report, now: Callable[[], float]) -> None:
        self._free = slots
        self._report = report
        self._now = now
        self._waiting: deque[Attempt] = deque()
        self._loop = asyncio.get_running_loop()

    def submit(self, attempts: list[Attempt]) -> None:
        self._waiting.extend(attempts)
        self._start()

    def cancel(self, attempt: Attempt) -> None:
        if attempt.runner is None:
            if attempt in self._waiting:  # it has not begun, and will not
                self._waiting.remove(attempt)
                self._report.ended(attempt, self._why(attempt, asyncio.CancelledError()))
        elif attempt.started is not None:
            attempt.runner.cancel()
        # else its runner's first step will see that it is told to stop

    def overdue(self, attempt: Attempt) -> None:
        self.cancel(attempt)

    def give_back(self, older_than: float | None) -> list[Attempt]:
        given = [attempt for attempt in self._waiting if older_than is None or attempt.received < older_than]
        if given:
            self._waiting = deque(attempt for attempt in self._waiting if attempt not in given)
        return given

    async def close(self) -> None:
        """Nothing to close: the loop is the worker's."""

    def _start(self) -> None:
        while self._free > 0 and self._waiting:
            attempt = self._waiting.popleft()
            self._free -= 1
            attempt.runner = self._loop.create_task(self._run(attempt))

    async def _run(self, attempt: Attempt) -> None:
        running.set(attempt)
        in_time = attempt.begin(self._now())
        try:
            if not in_time:
                self._report.ended(attempt, Stopped())
                return
            if attempt.span is not None:
                attempt.span.enter()
            if attempt.cancelled_by is not None or attempt.lost:
                raise asyncio.CancelledError
            result = await attempt.task.start(attempt)
        except asyncio.CancelledError as error:
            self._report.ended(attempt, self._why(attempt, error))
        except Deciding as said:
            self._report.decided(attempt, said.decided)
        except KeyboardInterrupt:
            self._report.ended(attempt, Stopped())
            raise
        except BaseException as error:  # sys.exit() too: it ends the job, not the worker and its other jobs
            self._report.ended(attempt, Failed(error))
        else:
            self._report.returned(attempt, result)
        finally:
            self._free += 1
            if self._waiting:
                self._start()

    def _why(self, attempt: Attempt, error: BaseException) -> Called | Killed | Stopped | Failed:
        if attempt.cancelled_by is not None:
            return Called(attempt.cancelled_by)
        if attempt.deadline is not None and self._now() >= attempt.deadline:
            return Killed("complete_by", "it ran past its complete-by")
        if attempt.stopping or attempt.lost:
            return Stopped()
        return Failed(error)  # the body cancelled itself
