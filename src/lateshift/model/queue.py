"""What a program declares of a queue: how much may wait in it, and what happens when it is full."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias, get_args

from lateshift.errors import OptionInvalid
from lateshift.model import checks

QUEUE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:\-]{0,99}")
LARGEST_MAX_READY = 1_000_000  # jobs; a full queue is counted whole

WhenFull: TypeAlias = Literal["raise", "shed_new", "shed_oldest", "shed_lowest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """Of one queue, as `app.queue(…)` declares them.

    `max_ready`: how many jobs may be due and wait. At that, an enqueue waits up to `wait`, then does what `when_full` says:
    raise QueueFull; shed the new job; shed the one that waits longest; shed one of lower priority, else the new one.
    `duplicates`: for so long after an enqueue, the same task with the same arguments gives the job that is there.
    """

    max_ready: int | None = None
    when_full: WhenFull = "raise"
    wait: timedelta = timedelta(0)
    duplicates: timedelta | None = None

    def __post_init__(self) -> None:
        if self.when_full not in get_args(WhenFull):
            known = ", ".join(map(repr, get_args(WhenFull)))
            raise OptionInvalid(f"when_full is one of {known}, not {self.when_full!r}.")
        if checks.duration("wait", self.wait) < timedelta(0):
            raise OptionInvalid("wait must not be negative.")
        if self.max_ready is None:
            if self.when_full != "raise" or self.wait:
                raise OptionInvalid("when_full and wait say what happens at max_ready: give max_ready too.")
        elif type(self.max_ready) is not int or not 1 <= self.max_ready <= LARGEST_MAX_READY:
            raise OptionInvalid(
                f"max_ready is a whole number from 1 to {LARGEST_MAX_READY:,}, not {self.max_ready!r}."
            )
        if self.duplicates is not None and checks.duration("duplicates", self.duplicates) <= timedelta(0):
            raise OptionInvalid("duplicates must be longer than nothing.")


def queue_name(name: Any) -> str:
    if not isinstance(name, str) or not QUEUE_NAME.fullmatch(name):
        raise OptionInvalid(
            f"{name!r} is no queue name: 1 to 100 letters, digits and any of _ . : - with a letter or digit first."
        )
    return name
