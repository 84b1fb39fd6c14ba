"""When to try again."""

import math
import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lateshift.errors import OptionInvalid
from lateshift.model.remote import RemoteError
from lateshift.model.retry import JITTER, LONGEST_DELAY, NO_RETRY, Retry

SECOND = timedelta(seconds=1)


class Busy(Exception):
    def __init__(self, retry_after: object) -> None:
        super().__init__("busy")
        self.retry_after = retry_after


@given(attempt=st.integers(1, 10_000), base=st.integers(0, 1000), cap=st.integers(0, 10_000))
def test_the_wait_is_between_nothing_and_the_doubled_base_and_never_over_the_cap(
    attempt: int, base: int, cap: int
) -> None:
    wait = Retry(base=base * SECOND, cap=cap * SECOND).delay(attempt)

    ceiling = min(base * 2.0 ** min(attempt - 1, 100), cap)
    assert timedelta(0) <= wait <= timedelta(seconds=ceiling)


def test_the_wait_doubles_with_each_attempt_until_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "random", lambda: 1.0)
    retry = Retry(base=2 * SECOND, cap=10 * SECOND)

    assert [retry.delay(attempt).total_seconds() for attempt in (1, 2, 3, 4, 5)] == [2, 4, 8, 10, 10]


def test_a_crowd_that_failed_together_does_not_come_back_together() -> None:
    waits = [Retry(base=10 * SECOND).delay(1).total_seconds() for _ in range(400)]

    assert len(set(waits)) > 390
    assert min(waits) < 2
    assert max(waits) > 8


def test_waits_that_are_given_are_kept_to_and_the_last_goes_on() -> None:
    retry = Retry(attempts=9, waits=(SECOND, 60 * SECOND))

    for attempt, wait in ((1, SECOND), (2, 60 * SECOND), (8, 60 * SECOND)):
        assert wait <= retry.delay(attempt) <= wait * (1 + JITTER)
    assert retry.delay(1, Busy(7)) == 7 * SECOND
    with pytest.raises(OptionInvalid, match="waits are timedeltas"):
        Retry(waits=(-SECOND,))


@pytest.mark.parametrize(
    ("wish", "wait"),
    [
        (timedelta(seconds=7), 7 * SECOND),
        (7, 7 * SECOND),
        (0.5, SECOND / 2),
        (0, timedelta(0)),
        (-3, timedelta(0)),
        (timedelta(days=-1), timedelta(0)),
        (math.inf, LONGEST_DELAY),
        (1e300, LONGEST_DELAY),
        (timedelta.max, LONGEST_DELAY),
    ],
)
def test_an_exception_may_name_its_own_wait(wish: object, wait: timedelta) -> None:
    assert Retry(base=timedelta(0)).delay(1, Busy(wish)) == wait


@pytest.mark.parametrize("wish", [None, -3, 0, 1, 59, timedelta(0), math.nan, "soon"])
def test_one_that_is_patient_waits_no_shorter_for_a_wish(wish: object) -> None:
    fixed = Retry(waits=(60 * SECOND,), patient=True)
    for _ in range(50):
        assert 60 * SECOND <= fixed.delay(1, Busy(wish)) <= 60 * SECOND * (1 + JITTER)


def test_one_that_is_patient_waits_longer_for_a_wish() -> None:
    assert Retry(waits=(60 * SECOND,), patient=True).delay(1, Busy(600)) == 600 * SECOND
    assert Retry(base=SECOND, patient=True).delay(1, Busy(7)) == 7 * SECOND
    rules = Retry(rules={Busy: Retry(waits=(60 * SECOND,), patient=True)})
    assert rules.delay(1, Busy(0)) >= 60 * SECOND
    assert rules.delay(1, Busy(600)) == 600 * SECOND


@pytest.mark.parametrize("wish", [None, "soon", True, math.nan, object])
def test_a_wish_that_is_no_time_is_no_wish(wish: object) -> None:
    assert Retry(base=timedelta(0)).delay(1, Busy(wish)) == timedelta(0)


def test_attempts_are_those_of_the_job() -> None:
    retry = Retry(attempts=5)

    assert not retry.exhausted(2, 3)
    assert retry.exhausted(3, 3)
    assert retry.exhausted(4, 3)
    assert NO_RETRY.exhausted(1, 1)


def test_the_rule_for_an_exception_has_attempts_and_waits_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "random", lambda: 1.0)
    retry = Retry(attempts=5, base=SECOND, rules={OSError: Retry(attempts=2, base=60 * SECOND)})

    assert retry.exhausted(2, 5, OSError())
    assert not retry.exhausted(2, 5, KeyError())
    assert retry.delay(1, OSError()) == 60 * SECOND
    assert retry.delay(1, KeyError()) == SECOND


def test_the_most_derived_rule_wins_whatever_the_order() -> None:
    wide, narrow = Retry(attempts=2), Retry(attempts=9)

    for retry in (
        Retry(rules={OSError: wide, TimeoutError: narrow}),
        Retry(rules={TimeoutError: narrow, OSError: wide}),
    ):
        assert retry.rule_for(TimeoutError()) is narrow
        assert retry.rule_for(PermissionError()) is wide
        assert retry.rule_for(KeyError()) is retry
        assert retry.rule_for(None) is retry


def test_never_means_the_exception_and_what_derives_from_it() -> None:
    retry = Retry(never=(LookupError,))

    assert retry.never_for(KeyError("x"))
    assert not retry.never_for(ValueError())


def test_a_rule_says_itself_what_is_never_retried() -> None:
    retry = Retry(never=(OSError,), rules={TimeoutError: Retry()})

    assert retry.never_for(PermissionError())
    assert not retry.never_for(TimeoutError())


def test_an_exception_from_another_process_is_known_by_the_names_of_its_classes() -> None:
    lineage = ("builtins.TimeoutError", "builtins.OSError", "builtins.Exception")
    remote = RemoteError("TimeoutError", "late", lineage, "", None)
    rule = Retry(attempts=9)

    assert Retry(rules={OSError: rule}).rule_for(remote) is rule
    assert Retry(never=(OSError,)).never_for(remote)
    assert not Retry(never=(KeyError,)).never_for(remote)


@pytest.mark.parametrize(
    ("attempts", "base", "cap"),
    [(0, SECOND, SECOND), (-1, SECOND, SECOND), (1, -SECOND, SECOND), (1, SECOND, -SECOND)],
)
def test_values_that_make_no_sense_are_refused(attempts: int, base: timedelta, cap: timedelta) -> None:
    with pytest.raises(OptionInvalid, match="Retry"):
        Retry(attempts=attempts, base=base, cap=cap)


def test_a_base_without_end_does_not_run_over() -> None:
    assert Retry(base=timedelta.max, cap=timedelta.max).delay(64) <= LONGEST_DELAY
