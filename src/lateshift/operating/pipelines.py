"""Pipelines: looked for, and looked at."""

from lateshift.errors import PipelineUnknown
from lateshift.model.pipeline.progress import PipelineProgress, progress_of
from lateshift.model.pipeline.shape import Place, read
from lateshift.operating.names import others
from lateshift.store.contract import Store
from lateshift.store.workflow_contract import Kept

PIPELINES_SHOWN = 1_000  # in a listing

Looked = tuple[tuple[Place, ...], PipelineProgress]


def all_pipelines(store: Store, after: str = "", limit: int = PIPELINES_SHOWN) -> list[Looked]:
    """By name those behind one of which an item has begun and is still kept."""
    return [looked_at(store, kept) for kept in store.workflows.pipelines(limit=limit, after=after)]


def one_pipeline(store: Store, name: str) -> Looked:
    """Raises PipelineUnknown, with close names."""
    return looked_at(store, find(store, name))


def find(store: Store, name: str) -> Kept:
    """Raises PipelineUnknown, with close names."""
    kept = store.workflows.pipelines(name, limit=1)
    if not kept:
        there = [each.name for each in store.workflows.pipelines(limit=PIPELINES_SHOWN)]
        raise PipelineUnknown(
            f"No item of a pipeline {name} has begun and is still kept.{others(name, there)}"
        )
    return kept[0]


def looked_at(store: Store, kept: Kept, most: int | None = None) -> Looked:
    """`most`: of its newest items that are counted."""
    shape = read(kept.shape)
    return shape, progress_of(kept.name, shape, store.workflows.tally(kept.name, kept.queue, most))
