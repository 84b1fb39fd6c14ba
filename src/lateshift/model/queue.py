"""What a program declares of a queue: how much may wait in it and run of it, and the rules of its sessions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias, get_args

from lateshift.errors import OptionInvalid
from lateshift.model import checks
from lateshift.model.limit import Limit
from lateshift.model.placing import Then, then

QUEUE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:\-]{0,99}")
LARGEST_MAX_READY = 1_000_000  # jobs; a full queue is counted whole

WhenFull: TypeAlias = Literal["raise", "shed_new", "shed_oldest", "shed_lowest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """Of one queue, as `app.queue(…)` declares them.

    `max_ready`: how many jobs may be due and wait. At that, an enqueue waits up to `wait`, then does what `when_full` says:
    raise QueueFull; shed the new job; shed the one that waits longest; shed one of lower priority, else the new one.
    `duplicates`: for so long after an enqueue, the same task with the same arguments gives the job that is there.
    `limit`: how many of its jobs run at once and start in a time. `on_dead`, `on_gap`, `gap_after`: what its sessions do
    unless a call says otherwise. `sensitive`: its jobs are sealed, and only sealed jobs are taken. `events`: what becomes of its
    jobs is told to the channel `jobs.QUEUE.TASK`.
    """

    max_ready: int | None = None
    when_full: WhenFull = "raise"
    wait: timedelta = timedelta(0)
    duplicates: timedelta | None = None
    limit: Limit | None = None
    on_dead: Then = "go_on"
    on_gap: Then = "go_on"
    gap_after: timedelta | None = None
    sensitive: bool = False
    events: bool = False

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
        if self.limit is not None and type(self.limit) is not Limit:
            raise OptionInvalid(f"limit is a Limit, such as Limit(concurrency=5), not {self.limit!r}.")
        for name in ("on_dead", "on_gap"):
            then(name, getattr(self, name))
        if self.gap_after is not None and checks.duration("gap_after", self.gap_after) <= timedelta(0):
            raise OptionInvalid("gap_after must be longer than nothing.")
        if type(self.sensitive) is not bool:
            raise OptionInvalid(f"sensitive is True or False, not {self.sensitive!r}.")


PLAIN = QueueSettings()


def is_sensitive(queues: Mapping[str, QueueSettings], queue: str) -> bool:
    """Whether the jobs of a queue are sealed, by what a program declares of its queues."""
    return bool(queues) and queues.get(queue, PLAIN).sensitive


def refuse_in_the_clear(queues: Mapping[str, QueueSettings], task: str, own: str, queue: str) -> None:
    """What a task of a sensitive queue is given stays sealed, wherever its calls are sent. Raises OptionInvalid."""
    if is_sensitive(queues, own) and not is_sensitive(queues, queue):
        raise OptionInvalid(
            f"{task} is of the sensitive queue {own}, and the queue {queue} is not sensitive: what it is given would be there for all to "
            f"read. Leave queue= out, or declare app.queue({queue!r}, sensitive=True).",
            "queue",
        )


def sensitive_among(queues: Mapping[str, QueueSettings]) -> list[str]:
    """Which of them are."""
    return [name for name, settings in queues.items() if settings.sensitive]


def queue_name(name: Any) -> str:
    if not isinstance(name, str) or not QUEUE_NAME.fullmatch(name):
        raise OptionInvalid(
            f"{name!r} is no queue name: 1 to 100 letters, digits and any of _ . : - with a letter or digit first.",
            "queue",
        )
    return name


def declare(
    queues: dict[str, QueueSettings],
    name: str,
    settings: QueueSettings,
    *,
    used: Sequence[str],
    fed: Sequence[str],
) -> QueueSettings:
    """`used`: tasks that were enqueued to it before. `fed`: schedules and triggers that put jobs into it. Raises OptionInvalid."""
    if settings.sensitive and fed:
        raise OptionInvalid(
            f"The queue {name} is sensitive, and {fed[0]} puts jobs into it that are not sealed. Take it to another queue."
        )
    if (settings.limit is not None or settings.events or settings.sensitive) and name not in queues and used:
        raise OptionInvalid(
            f"The queue {name} is declared after {used[0]} was enqueued to it. Declare it before."
        )
    before = queues.setdefault(name, settings)
    if before != settings:
        raise OptionInvalid(
            f"The queue {name} is declared twice, as {before} and as {settings}. Declare it once."
        )
    return settings
