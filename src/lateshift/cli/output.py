"""What commands print: tables for people, JSON for programs. The JSON's field names are promised in docs/cli.md."""

from collections.abc import Iterable, Sequence
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
NAMES_LEAST = 16  # and of any other that gives way
PADDING = 3  # between two columns
PIPED = 10_000  # characters that fit on a line where no terminal is: nothing is squeezed there
COMFORT = 40  # characters that a sentence in the last column wants
INDENT = "  "
WHOLE = (
    "job",
    "run",
    "batch",
    "token",
)  # what columns of ids are called; the first of a table is what its rows are known by


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], nothing: str) -> None:
    """A column whose name begins with `>` is set to the right. On a terminal the last gives way when the line is too long, then the longest
    names; ids and numbers never do. Elsewhere each row is one line, and whole. Nothing in a cell is obeyed by the terminal."""
    if not rows:
        click.echo(nothing)
        return
    _print(columns, _plain(rows), below=False)


def print_sentences(columns: Sequence[str], rows: Sequence[Sequence[str]], nothing: str) -> None:
    """A table whose last column holds sentences. Where there is little room beside the others, they stand below."""
    if not rows:
        click.echo(nothing)
        return
    shown = _plain(rows)
    widths = _widths(columns, shown)
    beside = sum(widths[:-1]) + PADDING * (len(widths) - 1)
    _print(columns, shown, below=beside + min(COMFORT, widths[-1]) > console().width)


def _print(columns: Sequence[str], rows: Sequence[Sequence[str]], *, below: bool) -> None:
    from rich.text import Text

    output, widths = console(), _widths(columns, rows)
    if output.width < PIPED:
        _give_way(columns, widths, output.width, below=below)

    def line(cells: Sequence[str], style: str = "") -> Text:
        whole = Text()
        for number, (cell, width, column) in enumerate(zip(cells, widths, columns, strict=True), 1):
            ends = number == len(rows[0])  # the last, which is no name
            fitted = Text(_cut(cell, width, at_end=ends), style=style or STYLES.get(cell, ""))
            fitted.align("right" if column.startswith(">") else "left", width)
            whole.append_text(fitted).append(" " * PADDING)
        whole.rstrip()
        return whole

    names = [column.lstrip(">") for column in columns]
    if not below:
        _print_lines(output, [line(names, "bold"), "─" * (sum(widths) + PADDING * (len(widths) - 1))])
        _print_lines(output, map(line, rows))
        return
    widths, columns = widths[:-1], columns[:-1]
    _print_lines(output, [line(names[:-1], "bold"), "─" * output.width])
    for *cells, said in rows:
        sentence = [Text(INDENT + _cut(said, output.width - len(INDENT), at_end=True))] if said else []
        _print_lines(output, [line(cells), *sentence])


def _print_lines(output: Any, lines: Iterable[Any]) -> None:
    for each in lines:
        output.print(each, soft_wrap=True)


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    from rich.cells import cell_len

    return [
        max(cell_len(cell) for cell in (column.lstrip(">"), *(row[number] for row in rows)))
        for number, column in enumerate(columns)
    ]


def _give_way(columns: Sequence[str], widths: list[int], room: int, *, below: bool) -> None:
    """Make the columns narrower until they fit, as far as they may be."""
    room -= PADDING * (len(widths) - (2 if below else 1))
    names = [number for number, column in enumerate(columns[:-1]) if number and column not in WHOLE and not column.startswith(">")]  # fmt: skip
    if not below:
        least = widths[-1] if columns[-1] in WHOLE or columns[-1].startswith(">") else LEAST
        widths[-1] = min(widths[-1], max(least, room - sum(widths[:-1])))
    while sum(widths[:-1] if below else widths) > room and names:
        longest = max(names, key=widths.__getitem__)
        if widths[longest] <= NAMES_LEAST:
            return
        widths[longest] -= 1


def _cut(text: str, width: int, *, at_end: bool = False) -> str:
    """A name's end tells as much as its beginning."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    end = 0 if at_end else (width - 1) // 2
    return set_cell_size(text, width - 1 - end).rstrip() + "…" + (text[-end:] if end else "")


def _plain(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[escaped(cell) for cell in row] for row in rows]


def say(paragraph: str) -> None:
    """Wrapped between words on a terminal; one line in a pipe."""
    import sys
    import textwrap

    width = console().width
    wrapped = textwrap.fill(paragraph, width, break_on_hyphens=False, break_long_words=False)
    click.echo(wrapped if sys.stdout.isatty() else paragraph)


def console() -> Any:
    """rich's console on stdout; a pipe gets plain text, on lines as long as they are."""
    import sys

    from lateshift.cli.plain_console import PlainConsole

    return PlainConsole(width=None if sys.stdout.isatty() else PIPED, highlight=False)


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
