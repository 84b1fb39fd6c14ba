"""How far the items of a pipeline are."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from lateshift.model.pipeline.shape import FAN_OUT, RESULT, Place, filters


class StepTally(Struct, kw_only=True):
    """What stands at one filter: jobs that wait and run, steps that are held, and steps of which items have failed."""

    waiting: int = 0
    running: int = 0
    held: int = 0
    failed: int = 0


class Tally(Struct, kw_only=True):
    """How many runs of one name there are, by what became of them; and what stands at each of their steps, by name."""

    waiting: int = 0
    under_way: int = 0
    held: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    steps: Mapping[str, StepTally]


class FilterProgress(Struct, frozen=True, kw_only=True):
    """One filter: jobs that `waiting` to be run, or to be tried again, and are `running`; steps that are `held` for an operator, or have
    `failed`."""

    name: str
    queue: str
    waiting: int
    running: int
    held: int
    failed: int


class PipelineProgress(Struct, frozen=True, kw_only=True):
    """The whole: items that wait to begin, are under way, held at a filter, and how those ended that are still kept. A count stops at
    COUNT_LIMIT."""

    name: str
    waiting: int
    under_way: int
    held: int
    completed: int
    failed: int
    cancelled: int
    filters: tuple[FilterProgress, ...]


def progress_of(name: str, shape: Sequence[Place], tally: Tally) -> PipelineProgress:
    """Each filter once, however often it stands in the chain; then what holds items between filters, a fan_out or the result, if there is
    such a thing. That has no queue."""
    places = {place.task: place for place in reversed(list(filters(shape)))}
    ordered = dict.fromkeys(place.task for place in filters(shape))
    found = []
    for task in ordered:
        at = tally.steps.get(task, StepTally())
        found.append(
            FilterProgress(
                name=task, queue=places[task].queue, waiting=at.waiting, running=at.running, held=at.held, failed=at.failed
            )
        )  # fmt: skip
    for name_of_step in (FAN_OUT, RESULT):
        at = tally.steps.get(name_of_step, StepTally())
        if name_of_step not in ordered and (at.held or at.failed):
            found.append(
                FilterProgress(
                    name=name_of_step, queue="", waiting=0, running=0, held=at.held, failed=at.failed
                )
            )
    return PipelineProgress(
        name=name, waiting=tally.waiting, under_way=tally.under_way, held=tally.held, completed=tally.completed,
        failed=tally.failed, cancelled=tally.cancelled, filters=tuple(found),
    )  # fmt: skip
