"""How a store looks for jobs: bounded, whatever the filter. Jobs stand in two tables, and are read from each by an index that knows
some of the filters; the others are looked for among what it gives, LOOKED_AT jobs at most and about SEARCH_TIME long."""

from collections.abc import Callable, Sequence
from uuid import UUID

from msgspec import Struct, structs

from lateshift.model.ids import JobId, first_id_at
from lateshift.model.job import JobFilter, JobView, State
from lateshift.model.search import LOOKED_AT, Found

STRIDE = 1_000  # jobs that are looked at first; the rest only if they were not enough
SEARCH_TIME = 3.0  # seconds for each table, after which the rest is for the next page: large arguments take long to look through
KINDS_LOOKED_AT = (
    100  # pairs of a queue and a task, among which those of one queue, or of one task, are looked for
)
LOWEST, HIGHEST = UUID(int=0), UUID(int=2**128 - 1)


class Source(Struct, frozen=True):
    """One table by one of its indexes. `floor`: the id of the so-manieth job between two others, from above; None if there are
    fewer; a source that is small by itself has none. `page`: the newest of them that fit."""

    floor: Callable[[JobId, JobId, int], JobId | None] | None
    page: Callable[[JobId, JobId, int], list[JobView]]


class Choice(Struct, frozen=True):
    """The names of statements, the same in each store: `page` gives jobs, `floor` says how far down so many of them go."""

    page: str
    floor: str | None


def parts(
    wanted: JobFilter,
    many: Callable[[str], bool],
    of_dead: Callable[[str, int], list[tuple[str, str]]],
) -> list[tuple[JobFilter, Choice]]:
    """What serves a filter best, each with what it is asked for. `of_dead`: which queues and tasks have dead letters, from a queue on,
    so many of these pairs."""
    found = _of_tasks(wanted, of_dead)
    return [(wanted, choice) for choice in choices(wanted, many)] if found is None else found


def _of_tasks(
    wanted: JobFilter, of_dead: Callable[[str, int], list[tuple[str, str]]]
) -> list[tuple[JobFilter, Choice]] | None:
    """Dead letters of a queue or a task, by the index of both: one part for each pair of them. None if that is not what is wanted,
    or if there are too many parts."""
    beside = (wanted.batch, wanted.tag, wanted.key)
    if wanted.state is not State.DEAD or any(each is not None for each in beside):
        return None
    if wanted.queue is not None and wanted.task is not None:
        pairs = [(wanted.queue, wanted.task)]
    elif wanted.queue is None and wanted.task is None:
        return None
    else:
        there = of_dead(wanted.queue or "", KINDS_LOOKED_AT + 1)
        pairs = [
            (queue, task)
            for queue, task in there
            if wanted.queue in (None, queue) and wanted.task in (None, task)
        ]
        if len(there) > KINDS_LOOKED_AT and wanted.queue in (None, there[-1][0]):
            return None
    more = wanted.narrows_beyond(("state", "queue", "task"))
    if more and len(pairs) > 1:  # each would be looked through
        return None
    choice = Choice("DEAD_OF_TASK", "DEAD_TASK_FLOOR" if more else None)
    return [(structs.replace(wanted, queue=queue, task=task), choice) for queue, task in pairs]


def choices(wanted: JobFilter, many: Callable[[str], bool]) -> list[Choice]:
    """What serves a filter best: in the table of those that have not ended, in that of those that have, or in both. `many`:
    whether a session or a tenant has so many jobs that its newest are soon found among all."""
    hot = [_hot(wanted, many)] if wanted.state is None or not wanted.state.settled else []
    cold = [_cold(wanted)] if wanted.state is None or wanted.state.settled else []
    return hot + cold


def _hot(wanted: JobFilter, many: Callable[[str], bool]) -> Choice:
    if wanted.tag is not None:
        return _served(wanted, "HOT_OF_TAG", "TAG_FLOOR", "tag")
    if wanted.batch is not None:
        return _served(wanted, "HOT_OF_BATCH", "HOT_BATCH_FLOOR", "batch")
    if wanted.state is State.RUNNING:
        return Choice("RUNNING_JOBS", None)
    if wanted.session is not None and not many("MANY_OF_SESSION"):
        return Choice("HOT_OF_SESSION", None)
    if wanted.session is None and wanted.tenant is not None and not many("MANY_OF_TENANT"):
        return Choice("HOT_OF_TENANT", None)
    return _served(wanted, "HOT_JOBS", "HOT_FLOOR")


