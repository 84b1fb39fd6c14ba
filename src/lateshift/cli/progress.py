"""A bar on stderr while something takes its time; nothing where stderr is no terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lateshift.store.contract import COUNT_LIMIT, QueueView

STEP = 50  # told so often at the most: drawing costs more than counting


@contextmanager
def bar(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Gives what to call with how many are done. Without a total it counts."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    waiting = 0
    step = 1 if total is None or total < STEP * 20 else STEP
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=Console(stderr=True), transient=True,
    ) as progress:  # fmt: skip
        row = progress.add_task(what, total=total)

        def told(count: int) -> None:
            nonlocal waiting
            waiting += count
            if waiting >= step:
                progress.advance(row, waiting)
                waiting = 0

        yield told


def known_total(counts: list[int]) -> int | None:
    """The sum, unless one of the counts stopped at its limit."""
    return None if any(count >= COUNT_LIMIT for count in counts) else sum(counts)


def dead_in(queues: list[QueueView]) -> int | None:
    return known_total([queue.dead for queue in queues])


def alive_and_dead_in(queues: list[QueueView]) -> int | None:
    if any(queue.more_running for queue in queues):
        return None
    return known_total(
        [n for each in queues for n in (each.ready, each.scheduled, each.blocked, each.running, each.dead)]
    )
