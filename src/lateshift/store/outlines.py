"""The steps of a run without what they hold, so many at a time: however many they are and whatever they hold, little of it is in memory."""

from collections.abc import Iterator

from lateshift.model.ids import JobId
from lateshift.model.workflow.step import Kind, StepOutline, StepState
from lateshift.store.workflow_contract import Workflows

AT_ONCE = 200  # steps


def outlines(
    workflows: Workflows,
    id: JobId,
    at_once: int = AT_ONCE,
    *,
    state: StepState | None = None,
    kind: Kind | None = None,
) -> Iterator[list[StepOutline]]:
    """All of them, or those in a state or of a kind, in their order. None of a run that is not there."""
    after = ""
    while page := workflows.outline(id, after=after, limit=at_once, state=state, kind=kind):
        yield page
        if len(page) < at_once:
            return
        after = page[-1].path
