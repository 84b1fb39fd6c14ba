"""The log of an attempt while it runs: bounded, the newest lines win, written to from any thread."""

import threading
from collections import deque
from collections.abc import Callable, Iterable

from lateshift.model.attempt_log import LOG_BYTES, LOG_LINES, AttemptLog, LogLine
from lateshift.model.job import Lease


class Log:
    """Made when the first line comes: an attempt that logs nothing has none. `told` is called at each line."""

    __slots__ = ("_bytes", "_closed", "_lines", "_lock", "_told", "logged", "written", "written_at")

    def __init__(self, told: Callable[[], None] = lambda: None, since: float = 0.0) -> None:
        self.logged = 0
        self.written = 0  # how many had come when the store last heard of it, and when that was (monotonic)
        self.written_at = since
        self._lines: deque[tuple[LogLine, int]] = deque()
        self._bytes = 0
        self._closed = False
        self._lock = threading.Lock()
        self._told = told

    def add(self, line: LogLine) -> None:
        """Nothing, once the attempt has ended: what it left behind may log on."""
        self.extend([line])

    def extend(self, lines: Iterable[LogLine], dropped: int = 0) -> None:
        """As another process tells of them, with how many it had to drop."""
        with self._lock:
            if self._closed:
                return
            self.logged += dropped
            for line in lines:
                size = len(line.message.encode())
                self._lines.append((line, size))
                self._bytes += size
                self.logged += 1
            while len(self._lines) > LOG_LINES or self._bytes > LOG_BYTES:
                self._bytes -= self._lines.popleft()[1]
        self._told()

    def take(self) -> tuple[list[LogLine], int]:
        """What has come since the last time, and how many were dropped of it."""
        with self._lock:
            lines = [line for line, _ in self._lines]
            dropped = self.logged - self.written - len(lines)
            self.written = self.logged
            self._lines.clear()
            self._bytes = 0
        return lines, dropped

    def so_far(self, lease: Lease, now: float) -> AttemptLog:
        """For the store, while the attempt runs on."""
        with self._lock:
            self.written, self.written_at = self.logged, now
            return self._kept(lease)

    def close(self, lease: Lease) -> AttemptLog:
        """The attempt has ended."""
        with self._lock:
            self._closed = True
            return self._kept(lease)

    def _kept(self, lease: Lease) -> AttemptLog:
        lines = [line for line, _ in self._lines]
        return AttemptLog(
            job=lease.id, attempt=lease.attempt, fence=lease.fence, lines=lines, logged=self.logged
        )
