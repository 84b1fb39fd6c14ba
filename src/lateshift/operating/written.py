"""Ids as people write them: whole, or the first or last digits of one, as listings show them."""

import re

LEAST_DIGITS = 4
WHOLE = 32

_DIGITS = re.compile(rf"[0-9a-f]{{{LEAST_DIGITS},{WHOLE}}}")


def digits_in(text: str) -> str | None:
    """As an id is written, whole or in part; None if it is something else."""
    found = text.strip("… ").removeprefix("...").replace("-", "").lower()
    return found if _DIGITS.fullmatch(found) else None
