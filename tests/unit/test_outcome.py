"""What follows when an attempt did not simply return."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lateshift.errors import Cancel, Permanent, Snooze
from lateshift.model import history
from lateshift.model.ids import new_job_id
from lateshift.model.job import AttemptRecord, Lane, Lease
from lateshift.model.outcome import (
    MESSAGE_LIMIT,
    TRACEBACK_LIMIT,
    Called,
    Cancelled,
    DeadLettered,
    Ended,
    Failed,
    Killed,
    Later,
    Outcome,
    Stopped,
    outcome_of,
)
from lateshift.model.retry import LONGEST_DELAY, Retry

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEEP = timedelta(days=3)


def decide(ended: Ended, *, attempt: int = 1, attempts: int = 3, retry: Retry | None = None, past: bytes | None = None) -> Outcome:  # fmt: skip
    lease = Lease(
        new_job_id(), 7, "noop", b"[]", attempt, attempts, None, "default", Lane.COROUTINE, history=past
    )
    return outcome_of(ended, lease, retry or Retry(), at=NOW, ran_for=1.23456789, keep=KEEP, member="w1")


def last_record(outcome: Outcome) -> AttemptRecord:
    assert isinstance(outcome, DeadLettered | Later)
    return history.read(outcome.history)[-1]


def raised(error: BaseException) -> Failed:
    """With a traceback, as if a task had raised it."""
    try:
        raise error
    except BaseException as caught:
        return Failed(caught)


def test_a_failure_is_tried_again_with_a_record_of_it() -> None:
    outcome = decide(raised(ValueError("no such file")))

    assert isinstance(outcome, Later)
    assert outcome.counts
    record = last_record(outcome)
    assert (record.attempt, record.fence, record.at, record.reason) == (1, 7, NOW, "failed")
    assert (record.error, record.message, record.member) == ("ValueError", "no such file", "w1")
    assert record.ran_for == 1.234568
    assert record.traceback is not None
    assert "in raised" in record.traceback


def test_a_failure_at_the_last_attempt_is_a_dead_letter() -> None:
    outcome = decide(raised(ValueError("no")), attempt=3)

    assert isinstance(outcome, DeadLettered)
    assert (outcome.reason, outcome.keep) == ("exhausted", KEEP)
    assert last_record(outcome).reason == "failed"


@pytest.mark.parametrize(
    ("error", "retry"),
    [(Permanent("never"), Retry()), (KeyError("x"), Retry(never=(LookupError,)))],
    ids=["Permanent", "never"],
)
def test_a_failure_that_no_retry_can_help_is_a_dead_letter_at_once(error: Exception, retry: Retry) -> None:
    outcome = decide(raised(error), retry=retry)

    assert isinstance(outcome, DeadLettered)
    assert (outcome.reason, last_record(outcome).reason) == ("permanent", "permanent")


def test_a_class_of_ones_own_that_derives_from_permanent_is_permanent() -> None:
    class NoSuchCustomer(Permanent):
        pass

    outcome = decide(raised(NoSuchCustomer("7")))

    assert isinstance(outcome, DeadLettered)
    assert last_record(outcome).error is not None
    assert str(last_record(outcome).error).endswith("NoSuchCustomer")


@pytest.mark.parametrize(
    ("delay", "wait"),
    [
        (timedelta(minutes=5), timedelta(minutes=5)),
        (timedelta(seconds=-5), timedelta(0)),
        (timedelta.max, LONGEST_DELAY),
    ],
)
def test_a_snooze_waits_and_does_not_count_even_at_the_last_attempt(
    delay: timedelta, wait: timedelta
) -> None:
    assert decide(raised(Snooze(delay)), attempt=3) == Later(wait, counts=False)


def cancelled(outcome: Outcome) -> str:
    """The reason of a cancelled attempt, which stands in its history too."""
    assert isinstance(outcome, Cancelled)
    assert outcome.keep == KEEP
    assert [(line.reason, line.message) for line in history.read(outcome.history)] == [
        ("cancelled", outcome.reason)
    ]
    return outcome.reason


def test_a_cancel_from_the_body_ends_the_job_with_its_words() -> None:
    assert cancelled(decide(raised(Cancel("not needed")))) == "not needed"
    assert cancelled(decide(raised(Cancel()))) == "cancelled by the task"


def test_a_cancel_from_an_operator_names_the_operator() -> None:
    assert cancelled(decide(Called("ana"), attempt=3)) == "cancelled by ana"


def test_a_stopping_worker_hands_the_job_back_without_burning_an_attempt() -> None:
    assert decide(Stopped(), attempt=3) == Later(timedelta(0), counts=False)


@pytest.mark.parametrize("reason", ["complete_by", "memory", "process_died"])
def test_a_kill_is_a_reason_of_its_own(reason: str) -> None:
    again = decide(Killed(reason, "it was killed"))
    dead = decide(Killed(reason, "it was killed"), attempt=3)

    assert isinstance(again, Later)
    assert again.counts
    assert (last_record(again).reason, last_record(again).message) == (reason, "it was killed")
    assert isinstance(dead, DeadLettered)
    assert dead.reason == reason


def test_the_wait_is_what_the_exception_wished_for() -> None:
    error = ConnectionError("429")
    error.retry_after = 30  # type: ignore[attr-defined]

    outcome = decide(raised(error))

    assert isinstance(outcome, Later)
    assert outcome.delay == timedelta(seconds=30)


def test_records_are_added_to_those_of_earlier_attempts() -> None:
    first = decide(raised(ValueError("first")))
    assert isinstance(first, Later)
    second = decide(raised(KeyError("second")), attempt=2, past=first.history)
    assert isinstance(second, Later)

    assert [(record.attempt, record.error) for record in history.read(second.history)] == [
        (1, "ValueError"),
        (2, "KeyError"),
    ]


def test_long_messages_and_tracebacks_are_cut_with_a_mark() -> None:
    def deep(levels: int) -> int:
        if levels == 0:
            raise ValueError("x" * 100_000)
        return 1 + deep(levels - 1) if levels % 2 else 2 + deep(levels - 1)

    with pytest.raises(ValueError, match="x") as caught:
        deep(200)
    record = last_record(decide(Failed(caught.value)))

    assert record.message is not None
    assert len(record.message) <= MESSAGE_LIMIT
    assert record.message.endswith("[truncated]")
    assert record.traceback is not None
    assert len(record.traceback) <= TRACEBACK_LIMIT
    assert "[truncated]" in record.traceback
    assert record.traceback.startswith("Traceback")


@pytest.mark.parametrize("wrap", [ValueError, Permanent, Cancel])
@given(text=st.text(st.characters(codec=None), max_size=50))
def test_any_text_in_an_exception_can_be_kept(wrap: type[Exception], text: str) -> None:
    """File names that are no UTF-8 come as lone surrogates, and PostgreSQL's text knows no NUL."""
    outcome = decide(Failed(wrap(text)))

    kept = outcome.reason if isinstance(outcome, Cancelled) else last_record(outcome).message
    assert kept is not None
    assert "\0" not in kept
    kept.encode()


def test_an_exception_that_cannot_be_printed_still_ends_its_attempt() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    record = last_record(decide(raised(Broken())))

    assert record.message is not None
    assert "RuntimeError" in record.message


def test_an_exception_that_looks_empty_is_recorded_all_the_same() -> None:
    class Empty(Exception):
        def __len__(self) -> int:
            return 0

    record = last_record(decide(raised(Empty("but I say something"))))

    assert (record.error is not None, record.message) == (True, "but I say something")
