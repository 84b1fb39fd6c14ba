"""Which lines a worker asks, and when it looks for others."""

from datetime import timedelta

from lateshift.model.job import Lane, Line
from lateshift.store.contract import Want
from lateshift.worker.lines import Lines

POLL = timedelta(seconds=1)
LINE = Line("default", Lane.COROUTINE)


def test_a_worker_with_a_hot_line_and_no_room_pauses_until_the_next_look() -> None:
    lines = Lines(POLL)
    lines.looked([LINE], None, now=10.0)
    lines.warm(LINE, now=10.0)
    for now in (10.1, 10.5, 10.9):  # all that time nothing can be leased
        assert not lines.look_due(now)
        assert lines.pause(now) > timedelta(0)
    assert lines.look_due(11.0)


def test_without_a_hot_line_looks_follow_activity_in_quick_steps() -> None:
    lines = Lines(POLL)
    lines.looked([], None, now=10.0)
    assert timedelta(0) < lines.pause(10.0) < timedelta(seconds=0.1)
    assert lines.look_due(10.1)


def test_a_job_that_will_be_due_is_looked_for_then() -> None:
    lines = Lines(POLL)
    for now in range(10, 20):  # it has come to rest
        lines.looked([], None, now=float(now))
    lines.due_in(timedelta(milliseconds=300), now=19.0)
    assert lines.pause(19.0) == timedelta(milliseconds=300)


def test_a_line_that_was_asked_twice_at_once_goes_cold_once_where_the_clock_is_coarse() -> None:
    lines = Lines(POLL)
    lines.warm(LINE, now=10.0)
    lines.answered([Want(LINE, 2), Want(LINE, 2)], [], asked=10.0, now=10.0)
    assert lines.hot() == []
