"""The queues there are, one list for commands, API and pages: those that have jobs, that were paused or that ran something of
late, those that a living worker serves by name, and those that its code, or the program that asks, declares."""

from collections.abc import Iterable
from datetime import timedelta

from lateshift.model.explaining.facts import MEMBERS_LOOKED_AT
from lateshift.model.figures import Grain
from lateshift.store.contract import COUNT_LIMIT, QueueView, Store

REMEMBERED = timedelta(days=1)  # for which a queue without jobs is known by what it has run
REMEMBERED_MOST = 500  # queues that are known so


def all_queues(store: Store, declared: Iterable[str] = (), most: int = COUNT_LIMIT) -> list[QueueView]:
    """By name; one without any job has zeros. Counts stop at `most`, as those of `queues.list`. Bounded: figures are kept by hour, and
    of members and their programs so many are looked at."""
    return with_empty(store.queues.list(most), {*_without_jobs(store), *declared})


def queue_names(store: Store, declared: Iterable[str] = ()) -> list[str]:
    """The same queues by name, with nothing counted in them: for whoever looks at some."""
    return sorted({*store.queues.names(), *_without_jobs(store), *declared})


def with_empty(views: Iterable[QueueView], names: Iterable[str]) -> list[QueueView]:
    there = {view.name: view for view in views}
    return [there.get(name) or empty(name) for name in sorted({*there, *names})]


def empty(name: str) -> QueueView:
    return QueueView(
        name=name, ready=0, scheduled=0, running=0, blocked=0, dead=0, oldest_ready=None, paused_by=None, paused_at=None
    )  # fmt: skip


def _without_jobs(store: Store) -> set[str]:
    since = store.clock.now() - REMEMBERED
    return {*store.figures.by_queue(Grain.HOUR, since, REMEMBERED_MOST), *_served(store)}


def _served(store: Store) -> set[str]:
    """What living workers say: the queues that they serve by name, and those that their code declares."""
    living = [member for member in store.reports.members(MEMBERS_LOOKED_AT) if not member.dead]
    named = {name for member in living if member.serves is not None for name in member.serves.named}
    return named.union(*(program.queues for program in store.reports.programs()))
