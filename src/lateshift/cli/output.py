"""What commands print: tables for people, JSON for programs. The JSON's field names are promised in docs/cli.md."""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import click
import msgspec

from lateshift.model.escaping import OBEYED, escaped
from lateshift.model.job import JobView
from lateshift.model.words import counted as counted
from lateshift.model.words import duration as duration
from lateshift.model.words import short as short

_IN_JSON = {code: f"\\u{code:04x}" for code in OBEYED if code > 126}  # the encoder escapes those below


def say_last(sentence: str) -> None:
    """What a long command has to say in the end, unless its terminal was closed meanwhile: then nobody is there, and nothing went wrong."""
    try:
        click.echo(sentence)
    except OSError:
        nothing = os.open(os.devnull, os.O_WRONLY)  # so that the last flush does not fail again
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)


def print_json(document: Any) -> None:
    encoded = msgspec.json.format(msgspec.json.encode(document), indent=2)
    click.echo(encoded.decode().translate(_IN_JSON))


LEAST = 20  # characters of the last column, however narrow the terminal
NAMES_LEAST = 16  # and of any other that gives way
PADDING = 3  # between two columns
PIPED = 10_000  # characters that fit on a line where no terminal is: nothing is squeezed there
COMFORT = 40  # characters that a sentence in the last column wants
INDENT = "  "
BETWEEN = " · "  # what stands below a row
# What columns are called that are never cut: ids, times and states; and the first of a table, which is what its rows are known by.
WHOLE = ("job", "run", "batch", "token", "at", "created", "expires", "last used", "state", "tick", "UTC")
SENTENCES = ("what", "why", "arguments")  # which need no heading where they stand below
ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], nothing: str) -> None:
    """A column whose name begins with `>` is set to the right. On a terminal the last gives way when the line is too long, then the longest
    names; then ids are told by their last digits, and the last columns stand below their row, in words. Elsewhere each row is one line,
    and whole. Nothing in a cell is obeyed by the terminal."""
    if not rows:
        click.echo(nothing)
        return
    _print(columns, _plain(rows), sentences=False)


def print_sentences(columns: Sequence[str], rows: Sequence[Sequence[str]], nothing: str) -> None:
    """A table whose last column holds sentences. Where there is little room beside the others, they stand below."""
    if not rows:
        click.echo(nothing)
        return
    _print(columns, _plain(rows), sentences=True)


def _print(columns: Sequence[str], rows: Sequence[Sequence[str]], *, sentences: bool) -> None:
    from rich.text import Text

    output, widths = console(), _widths(columns, rows)
    many = len(columns)
    if output.width < PIPED:
        many = _beside(columns, widths, output.width, sentences=sentences)
        if many < len(columns) - sentences:
            rows = [[_short_id(cell) for cell in row] for row in rows]
            widths = _widths(columns, rows)
            many = _beside(columns, widths, output.width, sentences=sentences)
        _give_way(columns, widths, output.width, many)

    def line(cells: Sequence[str], style: str = "") -> Text:
        whole = Text()
        for number, (cell, width, column) in enumerate(
            zip(cells[:many], widths[:many], columns[:many], strict=True), 1
        ):
            ends = number == len(columns)  # the last, which is no name
            fitted = Text(_cut(cell, width, at_end=ends), style=style or STYLES.get(cell, ""))
            fitted.align("right" if column.startswith(">") else "left", width)
            whole.append_text(fitted).append(" " * PADDING)
        whole.rstrip()
        return whole

    names = [column.lstrip(">") for column in columns]
    across = sum(widths) + PADDING * (len(widths) - 1) if many == len(columns) else output.width
    _print_lines(output, [line(names, "bold"), "─" * across])
    for cells in rows:
        below = _below(names[many:], cells[many:], output.width, sentences=sentences)
        _print_lines(output, [line(cells), *map(Text, below)])


def _print_lines(output: Any, lines: Iterable[Any]) -> None:
    for each in lines:
        output.print(each, soft_wrap=True)


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    from rich.cells import cell_len

    return [
        max(cell_len(cell) for cell in (column.lstrip(">"), *(row[number] for row in rows)))
        for number, column in enumerate(columns)
    ]


def _beside(columns: Sequence[str], widths: Sequence[int], room: int, *, sentences: bool) -> int:
    """How many of the columns fit on a line, each as narrow as it may be; the others stand below. Sentences do so before a name is cut."""
    many, last = len(columns), len(columns) - 1
    if sentences and sum(widths[:-1]) + PADDING * last + min(COMFORT, widths[-1]) > room:
        many = last
    least = [
        width if not number or _is_whole(column) else min(width, LEAST if number == last else NAMES_LEAST)
        for number, (column, width) in enumerate(zip(columns, widths, strict=True))
    ]
    while many > 1 and sum(least[:many]) + PADDING * (many - 1) > room:
        many -= 1
    return many


def _give_way(columns: Sequence[str], widths: list[int], room: int, many: int) -> None:
    """Make the columns that stand beside each other narrower until they fit, as far as they may be."""
    room, last = room - PADDING * (many - 1), len(columns) - 1
    if many > last and not _is_whole(columns[last]):
        widths[last] = min(widths[last], max(LEAST, room - sum(widths[:last])))
    names = [number for number in range(1, min(many, last)) if not _is_whole(columns[number])]
    while sum(widths[:many]) > room and names:
        longest = max(names, key=widths.__getitem__)
        if widths[longest] <= NAMES_LEAST:
            return
        widths[longest] -= 1


def _below(columns: Sequence[str], cells: Sequence[str], room: int, *, sentences: bool) -> list[str]:
    """What there is no room for beside the others: each with its heading, but for a sentence, which stands alone."""
    told = [f"{column} {cell}" for column, cell in zip(columns, cells, strict=True) if cell]
    alone = []
    if columns and cells[-1] and (sentences or columns[-1] in SENTENCES):
        told, alone = told[:-1], [INDENT + _cut(cells[-1], room - len(INDENT), at_end=True)]
    lines: list[str] = []
    for each in told:
        if lines and len(lines[-1]) + len(BETWEEN) + len(each) <= room:
            lines[-1] += BETWEEN + each
        else:
            lines.append(INDENT + _cut(each, room - len(INDENT)))
    return lines + alone


def _short_id(cell: str) -> str:
    return short(UUID(cell)) if ID.fullmatch(cell) else cell


def _is_whole(column: str) -> bool:
    return column in WHOLE or column.startswith(">")


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
