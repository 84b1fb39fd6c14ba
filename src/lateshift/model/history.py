"""The record of a job's attempts that did not complete, and of its resubmissions: JSON in the job's own row, bounded."""

import re
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from lateshift.model.depth import PAYLOAD_DEPTH, depth_of
from lateshift.model.job import RESUBMITTED, AttemptRecord

KEPT = 10  # the first and the latest nine; lines with old arguments stay longest
LEFT = 16 * 1024  # bytes of the end of a longer one that are read of a job that is one of many

_BEGINS = b'{"attempt":'  # a line; in a text the quotes are escaped
_VALUES = 3  # how deep the old arguments of a line stand in it
_TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)

_decoder = msgspec.json.Decoder(list[AttemptRecord])
_encoder = msgspec.json.Encoder()


def read(history: bytes | None) -> list[AttemptRecord]:
    """Also where old arguments are deeper than any decoder follows, as somebody's own SQL may have kept them: these are texts then."""
    try:
        return _decoder.decode(history) if history else []
    except RecursionError:
        return _decoder.decode(_flat(history or b""))


def attempts(records: Sequence[AttemptRecord]) -> list[AttemptRecord]:
    """Those that tell of one."""
    return [record for record in records if record.reason != RESUBMITTED]


def latest(records: Sequence[AttemptRecord]) -> list[AttemptRecord]:
    """The last attempt; and the last line, if the job was resubmitted after that."""
    return [*attempts(records)[-1:], *(line for line in records[-1:] if line.reason == RESUBMITTED)]


def at_end(end: bytes | None) -> list[AttemptRecord] | None:
    """The same of what is read of one of many: all of a history, or the last LEFT + 1 bytes of a longer one. None if there is no attempt in
    these."""
    if end is None or len(end) <= LEFT:
        return latest(read(end))
    begun = len(end)
    for _ in range(
        KEPT
    ):  # old arguments may look like lines: what is left of them after such a one is no JSON
        begun = end.rfind(_BEGINS, 0, begun)
        if begun < 0:
            break
        with suppress(msgspec.DecodeError, RecursionError):
            records = _decoder.decode(b"[" + end[begun:])
            if attempts(records):
                return latest(records)
    return None


def append(history: bytes | None, record: AttemptRecord) -> bytes:
    records = [*read(history), record]
    if len(records) > KEPT:
        del records[_least_wanted(records)]
    return _encoder.encode(records)


def _least_wanted(records: list[AttemptRecord]) -> int:
    """Between the first and the latest: the oldest that tells of a resubmission alone, which the audit does too; else the oldest that holds no old
    arguments, which stand nowhere else."""
    plain = [place for place in range(1, KEPT) if records[place].was is None]
    return next((place for place in plain if records[place].reason == RESUBMITTED), plain[0] if plain else 1)


def _flat(history: bytes) -> bytes:
    """With each list and object of old arguments that is deeper than anything may be today as the text that it is (see depth.shown)."""
    left, done, depth, begun = list[bytes](), 0, 0, 0
    for token in _TOKENS.finditer(history):
        if token[0] in b"[{":
            depth += 1
            begun = token.start() if depth == _VALUES + 1 else begun
        elif token[0] in b"]}":
            depth -= 1
            value = history[begun : token.end()] if depth == _VALUES else b""
            if depth_of(value, PAYLOAD_DEPTH) > PAYLOAD_DEPTH:
                left += history[done:begun], _encoder.encode(value.decode(errors="replace"))
                done = token.end()
    return b"".join([*left, history[done:]])
