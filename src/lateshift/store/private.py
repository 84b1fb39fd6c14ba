"""Files that hold what callers gave to their jobs: only their owner may read them."""

import os
from contextlib import suppress
from pathlib import Path


def create(path: Path) -> None:
    """An empty file with mode 0600. One that is there stays as it is; what cannot be made is left to its opener."""
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
