"""What follows when a step has failed, or was not done by its complete-by. Pure: it knows failures and times, and nothing of the business."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

from msgspec import Struct

from lateshift.errors import OptionInvalid
from lateshift.model import checks
from lateshift.model.outcome import RESULT_NOT_KEPT
from lateshift.model.workflow.step import StepError

OnFailure: TypeAlias = Literal["raise", "hold"]

NEVER_AGAIN = {"permanent", "undecodable", RESULT_NOT_KEPT}  # reasons that no repeat can help
LONGEST_PATIENCE = timedelta(days=30)  # between two repeats
NO_TIME = timedelta(0)


class Again(Struct, frozen=True):
    """Ask for the step once more, after so long, with so much time."""

    wait: timedelta
    limit: timedelta | None


class GiveUp(Struct, frozen=True):
    """It has failed for good."""

    then: OnFailure


@dataclass(frozen=True, slots=True)
class Policy:
    """`Policy(repeats=5, patient_after=2, patience=timedelta(minutes=10), then="hold")`: a step that failed, or was late, is asked for up to
    five times more, each with a complete-by of its own; from the second failure on after ten minutes, then twenty, and so on; then
    the run is held for an operator. `then="raise"`: StepFailed is raised in the workflow, which undoes it unless it is caught.
    """

    repeats: int = 0
    patient_after: int = 1
    patience: timedelta = NO_TIME
    then: OnFailure = "raise"

    def __post_init__(self) -> None:
        if self.then not in ("raise", "hold"):
            raise OptionInvalid(f'Policy: then is "raise" or "hold", not {self.then!r}.')
        if self.repeats < 0 or self.patient_after < 1:
            raise OptionInvalid("Policy: repeats is 0 or more, patient_after 1 or more.")
        if checks.duration("Policy: patience", self.patience) < NO_TIME:
            raise OptionInvalid("Policy: patience must not be negative.")


def decide(
    policy: Policy, failures: int, limit: timedelta | None, error: StepError | None = None
) -> Again | GiveUp:
    """After so many failures of a step that had so much time."""
    hopeless = error is not None and error.reason in NEVER_AGAIN
    if hopeless or failures > policy.repeats:
        return GiveUp(policy.then)
    over = failures - policy.patient_after
    wait = min(policy.patience * 2 ** min(over, 32), LONGEST_PATIENCE) if over >= 0 else NO_TIME
    return Again(wait, limit)
