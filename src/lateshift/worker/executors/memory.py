"""A process's memory: the cap that it sets for itself while a body runs, and what it uses as its worker sees it."""

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEGABYTE = 1024**2


@contextmanager
def capped(cap: int | None) -> Iterator[None]:
    """On Linux, an allocation that would bring this process's resident memory over `cap` bytes raises MemoryError.

    The kernel limits what is reserved, not what is used: stacks of threads and the like, reserved before the body
    begins and never touched, do not count against it.
    """
    if cap is None or sys.platform != "linux":
        yield
        return
    reserved, resident = _own_usage()
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = reserved + max(0, cap - resident)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _own_usage() -> tuple[int, int]:
    """Bytes of private data reserved, and bytes resident."""
    lines = Path("/proc/self/status").read_text().splitlines()
    values = {name: value for name, _, value in (line.partition(":") for line in lines)}
    return _kilobytes(values["VmData"]), _kilobytes(values["VmRSS"])


def _kilobytes(value: str) -> int:
    return int(value.split()[0]) * 1024


def resident(pid: int) -> int:
    """Bytes of memory that a process uses now; 0 if it has gone."""
    import psutil  # late: a worker without a capped task has no use for it

    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def megabytes(size: int) -> str:
    return f"{size / MEGABYTE:,.0f} MB"
