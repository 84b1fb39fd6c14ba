"""How much waits and how long that takes, where counting stops."""

from datetime import timedelta

from msgspec import structs

from lateshift.dashboard.pages.queues import _cut, _shown
from lateshift.model.figures import BACKLOG_COUNTED
from lateshift.operating.attention import COUNTED_NOW
from lateshift.operating.overview import drains_in, waiting
from lateshift.operating.queues import empty
from lateshift.store.contract import QueueView


def queue(ready: int, *, blocked: int = 0, dead: int = 0) -> QueueView:
    return structs.replace(empty("mail"), ready=ready, blocked=blocked, dead=dead)


def test_few_jobs_are_told_as_they_are_counted_now() -> None:
    assert waiting([queue(7, blocked=2), queue(1)], sampled=500) == (10, False)


def test_where_the_count_stops_it_is_told_what_was_sampled() -> None:
    many = queue(COUNTED_NOW)
    assert waiting([many], sampled=54_321) == (54_321, False)
    assert waiting([queue(0, blocked=COUNTED_NOW)], sampled=2_000) == (2_000, False)


def test_more_than_was_ever_counted_may_be_still_more() -> None:
    many = queue(COUNTED_NOW)
    assert waiting([many], sampled=0) == (COUNTED_NOW, True)
    assert waiting([many], sampled=BACKLOG_COUNTED) == (BACKLOG_COUNTED, True)


def test_counts_that_stopped_say_so() -> None:
    many, few = queue(COUNTED_NOW, dead=COUNTED_NOW - 1), queue(3, dead=1)
    cut = _cut([many, few])

    assert cut == {"dead"}
    assert _shown(few, 0, cut)["ready"] == "3"
    assert _shown(few, 0, cut)["dead"] == "1+"
    assert _shown(many, 54_321, cut)["ready"] == "about 54,321"
    assert _shown(many, 0, cut)["ready"] == "1,000+"


def test_what_waits_drains_at_the_present_pace_or_never() -> None:
    assert drains_in(0, 0.0) == timedelta(0)
    assert drains_in(60, 2.0) == timedelta(seconds=30)
    assert drains_in(60, 0.0) is None
    assert drains_in(10**9, 1e-12) is not None
