"""What runs of one worker read and write, many of them in one commit."""

import asyncio
from collections.abc import Sequence

from msgspec import structs

from lateshift.errors import RightMissing, StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from lateshift.model.ids import JobId
from lateshift.model.job import NewJob
from lateshift.model.workflow.run import Advance, Advanced, Loaded
from lateshift.runtime.aside import aside
from lateshift.runtime.log import log
from lateshift.runtime.together import Together
from lateshift.store.contract import Store

AFTER_A_FAULT = 1.0  # seconds


class Journal:
    """A store that is away is waited for: what a run wants written may be written again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._advances = Together[Advance, Advanced](store.workflows.advance)
        self._loads = Together[JobId, Loaded | None](self._load)

    async def advance(self, one: Advance) -> Advanced:
        while True:
            try:
                return await self._advances.put(one)
            except (StoreUnavailable, StoreFull, StoreReadOnly, RightMissing) as error:
                log.warning("a workflow cannot be written: %s", error)
                one = _again(one)
                await asyncio.sleep(AFTER_A_FAULT)

    async def load(self, id: JobId) -> Loaded | None:
        while True:
            try:
                return await self._loads.put(id)
            except StoreError as error:
                log.warning("a workflow cannot be read: %s", error)
                await asyncio.sleep(AFTER_A_FAULT)

    async def cancel(self, ids: Sequence[JobId], by: str) -> None:
        """Jobs of steps that are not waited for any more."""
        while True:
            try:
                await aside(lambda: self._store.jobs.cancel(ids, by=by))
            except StoreError as error:
                log.warning("the steps of a workflow cannot be cancelled: %s", error)
                await asyncio.sleep(AFTER_A_FAULT)
            else:
                return

    def _load(self, ids: Sequence[JobId]) -> list[Loaded | None]:
        found = {loaded.run.id: loaded for loaded in self._store.workflows.load(ids)}
        return [found.get(id) for id in ids]


def _again(one: Advance) -> Advance:
    """It may have been written though its answer was lost: its jobs may be there, and may have run."""
    return structs.replace(one, jobs=[again(job) for job in one.jobs]) if one.jobs else one


def again(job: NewJob) -> NewJob:
    """One that may be there already."""
    return NewJob(job.id, job.spec, job.payload, job.key, False, job.place, job.unique, job.trace, job.tags)
