"""How often this process was forked from its ancestors: a connection, a lock or a thread belongs to the process that made
it. os.getpid() would tell too, but it is a system call, and dear where those are watched."""

import mmap
import os
import sys

WIPE_ON_FORK = 18  # MADV_WIPEONFORK, for which Python's mmap has no name

_forks = 0


def forks() -> int:
    if _page is not None and not _page[0]:
        _forked()
    return _forks


def _forked() -> None:
    global _forks
    _forks += 1
    if _page is not None:
        _page[0] = 1


def _wiped_page() -> mmap.mmap | None:
    """Memory that the kernel gives empty to a forked child, also to one that Python knows nothing of."""
    if sys.platform != "linux":
        return None
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        page.madvise(WIPE_ON_FORK)
    except OSError:
        return None
    page[0] = 1
    return page


_page = _wiped_page()
os.register_at_fork(after_in_child=_forked)
