"""The effect ledger: two files outside the product's database, which the checker trusts instead of the product.

Job bodies write a line when they start and when their effect is done; callers write one before and after each
enqueue. A line is one write(2) on a descriptor opened with O_APPEND, so that processes cannot mix them, and all are of
one length that a page holds a whole number of: a write over the end of a page can be seen, or killed, half done.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

VARIABLE = "CRASH_LEDGER"  # the folder that holds the ledgers
WIDTH = 256  # bytes of a line, with its end

BodyKind = Literal["start", "effect", "failed", "told"]
CallKind = Literal["attempted", "ok", "unknown"]


@dataclass(frozen=True, slots=True)
class BodyLine:
    """One thing a job's body did. `failed`: it raised on purpose; `told`: it was asked to stop, and saw it."""

    kind: BodyKind
    job: str
    number: int
    attempt: int
    fence: int
    pid: int
    parent: int
    at: float


@dataclass(frozen=True, slots=True)
class CallLine:
    """One step of one enqueue. `job` is the id the caller made (or, with `ok` and a key, the one it was given)."""

    kind: CallKind
    job: str
    number: int
    pid: int
    at: float
    key: str | None = None


class Ledger:
    """Both files, in one folder. Safe to use from any process that knows the folder."""

    def __init__(self, folder: Path) -> None:
        self._bodies = folder / "bodies"
        self._calls = folder / "calls"

    def body(self, kind: BodyKind, job: object, number: int, attempt: int, fence: int) -> None:
        words = (kind, job, number, attempt, fence, os.getpid(), os.getppid(), f"{time.time():.6f}")
        append(self._bodies, " ".join(map(str, words)))

    def call(self, kind: CallKind, job: object, number: int, key: str | None = None) -> None:
        words = (kind, job, number, os.getpid(), f"{time.time():.6f}", key or "-")
        append(self._calls, " ".join(map(str, words)))

    def bodies(self) -> list[BodyLine]:
        """In the order in which they were written."""
        return [_body_line(words) for words in read(self._bodies)]

    def calls(self) -> list[CallLine]:
        return [_call_line(words) for words in read(self._calls)]


def here() -> Ledger:
    """The ledger that this process was told of."""
    return Ledger(Path(os.environ[VARIABLE]))


def append(path: Path, text: str) -> None:
    """One line more, or nothing at all."""
    line = (text.ljust(WIDTH - 1) + "\n").encode()
    if len(line) != WIDTH:
        raise ValueError(f"{path}: a line has room for {WIDTH - 1} bytes, not for {len(line) - 1}: {text!r}.")
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        written = os.write(descriptor, line)
    finally:
        os.close(descriptor)
    if written != WIDTH:
        raise OSError(f"{path}: only {written} of {WIDTH} bytes were written; the ledger cannot be trusted.")


def read(path: Path) -> list[list[str]]:
    """The words of each line."""
    if not path.exists():
        return []
    *lines, rest = path.read_text().split("\n")
    if rest:
        raise ValueError(f"{path}: the last line is torn: {rest!r}.")
    return [line.split() for line in lines]


def _body_line(words: list[str]) -> BodyLine:
    kind, job, number, attempt, fence, pid, parent, at = words
    for known in get_args(BodyKind):
        if kind == known:
            return BodyLine(
                known, job, int(number), int(attempt), int(fence), int(pid), int(parent), float(at)
            )
    raise ValueError(f"The ledger has no lines of the kind {kind!r}.")


def _call_line(words: list[str]) -> CallLine:
    kind, job, number, pid, at, key = words
    for known in get_args(CallKind):
        if kind == known:
            return CallLine(known, job, int(number), int(pid), float(at), None if key == "-" else key)
    raise ValueError(f"The ledger has no lines of the kind {kind!r}.")
