"""The supervisor's policy, as a table."""

from datetime import timedelta

import pytest

from lateshift.errors import OptionInvalid
from lateshift.model.workflow.policy import LONGEST_PATIENCE, Again, GiveUp, Policy, decide
from lateshift.model.workflow.step import StepError

HOUR, TEN, NONE = timedelta(hours=1), timedelta(minutes=10), timedelta(0)
PATIENT = Policy(repeats=5, patient_after=2, patience=TEN, then="hold")


@pytest.mark.parametrize(
    ("policy", "failures", "follows"),
    [
        (Policy(), 1, GiveUp("raise")),
        (Policy(then="hold"), 1, GiveUp("hold")),
        (Policy(repeats=1), 1, Again(NONE, HOUR)),
        (Policy(repeats=1), 2, GiveUp("raise")),
        (PATIENT, 1, Again(NONE, HOUR)),
        (PATIENT, 2, Again(TEN, HOUR)),
        (PATIENT, 3, Again(2 * TEN, HOUR)),
        (PATIENT, 4, Again(4 * TEN, HOUR)),
        (PATIENT, 5, Again(8 * TEN, HOUR)),
        (PATIENT, 6, GiveUp("hold")),
        (Policy(repeats=100, patience=TEN), 60, Again(LONGEST_PATIENCE, HOUR)),
    ],
)
def test_what_follows_after_so_many_failures(policy: Policy, failures: int, follows: Again | GiveUp) -> None:
    assert decide(policy, failures, HOUR) == follows


def test_a_permanent_fault_is_not_asked_for_again() -> None:
    error = StepError(error="Permanent", reason="permanent")
    assert decide(Policy(repeats=5), 1, HOUR, error) == GiveUp("raise")


def test_a_step_that_was_late_is() -> None:
    error = StepError(error="complete_by", reason="complete_by")
    assert decide(Policy(repeats=5), 1, HOUR, error) == Again(NONE, HOUR)


@pytest.mark.parametrize(
    "wrong",
    [{"then": "undo"}, {"repeats": -1}, {"patient_after": 0}, {"patience": timedelta(-1)}, {"patience": 5}],
)
def test_a_policy_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(OptionInvalid):
        Policy(**wrong)  # type: ignore[arg-type]
