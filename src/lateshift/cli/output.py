"""What commands print: tables for people, JSON for programs. The JSON's field names are promised in docs/cli.md."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click
import msgspec

from lateshift.model.escaping import OBEYED, escaped
from lateshift.model.job import JobView
from lateshift.model.words import counted as counted
from lateshift.model.words import duration as duration
from lateshift.model.words import short as short

_IN_JSON = {code: f"\\u{code:04x}" for code in OBEYED if code > 126}  # the encoder escapes those below


def print_json(document: Any) -> None:
    encoded = msgspec.json.format(msgspec.json.encode(document), indent=2)
    click.echo(encoded.decode().translate(_IN_JSON))


LEAST = 20  # characters of the last column, however narrow the terminal
PADDING = 3  # between two columns


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], nothing: str) -> None:
    """A column whose name begins with `>` is set to the right. Only the last gives way when the line is too long. Nothing in a cell is
    obeyed by the terminal."""
    if not rows:
        click.echo(nothing)
        return
    rows = _plain(rows)
    from rich import box
    from rich.table import Table
    from rich.text import Text

    output = console()
    widths = [
        max(len(cell) for cell in (column.lstrip(">"), *(row[number] for row in rows)))
        for number, column in enumerate(columns)
    ]
    room = max(LEAST, output.width - sum(widths[:-1]) - PADDING * len(widths))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        table.add_column(
            column.lstrip(">"), justify="right" if column.startswith(">") else "left", no_wrap=True
        )
    for *cells, last in rows:
        shown = last if len(last) <= room else last[: room - 1] + "…"
        table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in (*cells, shown)))
    output.print(table, no_wrap=True, overflow="ignore", crop=False)


def _plain(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[escaped(cell) for cell in row] for row in rows]


COMFORT = 40  # characters that a sentence in the last column wants
INDENT = "  "


def print_sentences(columns: Sequence[str], rows: Sequence[Sequence[str]], nothing: str) -> None:
    """A table whose last column holds sentences. Where there is little room beside the others, they stand below."""
    rows, output = _plain(rows), console()
    widths = [
        max(len(cell) for cell in (column.lstrip(">"), *(row[number] for row in rows)))
        for number, column in enumerate(columns)
    ]
    longest = min(COMFORT, widths[-1])
    if not rows or sum(widths[:-1]) + PADDING * (len(widths) - 1) + longest <= output.width:
        print_table(columns, rows, nothing)
        return
    from rich.text import Text

    def line(cells: Sequence[str]) -> str:
        set_out = [
            cell.rjust(width) if column.startswith(">") else cell.ljust(width)
            for cell, width, column in zip(cells, widths, columns, strict=False)
        ]
        return (" " * PADDING).join(set_out[:-1]).rstrip()

    output.print(Text(line([column.lstrip(">") for column in columns]), style="bold"), soft_wrap=True)
    output.print("─" * output.width)
    for row in rows:
        room = output.width - len(INDENT)
        said = row[-1] if len(row[-1]) <= room else row[-1][: room - 1] + "…"
        output.print(Text(f"{line(row)}\n{INDENT}{said}" if said else line(row)), soft_wrap=True)


def say(paragraph: str) -> None:
    """Wrapped between words on a terminal; one line in a pipe."""
    import sys
    import textwrap

    width = console().width
    wrapped = textwrap.fill(paragraph, width, break_on_hyphens=False, break_long_words=False)
    click.echo(wrapped if sys.stdout.isatty() else paragraph)


def console() -> Any:
    """rich's console on stdout; a pipe gets plain text, wide enough for every column."""
    import sys

    from lateshift.cli.plain_console import PlainConsole

    return PlainConsole(width=None if sys.stdout.isatty() else 160, highlight=False)


STYLES = {
    "dead": "bold red", "cancelled": "yellow", "completed": "green", "running": "cyan", "scheduled": "blue",
    "held": "bold yellow", "undoing": "yellow", "undone": "yellow", "compensation failed": "bold red", "worker lost": "bold red",
    "blocked": "magenta", "failed": "bold red", "enqueueing": "blue", "cancelling": "yellow",
}  # fmt: skip


def print_facts(name: str, about: str, facts: Sequence[tuple[str, str]]) -> None:
    """One thing with what is known of it; what is empty is left out."""
    from rich.table import Table
    from rich.text import Text

    out = console()
    out.print(Text.assemble((name, "bold"), f": {about}"))
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bright_black", no_wrap=True)
    table.add_column(overflow="fold")
    for fact, value in facts:
        if value:
            table.add_row(fact, Text(value))
    out.print(table)


def instant(moment: datetime | None) -> str:
    """In the reader's own time zone."""
    return "" if moment is None else moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def amount(number: float) -> str:
    return f"{number:,.0f}"


def job_in_words(view: JobView) -> str:
    return f"{view.task}, {view.state.label}"


def without_password(url: str) -> str:
    before, at, after = url.rpartition("@")
    scheme, slashes, credentials = before.partition("://")
    return f"{scheme}{slashes}{credentials.partition(':')[0]}@{after}" if at else url
