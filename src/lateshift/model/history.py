"""The record of a job's attempts that did not complete, and of its resubmissions: JSON in the job's own row, bounded."""

import re
from collections.abc import Sequence

import msgspec

from lateshift.model.depth import PAYLOAD_DEPTH, depth_of
from lateshift.model.job import RESUBMITTED, AttemptRecord

KEPT = 10  # the first and the latest nine; lines with old arguments stay longest

_VALUES = 3  # how deep the old arguments of a line stand in it
_TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)

_decoder = msgspec.json.Decoder(list[AttemptRecord])
_encoder = msgspec.json.Encoder()


def read(history: bytes | None) -> list[AttemptRecord]:
    """Also where old arguments that an older release kept, or somebody's own SQL, are deeper than any decoder follows: these are texts then."""
    try:
        return _decoder.decode(history) if history else []
    except RecursionError:
        return _decoder.decode(_flat(history or b""))


def attempts(records: Sequence[AttemptRecord]) -> list[AttemptRecord]:
    """Those that tell of one."""
    return [record for record in records if record.reason != RESUBMITTED]


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
