"""What is kept as JSON, to be shown as JSON; masked, if it is sealed; as text, if it is too deep."""

from typing import Any

import msgspec

from lateshift.model.depth import PAYLOAD_DEPTH, depth_of, passed_on, shown
from lateshift.model.sealed import MASK, is_sealed


def as_kept(encoded: bytes | None) -> Any:
    """The same, for what goes out as JSON: in a list of many, what they hold is not taken apart, as many small things in a little JSON are
    large in memory."""
    return MASK if is_sealed(encoded) else None if encoded is None else passed_on(encoded)


def readable(encoded: bytes | None) -> Any:
    return MASK if is_sealed(encoded) else None if encoded is None else shown(encoded)


def in_one_line(encoded: bytes | None) -> str:
    """As it is written, with a space where a reader wants one."""
    if encoded is None:
        return ""
    deep = depth_of(encoded, PAYLOAD_DEPTH) > PAYLOAD_DEPTH
    return (encoded if deep else msgspec.json.format(encoded, indent=0)).decode()
