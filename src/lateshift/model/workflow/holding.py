"""Why a run is held, as its `why` begins: written here and read here, for what an operator does about it depends on it. Pure."""

from enum import Enum

from msgspec import Struct

from lateshift.model.workflow.run import Phase, RunRow, RunView
from lateshift.model.workflow.step import Kind, StepOutline, StepState, shown_path

NO_FIT = "the code does not fit what is recorded: "
INVALID = "WorkflowInvalid: "
GIVEN_UP = "given up"  # a step of a run that has ended without it
_STEP, _SIGNAL, _CAME = "step ", "the signal ", " came with "


class Cause(Enum):
    STEP = "step"  # one has failed, and holds it
    SIGNAL = "signal"  # one came with data that is not of the type that is wanted, and was set aside
    CODE = "code"  # what is deployed does not fit what is recorded
    SOMEBODY = "somebody"  # wants it so


class Held(Struct, frozen=True):
    """`signal`: the name of the one that came."""

    cause: Cause
    signal: str = ""
    undo: bool = False  # it is to be undone, once it goes on

    @property
    def short(self) -> str:
        """Why, for one who may not read all of it."""
        match self.cause:
            case Cause.STEP:
                return "a step has failed"
            case Cause.SIGNAL:
                return f"the signal {self.signal} came with other data than is wanted"
            case Cause.CODE:
                return "the code does not fit what is recorded"
        return "an operator wants it so"

    @property
    def advice(self) -> str:
        """What to do about it, for whoever sees the run."""
        match self.cause:
            case Cause.STEP:
                return "Resubmit the step, or undo the run."
            case Cause.SIGNAL:
                return f"Send another signal {self.signal}, with data of that type, and resume the run; or undo it."
            case Cause.CODE if self.undo:
                return "Deploy code that fits, and resume the run: what it did is undone then."
            case Cause.CODE:
                return "Deploy code that fits, and resume the run."
        return "Resume the run, or undo it."

    @property
    def clears_when(self) -> str:
        """The same for one who waits."""
        match self.cause:
            case Cause.STEP:
                return "when somebody resumes it, gives the step other arguments, or has it undone"
            case Cause.SIGNAL:
                return f"when somebody sends another signal {self.signal}, with data of that type, and resumes it; or has it undone"
            case Cause.CODE:
                return "when code that fits is deployed and somebody resumes it"
        return "when somebody resumes it, or has it undone"


def held_by_step(path: str, name: str) -> str:
    return f"{_STEP}{shown_path(path)} {name} failed: "


def held_by_signal(name: str, came: str) -> str:
    """`came`: with what it came, and what was wanted."""
    return f"{_SIGNAL}{name}{_CAME}{came}"


def held(phase: Phase, why: str | None) -> Held | None:
    """None if it is not held."""
    why = why or ""
    if phase is Phase.UNDO_HELD:
        return Held(Cause.CODE, undo=True)
    if phase is not Phase.HELD:
        return None
    if why.startswith(_STEP):
        return Held(Cause.STEP)
    if why.startswith(_SIGNAL):
        return Held(Cause.SIGNAL, why.removeprefix(_SIGNAL).partition(_CAME)[0])
    return Held(Cause.CODE if why.startswith((NO_FIT, INVALID)) else Cause.SOMEBODY)


def holds(run: RunRow, step: StepOutline) -> bool:
    """Whether the run is held at this step: one that failed, or that waits for a signal of which none came as it is wanted."""
    if step.state is StepState.HELD:
        return True
    found = held(run.phase, run.why)
    waits = step.kind is Kind.SIGNAL and step.state is StepState.RUNNING
    return found is not None and found.cause is Cause.SIGNAL and waits and step.name == found.signal


def is_given_up(step: StepOutline, view: RunView) -> bool:
    """Whether nobody waits for it any more: it had not ended when its run did, or had failed and waited for somebody."""
    return view.state.settled and step.state in (StepState.RUNNING, StepState.HELD)
