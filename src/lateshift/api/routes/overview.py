"""How it goes over all queues, and the course of one queue or of all."""

from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct

from lateshift.api.bounds import Text
from lateshift.api.route import Asked, Reach, Route
from lateshift.documents.figures import HistoryDocument, history_document
from lateshift.model.access import Scope
from lateshift.model.figures import ALL, Figures, Over, Sample, together
from lateshift.operating import overview, pace
from lateshift.operating.attention import COUNTED_NOW, Attention, Seen, attention
from lateshift.operating.names import check_queue
from lateshift.operating.overview import Cost
from lateshift.operating.pace import Pace
from lateshift.operating.queues import all_queues
from lateshift.store.contract import MemberView, QueueView

Length: TypeAlias = Literal["hour", "day", "week"]


class OverviewQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    over: Length = "hour"


class HistoryQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    over: Length = "hour"
    queue: Text | None = None


class PaceDocument(Struct, frozen=True, kw_only=True):
    """`completed_per_second`: as many as were completed in the last five minutes, of which the other figures are, or since the first worker is there,
    over that time, a minute at least; workers tell what they counted every ten seconds.
    `start_p95_seconds`: within which 95 of a hundred jobs started after they were due. `drains_in_seconds`: until the slowest queue
    is empty at the pace that workers tell of now, null if nothing moves or nobody knows. `held_up`: jobs that do not move, and why: their queue is `paused`,
    they are `parked` behind a breaker, their `session` is `held`, or `no worker` takes them. `backlog` is counted up to 1,000 in each queue, and where it is
    more, once in a minute up to 100,000; `backlog_cut`: there may be more."""

    completed_per_second: float
    start_mean_seconds: float | None
    start_p95_seconds: float | None
    failed: int
    failed_share: float | None
    backlog: int
    backlog_cut: bool
    drains_in_seconds: float | None
    held_up: int
    held_up_why: str | None
    busy_workers: int
    idle_workers: int


class OverviewDocument(Struct, frozen=True, kw_only=True):
    """`attention`: what needs somebody, the worst first. `cost`: worker seconds by queue over the `over` that was asked for, the dearest
    first; `idle_share`: of the workers' time, in which they had nothing to run, told to those who may see all queues."""

    at: datetime
    over: str
    attention: list[Attention]
    now: PaceDocument
    cost: list[Cost]
    idle_share: float | None


class Looked(Struct, frozen=True, kw_only=True):
    """What an overview is made of; the page shows the same."""

    queues: list[QueueView]
    members: list[MemberView]
    attention: list[Attention]
    pace: Pace
    samples: list[Sample]
    total: Figures
    costs: list[Cost]


def look(asked: Asked, over: Over) -> Looked:
    """For one who may see some queues only, their figures are added up. Bounded: counts stop, figures are kept ready by period."""
    store, now = asked.store, asked.store.clock.now()
    whole = asked.sees_all
    there = all_queues(store, asked.app.declared_queues(), COUNTED_NOW)
    queues = [queue for queue in there if asked.shows(queue.name)]
    members = store.reports.members() if whole else []
    names = [queue.name for queue in queues]
    counted = pace.recent(store, queues, now, whole=whole)
    samples = overview.course(store, ALL, over, now) if whole else overview.course_of(store, names, over, now)
    seen = Seen(store, queues, members, asked.shows, whole, now)
    return Looked(
        queues=queues, members=members, attention=attention(seen), pace=pace.of_all(queues, counted, whole=whole),
        samples=samples, total=together(it.figures for it in samples), costs=overview.costs(store, over, now, asked.shows),
    )  # fmt: skip


def show_overview(asked: Asked) -> OverviewDocument:
    """What needs somebody, how it went in the last minutes, and what each queue costs."""
    query: OverviewQuery = asked.query
    looked = look(asked, Over[query.over.upper()])
    found, drains = looked.pace, looked.pace.drains_in
    return OverviewDocument(
        at=asked.store.clock.now(), over=query.over, attention=looked.attention, cost=looked.costs,
        idle_share=looked.total.idle_share,
        now=PaceDocument(
            completed_per_second=found.completed_per_second, start_mean_seconds=found.wait_mean, start_p95_seconds=found.wait_most,
            failed=found.failed, failed_share=found.failed_share, backlog=found.backlog, backlog_cut=found.cut,
            drains_in_seconds=None if drains is None else drains.total_seconds(), held_up=found.held_up, held_up_why=found.why,
            busy_workers=found.busy_workers, idle_workers=found.idle_workers,
        ),
    )  # fmt: skip


def show_history(asked: Asked) -> HistoryDocument:
    """The course of an hour, a day or a week, of one queue or of all together."""
    query: HistoryQuery = asked.query
    asked.allow(query.queue)
    over = Over[query.over.upper()]
    queue = ALL if query.queue is None else check_queue(query.queue)
    return history_document(
        query.queue, over, overview.course(asked.store, queue, over, asked.store.clock.now())
    )


ROUTES = (
    Route(method="GET", path="/v1/overview", handler=show_overview, asks=OverviewQuery, gives=OverviewDocument, dear=True, scope=Scope.READ,
          reach=Reach.OWN, untagged=("at",)),
    Route(method="GET", path="/v1/history", handler=show_history, asks=HistoryQuery, gives=HistoryDocument, dear=True, scope=Scope.READ,
          reach=Reach.ONE),
)  # fmt: skip
