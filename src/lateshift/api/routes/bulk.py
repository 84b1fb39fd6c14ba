"""Bulk actions: cancel or resubmit many jobs, seen first."""

from datetime import timedelta
from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct, field

from lateshift.api.asked import Asked
from lateshift.api.bounds import SHOWN_OF_BULK, RateText
from lateshift.api.problem import Refused
from lateshift.api.route import Reach, Route
from lateshift.api.routes.narrowing import NARROWING, Narrowed, filter_of
from lateshift.api.steps import sent_elsewhere
from lateshift.documents.jobs import JobSeen, job_seen
from lateshift.model.access import Scope
from lateshift.model.rate import Rate
from lateshift.model.workflow.among import RunsAmong
from lateshift.operating.bulk import (
    BULK_MOST,
    RESUBMIT,
    Chosen,
    carry_out,
    choose,
    choose_these,
    first_of,
    runs_among,
)

Ids = Annotated[list[UUID], Meta(max_length=BULK_MOST)]


class Bulk(Narrowed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to do to which jobs: `ids`, or those that fit the filters, or `all`; the newest `limit` of them. Without a `state`, a
    resubmission is of dead letters. `rate`: how fast those that are resubmitted go, such as `10/s`: each is scheduled for its time."""

    action: Literal["cancel", "resubmit"]
    ids: Ids = field(default_factory=list)
    all: bool = False
    limit: Annotated[int, Meta(ge=1, le=BULK_MOST)] = BULK_MOST
    rate: RateText | None = None


class BulkPreview(Struct, frozen=True, kw_only=True):
    """What would be done; nothing was. `ids`: to whom, which is what to send then. `runs`: those that are runs of workflows, and what
    becomes of these. `others`: jobs that are meant and in no state for it, or runs that would have jobs made in queues that the token
    is not for. `cut`: there may be more."""

    action: str
    ids: list[UUID]
    first: list[JobSeen]
    runs: RunsAmong
    others: int
    cut: bool


class BulkDone(Struct, frozen=True, kw_only=True):
    """To whom it was done, and to whom not, as they had changed or were in no state for it. `cut`: there may be more. `spread`: seconds
    until the last of them is due, by the rate."""

    action: str
    done: list[UUID]
    others: int
    cut: bool
    spread: float


def preview_bulk(asked: Asked) -> BulkPreview:
    """What a bulk action with the same body would do; nothing is written."""
    _rate(asked.body)
    chosen = _chosen(asked)
    return BulkPreview(
        action=asked.body.action, ids=[view.id for view in chosen.jobs], others=chosen.others, cut=chosen.cut,
        first=[job_seen(view) for view in first_of(asked.store, chosen, SHOWN_OF_BULK)],
        runs=runs_among(asked.store, asked.body.action, chosen.jobs),
    )  # fmt: skip


def do_bulk(asked: Asked) -> BulkDone:
    """Cancel many jobs, or make many that are dead or cancelled ready again; each is audited.

    Repeat it for those that are left: what was done is not done again. With a rate, those that are resubmitted are scheduled, the first
    for now and each other for its time: nothing has to stay open for that."""
    rate = _rate(asked.body)
    chosen = _chosen(asked)
    ids = [view.id for view in chosen.jobs]
    delays = {} if rate is None else rate.delays(ids)
    done = carry_out(asked.store, asked.body.action, ids, by=asked.by, delays=delays)
    others = chosen.others + len(ids) - len(done)
    spread = max((delays[id] for id in done if id in delays), default=timedelta(0))
    return BulkDone(
        action=asked.body.action, done=done, others=others, cut=chosen.cut, spread=spread.total_seconds()
    )


def _rate(body: Bulk) -> Rate | None:
    if body.rate is not None and body.action != RESUBMIT:
        raise Refused(
            422, "body-invalid", "Only what is resubmitted goes at a rate: leave it out.", field="rate"
        )
    return None if body.rate is None else Rate.read(body.rate)


def _chosen(asked: Asked) -> Chosen:
    chosen = _meant(asked)
    kept = [view for view in chosen.jobs if not sent_elsewhere(asked, view)]
    chosen.others += len(chosen.jobs) - len(kept)
    chosen.jobs = kept
    return chosen


def _meant(asked: Asked) -> Chosen:
    body: Bulk = asked.body
    narrowed = any(getattr(body, name) is not None for name in NARROWING)
    if [bool(body.ids), narrowed, body.all].count(True) != 1:
        raise Refused(
            422, "body-invalid", "Say which jobs, in one way: their ids; or filters, such as queue or tag; or all of them.",
            field="ids",
        )  # fmt: skip
    if not body.ids:
        asked.allow(body.queue)
        return choose(asked.store, body.action, filter_of(body, asked), body.limit)
    named = asked.jobs(body.ids)
    return choose_these(asked.store, body.action, named)


ROUTES = (
    Route(method="POST", path="/v1/bulk/preview", handler=preview_bulk, takes=Bulk, gives=BulkPreview, dear=True, scope=Scope.OPERATE,
          reach=Reach.ONE, previews=True),
    Route(method="POST", path="/v1/bulk", handler=do_bulk, takes=Bulk, gives=BulkDone, dear=True, scope=Scope.OPERATE, reach=Reach.ONE),
)  # fmt: skip
