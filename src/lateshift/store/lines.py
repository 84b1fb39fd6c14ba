"""Which queues a worker serves."""

from collections.abc import Sequence
from fnmatch import fnmatchcase


def served(queue: str, queues: Sequence[str] | None) -> bool:
    """Whether a queue is among `queues`, which may hold patterns such as `images.*`; None is all of them."""
    return queues is None or any(fnmatchcase(queue, pattern) for pattern in queues)
