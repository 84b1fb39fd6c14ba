"""Many jobs at once: looked for first, so that somebody can say yes, then done to those very jobs, some in each transaction."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from msgspec import Struct, structs

from lateshift.model.ids import JobId
from lateshift.model.job import JobFilter, JobView, State
from lateshift.model.search import LOOKED_AT
from lateshift.model.workflow import among
from lateshift.model.workflow.among import RunsAmong
from lateshift.model.workflow.run import is_step
from lateshift.store.contract import Store
from lateshift.store.crashpoints import crashpoint

BULK_MOST = 1_000  # jobs that one bulk action takes
BATCH = 200  # of them in one transaction, and read at once
CANCEL, RESUBMIT = "cancel", "resubmit"


class Chosen(Struct, kw_only=True):
    """What a bulk action would take; jobs are bare. `others`: jobs that fit, and are in no state for it. `cut`: there may be more."""

    jobs: list[JobView]
    others: int = 0
    cut: bool = False


def choose(store: Store, action: str, wanted: JobFilter, limit: int = BULK_MOST) -> Chosen:
    """The newest that fit a filter. Without a state, a resubmission is of dead letters."""
    if action == RESUBMIT and wanted.state is None:
        wanted = structs.replace(wanted, state=State.DEAD)
    chosen = Chosen(jobs=[])
    for looked_at, view in enumerate(_newest(store, wanted, chosen)):
        if looked_at >= LOOKED_AT or len(chosen.jobs) >= limit:
            chosen.cut = True
            break
        if can(action, view):
            chosen.jobs.append(bare(view))
        else:
            chosen.others += 1
    return without_steps(store, action, chosen)


def choose_these(store: Store, action: str, found: Sequence[JobView | None]) -> Chosen:
    """Those of these that are in a state for it, bare as well; None is one that is not there."""
    jobs = [bare(view) for view in found if view is not None and can(action, view)]
    return without_steps(store, action, Chosen(jobs=jobs, others=len(found) - len(jobs)))


def bare(view: JobView) -> JobView:
    """Without what it holds and what it has said: many are kept until it is said what becomes of them."""
    return structs.replace(
        view, payload=b"null", result=None, progress=None, checkpoint=None, history=[], tags=()
    )


def first_of(store: Store, chosen: Chosen, most: int) -> list[JobView]:
    """The first that would be taken, slim, to be shown."""
    ids = [view.id for view in chosen.jobs[:most]]
    return [view for view in store.reports.named(ids, whole=False) if view is not None]


def can(action: str, view: JobView) -> bool:
    """Whether it is in a state for it. What was told to stop will."""
    if action == CANCEL:
        return not view.state.settled and not view.cancel_requested
    return view.state.uncompleted


def without_steps(store: Store, action: str, chosen: Chosen) -> Chosen:
    """A run of a workflow has another job made of its step: these are not resubmitted."""
    within = [view.batch for view in chosen.jobs if view.batch is not None] if action == RESUBMIT else []
    runs = store.workflows.begun(within) if within else {}
    if runs:
        kept = [view for view in chosen.jobs if not is_step(view, runs)]
        chosen.others += len(chosen.jobs) - len(kept)
        chosen.jobs = kept
    return chosen


def runs_among(store: Store, action: str, jobs: Sequence[JobView]) -> RunsAmong:
    """What becomes of those that are runs of workflows: one look at the rows of these, by their ids."""
    if action != CANCEL:
        return among.resubmitted(jobs)
    ids = [view.id for view in jobs if view.is_run]
    return among.cancelled(jobs, store.workflows.begun(ids) if ids else {})


def carry_out(
    store: Store, action: str, ids: Sequence[JobId], *, by: str, delays: Mapping[JobId, timedelta] | None = None
) -> list[JobId]:  # fmt: skip
    """Gives those that it was done to; each is audited. `delays`: until those that are resubmitted are due."""
    done: list[JobId] = []
    for start in range(0, len(ids), BATCH):
        batch = ids[start : start + BATCH]
        if action == CANCEL:
            done += store.jobs.cancel(batch, by=by)
        else:
            done += store.jobs.resubmit(batch, by=by, delays=delays)
        crashpoint("bulk.after_batch")
    return done


def _newest(store: Store, wanted: JobFilter, chosen: Chosen) -> Iterator[JobView]:
    """Page by page, until one was cut short."""
    while True:
        page = store.reports.search(wanted, BATCH, whole=False)
        yield from page.jobs
        if page.before is None:
            return
        if page.cut:
            chosen.cut = True
            return
        wanted = structs.replace(wanted, before=page.before)
