"""The memory of a process that has started: when the garbage collector looks, and what is given back to the system."""

import ctypes
import gc

M_MMAP_THRESHOLD = -3  # of glibc's malloc.h
APART = 256 * 1024  # bytes from which on a piece of memory stands by itself


def settle_down() -> None:
    """What is loaded stays, and need not be looked at again. Work makes thousands of objects that die young, so the collector looks at
    those less often than by default."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def give_back() -> None:
    """Of a process that serves: large pieces of memory go back to the system when they are free. glibc moves the size from which on they
    do up to 32 MiB, as soon as one was freed: then bodies and answers stand on the heap, where the little that is left of a connection
    keeps the hole beside it, and a server to which clients do nothing but cut answers grows without an end. A size that was set stays.
    Not for workers: what bodies of jobs do with memory is theirs. Passed over where there is no glibc."""
    try:
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, APART)
    except (AttributeError, OSError, TypeError):
        return
