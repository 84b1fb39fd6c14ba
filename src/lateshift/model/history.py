"""The record of a job's attempts that did not complete, and of its resubmissions: JSON in the job's own row, bounded."""

from collections.abc import Sequence

import msgspec

from lateshift.model.job import RESUBMITTED, AttemptRecord

KEPT = 10  # the first and the latest nine; lines with old arguments stay longest

_decoder = msgspec.json.Decoder(list[AttemptRecord])
_encoder = msgspec.json.Encoder()


def read(history: bytes | None) -> list[AttemptRecord]:
    try:
        return _decoder.decode(history) if history else []
    except RecursionError:  # old arguments that an older release kept, deeper than can be read here
        return []


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
