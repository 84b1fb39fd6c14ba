"""The pace at which a worker ends jobs, as it tells it."""

import pytest

from lateshift.model.draining import QUEUES_TOLD
from lateshift.worker.ends import ENOUGH, IDLE, WINDOW, Ends, pace_of


class Time:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def lived(ends: Ends, time: Time, seconds: float, per_second: float, *, had: int = 0) -> dict[str, float]:
    """Told twice a second, as a worker does, while it has jobs of the queue."""
    told: dict[str, float] = {}
    begun = time.now
    while time.now < begun + seconds:
        time.now += 0.5
        told = ends.per_second({"mail": had + int((time.now - begun) * per_second)}, {"mail"})
    return told


@pytest.mark.parametrize("seconds", [3, 20, 100, 900])
def test_a_pace_is_of_the_time_in_which_there_was_something_to_end(seconds: float) -> None:
    time = Time()
    ends = Ends(time)
    time.now += 3600
    ends.per_second({}, set())  # nothing to do for an hour

    told = lived(ends, time, seconds, 100 / 60)

    assert told["mail"] == pytest.approx(100 / 60, rel=0.25 if seconds < 5 else 0.1)


def test_what_was_quick_and_is_slow_is_told_as_slow_soon() -> None:
    time = Time()
    ends = Ends(time)
    lived(ends, time, 60, 1000.0)

    told = lived(ends, time, 15, 10.0, had=60_000)

    assert told["mail"] == pytest.approx(10.0, rel=0.1)


def test_few_long_jobs_have_a_pace_too() -> None:
    time = Time()
    ends = Ends(time)

    assert lived(ends, time, 200, 0.02)["mail"] == pytest.approx(0.02, rel=0.3)


def test_what_has_not_ended_any_for_long_has_no_pace() -> None:
    time = Time()
    ends = Ends(time)
    lived(ends, time, 60, 1.0)

    assert lived(ends, time, WINDOW + IDLE, 0.0, had=60) == {}


def test_a_queue_without_jobs_is_history_soon_and_begins_anew() -> None:
    time = Time()
    ends = Ends(time)
    lived(ends, time, 60, 50.0)
    time.now += IDLE / 2
    still = ends.per_second({"mail": 3000}, set())
    time.now += IDLE
    gone = ends.per_second({"mail": 3000}, set())
    time.now += 0.5

    assert still["mail"] == pytest.approx(50.0, rel=0.1)
    assert gone == {}
    assert lived(ends, time, 20, 2.0, had=3000)["mail"] == pytest.approx(2.0, rel=0.1)


def test_a_worker_that_waits_for_long_bodies_does_not_tell_something_new_each_time() -> None:
    time = Time()
    ends = Ends(time)
    lived(ends, time, 60, 1.0)
    told = set()
    for _ in range(40):
        time.now += 0.5
        told.add(ends.per_second({"mail": 60}, {"mail"})["mail"])

    assert len(told) <= 3


def test_so_many_queues_are_told_those_that_end_most() -> None:
    time = Time()
    ends = Ends(time)
    time.now += 1

    told = ends.per_second({f"q{number:03}": number + 1 for number in range(QUEUES_TOLD + 5)}, set())

    assert len(told) == QUEUES_TOLD
    assert "q000" not in told


def test_the_newest_that_are_enough_make_the_pace() -> None:
    marks = [(0.0, 0), (100.0, 1000), (106.0, 1000 + ENOUGH)]

    assert pace_of(marks, 1000 + 2 * ENOUGH, 112.0) == round(ENOUGH / 6, 2)
    assert pace_of(marks[:1], 0, 0.0) == 0.0
