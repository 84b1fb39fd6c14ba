"""What the options of one call may be: when it starts, and before whom."""

from datetime import UTC, datetime, timedelta
from typing import Any

from lateshift.errors import OptionInvalid
from lateshift.model import checks
from lateshift.model.job import PRIORITIES


def priority_of(priority: Any) -> int:
    if not isinstance(priority, int) or priority not in PRIORITIES:
        raise OptionInvalid(
            f"priority must be a whole number from {PRIORITIES[0]} to {PRIORITIES[-1]}, not {priority}.",
            "priority",
        )
    return priority


def when(delay: Any, at: Any) -> dict[str, Any]:
    if delay is not None and at is not None:
        raise OptionInvalid("Give delay or at, not both.", "at")
    if delay is not None and not isinstance(delay, timedelta):
        raise OptionInvalid(f"delay is a timedelta, such as timedelta(seconds=5), not {delay!r}.", "delay")
    if at is not None and not isinstance(at, datetime):
        raise OptionInvalid(f"at is a datetime with a time zone, not {at!r}.", "at")
    if at is not None and at.tzinfo is None:
        raise OptionInvalid("at needs a time zone: datetime(…, tzinfo=UTC), or your own zone.", "at")
    if delay is not None and delay < timedelta(0):
        raise OptionInvalid("delay must not be negative.", "delay")
    if delay is not None:
        checks.duration("delay", delay)
    # In UTC: two times that a clock shows twice in autumn are equal in their own zone.
    return {"delay": delay, "at": None if at is None else at.astimezone(UTC)}
