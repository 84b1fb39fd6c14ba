"""How far the items of a pipeline are."""

from collections.abc import Sequence

from msgspec import Struct

from lateshift.model.pipeline.progress import FilterProgress, PipelineProgress
from lateshift.model.pipeline.shape import Place


class PipelineDocument(Struct, frozen=True, kw_only=True):
    """Its items, and what stands at each of its filters."""

    name: str
    chain: str
    waiting: int
    under_way: int
    held: int
    completed: int
    failed: int
    cancelled: int
    filters: list[FilterProgress]


def drawn(shape: Sequence[Place]) -> str:
    return " | ".join(map(str, shape))


def pipeline_document(shape: Sequence[Place], progress: PipelineProgress) -> PipelineDocument:
    return PipelineDocument(
        name=progress.name, chain=drawn(shape), waiting=progress.waiting, under_way=progress.under_way, held=progress.held,
        completed=progress.completed, failed=progress.failed, cancelled=progress.cancelled, filters=list(progress.filters),
    )  # fmt: skip
