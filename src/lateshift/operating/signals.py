"""Which signals a run waits for: whoever tells it another one hears so at once, for a name that is misspelt is kept too."""

from collections.abc import Sequence

from lateshift.model.ids import JobId
from lateshift.model.workflow.step import Kind, StepState
from lateshift.store.contract import Store

UNDER_WAY = 20  # steps among which those are found that wait for a signal


def awaited(store: Store, id: JobId) -> list[str]:
    """The names of the signals that the run waits for, each once. One page of an index."""
    steps = store.workflows.outline(id, limit=UNDER_WAY, state=StepState.RUNNING)
    return list(dict.fromkeys(step.name for step in steps if step.kind is Kind.SIGNAL))


def unasked(name: str, awaited: Sequence[str]) -> str:
    """What to say of a signal that the run did not wait for when it was told; nothing of one that it did."""
    if name in awaited:
        return ""
    waits = f"It waits for {' and '.join(awaited)}" if awaited else "It waits for no signal now"
    return f"{waits}: {name} is kept until its code asks for that."
