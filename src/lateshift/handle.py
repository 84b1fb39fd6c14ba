"""A job in the hands of its caller: what became of it, and its result."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from typing import Any, Generic, Protocol, TypeVar

from lateshift.errors import JobCancelled, JobDead, JobUnknown, ResultTimeout, ResultWithheld, no_job
from lateshift.model import checks
from lateshift.model.attempt_log import AttemptLog
from lateshift.model.events import JobEvent
from lateshift.model.explaining.reason import Explanation
from lateshift.model.fingerprint import last_failure
from lateshift.model.ids import JobId
from lateshift.model.job import WITHHELD, JobView, State
from lateshift.model.looking import LOOK_AFTER

R = TypeVar("R")
V = TypeVar("V")

FIRST_LOOK = 0.002
LAST_LOOK = 0.25


class Looker(Protocol):
    """What a handle needs of a client."""

    def view(self, job_id: JobId, *, whole: bool = True) -> JobView | None:
        """`whole`: else it is slim (model/sealed)."""

    async def aview(self, job_id: JobId, *, whole: bool = True) -> JobView | None: ...
    def opened(self, view: JobView) -> JobView:
        """With its result, if it is sealed. Raises SealKeyMissing, SealBroken."""

    def readable(self, view: JobView) -> JobView:
        """With what its attempts said, if it is sealed; masked where the key is missing."""

    def explain(self, job_id: JobId) -> Explanation | None: ...
    async def aexplain(self, job_id: JobId) -> Explanation | None: ...
    def logs(self, job_id: JobId) -> list[AttemptLog] | None: ...
    async def alogs(self, job_id: JobId) -> list[AttemptLog] | None: ...
    def cancel(self, job_id: JobId) -> bool: ...
    async def acancel(self, job_id: JobId) -> bool: ...
    def watch(self, job_id: JobId) -> AsyncIterator[JobEvent]: ...


class Job(Generic[R]):
    """One job. `created` says whether this call made it, or an earlier one with the same key or identity did. `shed`: it was
    not made, because its queue was full and is set to shed what comes then."""

    __slots__ = ("_client", "_decode", "created", "id", "look_after", "shed", "task")

    def __init__(
        self,
        job_id: JobId,
        task: str,
        client: Looker,
        decode: Callable[[bytes | None], R],
        created: bool = True,
        shed: bool = False,
        look_after: int = LOOK_AFTER,
    ) -> None:
        self.id = job_id
        self.task = task
        self.created = created
        self.shed = shed
        self.look_after = look_after  # seconds, for those who are told to come again
        self._client = client
        self._decode = decode

    def __repr__(self) -> str:
        return f"<Job {self.id} of {self.task}>"

    def view(self) -> JobView:
        """All there is to know about it now."""
        return self._found(self._client.view(self.id))

    async def aview(self) -> JobView:
        return self._found(await self._client.aview(self.id))

    def explain(self) -> Explanation:
        """Every reason why it is not running, and when each clears; of one that runs or has ended, how it stands. Print
        it, or go through its `reasons`."""
        return self._found(self._client.explain(self.id))

    async def aexplain(self) -> Explanation:
        return self._found(await self._client.aexplain(self.id))

    def logs(self) -> list[AttemptLog]:
        """What its attempts have logged, the oldest first; of one that runs, up to two seconds ago. An attempt that logged nothing
        has none."""
        return self._found(self._client.logs(self.id))

    async def alogs(self) -> list[AttemptLog]:
        return self._found(await self._client.alogs(self.id))

    def events(self) -> AsyncIterator[JobEvent]:
        """`async for event in job.events():` what becomes of it, from the beginning, until it has ended. Of what was quicker than
        the looks at it, an attempt that was handed back or progress, some may be left out."""
        return self._client.watch(self.id)

    @property
    def state(self) -> State:
        return self.view().state

    def cancel(self) -> bool:
        """At once if it waits; if it runs, it is told within a second. False if it had ended."""
        return self._client.cancel(self.id)

    async def acancel(self) -> bool:
        return await self._client.acancel(self.id)

    def result(self, timeout: timedelta | None = None) -> R:
        """Wait for the job to end, and give what it returned. Raises JobDead, JobCancelled or ResultTimeout."""
        whole = True  # at first, as that look may be the last; then slim until it has ended
        for pause in self._looks(timeout):
            view = self._found(self._client.view(self.id, whole=whole))
            if view.state.settled and not whole:
                view = self.view()
            if view.state.settled:  # and not resubmitted since
                return self._result(view)
            whole = False
            time.sleep(pause)
        raise self._late(timeout, view)

    async def aresult(self, timeout: timedelta | None = None) -> R:
        whole = True
        for pause in self._looks(timeout):
            view = self._found(await self._client.aview(self.id, whole=whole))
            if view.state.settled and not whole:
                view = await self.aview()
            if view.state.settled:
                return self._result(view)
            whole = False
            await asyncio.sleep(pause)
        raise self._late(timeout, view)

    @staticmethod
    def _looks(timeout: timedelta | None) -> Iterator[float]:
        """Pauses between looks, longer and longer, with a last look when the time is up."""
        end = None
        if timeout is not None:
            end = time.monotonic() + checks.duration("timeout", timeout).total_seconds()
        pause = FIRST_LOOK
        while end is None or (left := end - time.monotonic()) > 0:
            yield pause if end is None else min(pause, left)
            pause = min(pause * 1.5, LAST_LOOK)
        yield 0.0

    def _found(self, seen: V | None) -> V:
        if seen is None and self.shed:
            raise JobUnknown(
                f"This call of {self.task} was shed: its queue was full, so there is no job. Look at job.shed first."
            )
        if seen is None:
            raise no_job(self.id)
        return seen

    def _late(self, timeout: timedelta | None, view: JobView) -> ResultTimeout:
        within = max(timeout or timedelta(0), timedelta(0)).total_seconds()
        hint = (
            ""
            if view.state is State.RUNNING
            else " Is a worker running that knows its task and serves its queue? explain() says."
        )
        return ResultTimeout(
            f"Job {self.id} of {self.task} has not ended within {within:g} s: it is {view.state.label}.{hint}"
        )

    def _result(self, view: JobView) -> R:
        if view.state is State.COMPLETED and view.payload == WITHHELD:
            raise ResultWithheld(
                f"Job {self.id} of {self.task} has completed, and this program's role in the database may not read what it returned. Ask with the "
                "role of a worker, a server or a reader."
            )
        if view.state is State.COMPLETED:
            return self._decode(self._client.opened(view).result)
        if view.state is State.CANCELLED:
            raise JobCancelled(f"Job {self.id} of {self.task} was cancelled: {view.reason}.")
        view = self._client.readable(view)
        last: Any = last_failure(view)
        why = view.reason
        if last:
            why = f"{last.error}: {last.message}" if last.error else last.message
        raise JobDead(f"Job {self.id} of {self.task} is a dead letter ({view.reason}): {why}")
