"""No terminal obeys what users wrote, by whichever command it is shown: colours, cursors, and marks that turn text around."""

import io

import msgspec
import pytest
from rich.panel import Panel
from rich.text import Text

from lateshift import Lateshift
from lateshift.cli.plain_console import PlainConsole
from lateshift.model.escaping import OBEYED
from tests.walks.burying import bury, named
from tests.walks.commands import Cli

EVIL = "x\x1b[31mRED\x9b2J\u202eturned\x07"
TURNED = "t\u202e"
RAW = [chr(code) for code in OBEYED if code != 10]


@pytest.fixture
def jobs(app: Lateshift, cli: Cli) -> list[str]:
    """One that has died of it, and two that wait."""

    @app.task(queue="q")
    def read(text: str) -> str:
        return text

    dead = bury(app, msgspec.json.encode({"text": EVIL}), message=EVIL, error="E\x1b[31m")
    waiting = [read.options(tags=[TURNED], session=TURNED).enqueue(EVIL).id, read.enqueue(EVIL).id]
    return named([*dead, *waiting])


def test_no_command_shows_what_a_terminal_obeys(jobs: list[str], cli: Cli) -> None:
    commands = [["jobs", what, id] for id in jobs for what in ("show", "explain", "logs")]
    commands += [
        ["jobs", "list"],
        ["jobs", "dead"],
        ["jobs", "list", "--tag", TURNED],
        ["sessions", "list"],
        ["queues", "list"],
    ]
    for command in [*commands, *[[*command, "--json"] for command in commands]]:
        said = cli(*command)
        assert [each for each in RAW if each in said.out] == [], command


def test_a_console_lets_its_own_styles_through_and_nothing_else() -> None:
    written = io.StringIO()
    console = PlainConsole(file=written, force_terminal=True, width=40, color_system="standard")
    console.print(Panel(Text(EVIL, style="bold")))
    shown = written.getvalue()
    assert "\x1b[1m" in shown
    assert "\x1b[31m" not in shown
    assert not {"\u202e", "\x9b", "\x07"} & set(shown)
