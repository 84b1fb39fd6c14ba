"""The record of a job's attempts that did not complete: JSON in the job's own row, bounded."""

import msgspec

from lateshift.model.job import AttemptRecord

KEPT = 10  # the first and the latest nine

_decoder = msgspec.json.Decoder(list[AttemptRecord])
_encoder = msgspec.json.Encoder()


def read(history: bytes | None) -> list[AttemptRecord]:
    return _decoder.decode(history) if history else []


def append(history: bytes | None, record: AttemptRecord) -> bytes:
    records = [*read(history), record]
    if len(records) > KEPT:
        records = records[:1] + records[-KEPT + 1 :]
    return _encoder.encode(records)
