"""The worker's talk with the store, one exchange at a time: how attempts ended goes out and new leases come back, in one
commit. The next may set out before the leases of the last are begun, so that store and worker are busy together."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from lateshift.model.attempt_log import AttemptLog
from lateshift.model.ids import JobId, MemberId
from lateshift.model.job import Lease
from lateshift.model.outcome import HANDED_BACK, Settlement
from lateshift.runtime.aside import aside, send_aside
from lateshift.runtime.log import log
from lateshift.store.contract import Exchanged, Jobs, Want
from lateshift.worker.settler import Settler

AT_ONCE = 2000  # settlements in one exchange, at most

Key = tuple[JobId, int]  # a lease's job and fence


class UnderWay(Struct, frozen=True):
    """What was said, when (monotonic), and the answer to come."""

    settlements: list[Settlement]
    logs: list[AttemptLog]
    wants: Sequence[Want]
    asked: float
    answer: asyncio.Future[Exchanged]


class Exchanges:
    """Everything here runs on the worker's loop but the store's calls."""

    def __init__(self, jobs: Jobs, member: MemberId, settler: Settler, now: Callable[[], float]) -> None:
        self.took = 0.0  # seconds, of the last that was answered
        self.unsure = False  # an answer was lost: there may be leases we do not know of
        self._jobs = jobs
        self._member = member
        self._settler = settler
        self._now = now
        self._under_way: UnderWay | None = None
        self._sent = 0
        self._answered = 0
        self._strays: dict[Key, int] = {}

    @property
    def quiet(self) -> bool:
        return self._under_way is None and not self.unsure

    @property
    def under_way(self) -> bool:
        return self._under_way is not None

    @property
    def settling(self) -> list[Settlement]:
        """What was said and is not yet answered."""
        return [] if self._under_way is None else self._under_way.settlements

    def send(self, wants: Sequence[Want]) -> None:
        """Let one set out, if there is anything to say. None is under way."""
        if not wants and not len(self._settler):
            return
        settlements = self._settler.take(AT_ONCE)
        logs = self._settler.take_logs()
        asked = self._now()
        try:
            said = (settlements, wants, logs) if logs else (settlements, wants)
            answer = send_aside(self._speak, *said)
        except BaseException:  # no thread to be had
            self._settler.put_back(settlements, logs)
            raise
        self._sent += 1
        self._under_way = UnderWay(settlements, logs, wants, asked, answer)

    def _speak(self, *said: Any) -> Exchanged:
        """On a thread: how long the store took is not how long the loop was busy meanwhile."""
        begun = self._now()
        answer = self._jobs.exchange(self._member, *said)
        self.took = self._now() - begun
        return answer

    async def answered(self) -> tuple[UnderWay, Exchanged] | None:
        """The one under way, and its answer; None where there was nothing to say."""
        said = self._under_way
        if said is None:
            return None
        try:
            answer = await said.answer
        except BaseException:
            self._settler.put_back(said.settlements, said.logs)
            self.unsure = self.unsure or bool(said.wants)
            raise
        finally:
            self._under_way = None
            self._answered += 1
        self.unsure = self.unsure or answer.unsure
        return said, answer

    async def find_unknown(self, known: Callable[[], set[Key]]) -> list[Lease]:
        """The answer to an exchange was lost: what it leased is ours all the same. None is under way."""
        held = await aside(self._jobs.held, self._member)
        self.unsure = False
        mine = known()
        return [lease for lease in held if (lease.id, lease.fence) not in mine]

    async def return_strays(self, known: Callable[[], set[Key]]) -> None:
        """A commit whose answer was lost may land long after we looked for it. A lease that is ours in the store and
        unknown here in two looks, and came by no exchange still unanswered, goes back uncounted."""
        before, self._strays = self._strays, {}
        held = await aside(self._jobs.held, self._member)
        sent = self._sent  # whatever we saw came by one of these, or was settled by one
        mine = known()
        for lease in held:
            key = lease.id, lease.fence
            if key in mine:
                continue
            if key not in before:
                self._strays[key] = sent
            elif self.unsure or self._answered < before[key]:
                self._strays[key] = before[key]
            else:
                log.error("job %s was leased to this worker, which did not know: it goes back", lease.id)
                self._settler.put(Settlement(lease, HANDED_BACK))
