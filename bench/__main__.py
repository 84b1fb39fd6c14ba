"""`python -m bench`: see docs/benchmarks.md."""

import argparse
import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.children import ChildFailed
from bench.figures import Figures
from bench.judge import judge
from bench.measures import Bench
from bench.places import STORES, Places
from bench.plan import GROUPS, LONG, Size, Step, steps
from bench.subjects import ceiling, ours, peers
from bench.tables import show_figures, show_verdicts

BUSY = 0.5  # processes at work before we begin


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure Lateshift beside bare SQL and its peers."
    )
    parser.add_argument(
        "--quick", action="store_true", help="10,000 jobs and one repetition instead of 40,000 and three"
    )
    parser.add_argument("--only", metavar="GROUP,…", help=f"some of {', '.join(GROUPS)}")
    parser.add_argument(
        "--history",
        action="store_true",
        help="also with a million settled, a million ready jobs, and a million in a batch",
    )
    parser.add_argument("--no-peers", action="store_true", help="Lateshift and the ceilings alone")
    parser.add_argument(
        "--no-judge", action="store_true", help="only measure; do not compare with what must hold"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="jobs in a drain; the other figures follow")
    parser.add_argument(
        "--repetitions", type=int, metavar="N", help="samples for each figure, of which the median counts"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample to a file")
    given = parser.parse_args()
    whole = GROUPS if given.history else [each for each in GROUPS if each not in LONG]
    given.groups = given.only.split(",") if given.only else list(whole)
    if unknown := set(given.groups) - set(GROUPS):
        parser.error(f"--only knows {', '.join(GROUPS)}, not {', '.join(sorted(unknown))}")
    if given.history and "history" not in given.groups:
        given.groups.append("history")
    return given


def _size(given: argparse.Namespace) -> Size:
    quick = (
        Size(
            jobs=10_000,
            repetitions=1,
            calls=60,
            idle_seconds=5.0,
            http_seconds=2.0,
            sleeping=10_000,
            batch=10_000,
        )
        if given.quick
        else Size()
    )
    return Size(
        jobs=given.jobs or quick.jobs, repetitions=given.repetitions or quick.repetitions, calls=quick.calls,
        idle_seconds=quick.idle_seconds, http_seconds=quick.http_seconds, sleeping=given.jobs or quick.sleeping, batch=given.jobs or quick.batch,
    )  # fmt: skip


def _measure(plan: list[Step], figures: Figures, console: Console) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=len(plan))
        for step in plan:
            subject = step.subject
            progress.update(bar, description=f"{step.title}: {subject.name} on {subject.store}")
            try:
                figures.add(subject.store, subject.name, step.take())
            except ChildFailed as error:
                figures.failures.append(f"{step.title}, {subject.name} on {subject.store}: {error}")
            progress.advance(bar)


def main() -> int:
    given = _arguments()
    signal.signal(signal.SIGTERM, _leave)
    load = os.getloadavg()[0]
    console = Console(width=None if sys.stdout.isatty() else 180)
    subjects = [make(store) for store in STORES for make in (ours, ceiling)]
    found, missing = ([], []) if given.no_peers else peers()
    figures, size = Figures(failures=missing), _size(given)
    with Places() as places:
        versions = places.versions()
        _measure(list(steps(Bench(places), [*subjects, *found], given.groups, size)), figures, console)
    how = (
        f"{size.jobs:,} jobs, median of {size.repetitions}"
        if size.repetitions > 1
        else f"{size.jobs:,} jobs, one sample"
    )
    show_figures(console, figures, versions=versions, how=how)
    if load > BUSY:
        console.print(
            f"[yellow]This machine was busy before the run began (load {load:.1f}): do not trust the ratios.[/yellow]"
        )
    verdicts = [] if given.no_judge else judge(figures)
    if verdicts:
        show_verdicts(console, verdicts)
    if given.json:
        given.json.write_text(
            json.dumps({"versions": versions, "how": how, "figures": figures.as_json()}, indent=1)
        )
    own = any("Lateshift" in failure or "ceiling" in failure for failure in figures.failures)
    return 1 if own or any(verdict.holds is False for verdict in verdicts) else 0


def _leave(signal_number: int, frame: FrameType | None) -> None:
    """As Ctrl-C does: every `with` block ends its children."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
