"""A batch as the command line shows it: its facts, and a bar while it runs."""

import sys
from collections.abc import Iterator
from typing import Any

from lateshift.batches.handle import Batch
from lateshift.cli.output import amount, instant
from lateshift.model.batch import BatchView

BAR = 1000  # steps of the bar, whatever the number of jobs


def facts(view: BatchView) -> Iterator[tuple[str, str]]:
    yield "batch", str(view.id)
    yield "key", view.key or ""
    share = f" ({view.done / view.total:.0%})" if view.total else ""
    yield "jobs", f"{amount(view.total)}, of which {amount(view.done)} have ended{share}"
    if not view.sealed:
        yield (
            "enqueued",
            f"{amount(view.added)} so far; if its producer died, `lateshift batches seal` or `cancel` it",
        )
    for name in ("waiting", "running", "completed", "failed", "cancelled"):
        number = getattr(view, name)
        yield name, amount(number) if number else ""
    yield "cancelled by", view.cancelled_by or ""
    yield "then", _callback(view.then, view.then_enqueued)
    yield "on failure", _callback(view.on_failure, view.on_failure_enqueued)
    yield "created", instant(view.created_at)
    yield "finished", instant(view.finished_at)


def _callback(job: Any, enqueued: bool) -> str:
    return "" if job is None else f"job {job}" + ("" if enqueued else ", not yet enqueued")


def watched(batch: Batch) -> BatchView:
    """Look until all jobs have ended, with a bar on stderr if that is a terminal. Gives how it ended."""
    if not sys.stderr.isatty():
        return batch.wait()
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    view = batch.progress()
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[said]}"),
        TimeRemainingColumn(), console=Console(stderr=True), transient=True,
    ) as progress:  # fmt: skip
        row = progress.add_task(view.name or "batch", total=BAR, said=_said(view))
        for view in batch.watch():
            done = BAR if view.finished else view.done * BAR / view.total if view.total else 0
            progress.update(row, completed=done, said=_said(view))
    return view


def _said(view: BatchView) -> str:
    said = [f"{amount(view.done)} of {amount(view.total)}", f"{amount(view.running)} running"]
    said += [f"[red]{amount(view.failed)} failed[/red]"] if view.failed else []
    said += [f"{amount(view.cancelled)} cancelled"] if view.cancelled else []
    said += [] if view.sealed else [f"{amount(view.added)} enqueued"]
    return ", ".join(said)
