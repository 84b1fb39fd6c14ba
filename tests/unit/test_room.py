"""How many jobs a worker asks for, and of which lines."""

from datetime import timedelta

from lateshift.model.ids import new_job_id
from lateshift.model.job import Lane, Lease, Line
from lateshift.store.contract import Want
from lateshift.worker.lines import Lines
from lateshift.worker.room import BATCH, Room

LINE = Line("default", Lane.THREAD)


def lease(line: Line) -> Lease:
    return Lease(new_job_id(), 1, "t", b"{}", 1, 1, None, line.queue, line.lane)


def test_a_worker_asks_for_as_many_as_it_has_slots() -> None:
    room = Room(16)
    assert room.wanted() == 16
    room.held = 10
    assert room.wanted() == 6


def test_jobs_that_take_long_are_not_taken_in_advance() -> None:
    room = Room(4, held=4)
    for _ in range(4):
        room.end(2.0)
    room.held = 4
    assert room.wanted() == 0


def test_quick_jobs_are_taken_in_advance_up_to_a_batch() -> None:
    room = Room(4, held=4)
    for _ in range(4):
        room.end(0.00001)
    room.held = 4
    assert room.wanted() == BATCH


def test_when_jobs_turn_slow_the_advance_shrinks() -> None:
    room = Room(4, mean=0.0001)
    before = room.wanted()
    for _ in range(5):
        room.held = 1
        room.end(1.0)
        room.wanted()
    room.held = 0
    assert room.wanted() < before
    assert room.wanted() == 4


def test_a_hint_makes_a_line_hot_and_a_poor_answer_cold() -> None:
    lines = Lines(timedelta(seconds=1))
    assert lines.warm(LINE, 0.0)
    assert not lines.warm(LINE, 0.0)
    assert lines.hot() == [LINE]
    lines.answered([Want(LINE, 2)], [lease(LINE), lease(LINE)], 0.1, 0.1)
    assert lines.hot() == [LINE]
    lines.answered([Want(LINE, 2)], [lease(LINE)], 0.2, 0.2)
    assert lines.hot() == []


def test_looks_follow_activity_in_quick_steps_and_then_rest() -> None:
    lines = Lines(timedelta(seconds=1))
    now, looks = 0.0, []
    lines.warm(LINE, now)
    lines.answered([Want(LINE, 2)], [lease(LINE)], now, now)
    for _ in range(14):
        now += lines.pause(now).total_seconds()
        assert lines.look_due(now)
        looks.append(now)
        lines.looked([], None, now)
    assert looks[0] < 0.01
    assert looks[3] < 0.05
    assert looks[-1] - looks[-2] == 1.0


def test_a_job_that_will_be_due_is_looked_for_then() -> None:
    lines = Lines(timedelta(seconds=1))
    for now in range(1, 20):
        lines.looked([], None, float(now))
    lines.due_in(timedelta(milliseconds=200), 19.0)
    assert lines.pause(19.0) == timedelta(milliseconds=200)


def test_while_a_line_gives_jobs_others_are_looked_for_at_the_pace_of_polling() -> None:
    lines = Lines(timedelta(seconds=1))
    lines.looked([LINE], None, 10.0)
    lines.answered([Want(LINE, 1)], [lease(LINE)], 10.1, 10.1)
    assert not lines.look_due(10.5)
    assert lines.look_due(11.0)


def test_a_line_stays_hot_when_only_one_priority_was_asked_or_a_hint_came_after_the_question() -> None:
    lines = Lines(timedelta(seconds=1))
    lines.warm(LINE, 0.0)
    lines.answered([Want(LINE, 2, by_age=True)], [lease(LINE)], 0.1, 0.2)
    assert lines.hot() == [LINE]
    lines.warm(LINE, 0.4)
    lines.answered([Want(LINE, 2)], [], 0.3, 0.5)
    assert lines.hot() == [LINE]
    lines.answered([Want(LINE, 2)], [], 0.6, 0.7)
    assert lines.hot() == []
