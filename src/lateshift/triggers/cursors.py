"""The values of a column that only grows: as text that sorts as they do, a step back from one, and as a position is kept."""

from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any, TypeAlias
from uuid import UUID

import msgspec

from lateshift.errors import TriggerInvalid
from lateshift.model.triggering.sources import ROWS_BEHIND, TIME_BEHIND
from lateshift.triggers.unreadable import Unreadable

Cursor: TypeAlias = int | float | Decimal | datetime | date | str | UUID | bytes
Behind: TypeAlias = int | timedelta | None

DIGITS_MOST = 200_000  # PostgreSQL's numeric has 131,072 before the point and 16,383 behind it
_DAY = timedelta(days=1)
_AGES = 365_000 * _DAY  # of which a sum with a date is still one
_NINES = str.maketrans("0123456789", "9876543210")
_EXACT = Context(prec=DIGITS_MOST)
_SEPARATOR = " "  # sorts before all that a cursor's text has


def event_of(cursor: Any, key: Any) -> str:
    """What a version of a row is known by: sorts as the cursor does, and ends with the key."""
    return f"{sortable(cursor)}{_SEPARATOR}{msgspec.json.encode(key, enc_hook=str).decode()}"


def sortable(value: Any) -> str:
    """Text whose order, by bytes, is the order of the values. Equal for equal values: 1, 1.0 and Decimal("1.00")."""
    match value:
        case bool():
            raise _no_cursor(value)
        case int() | Decimal():
            return _number(Decimal(value))
        case float():
            return _number(Decimal(repr(value)))
        case datetime():
            return _instant(value)
        case date():
            return value.isoformat()
        case str():
            return "".join(each if each > "!" else f"!{chr(64 + ord(each))}" for each in value)
        case UUID():
            return str(value)
        case bytes() | bytearray() | memoryview():
            return bytes(value).hex()
        case Unreadable() if value.kind in _TIMES:
            return f"~{sortable(value.text)}"  # after all others: its receipt is to stay
        case _:
            raise _no_cursor(value)


def is_ordered(value: Any) -> bool:
    """Whether every database puts such values in the order of their texts: text and its like follow a collation."""
    return isinstance(value, int | float | Decimal | date)


def overlap(value: Any, behind: Behind, *, time: bool) -> Behind:
    """How far behind such a value is looked again. `time`: the column holds times, though they may come as text."""
    if isinstance(value, int | float | Decimal):
        fits, usual = isinstance(behind, int), ROWS_BEHIND
        if behind is not None and not fits:
            raise TriggerInvalid(
                f"the cursor holds numbers such as {value}: behind is a number too, not {behind!r}"
            )
        return usual if behind is None else behind
    if isinstance(value, date | Unreadable) or (
        isinstance(value, str) and (time or isinstance(behind, timedelta))
    ):
        if behind is not None and not isinstance(behind, timedelta):
            raise TriggerInvalid(
                f"the cursor holds times such as {value}: behind is a timedelta, not {behind!r}"
            )
        return TIME_BEHIND if behind is None else behind
    if behind is not None:
        raise TriggerInvalid(
            f"the cursor holds values such as {value!r}, from which nothing can be taken away: leave behind= out"
        )
    return None


