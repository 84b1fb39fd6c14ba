"""`lateshift bench`: how fast this store is on this machine, now."""

from dataclasses import asdict

import click

from lateshift.cli.numbers import Whole
from lateshift.cli.options import listing, store_url, wants_json
from lateshift.cli.output import amount, print_json, print_table, without_password


@click.command()
@click.option("--jobs", type=Whole(100, 1_000_000), metavar="N", default=10_000, show_default=True,
              help="How many to enqueue in bulk and to drain.")  # fmt: skip
@listing
def bench(jobs: int) -> None:
    """Measure the store with no-op jobs: in a new file beside a SQLite store, on a queue of its own in PostgreSQL.
    What it enqueues is deleted afterwards."""
    import asyncio

    from lateshift.cli.measure import measure, scratch

    url = store_url()
    with scratch(url) as place:
        figures = asyncio.run(measure(place, jobs))
    if wants_json():
        print_json({"store": without_password(url)} | asdict(figures))
        return
    print_table(
        ("figure", ">value", "unit"),
        [
            ["enqueue, one at a time", amount(figures.enqueue_one), "jobs/s"],
            ["enqueue, in bulk", amount(figures.enqueue_bulk), "jobs/s"],
            [f"drain of {figures.jobs:,} no-op jobs, one worker process", amount(figures.drain), "jobs/s"],
            ["start latency, p50", f"{figures.start_p50 * 1000:.1f}", "ms"],
            ["start latency, p95", f"{figures.start_p95 * 1000:.1f}", "ms"],
            ["start latency, p99", f"{figures.start_p99 * 1000:.1f}", "ms"],
        ],
        "",
    )
    click.echo(
        f"\n{without_password(url)}. Enqueues are durable when they return; the drain is from the first start to the last."
    )
