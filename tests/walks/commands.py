"""The command `lateshift`, called in this process or started as a real one."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lateshift.cli.main import run

SOURCES = Path(__file__).parents[2] / "src"
OUTPUT_SHOWN = 5_000  # characters


@dataclass(frozen=True, slots=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


class Cli:
    """`cli("jobs", "list")`; there is never a traceback on stderr."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Said:
        self._capsys.readouterr()
        code = run(list(arguments))
        out, err = self._capsys.readouterr()
        assert "Traceback" not in err
        return Said(code, out, err)


def environment(**more: str) -> dict[str, str]:
    """The test's own, with the package as it stands in this folder."""
    # Unbuffered, Python forgets the rest of a write that was cut short by a closed pipe.
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("LATESHIFT_", "PYTHONUNB"))
    }
    return kept | {"PYTHONPATH": str(SOURCES)} | more


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "lateshift", *arguments]


def completed(*arguments: str, cwd: Path, **variables: str) -> Said:
    """A real process, waited for."""
    done = subprocess.run(
        command(*arguments), cwd=cwd, env=environment(**variables), capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return Said(done.returncode, done.stdout, done.stderr)


@contextmanager
def started(*arguments: str, cwd: Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """A real process, running while the block does; killed with its children if it is still there at the end."""
    with (cwd / "output").open("w") as output:
        process = subprocess.Popen(
            command(*arguments),
            cwd=cwd,
            env=environment(**variables),
            stdout=output,
            stderr=output,
            text=True,
        )
    try:
        yield process
    except BaseException:
        print((cwd / "output").read_text()[-OUTPUT_SHOWN:])  # what it said is shown with what went wrong
        raise
    finally:
        if process.poll() is None:
            process.kill()  # its workers end with it
            process.wait()


def interrupted(process: subprocess.Popen[str], seconds: float) -> int:
    """Ctrl-C, and the exit code."""
    process.send_signal(signal.SIGINT)
    return process.wait(timeout=seconds)


def eventually(look: Callable[[], bool], what: str, seconds: float = 40) -> None:
    end = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.05)
