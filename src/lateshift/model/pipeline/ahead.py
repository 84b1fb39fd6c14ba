"""What an item of a pipeline still has to pass, by the shape that it keeps and the steps that it has recorded."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lateshift.model.pipeline.shape import FAN_OUT, SHAPE, Place, filters, read
from lateshift.model.workflow.step import Kind, StepOutline, StepState, StepView, path_of

SHAPE_AT = 1  # the number of the step in which an item keeps its shape
FIRST = 2  # of the first part's


def shape_in(steps: Iterable[StepView]) -> tuple[Place, ...] | None:
    """The shape that an item keeps; None if it is not among these steps."""
    kept = next((step.result for step in steps if step.name == SHAPE and step.kind is Kind.FIXED), None)
    return None if kept is None else read(kept)


def ahead(shape: Sequence[Place], steps: Mapping[str, StepView]) -> Iterator[Place]:
    """Filters that are not done, those inside a fan_out for each element; some come more than once."""
    return _of_line(shape, steps, "", FIRST)


def is_list(step: StepOutline) -> bool:
    """Whether it stands for the list of a fan_out, which an operator gives where the filters before gave none."""
    return (step.kind, step.name) == (Kind.GATHER, FAN_OUT)


def beyond(shape: Sequence[Place], steps: Mapping[str, StepOutline], path: str) -> Sequence[Place]:
    """Where the list of the step at this path leads to: its fan_out first, then what comes after that. Nothing if that is not known."""
    return _from_list(shape, steps, "", FIRST, path)


def _from_list(
    line: Sequence[Place], steps: Mapping[str, StepOutline], prefix: str, number: int, path: str
) -> Sequence[Place]:
    for index, place in enumerate(line):
        at = path_of(prefix, number)
        if at == path:
            return line[index:] if place.inner else ()
        if (step := steps.get(at)) is not None and is_list(step):
            number += 1
            at = path_of(prefix, number)
        if place.inner and path.startswith(f"{at}."):
            branch = ".".join(path.split(".")[: at.count(".") + 3])
            inside = _from_list(place.inner, steps, branch, 1, path)
            return (*inside, *line[index + 1 :]) if inside else ()
        number += 1
    return ()


def _of_line(
    line: Sequence[Place], steps: Mapping[str, StepView], prefix: str, number: int
) -> Iterator[Place]:
    for place in line:
        path = path_of(prefix, number)
        step = steps.get(path)
        if step is not None and is_list(step):  # it was held here
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
