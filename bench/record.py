"""When each job began: a file of 8 bytes for each job number, mapped by every process, written by the bodies.

A body costs 0.2 us more for it, takes no lock and makes no system call, whatever runs it; no two jobs share a slot.
The lowest 8 bits of the time say which process it was: 256 ns are fine enough.
"""

import mmap
import os
import struct
import time
from pathlib import Path

VARIABLE = "BENCH_RECORD"


class Marks:
    """The bodies' side."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._slots = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")
        self._length = len(self._slots)
        self._process = os.getpid() & 0xFF

    @classmethod
    def from_environment(cls) -> "Marks":
        return cls(Path(os.environ[VARIABLE]))

    def begin(self, number: int) -> None:
        """Job `number` has begun. Numbers past the end of the file are not kept."""
        if number < self._length:
            self._slots[number] = time.time_ns() & ~0xFF | self._process


class Record:
    """The driver's side. Times are nanoseconds since 1970."""

    def __init__(self, path: Path, jobs: int) -> None:
        self.path = path
        self._jobs = jobs

    @classmethod
    def make(cls, path: Path, jobs: int) -> "Record":
        path.write_bytes(bytes(8 * jobs))
        return cls(path, jobs)

    @classmethod
    def existing(cls) -> "Record":
        path = Path(os.environ[VARIABLE])
        return cls(path, path.stat().st_size // 8)

    def clear(self) -> None:
        with self.path.open("r+b") as file:
            file.write(bytes(8 * self._jobs))

    def begun(self, number: int) -> bool:
        with self.path.open("rb") as file:
            file.seek(8 * number)
            return file.read(8) != bytes(8)

    def starts(self) -> list[int]:
        """One for each job number; 0 where it has not begun."""
        return [start for (start,) in struct.iter_unpack("<q", self.path.read_bytes())]

    def complete(self) -> bool:
        """All have begun. The last number nearly always does so late: it is looked at first."""
        return self.begun(self._jobs - 1) and 0 not in self.starts()

    def all_at_work(self) -> int:
        """When the last of the processes began its first job: before that, some were still starting up."""
        firsts: dict[int, int] = {}
        for start in self.starts():
            if start:
                process = start & 0xFF
                firsts[process] = min(start, firsts.get(process, start))
        return max(firsts.values())
