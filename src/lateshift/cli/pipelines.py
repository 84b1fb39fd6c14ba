"""`lateshift pipelines`: how far the items of each are, and what stands at each filter."""

import click
from msgspec import structs

from lateshift.cli.nouns import Nouns
from lateshift.cli.options import listing, opened, wants_json
from lateshift.cli.output import amount, print_json, print_table
from lateshift.documents.pipelines import drawn, pipeline_document
from lateshift.model.pipeline.progress import PipelineProgress
from lateshift.operating.pipelines import all_pipelines, one_pipeline
from lateshift.store.contract import COUNT_LIMIT


@click.group(cls=Nouns)
def pipelines() -> None:
    """How far the items of each pipeline are, and what stands at each filter."""


@pipelines.command("list")
@listing
def list_pipelines() -> None:
    """Every pipeline of which an item has begun and is still kept. A count stops at 10,000."""
    with opened() as store:
        found = all_pipelines(store)
    if wants_json():
        documents = [pipeline_document(shape, progress) for shape, progress in found]
        print_json({"pipelines": documents, "count_limit": COUNT_LIMIT})
        return
    print_table(
        ("pipeline", ">waiting", ">under way", ">held", ">completed", ">failed", ">cancelled", "filters"),
        [[progress.name, *_items(progress), drawn(shape)] for shape, progress in found],
        "No pipeline has an item that has begun. app.pipeline(parse | store) makes one in code, and its enqueue(…) puts an item in.",
    )


@pipelines.command()
@click.argument("name", metavar="NAME")
@listing
def show(name: str) -> None:
    """One pipeline: its items, and what waits, runs, is held and has failed at each of its filters."""
    with opened() as store:
        shape, progress = one_pipeline(store, name)
    if wants_json():
        document = structs.asdict(pipeline_document(shape, progress))
        print_json(document | {"count_limit": COUNT_LIMIT})
        return
    click.echo(f"{name}: {drawn(shape)}\n")
    print_table(
        (">waiting", ">under way", ">held", ">completed", ">failed", ">cancelled", ""), [[*_items(progress), ""]], ""
    )  # fmt: skip
    click.echo()
    rows = [
        [at.name, *map(_count, (at.waiting, at.running, at.held, at.failed)), at.queue]
        for at in progress.filters
    ]
    print_table(("filter", ">waiting", ">running", ">held", ">failed", "queue"), rows, "")
    if progress.held:
        click.echo(f"\nWhat is held: lateshift workflows list --name {name} --state held")


def _items(progress: PipelineProgress) -> list[str]:
    return [
        _count(getattr(progress, state))
        for state in ("waiting", "under_way", "held", "completed", "failed", "cancelled")
    ]


def _count(number: int) -> str:
    return amount(number) + ("+" if number >= COUNT_LIMIT else "")
