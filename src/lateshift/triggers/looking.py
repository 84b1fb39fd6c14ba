"""One look at a file: which version it is, and whether it is there at all."""

import os
import stat
from datetime import UTC, datetime, timedelta

from lateshift.model.triggering.events import FileChange


def mark_of(looked: os.stat_result) -> str:
    """Which version of a file this is."""
    return f"{looked.st_size}-{looked.st_mtime_ns}-{looked.st_ino}"


def seen_of(path: str, looked: os.stat_result, mark: str) -> FileChange:
    try:
        modified = _EPOCH + timedelta(microseconds=looked.st_mtime_ns // 1000)
    except OverflowError:
        modified = datetime.max.replace(tzinfo=UTC)
    return FileChange(path=path, size=looked.st_size, modified=modified, etag=mark)


def look(path: str) -> os.stat_result | None:
    """None if nothing is there, or if it cannot be looked at: the next scan says so."""
    try:
        return os.stat(path)  # noqa: PTH116
    except OSError:
        return None


def is_gone(path: str) -> bool:
    """Known to be gone, not only out of reach."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
