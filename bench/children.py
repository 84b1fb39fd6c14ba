"""Child processes, each in a group of its own, bounded in time, and none left behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[1]
LIMIT = 240.0  # seconds for one producer or ceiling


class ChildFailed(Exception):
    """A child ended badly; the message carries the end of what it said."""


def python(module: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", module, *map(str, arguments)]


def environment(changes: Mapping[str, str]) -> dict[str, str]:
    """This process's own, without settings of Lateshift's that would bend a figure."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("LATESHIFT_", "BENCH_"))
    }
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**kept, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **changes}


def ask(
    command: Sequence[str], changes: Mapping[str, str], *, cwd: Path, limit: float = LIMIT
) -> dict[str, Any]:
    """Run to the end; gives the JSON object of its last line."""
    with subprocess.Popen(
        command, env=environment(changes), cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as child:  # fmt: skip
        try:
            said, errors = child.communicate(timeout=limit)
        except BaseException as error:
            end(child)
            if isinstance(error, subprocess.TimeoutExpired):
                raise ChildFailed(f"{_name(command)} took more than {limit:.0f} s") from error
            raise
    if child.returncode != 0:
        raise ChildFailed(f"{_name(command)}: {_tail(errors or said)}")
    try:
        answer: dict[str, Any] = json.loads(said.strip().splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise ChildFailed(f"{_name(command)} gave no figure: {_tail(said)}") from error
    return answer


@contextlib.contextmanager
def running(
    commands: Sequence[Sequence[str]], changes: Mapping[str, str], *, cwd: Path
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Workers, ended with everything they started when the block ends. What they say goes to files in `cwd`."""
    children: list[subprocess.Popen[bytes]] = []
    try:
        for number, command in enumerate(commands):
            with (cwd / f"worker-{number}.log").open("wb") as log:
                children.append(
                    subprocess.Popen(
                        command, env=environment({**changes, "BENCH_WORKER": str(number)}), cwd=cwd,
                        stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                    )
                )  # fmt: skip
        yield children
    finally:
        end(*children)


def wait_until(
    done: Callable[[], bool],
    children: Sequence[subprocess.Popen[bytes]],
    *,
    cwd: Path,
    limit: float,
    pause: float = 0.02,
) -> None:
    """Poll until `done`, while all the children live."""
    until = time.monotonic() + limit
    while not done():
        if any(child.poll() is not None for child in children):
            raise ChildFailed(f"a worker ended too early: {_logs(cwd)}")
        if time.monotonic() > until:
            raise ChildFailed(f"not done within {limit:.0f} s: {_logs(cwd)}")
        time.sleep(pause)


def tree(child: subprocess.Popen[Any]) -> list[psutil.Process]:
    try:
        first = psutil.Process(child.pid)
        return [first, *first.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def end(*children: subprocess.Popen[Any]) -> None:
    """Politely, then for certain: whatever they started goes with them."""
    found = [process for child in children for process in tree(child)]
    for child in children:
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
    until = time.monotonic() + 5
    while time.monotonic() < until and any(child.poll() is None for child in children):
        time.sleep(0.02)
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    for child in children:
        child.wait(timeout=10)


def _name(command: Sequence[str]) -> str:
    return " ".join(command[2:5]) if len(command) > 2 else command[0]


def _tail(text: str) -> str:
    return " / ".join(text.strip().splitlines()[-4:])[-600:]


def _logs(cwd: Path) -> str:
    return (
        _tail("\n".join(log.read_text(errors="replace") for log in sorted(cwd.glob("worker-*.log"))))
        or "it said nothing"
    )
