"""Names of the application's events, and patterns of them: `order.placed`, `order.*`."""

import re
from fnmatch import fnmatchcase
from typing import Any

from lateshift.errors import EventInvalid, TriggerInvalid

EVENT_NAME_LIMIT = 200  # characters
_NAME = re.compile(r"[A-Za-z0-9_\-]+(\.[A-Za-z0-9_\-]+)*")
ALERTS = "alert."  # how the events begin that tell operators of something
_PATTERN = re.compile(r"[A-Za-z0-9_\-*?]+(\.[A-Za-z0-9_\-*?]+)*")


def event_name(name: Any) -> str:
    if not isinstance(name, str) or len(name) > EVENT_NAME_LIMIT or not _NAME.fullmatch(name):
        raise EventInvalid(
            f"{name!r} is no name of an event: words of letters, digits, _ and -, with dots between them, such as "
            f"order.placed, {EVENT_NAME_LIMIT} characters at most."
        )
    return name


def event_pattern(pattern: Any) -> str:
    if not isinstance(pattern, str) or len(pattern) > EVENT_NAME_LIMIT or not _PATTERN.fullmatch(pattern):
        raise TriggerInvalid(
            f"{pattern!r} is no pattern of events: a name such as order.placed, in which * stands for any characters and ? for "
            "one, such as order.*"
        )
    return pattern


def matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern)
