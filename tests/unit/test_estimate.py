"""How much room a process assumes between two counts."""

import random

from hypothesis import given
from hypothesis import strategies as st

from lateshift.model.estimate import (
    FULL_FOR,
    FULL_MOST,
    PATIENCE,
    PAUSE,
    REFRESH,
    SHARE,
    Asked,
    Estimate,
)


def counted(most: int, waiting: int, now: float = 0.0, seconds: float = 0.0) -> Estimate:
    estimate = Estimate(most)
    assert estimate.ask(1, now) is Asked.COUNT
    estimate.counted(waiting, now, seconds)
    estimate.end_count()
    return estimate


def test_far_from_full_a_count_serves_many() -> None:
    estimate = counted(10_000, 0)
    for _ in range(10_000 // SHARE):
        assert estimate.ask(1, 0.5) == 1
    assert estimate.ask(1, 0.5) is Asked.COUNT


def test_close_to_full_each_job_is_counted_for() -> None:
    estimate = counted(100, 82)
    assert estimate.ask(5, 0.0) == 1
    assert estimate.ask(5, 0.0) is Asked.COUNT


def test_more_are_given_what_there_is() -> None:
    assert counted(1000, 0).ask(5000, 0.0) == 1000 // SHARE


def test_a_count_is_trusted_for_a_while_only() -> None:
    estimate = counted(100, 0)
    assert estimate.ask(1, REFRESH - 0.01) == 1
    assert estimate.ask(1, REFRESH) is Asked.COUNT


def test_a_full_queue_is_counted_again_after_a_pause() -> None:
    estimate = counted(10, 10, seconds=0.01)
    assert estimate.ask(1, 0.009 * FULL_FOR) is Asked.FULL
    assert estimate.ask(1, 0.01 * FULL_FOR) is Asked.COUNT


def test_what_takes_long_to_count_is_counted_less_often() -> None:
    assert counted(10, 10, seconds=0.0).pause == PAUSE
    assert counted(10, 10, seconds=0.01).pause == 0.01 * FULL_FOR
    assert counted(10, 10, seconds=9.0).pause == FULL_MOST


def test_one_counts_and_the_others_wait_for_it_but_not_for_ever() -> None:
    estimate = Estimate(10)
    assert estimate.ask(1, 0.0) is Asked.COUNT
    assert estimate.ask(1, PATIENCE / 2) is Asked.COUNTING
    assert estimate.ask(1, PATIENCE) is Asked.COUNT
    estimate.end_count()
    assert estimate.ask(1, PATIENCE) is Asked.COUNT


def test_what_is_on_its_way_counts() -> None:
    estimate = counted(10, 9)
    assert estimate.ask(1, 0.0) == 1
    assert estimate.ask(1, 0.0) is Asked.COUNT
    estimate.counted(9, 0.0, 0.1)  # the one on its way is not there yet
    estimate.end_count()
    assert estimate.ask(1, 0.0) is Asked.FULL
    estimate.sent(1)
    assert estimate.ask(1, 1.0) is Asked.COUNT
    estimate.counted(9, 1.0, 0.0)
    assert estimate.ask(1, 1.0) == 1


def test_room_that_was_made_is_on_its_way_and_the_rest_is_counted_anew() -> None:
    estimate = counted(10, 10, seconds=1.0)
    assert estimate.ask(1, 0.0) is Asked.FULL
    assert estimate.force(3) == 3
    estimate.forget()
    assert estimate.ask(1, 0.0) is Asked.COUNT


@given(processes=st.integers(1, 12), most=st.integers(1, 300), seed=st.integers(0, 1000))
def test_each_other_process_exceeds_the_limit_by_no_more_than_its_share(
    processes: int, most: int, seed: int
) -> None:
    """They all count when they like, and use what they were granted when they like, within one second."""
    chance = random.Random(seed)
    waiting = 0
    estimates = [Estimate(most) for _ in range(processes)]
    for _ in range(3000):
        estimate = chance.choice(estimates)
        match estimate.ask(1, 0.0):
            case Asked.COUNT:
                estimate.counted(min(waiting, most), 0.0, 0.0)
                estimate.end_count()
            case int():
                waiting += 1
                estimate.sent(1)
            case _:
                pass
    assert most <= waiting <= most + (processes - 1) * max(1, most // SHARE)
