"""What is kept as JSON, to be shown as JSON; masked, if it is sealed."""

from typing import Any

import msgspec
from msgspec import Raw

from lateshift.model.sealed import MASK, is_sealed


def as_kept(encoded: bytes | None) -> Any:
    """The same, for what goes out as JSON: in a list of many, what they hold is not taken apart, as many small things in a little JSON are
    large in memory."""
    return MASK if is_sealed(encoded) else None if encoded is None else Raw(encoded)


def readable(encoded: bytes | None) -> Any:
    return MASK if is_sealed(encoded) else None if encoded is None else msgspec.json.decode(encoded)
