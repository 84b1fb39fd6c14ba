"""A queue, and what stands in it."""

from datetime import datetime

from msgspec import Struct

from lateshift.store.contract import QueueView


class QueueDocument(Struct, frozen=True, kw_only=True):
    """What stands in a queue. A count stops at 10,000. Where `more_running`, more jobs run, over all queues,
    than were counted, and `running` may be too small."""

    name: str
    ready: int
    scheduled: int
    running: int
    more_running: bool
    blocked: int
    dead: int
    oldest_ready_seconds: float | None
    paused: bool
    paused_by: str | None
    paused_at: datetime | None


def queue_document(view: QueueView) -> QueueDocument:
    oldest = view.oldest_ready
    return QueueDocument(
        name=view.name, ready=view.ready, scheduled=view.scheduled, running=view.running, more_running=view.more_running, blocked=view.blocked, dead=view.dead,
        oldest_ready_seconds=None if oldest is None else oldest.total_seconds(), paused=view.paused_at is not None,
        paused_by=view.paused_by, paused_at=view.paused_at,
    )  # fmt: skip
