"""The queues there are: those that have jobs, that were paused or that ran something of late, and those that a program declares."""

from collections.abc import Iterable
from datetime import timedelta

from lateshift.app import Lateshift
from lateshift.model.figures import Grain
from lateshift.store.contract import QueueView, Store

REMEMBERED = timedelta(days=1)  # for which a queue without jobs is known by what it has run
REMEMBERED_MOST = 500  # queues that are known so


def declared(app: Lateshift) -> set[str]:
    """By settings, or as the queue of a task."""
    return {*app.queues, *(task.limits.queue for task in app.tasks.values())}


def all_queues(store: Store, declared: Iterable[str], most: int) -> list[QueueView]:
    """By name; one without any job has zeros. Counts stop at `most`, as those of `queues.list`."""
    there = {view.name: view for view in store.queues.list(most)}
    since = store.clock.now() - REMEMBERED
    ran = store.figures.by_queue(Grain.HOUR, since, REMEMBERED_MOST)
    return [there.get(name) or empty(name) for name in sorted({*there, *ran, *declared})]


def empty(name: str) -> QueueView:
    return QueueView(
        name=name, ready=0, scheduled=0, running=0, blocked=0, dead=0, oldest_ready=None, paused_by=None, paused_at=None
    )  # fmt: skip