def earlier(value: Any, behind: Any) -> Any:
    """A value so far behind, of the same kind."""
    if behind is None:
        return value
    try:
        match value:
            case Decimal():
                return _EXACT.subtract(value, Decimal(behind))
            case str():
                return _earlier_text(value, behind)
            case date() if not isinstance(value, datetime):
                return value - max(1, -(-behind // _DAY)) * _DAY
            case _:
                return value - behind
    except OverflowError:
        return type(value).min if value.tzinfo is None else datetime.min.replace(tzinfo=UTC)


def latest(value: Any, present: datetime, zone: timedelta, behind: timedelta) -> Any:
    """The latest that such a cursor can be at `present`, and `behind` more; None if it is no time. `zone`: how far ahead of UTC
    a time may be that tells no zone."""
    behind = min(behind, _AGES)
    wall = present.astimezone(UTC).replace(tzinfo=None) + zone
    match value.kind if isinstance(value, Unreadable) else _kind_of_time(value):
        case "timestamptz":
            return present.astimezone(UTC) + behind
        case "timestamp":
            return wall + behind
        case "date":
            return wall.date()  # the day before is looked at in any case
        case "text":
            between = value[10] if value[10:11] in ("T", " ") else " "
            return (wall + behind).isoformat(sep=between, timespec="seconds")
    return None


def is_after(value: Any, latest: Any) -> bool:
    """Of two cursors of a kind, also where Python has no value for the first."""
    return not value.is_early if isinstance(value, Unreadable) else bool(value > latest)


def _kind_of_time(value: Any) -> str | None:
    match value:
        case datetime():
            return "timestamp" if value.tzinfo is None else "timestamptz"
        case date():
            return "date"
        case str():
            return "text"
    return None


def _earlier_text(value: str, behind: timedelta) -> str:
    """A time that a database keeps as text, written as far as whole seconds: all that is later sorts after it."""
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise TriggerInvalid(
            f"the cursor holds {value!r}, which is no time such as 2030-01-31 18:00:00: keep the times so, or use a number"
        ) from error
    if len(value) <= 10:
        return str(earlier(moment.date(), behind).isoformat())
    return (moment - behind).isoformat(sep=value[10], timespec="seconds")[:19]


def written(of: str, newest: Any, since: Any, *, database: str = "") -> bytes:
    """A position in a column: the newest value seen, and the newest when the look before the next one began."""
    return msgspec.json.encode({"of": of, "in": database, "newest": _tagged(newest), "since": _tagged(since)})


def read(of: str, position: bytes, *, database: str = "") -> tuple[Any, Any] | None:
    """None if that is no position in this column of this database. One that names no database was written before they did."""
    try:
        told = msgspec.json.decode(position)
        if told["of"] == of and told.get("in", database) == database:
            return _untagged(told["newest"]), _untagged(told["since"])
    except (msgspec.MsgspecError, TypeError, KeyError, ValueError):
        pass
    return None


def _tagged(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    kind = next(kind for kind in (datetime, *_KINDS.values()) if isinstance(value, kind))
    kept = value.hex() if kind is bytes else repr(value) if kind is float else value
    return {kind.__name__.lower(): kept}


def _untagged(told: dict[str, Any] | None) -> Any:
    if told is None:
        return None
    [(name, kept)] = told.items()
    match name:
        case "bytes":
            return bytes.fromhex(kept)
        case "float":
            return float(kept)
        case _:
            return msgspec.convert(kept, _KINDS[name])


_TIMES = ("date", "timestamp", "timestamptz")
_KINDS: dict[str, type] = {
    "int": int, "float": float, "decimal": Decimal, "datetime": datetime, "date": date, "str": str, "uuid": UUID,
    "bytes": bytes,
}  # fmt: skip


def _number(value: Decimal) -> str:
    """The count of whole digits, they, and the fraction; of negative ones the complement, closed by what sorts last."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or len(digits) + abs(exponent) > DIGITS_MOST:
        raise TriggerInvalid(
            f"the cursor holds {str(value)[:50]}, after which nothing can come: give that row another"
        )
    text = "".join(map(str, digits))
    if exponent >= 0:
        whole, fraction = text + "0" * exponent, ""
    else:
        text = text.rjust(-exponent, "0")
        whole, fraction = text[:exponent], text[exponent:]
    whole, fraction = whole.lstrip("0"), fraction.rstrip("0")
    plain = f"{len(whole):06d}:{whole}{'.' if fraction else ''}{fraction}"
    if sign and (whole or fraction):
        return f"m{plain.translate(_NINES)}~"
    return f"p{plain}"


def _instant(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat(timespec="microseconds")
    return f"{value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def _no_cursor(value: Any) -> TriggerInvalid:
    return TriggerInvalid(
        f"the cursor holds {str(value)[:50]!r}, a {type(value).__name__}: it must be a number, a time, or text that only grows"
    )
