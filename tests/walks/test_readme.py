"""The README's own words, carried out."""

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from lateshift.cli.main import lateshift as command_line
from tests.walks.commands import environment, eventually, interrupted, started

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def first_program() -> str:
    [program, *_] = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    return str(program)


def test_the_first_program_does_what_the_readme_says(store_url: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(first_program())
    with started("work", "shop.py", cwd=tmp_path, LATESHIFT_STORE=store_url) as worker:
        said = subprocess.run(
            [sys.executable, "shop.py"], cwd=tmp_path, env=environment(LATESHIFT_STORE=store_url),
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        assert said.stdout == "cat.png at 100 pixels\n"
        assert said.stderr == ""
        assert interrupted(worker, 30) == 0
    eventually(lambda: "stopped after" in (tmp_path / "output").read_text(), "the last word")


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\bmake ([a-z]+)", README))))
def test_every_make_target_that_it_names_exists(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("line", sorted(set(re.findall(r"`lateshift ([a-z][^`]*)`", README))))
def test_every_command_that_it_names_exists(line: str) -> None:
    [name, *rest] = line.split()
    command = command_line.commands[name]
    if isinstance(command, click.Group) and rest:
        assert rest[0].rstrip(",") in command.commands


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\]\(([^)]+)\)", README))))
def test_every_file_that_it_points_to_is_there(path: str) -> None:
    assert (ROOT / path).exists()
