"""How far an attempt says it is, as a job's row keeps it: with which word of which attempt that is, and when it was said."""

import msgspec
from msgspec import Struct

from lateshift.model.instants import to_instant
from lateshift.model.job import Note, Progress, Saying


class _Kept(Struct, frozen=True):
    """In this order: whoever writes compares how it begins."""

    done: float
    fence: int = 0
    number: int = 0
    total: float | None = None
    note: str | None = None
    at: int | None = None  # microseconds


_decoder = msgspec.json.Decoder(_Kept)
_encode = msgspec.json.Encoder().encode


def begun(note: Note) -> tuple[bytes | None, bytes | None]:
    """What is kept of its progress, up to the time, which the store has to say: `closed` ends it. And how the same word begins, if it
    was written before."""
    progress = note.progress
    if progress is None:
        return None, None
    same = f'{{"fence":{note.lease.fence},"number":{note.number},'.encode() if note.number else b"{"
    return same + _encode(progress)[1:-1] + b',"at":', same if note.number else None


def closed(begun: bytes | None, microseconds: int) -> bytes | None:
    return None if begun is None else b"%b%d}" % (begun, microseconds)


def read(kept: bytes | None) -> tuple[Progress | None, Saying | None]:
    """Of a worker of an older release, nobody knows which word it was, nor when."""
    if not kept:
        return None, None
    it = _decoder.decode(kept)
    said = Saying(it.fence, it.number, None if it.at is None else to_instant(it.at))
    return Progress(it.done, it.total, it.note), said
