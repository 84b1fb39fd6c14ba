"""A schedule in the hands of its caller, and its ticks of the past as a batch."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from hashlib import blake2b
from itertools import islice
from typing import Any

from msgspec import structs

from lateshift.errors import OptionInvalid, ScheduleUnknown
from lateshift.model.batch import JOBS_LIMIT, BatchId, NewBatch, job_id_at
from lateshift.model.ids import JobId, new_job_id
from lateshift.model.job import NewJob
from lateshift.model.scheduling.schedule import ScheduleView
from lateshift.model.scheduling.timing import count_ticks, in_zone, ticks, upcoming
from lateshift.runtime.aside import aside
from lateshift.store.batch_contract import Deed
from lateshift.store.contract import Store
from lateshift.store.firing import with_tick

CHUNK = 1000  # jobs of a backfill in one commit


def one_at_a_time(job: NewJob, name: str) -> NewJob:
    """Its jobs never run beside each other, over all machines. Those of a singleton never do as it is."""
    if job.spec.exclusive is not None:
        return job
    spec = structs.replace(job.spec, exclusive=_alone(name), lane=job.spec.lane.guarded)
    return structs.replace(job, spec=spec)


def side_by_side(job: NewJob, name: str) -> NewJob:
    """As it was before that. The lane stays: something else may guard the job too."""
    if job.spec.exclusive != _alone(name):
        return job
    return structs.replace(job, spec=structs.replace(job.spec, exclusive=None))


def _alone(name: str) -> str:
    return f"schedule:{name}"


class Schedule:
    """A schedule in the store, by its name. Made by `app.schedule(…)`, found by `app.find_schedule(name)`."""

    def __init__(self, name: str, store: Callable[[], Store]) -> None:
        self.name = name
        self._open = store

    def __repr__(self) -> str:
        return f"<Schedule {self.name}>"

    def view(self) -> ScheduleView:
        """How it stands. One that code has made is in the store once a scheduler runs. Raises ScheduleUnknown."""
        found = self._open().schedules.get(self.name)
        if found is None:
            raise ScheduleUnknown(
                f"There is no schedule {self.name!r} in the store. `lateshift schedules list` shows them."
            )
        return found

    def upcoming(self, count: int = 5) -> list[datetime]:
        """Its next ticks. Those of a pause so far are none of them: they are skipped when it is resumed."""
        view = self.view()
        after = max(view.cursor, self._open().clock.now())
        return upcoming(view.plan.timing, after, count)

    def count(self, start: datetime, end: datetime, most: int) -> int:
        """How many ticks it has from `start` to `end`, both included, counted up to `most`."""
        after, end = _just_before(_aware("start", start)), _aware("end", end)
        return count_ticks(self.view().plan.timing, after, end, most)

    def pause(self, by: str = "the caller") -> bool:
        """Until it is resumed no tick fires. False if it was paused."""
        self.view()
        return self._open().schedules.pause(self.name, by=by)

    def resume(self, by: str = "the caller") -> bool:
        self.view()
        return self._open().schedules.resume(self.name, by=by)

    def remove(self, by: str = "the caller") -> None:
        self.view()
        self._open().schedules.remove(self.name, by=by)

    def fire(self, by: str = "the caller") -> JobId:
        """One job now, besides its ticks."""
        self.view()
        made = self._open().schedules.fire_now(self.name, by=by)
        if made is None:
            raise ScheduleUnknown(f"The schedule {self.name!r} was removed meanwhile.")
        return made

    def backfill(
        self,
        start: datetime,
        end: datetime,
        told: Callable[[int], None] = lambda count: None,
        *,
        by: str = "the caller",
    ) -> BatchId:
        """A job for each of its ticks from `start` up to `end`, in the past, as a batch. Repeated, it goes on where it was
        interrupted. Unless they may overlap, they run one at a time. Each tick has a job, also where its task is unique: else
        the batch would wait for jobs that were not made."""
        first, last, store = _aware("start", start), _aware("end", end), self._open()
        if last > store.clock.now():
            raise OptionInvalid(
                f"A backfill is of the past, and {last:%Y-%m-%d %H:%M} UTC is to come: its ticks fire by themselves."
            )
        return _Backfill(self.view(), first, last).send(store, told, by)

    async def abackfill(self, start: datetime, end: datetime) -> BatchId:
        return await aside(self.backfill, start, end)


class _Backfill:
    def __init__(self, view: ScheduleView, start: datetime, end: datetime) -> None:
        if start > end:
            raise OptionInvalid("A backfill goes from the earlier time to the later one.")
        self._view = view
        self._after = _just_before(start)
        self._end = end
        self.total = count_ticks(view.plan.timing, self._after, end, JOBS_LIMIT + 1)
        if not self.total:
            raise OptionInvalid(
                f"The schedule {view.name} has no tick from {start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M}, UTC."
            )
        if self.total > JOBS_LIMIT:
            raise OptionInvalid(f"A backfill has at most {JOBS_LIMIT:,} ticks. Take several shorter ones.")

    def send(self, store: Store, told: Callable[[int], None], by: str) -> BatchId:
        name = f"backfill of {self._view.name}"
        key = f"{name[:100]} {self._digest().hex()}"
        new = NewBatch(id=new_job_id(), total=self.total, name=name, key=key, digest=self._digest())
        batch = store.batches.open(new, deed=Deed("backfill", f"schedule {self._view.name}", by))
        jobs = islice(self._jobs(batch.id), batch.added, None)
        place = batch.added
        told(place)
        while chunk := list(islice(jobs, CHUNK)):
            store.batches.add(batch.id, place, chunk)
            place += len(chunk)
            told(len(chunk))
        return batch.id

    def _digest(self) -> bytes:
        told = [self._view.name, str(self._view.generation), self._after.isoformat(), self._end.isoformat()]
        return blake2b("\0".join(told).encode(), digest_size=16).digest()

    def _jobs(self, batch: BatchId) -> Iterator[NewJob]:
        view = self._view
        job = one_at_a_time(view.job, view.name) if view.plan.alone else view.job
        spec = structs.replace(job.spec, batch=batch)
        for place, tick in enumerate(ticks(view.plan.timing, self._after, self._end)):
            payload = with_tick(job.payload, view.plan, tick)
            yield structs.replace(
                job, id=job_id_at(batch, place), spec=spec, payload=payload, first=True, unique=None
            )


def _just_before(start: datetime) -> datetime:
    """Ticks are those after a time, and a backfill begins with one that is at its start."""
    return start - timedelta(microseconds=1)


def _aware(name: str, given: Any) -> datetime:
    if not isinstance(given, datetime) or given.tzinfo is None:
        raise OptionInvalid(f"{name} is a datetime with a time zone, not {given!r}.")
    return in_zone(name, given)
