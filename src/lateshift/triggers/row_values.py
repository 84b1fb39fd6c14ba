"""A row as JSON has it. A value that cannot be written is told, so that the row is refused and not lost."""

import ipaddress
import math
from collections.abc import Mapping
from typing import Any

import msgspec

from lateshift.triggers.unreadable import Unreadable

_AS_TEXT = (
    ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network,
    ipaddress.IPv4Interface, ipaddress.IPv6Interface,
)  # fmt: skip


def plain_row(row: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """The row, and why it cannot be written, if so; the values that cannot then stand in it in words."""
    told: dict[str, Any] = {}
    wrong: str | None = None
    for name, value in row.items():
        if isinstance(value, Unreadable):
            told[name] = value.text
            wrong = wrong or f"the column {name} holds a {value.kind} that Python has none for: {value.why}"
            continue
        try:
            told[name] = _plain(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            told[name] = f"a {type(value).__name__}"
            wrong = wrong or f"the column {name} holds a {type(value).__name__}, which JSON cannot: {error}"
    return told, wrong


def _plain(value: Any) -> Any:
    """Times and UUIDs as text, decimals as text so that no digit is lost, bytes as base64."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Unreadable):
        raise TypeError(value.why)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    told = msgspec.to_builtins(value, str_keys=True, enc_hook=_foreign)
    return [_plain(each) for each in told] if isinstance(told, list) else told


def _foreign(value: Any) -> Any:
    if isinstance(value, _AS_TEXT):
        return str(value)
    raise TypeError(f"a {type(value).__qualname__} is none of the types that it knows")
