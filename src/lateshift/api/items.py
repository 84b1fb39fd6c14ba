"""Items of pipelines, to a token that is for some queues: where a list for a fan_out leads to, and which queues the item's shape names."""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import structs

from lateshift.api.asked import Asked
from lateshift.model.pipeline.ahead import is_list
from lateshift.model.pipeline.shape import SHAPE, Place, filters, read, written
from lateshift.model.workflow.run import RunView
from lateshift.model.workflow.step import Kind, StepOutline, StepView
from lateshift.operating.steps import leads_of


def lists_elsewhere(asked: Asked, view: RunView, steps: Sequence[StepOutline]) -> set[str]:
    """Of these steps of a run the paths of those lists whose elements go to a queue that the token is not for, from their fan_out on. What is not
    known to go to its own does not."""
    lists = [step.path for step in steps if is_list(step)]
    if asked.sees_all or not lists:
        return set()
    leads = leads_of(asked.store, view.run.id, lists)
    return {path for path, places in leads.items() if not _is_own(asked, view.run.name, places)}


def own_shape(asked: Asked, step: StepView, mark: str) -> StepView:
    """The shape of an item, with the mark for the queues that the token is not for; any other step as it is."""
    if asked.sees_all or step.kind is not Kind.FIXED or step.name != SHAPE or step.result is None:
        return step
    try:
        shape = read(step.result)
    except msgspec.DecodeError:  # it is masked already
        return structs.replace(step, result=msgspec.json.encode(mark))
    return structs.replace(step, result=written([_marked(asked, place, mark) for place in shape]))


def _marked(asked: Asked, place: Place, mark: str) -> Place:
    if place.inner:
        return structs.replace(place, inner=tuple(_marked(asked, each, mark) for each in place.inner))
    return place if asked.shows(place.queue) else structs.replace(place, queue=mark)


def _is_own(asked: Asked, pipeline: str, places: Sequence[Place]) -> bool:
    return bool(places) and all(asked.shows(queue) for queue in _queues(asked, pipeline, places))


def _queues(asked: Asked, pipeline: str, places: Sequence[Place]) -> Iterator[str]:
    """Where the filters stood when the item began, where this code has them, and the own ones of their tasks."""
    chain = getattr(asked.app.tasks.get(pipeline), "chain", None)
    for place in filters(places):
        yield place.queue
        if (task := asked.app.tasks.get(place.task)) is not None:
            yield task.limits.queue
        if chain is not None:
            yield from (filter.queue for filter in chain.filters() if filter.name == place.task)
