"""What was found of the jobs that a filter means, and what the text of one is looked for as. Plain data."""

import msgspec
from msgspec import Struct

from lateshift.model.ids import JobId
from lateshift.model.job import JobView

LOOKED_AT = 10_000  # jobs of each kind that one search looks at; it says how to go on


class Found(Struct, frozen=True):
    """Jobs, the newest first. `before`: where to go on, if there may be more. `cut`: there may be though fewer were found than
    asked for, as LOOKED_AT jobs were looked at."""

    jobs: list[JobView]
    before: JobId | None = None
    cut: bool = False


def argument_parts(text: str | None) -> tuple[bytes | None, bytes | None]:
    """What stands in the JSON of the arguments of a job that is meant: one of these. `name=value` is an argument with this value,
    be it a text or JSON, and stands before another or at the end; anything else is a part of a text or a number."""
    if text is None:
        return None, None
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        return msgspec.json.encode(text)[1:-1], None
    pair = msgspec.json.encode(name) + b":" + _as_json(value)
    return pair + b",", pair + b"}"


def error_part(text: str | None) -> bytes | None:
    """As it stands in the record of attempts, which is JSON."""
    return None if text is None else msgspec.json.encode(text)[1:-1]


def _as_json(value: str) -> bytes:
    try:
        return msgspec.json.format(value.encode(), indent=-1)
    except msgspec.DecodeError:
        return msgspec.json.encode(value)
