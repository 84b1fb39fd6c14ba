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


@pytest.mark.parametrize("width", [80, 120])
def test_on_a_terminal_a_long_name_gives_way_and_the_id_the_state_and_the_queue_stay(
    job: str, cli: Cli, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    terminal(monkeypatch, width)
    [row] = [line for line in cli("jobs", "list").out.splitlines() if line.startswith(job)]
    assert row.split()[0] == job
    assert row.split()[2:4] == ["letters", "ready"]
    assert LONG not in row
    name = row.split()[1]
    assert (name[:6], name[-7:]) == (LONG[:6], LONG[-7:])
    assert len(row) <= max(width, len(job) + 80)


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
