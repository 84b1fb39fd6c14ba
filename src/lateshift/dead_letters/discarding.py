"""Discarding a lot of dead letters: looked through first, then deleted, each lot in one transaction."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import islice

from msgspec import Struct, field

from lateshift.model.discard import Discarded, Kept
from lateshift.model.ids import JobId
from lateshift.model.job import JobView
from lateshift.store.contract import Store
from lateshift.store.taking import KEEP_LEAST

DISCARD_MOST = 1_000  # dead letters that one transaction discards
EXAMPLES = 20


class DiscardPlan(Struct, kw_only=True):
    """What a discard would do; nothing was written. `kept`: which it would leave, and why; `until`: how long, of those that are new."""

    ids: list[JobId] = field(default_factory=list)
    examples: list[JobView] = field(default_factory=list)
    kept: dict[JobId, Kept] = field(default_factory=dict)
    until: datetime | None = None

    def leave(self, store: Store, kept: Mapping[JobId, Kept]) -> None:
        self.kept = dict(kept)
        new = max((id for id, why in kept.items() if why is Kept.NEW), default=None)
        view = None if new is None else store.reports.job(new)
        self.until = None if view is None else view.created_at + KEEP_LEAST


def plan(views: Iterable[JobView]) -> DiscardPlan:
    """Of those that can be discarded."""
    found = DiscardPlan()
    for view in views:
        found.ids.append(view.id)
        if len(found.examples) < EXAMPLES:
            found.examples.append(view)
    return found


def plan_these(store: Store, views: Iterable[JobView | None], kept: Mapping[JobId, Kept]) -> DiscardPlan:
    """Of those that somebody named; None is one that is not there."""
    found = plan(view for view in views if view is not None and view.id not in kept)
    found.leave(store, kept)
    return found


def discard(
    store: Store, ids: Iterable[JobId], *, by: str, told: Callable[[int], None] = lambda count: None,
    stopping: Callable[[], bool] = lambda: False,
) -> Discarded:  # fmt: skip
    """Up to DISCARD_MOST in each transaction."""
    done, left = Discarded(), iter(ids)
    while not stopping() and (lot := list(islice(left, DISCARD_MOST))):
        done.add(store.jobs.discard(lot, by=by))
        told(len(lot))
    return done
