"""The two tables: what was measured, and what had to hold."""

import os
import platform

from rich.console import Console
from rich.table import Table

from bench.figures import LINES, Figures, Line
from bench.judge import Verdict
from bench.places import STORES
from bench.subjects import CEILING, LATESHIFT


def show_figures(console: Console, figures: Figures, *, versions: str, how: str) -> None:
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, {versions}, {how}"
    table = Table(
        title=f"Lateshift beside bare SQL and its peers\n{machine}",
        title_justify="left",
        row_styles=["", "dim"],
    )
    table.add_column("figure")
    table.add_column("store")
    table.add_column("unit")
    table.add_column("Lateshift", justify="right", style="bold")
    table.add_column("ceiling", justify="right")
    table.add_column("ratio", justify="right")
    table.add_column("peers")
    for line in LINES:
        taken = list(figures.of_line(line.key))
        for store in STORES:
            mine, bare = figures.get(line.key, store, LATESHIFT), figures.get(line.key, store, CEILING)
            if mine is None and bare is None:
                continue
            ratio = f"{mine / bare:.2f}" if mine is not None and bare else ""
            table.add_row(
                line.label, store, line.unit, number(line, mine), number(line, bare), ratio, _peers(line, store, taken)
            )  # fmt: skip
    console.print(table)
    for failure in figures.failures:
        console.print(f"[red]not measured[/red]: {failure}", highlight=False)


def show_verdicts(console: Console, verdicts: list[Verdict]) -> None:
    table = Table(title="What must hold in one run", title_justify="left")
    table.add_column("figure")
    table.add_column("store")
    table.add_column("must reach")
    table.add_column("reached", justify="right")
    table.add_column("")
    judged = [verdict for verdict in verdicts if verdict.reached is not None]
    for verdict in judged:
        answer = "[green]holds[/green]" if verdict.holds else "[bold red]FAILS[/bold red]"
        table.add_row(
            verdict.what, verdict.store, verdict.asked, f"{verdict.reached:.2f} {verdict.unit}", answer
        )
    console.print(table)
    if rest := len(verdicts) - len(judged):
        console.print(f"{rest} more are not judged: their figures were not taken in this run.")


def number(line: Line, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if line.unit.startswith(("jobs", "requests")) else f"{value:,.2f}"


def _peers(line: Line, store: str, taken: list[tuple[str, str, float]]) -> str:
    """Those on this store; those on Redis stand beside PostgreSQL, as the other server one would have to run."""
    beside = {STORES[0]: ("PostgreSQL", "Redis"), STORES[1]: ("SQLite",)}[store]
    shown = [
        f"{subject}{' (Redis)' if at == 'Redis' else ''} {number(line, value)}"
        for at, subject, value in sorted(taken, key=lambda each: -each[2] if line.more_is_better else each[2])
        if subject not in (LATESHIFT, CEILING) and at in beside
    ]
    return ", ".join(shown)