def _cold(wanted: JobFilter) -> Choice:
    if wanted.tag is not None:
        return _served(wanted, "COLD_OF_TAG", "TAG_FLOOR", "tag")
    if wanted.state is State.DEAD:
        if wanted.batch is not None:
            return _served(wanted, "DEAD_OF_BATCH", "DEAD_BATCH_FLOOR", "state", "batch")
        return _served(wanted, "DEAD_JOBS", "DEAD_FLOOR", "state")
    if wanted.batch is not None:
        return _served(wanted, "COLD_OF_BATCH", "COLD_BATCH_FLOOR", "batch")
    return _served(wanted, "COLD_JOBS", "COLD_FLOOR")


def _served(wanted: JobFilter, page: str, floor: str, *by: str) -> Choice:
    """Where the index knows all that is asked, the first page is as long as it is, and no floor is needed."""
    return Choice(page, floor if "tag" in by or wanted.narrows_beyond(by) else None)


def bounds(wanted: JobFilter) -> tuple[JobId, JobId]:
    """Below the first of these, and from the second on, are the ids that its times and its page allow."""
    above = wanted.before or HIGHEST
    if wanted.until is not None:
        above = min(above, first_id_at(wanted.until))
    return above, LOWEST if wanted.since is None else first_id_at(wanted.since)


def search(
    sources: Sequence[Source],
    wanted: JobFilter,
    limit: int,
    now: Callable[[], float],
    keyed: Sequence[JobId] | None = None,
) -> Found:
    """The newest of all of them; or of `keyed`, the few that can be meant. Below the highest floor not every source was looked at: what is there is for the next page."""
    above, lowest = bounds(wanted)
    if keyed is not None:
        near = sorted((id for id in keyed if lowest <= id < above), reverse=True)
        return Found(
            [view for id in near for source in sources for view in source.page(next_id(id), id, 1)][:limit]
        )
    looked = [_look(source, above, lowest, limit, now) for source in sources]
    floors = [floor for _, floor in looked if floor is not None]
    bottom = max(floors, default=None)
    views = {view.id: view for found, _ in looked for view in found if bottom is None or view.id >= bottom}
    jobs = [views[id] for id in sorted(views, reverse=True)]
    if len(jobs) >= limit:
        more = len(jobs) > limit or bottom is not None
        return Found(jobs[:limit], jobs[limit - 1].id if more else None)
    return Found(jobs, bottom, cut=bottom is not None)


def next_id(id: JobId) -> JobId:
    return UUID(int=id.int + 1)


def all_of(look: Callable[..., Found], wanted: JobFilter, limit: int, *, whole: bool = True) -> list[JobView]:
    """As many as are wanted, however far they are to be looked for."""
    jobs: list[JobView] = []
    while len(jobs) < limit:
        found = look(wanted, limit - len(jobs), whole=whole)
        jobs += found.jobs
        if found.before is None:
            break
        wanted = structs.replace(wanted, before=found.before)
    return jobs


def _look(
    source: Source, above: JobId, lowest: JobId, limit: int, now: Callable[[], float]
) -> tuple[list[JobView], JobId | None]:
    """What fits, and how far down was looked; None if to the end."""
    found: list[JobView] = []
    begun, looked, stride = now(), 0, STRIDE
    while True:
        floor = None if source.floor is None else source.floor(above, lowest, stride)
        found += source.page(above, lowest if floor is None else floor, limit - len(found))
        if len(found) >= limit:
            return found, found[-1].id
        if floor is None:
            return found, None
        above, looked = floor, looked + stride
        stride = next_stride(looked, now() - begun)
        if not stride:
            return found, floor


def next_stride(looked: int, spent: float) -> int:
    """How many jobs are looked at next, after so many took so many seconds: all that are left, if there is time for them."""
    left = LOOKED_AT - looked
    fits = left if spent <= 0 else int(looked * (SEARCH_TIME - spent) / spent)
    return left if fits >= left else fits if fits >= STRIDE else 0
