"""The graph of a pipeline: its filters in order, and what is there for each element."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lateshift.model.pipeline.chain import Chain, FanIn, FanOut
from lateshift.model.pipeline.shape import Place
from lateshift.model.workflow.graph import NodeKind
from lateshift.workflow.graph.builder import Builder
from lateshift.workflow.graph.graph import Graph


def drawn(name: str, chain: Chain[Any, Any]) -> Graph:
    builder = Builder(name)
    _add(builder, chain)
    builder.finish()
    return builder.made()


def of_shape(name: str, shape: Sequence[Place], notes: Mapping[str, str]) -> Graph:
    """The same of a pipeline whose code is not here, by the shape that its items keep. `notes`: what stands at a filter."""
    builder = Builder(name)
    _add_places(builder, shape, notes)
    builder.finish()
    return builder.made()


def _add_places(builder: Builder, shape: Sequence[Place], notes: Mapping[str, str]) -> None:
    for place in shape:
        if place.inner:
            builder.parallel([("each", partial(_add_places, builder, place.inner, notes))])
            continue
        kind = NodeKind.CHILD if place.child else NodeKind.TASK
        builder.add(kind, place.task, calls=place.task, queue=place.queue, note=notes.get(place.task))


def _add(builder: Builder, chain: Chain[Any, Any]) -> None:
    for part in chain.parts:
        if isinstance(part, FanOut):
            builder.parallel([("each", partial(_add, builder, part.inner))])
            continue
        filter = part.filter if isinstance(part, FanIn) else part
        kind = NodeKind.CHILD if filter.task.is_workflow else NodeKind.TASK
        builder.add(kind, filter.name, queue=filter.queue)
