"""One look at the store, for metrics: every read is bounded, so that a backlog does not make it dear."""

from datetime import datetime, timedelta

from msgspec import Struct

from lateshift.model.breaker import CircuitView
from lateshift.model.guard import queue_rates
from lateshift.model.scheduling.schedule import SCHEDULE_LATE
from lateshift.model.triggering.trigger import TriggerView
from lateshift.model.workflow.run import Phase
from lateshift.store.contract import MemberView, QueueView, Store
from lateshift.store.keyless import without_key

SCHEDULES_LOOKED_AT = 10_000  # counted in the store
SEEN_MOST = 1_000  # queues, members, breakers and triggers, of each
RUNS_LOOKED_AT = 1000  # of runs that are held, and of those that are being undone, the newest
SEALED_LOOKED_AT = 1000  # jobs of each sensitive queue
BATCHES_LOOKED_AT = 100  # the newest


class Look(Struct, frozen=True, kw_only=True):
    """What was seen, and when, by the store's clock as this process knows it."""

    at: datetime
    queues: list[QueueView]
    members: list[MemberView]
    breakers: list[CircuitView]
    triggers: list[TriggerView]
    limits: dict[str, float] = {}  # how many jobs of a queue may start in a second, where that is limited
    cut: frozenset[str]  # of which of these there are more
    schedules: int
    schedules_paused: int
    schedules_late: int
    latest_tick: timedelta  # how late the latest of them is
    runs_held: int
    runs_undoing: int
    batches_open: int
    batch_jobs_left: int
    replies_waiting: int
    oldest_reply: timedelta  # how long the oldest of them waits
    without_key: int


def look(store: Store) -> Look:
    now = store.clock.now()
    schedules = store.schedules.tally(SCHEDULE_LATE, SCHEDULES_LOOKED_AT)
    batches = [it for it in store.batches.newest(None, BATCHES_LOOKED_AT) if it.finished_at is None]
    replies, told_at = store.replies.waiting()
    one_more = SEEN_MOST + 1
    queues, members = store.queues.list(limit=one_more), store.reports.members(one_more)
    breakers, triggers = store.breakers.list(one_more), store.triggers.all(one_more)
    seen = (("queues", queues), ("members", members), ("breakers", breakers), ("triggers", triggers))
    return Look(
        at=now, limits=queue_rates(store.rules.list()),
        queues=queues[:SEEN_MOST], members=members[:SEEN_MOST], breakers=breakers[:SEEN_MOST],
        triggers=triggers[:SEEN_MOST], cut=frozenset(name for name, found in seen if len(found) > SEEN_MOST),
        schedules=schedules.count, schedules_paused=schedules.paused,
        schedules_late=schedules.late, latest_tick=schedules.latest,
        runs_held=sum(
            len(store.workflows.newest(None, RUNS_LOOKED_AT, phase=phase)) for phase in (Phase.HELD, Phase.UNDO_HELD)
        ),
        runs_undoing=sum(
            not run.state.settled for run in store.workflows.newest(None, RUNS_LOOKED_AT, phase=Phase.UNDOING)
        ),
        batches_open=len(batches),
        batch_jobs_left=sum(max(0, it.total - it.done) for it in batches),
        replies_waiting=replies,
        oldest_reply=timedelta(0) if told_at is None else max(timedelta(0), now - told_at),
        without_key=sum(it.count for it in without_key(store, SEALED_LOOKED_AT)),
    )  # fmt: skip
