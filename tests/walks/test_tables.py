"""What a table gives up when its line is too long: never what a row is known by, and nothing at all where no terminal is."""

import pytest

from lateshift import Lateshift
from lateshift.cli import output
from lateshift.cli.plain_console import PlainConsole
from tests.walks.commands import Cli

LONG = "a_very_long_package.of_tasks." + "with_a_name" * 6 + "_and_its_end"


@pytest.fixture
def job(app: Lateshift) -> str:
    @app.task(name=LONG, queue="letters")
    def read(text: str) -> None: ...

    return str(read.enqueue("x" * 400).id)


def terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr(output, "console", lambda: PlainConsole(width=width, highlight=False))


def test_through_a_pipe_each_row_is_one_line_and_whole(job: str, cli: Cli) -> None:
    [row] = [line for line in cli("jobs", "list").out.splitlines() if line.startswith(job)]
    assert LONG in row
    assert row.split()[2:4] == ["letters", "ready"]
    assert "…" not in row
    assert "x" * 400 in cli("jobs", "show", job).out


@pytest.mark.parametrize("width", [80, 100, 120])
def test_on_a_terminal_a_long_name_gives_way_and_the_id_the_state_and_the_queue_stay(
    job: str, cli: Cli, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    terminal(monkeypatch, width)
    known_by = (
        job if width == 120 else f"…{job[-6:]}"
    )  # where a whole id leaves no room, its last digits will do
    [row] = [line for line in cli("jobs", "list").out.splitlines() if line.startswith(known_by)]
    assert row.split()[2:4] == ["letters", "ready"]
    assert LONG not in row
    name = row.split()[1]
    assert (name[:6], name[-7:]) == (LONG[:6], LONG[-7:])
    assert len(row) <= width


def test_a_sentence_stands_below_where_there_is_little_room_and_beside_in_a_pipe(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [["7", "n" * 90, "s" * 300]]
    output.print_sentences(("id", "name", "what"), rows, "")
    assert f"7    {'n' * 90}   {'s' * 300}" in capsys.readouterr().out
    terminal(monkeypatch, 60)
    output.print_sentences(("id", "name", "what"), rows, "")
    *_, name, what = capsys.readouterr().out.splitlines()
    assert name.startswith("7    nnnn")
    assert (what.startswith("  sss"), what.endswith("…"), len(what)) == (True, True, 60)


COLUMNS = ("token", "name", "state", "created", "by", "expires", "queues")
ROWS = [
    ["…0d9f3a", "a-name-of-some-length-" + "x" * 30, "good", "2026-11-19 21:28:49", "root", "2026-12-19 21:28:42", "images.*, mail"],
    ["…7b7ca6", "ci", "revoked", "2026-11-19 21:28:49", "root", "never", ""],
]  # fmt: skip


@pytest.mark.parametrize("width", [50, 80, 100, 140])
def test_no_line_is_longer_than_the_terminal_and_no_time_is_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    terminal(monkeypatch, width)
    output.print_table(COLUMNS, ROWS, "")
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= width
    assert told.count("2026-11-19 21:28:49") == 2
    assert "2026-12-19 21:28:42" in told


def test_what_has_no_room_stands_below_its_row_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal(monkeypatch, 80)
    output.print_table(COLUMNS, ROWS, "")
    heading, _, first, below, second, besides = capsys.readouterr().out.splitlines()
    assert heading.split() == ["token", "name", "state", "created", "by"]
    assert first.split()[2:] == ["good", "2026-11-19", "21:28:49", "root"]
    assert below == "  expires 2026-12-19 21:28:42 · queues images.*, mail"
    assert (second.split()[1], besides) == ("ci", "  expires never")


def test_in_a_pipe_nothing_stands_below_and_ids_are_whole(
    capsys: pytest.CaptureFixture[str], job: str
) -> None:
    output.print_table(("job", "what"), [[job, "x" * 12_000]], "")
    assert capsys.readouterr().out.splitlines()[2] == f"{job}   {'x' * 12_000}"
