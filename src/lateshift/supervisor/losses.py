"""Whoever wants to know is told that a worker was lost with jobs: once, by a job that is enqueued in the commit that takes the first of
them back."""

from collections.abc import Callable, Sequence
from typing import Any

from lateshift.errors import LateshiftError
from lateshift.model.ids import MemberId
from lateshift.model.job import NewJob
from lateshift.model.member import Lost
from lateshift.model.words import counted
from lateshift.runtime.log import log
from lateshift.store.contract import Store, TakenBack

EVENT = "alert.worker_lost"
WORKERS_AT_ONCE = 100  # lost workers that one round tells of


class Losses:
    """Asked by the supervisor in each round. `jobs_of` gives the jobs of those who subscribed to an event."""

    def __init__(self, store: Store, jobs_of: Callable[[str, Any], list[NewJob]]) -> None:
        self._store = store
        self._jobs_of = jobs_of
        self._lost: dict[MemberId, Lost] = {}
        self._told: set[MemberId] = set()  # of those whose jobs were not all taken back yet

    def alerts(self) -> dict[MemberId, list[NewJob]]:
        """What is to be enqueued when jobs are taken back from these. Blocking."""
        self._lost = {one.id: one for one in self._store.members.lost(WORKERS_AT_ONCE)}
        self._told &= self._lost.keys()
        return {id: self._jobs(one) for id, one in self._lost.items() if id not in self._told}

    def tell(self, taken: Sequence[TakenBack]) -> None:
        """These were taken back, and the alerts of their holders enqueued with them."""
        for id in (self._lost.keys() - self._told) & {job.holder for job in taken}:
            lost = self._lost[id]
            log.error("worker %s on %s is lost: %s", lost.name, lost.host, _why(lost))
            self._told.add(id)

    def _jobs(self, lost: Lost) -> list[NewJob]:
        """That nobody can be told must not keep the jobs from being taken back."""
        data = {"worker": lost.name, "host": lost.host, "member": str(lost.id), "why": _why(lost)}
        try:
            return self._jobs_of(EVENT, data)
        except LateshiftError as error:
            log.warning("nobody can be told of the lost worker %s: %s", lost.name, error)
            return []


def _why(lost: Lost) -> str:
    return f"it died or fell silent with {counted(lost.jobs, 'job')}"
