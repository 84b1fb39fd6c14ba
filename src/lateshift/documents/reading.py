"""What is kept as JSON, to be shown as JSON; masked, if it is sealed."""

from typing import Any

import msgspec

from lateshift.model.sealed import MASK, is_sealed


def readable(encoded: bytes | None) -> Any:
    return MASK if is_sealed(encoded) else None if encoded is None else msgspec.json.decode(encoded)
