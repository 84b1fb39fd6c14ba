"""What an item of a pipeline still has to pass, by the shape that it keeps and the steps that it has recorded."""

from collections.abc import Iterator, Mapping, Sequence

from lateshift.model.pipeline.shape import FAN_OUT, Place, filters
from lateshift.model.workflow.step import Kind, StepState, StepView, path_of

FIRST = 2  # the number of the first part's step: the shape has one before it


def ahead(shape: Sequence[Place], steps: Mapping[str, StepView]) -> Iterator[Place]:
    """Filters that are not done, those inside a fan_out for each element; some come more than once."""
    return _of_line(shape, steps, "", FIRST)


def _of_line(
    line: Sequence[Place], steps: Mapping[str, StepView], prefix: str, number: int
) -> Iterator[Place]:
    for place in line:
        path = path_of(prefix, number)
        step = steps.get(path)
        if step is not None and (step.kind, step.name) == (Kind.GATHER, FAN_OUT):  # it was held here
            number += 1
            path = path_of(prefix, number)
            step = steps.get(path)
        if place.inner and step is None:
            yield from filters(place.inner)
        elif place.inner and step is not None:
            for branch in range(1, int(step.name) + 1):
                yield from _of_line(place.inner, steps, path_of(path_of(path, 1), branch), 1)
        elif step is None or step.state is not StepState.COMPLETED:
            yield place
        number += 1
