"""Queues: what stands in each, and one with its limits, its tenants and its course."""

from msgspec import Struct

from lateshift.api.bounds import Text
from lateshift.api.route import Asked, Reach
from lateshift.api.routes import guards, queues
from lateshift.api.routes.overview import OverviewQuery
from lateshift.dashboard.chart import charts
from lateshift.dashboard.page import Action, Context, Page
from lateshift.model.access import Scope
from lateshift.model.draining import Drain
from lateshift.model.figures import Over
from lateshift.operating import overview, pace
from lateshift.operating.attention import COUNTED_NOW
from lateshift.operating.names import check_queue
from lateshift.operating.queues import all_queues, queue_names
from lateshift.store.contract import QueueView
from lateshift.store.guard_contract import TENANT_COUNTED

STATES = ("ready", "running", "scheduled", "blocked", "dead")
QUEUES_SHOWN = 100  # on one page
TENANTS_SHOWN = 50
SESSIONS_LOOKED_AT = 200  # that are held, of a queue
WORKERS_SHOWN = 20


class QueuesQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Text | None = None
    after: Text | None = None


class Row(Struct, frozen=True):
    """A queue and how it goes. `shown`: its counts, by state, as they are told."""

    queue: QueueView
    per_second: float
    drain: Drain
    shown: dict[str, str]


def queues_page(asked: Asked) -> Context:
    """Reads all_queues (bounded), and the figures of the last minutes by queue."""
    query: QueuesQuery = asked.query
    store, now = asked.store, asked.store.clock.now()
    all = all_queues(store, asked.app.declared_queues(), COUNTED_NOW)
    found = [it for it in all if asked.shows(it.name) and (query.name or "") in it.name]
    shown = [it for it in found if it.name > (query.after or "")]
    seen = pace.recent(store, shown[:QUEUES_SHOWN], now, whole=False)
    rows = []
    for queue in shown[:QUEUES_SHOWN]:
        goes = pace.of_queue(queue, seen)
        rows.append(Row(queue, goes.per_second, goes.drain, _shown(queue, goes.backlog, goes.cut)))
    return {"rows": rows, "query": query, "after": rows[-1].queue.name if len(shown) > QUEUES_SHOWN else None}


def queue_page(asked: Asked) -> Context:
    """Reads queues.list, figures of one queue, its tenants and the sessions that are held, each up to a limit."""
    asked.allow(asked.name)
    name = check_queue(asked.name)
    query: OverviewQuery = asked.query
    over = Over[query.over.upper()]
    store, now = asked.store, asked.store.clock.now()
    [queue] = store.queues.list(COUNTED_NOW, of=[name])
    seen = pace.recent(store, [queue], now, whole=False)
    goes = pace.of_queue(queue, seen)
    serving = [it for it in seen.workers if it.serves is not None and it.serves.takes_from(name)]
    # In order of the queues.
    held = store.sessions.list(held=True, limit=SESSIONS_LOOKED_AT, after=(name, ""), whole=False)
    return {
        "queue": queue, "known": _is_known(asked, queue), "over": query.over, "charts": charts(overview.course(store, name, over, now), over, workers=False),
        "per_second": goes.per_second, "drain": goes.drain, "shown": _shown(queue, goes.backlog, goes.cut),
        "rules": [rule for rule in store.rules.list() if (rule.scope, rule.name) == ("queue", name)],
        "tenants": store.queues.tenants(name, TENANTS_SHOWN), "tenants_most": TENANTS_SHOWN, "tenant_counted": TENANT_COUNTED,
        "sessions": [it for it in held if it.queue == name],
        "served": serving[:WORKERS_SHOWN], "more_served": max(0, len(serving) - WORKERS_SHOWN),
    }  # fmt: skip


def _is_known(asked: Asked, queue: QueueView) -> bool:
    """Whether anything but an address names it."""
    stands = any(getattr(queue, state) for state in STATES) or queue.paused_at is not None
    return stands or queue.name in queue_names(asked.store, asked.app.declared_queues())


def _shown(queue: QueueView, backlog: int, more: bool) -> dict[str, str]:
    """Counts by state; one that stopped says so, and of ready jobs how many waited when it was sampled last."""
    counts = {state: getattr(queue, state) for state in STATES}
    cut = {state for state, count in counts.items() if state != "running" and count >= COUNTED_NOW}
    cut |= {"running"} if queue.more_running else set()
    shown = {state: f"{count:,}{'+' if state in cut else ''}" for state, count in counts.items()}
    if queue.ready >= COUNTED_NOW:
        shown["ready"] = f"{backlog:,}+" if more else f"about {backlog:,}"
    return shown


PAGES = (
    Page(path="/queues", title="Queues", section="Queues", template="queues.html", handler=queues_page, dear=True, scope=Scope.READ,
         reach=Reach.OWN, asks=QueuesQuery),
    Page(path="/queues/{name}", title="Queue", section="Queues", template="queue.html", handler=queue_page, scope=Scope.READ,
         reach=Reach.ONE, asks=OverviewQuery, actions={
             "pause": Action(queues.pause_queue), "resume": Action(queues.resume_queue),
             "release": Action(guards.release_session),
         }),
)  # fmt: skip
