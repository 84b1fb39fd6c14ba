"""What people type into forms, where it is more than text: JSON, lists, lengths of time. Raises Refused, which says how it is written."""

import re
from typing import Any

import msgspec

from lateshift.api.bounds import JSON_DEPTH
from lateshift.api.problem import Refused
from lateshift.dashboard.page import Form
from lateshift.model.depth import depth_of

UNITS = {"minutes": 60, "hours": 3_600, "days": 86_400}


def json_in(form: Form, field: str) -> Any:
    """None if it was left empty."""
    text = form.get(field, "").strip()
    if not text:
        return None
    raw = text.encode()
    if depth_of(raw) > JSON_DEPTH:
        raise Refused(
            422, "too-deep", f"{field}: objects or lists more than {JSON_DEPTH} deep inside one another.", field=field
        )  # fmt: skip
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        why = str(error).removeprefix("JSON is malformed: ")
        raise Refused(
            422, "form-invalid", f"{field} is no JSON: {why}. Names and texts stand in double quotes.", field=field
        ) from None  # fmt: skip


def object_in(form: Form, field: str) -> dict[str, Any]:
    """Values by name. Of one that was left empty, too, it is refused that it is none."""
    found = json_in(form, field)
    if not isinstance(found, dict):
        raise Refused(
            422, "form-invalid", f'{field} is a JSON object with the values by name, such as {{"width": 300}}.', field=field
        )  # fmt: skip
    return found


def whole_in(form: Form, field: str) -> int | None:
    """None if it was left empty."""
    text = form.get(field, "").strip()
    if text and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Refused(422, "form-invalid", f"{field}: a whole number, such as 10.", field=field)
    return int(text) if text else None


def words_in(form: Form, field: str) -> list[str]:
    """Parted by spaces, commas or lines."""
    return [word for word in re.split(r"[\s,]+", form.get(field, "")) if word]


def seconds_in(form: Form, field: str) -> float | None:
    """A number with the unit that stands beside it; None if it was left empty."""
    text = form.get(field, "").strip()
    if not text:
        return None
    try:
        return float(text) * UNITS[form.get(f"{field}_unit", "")]
    except (ValueError, KeyError):
        raise Refused(
            422, "form-invalid", f"{field}: a number, and one of {', '.join(UNITS)}.", field=field
        ) from None
