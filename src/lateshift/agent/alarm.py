"""Whoever wants to know is told when a breaker opens: once, by a job that is enqueued in the commit that marks it as told."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from lateshift.errors import LateshiftError
from lateshift.model.job import NewJob
from lateshift.runtime.aside import aside
from lateshift.runtime.log import log
from lateshift.store.contract import Store

EVERY = timedelta(seconds=1)
EVENT = "alert.breaker_opened"


class Alarm:
    """Turned by a loop. `jobs_of` gives the jobs of those who subscribed to an event."""

    def __init__(self, store: Store, jobs_of: Callable[[str, Any], list[NewJob]]) -> None:
        self._store = store
        self._jobs_of = jobs_of
        self._told: set[str] = set()  # here, and they were open when we last looked

    async def turn(self) -> timedelta:
        try:
            await aside(self.round)
        except LateshiftError as error:
            log.warning("nobody can be told of open breakers: %s", error)
        return EVERY

    def round(self) -> int:
        """Gives how many jobs were made to tell of them. Blocking."""
        made = 0
        for opened in self._store.breakers.untold():
            why = opened.reason or "its calls fail"
            data = {"breaker": opened.name, "at": opened.at.isoformat(), "why": why}
            jobs = self._jobs_of(EVENT, data)
            if self._store.breakers.tell(opened, jobs):
                log.error("the breaker %s is open, and its jobs are parked: %s", opened.name, why)
                made += len(jobs)
                self._told.add(opened.name)
        self._tell_of_closed()
        return made

    def _tell_of_closed(self) -> None:
        """In the log where its opening stands."""
        if not self._told:
            return
        closed = self._told - {
            each.name for each in self._store.breakers.list() if each.opened_at is not None
        }
        for name in sorted(closed):
            log.info("the breaker %s is closed again", name)
        self._told -= closed
