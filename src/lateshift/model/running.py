"""How a task runs, as it is declared: checked where that is."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from lateshift.errors import OptionInvalid, TaskInvalid
from lateshift.model import checks
from lateshift.model.breaker import Breaker
from lateshift.model.calling import priority_of
from lateshift.model.job import TASK_NAME_LIMIT
from lateshift.model.limit import Limit
from lateshift.model.queue import queue_name
from lateshift.model.reply import mask
from lateshift.model.retry import Retry
from lateshift.model.tags import Tags
from lateshift.model.unique import Uniqueness

HOUR = timedelta(hours=1)
DEFAULT_RETRY = Retry()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How a task runs."""

    queue: str = "default"
    retry: Retry = DEFAULT_RETRY
    time_limit: timedelta | None = HOUR
    priority: int = 0
    keep: timedelta = timedelta(days=1)
    keep_dead: timedelta = timedelta(days=90)
    process: bool = False
    memory: int | None = None
    singleton: bool = False
    limit: Limit | None = None
    unique: Uniqueness = None
    breaker: Breaker | None = None
    agent: tuple[str, Breaker] | None = None  # whose it is, if that has a breaker
    tags: Tags = ()
    reply_to: Any = None  # of its jobs, unless a call says otherwise
    reply_on: Sequence[str] | None = None
    own: bool = False  # of Lateshift itself: nobody else says what it is given

    @property
    def guarded(self) -> bool:
        """Whether others decide when its jobs may run."""
        return bool(self.singleton or self.limit or self.breaker or self.agent)


def check(name: str, limits: Limits, *, is_async: bool) -> None:
    """Raises what says which of them cannot be."""
    if not 0 < len(name) <= TASK_NAME_LIMIT:
        raise TaskInvalid(f"A task's name has 1 to {TASK_NAME_LIMIT} characters.")
    queue_name(limits.queue)
    priority_of(limits.priority)
    if not isinstance(limits.retry, Retry):
        raise OptionInvalid(f"{name}: retry is a Retry, such as Retry(attempts=3), not {limits.retry!r}.")
    for what in ("time_limit", "keep", "keep_dead"):
        if getattr(limits, what) is not None:
            checks.duration(f"{name}: {what}", getattr(limits, what))
    if limits.time_limit is not None and limits.time_limit <= timedelta(0):
        raise OptionInvalid(f"{name}: time_limit must be longer than nothing, or None for no limit.")
    if limits.limit is not None and not isinstance(limits.limit, Limit):
        raise OptionInvalid(f"{name}: limit is a Limit, such as Limit(concurrency=5), not {limits.limit!r}.")
    if limits.breaker is not None and not isinstance(limits.breaker, Breaker):
        raise OptionInvalid(
            f"{name}: breaker is a Breaker, such as Breaker(failures=5), not {limits.breaker!r}."
        )
    if limits.breaker is not None and "@" in name:
        raise OptionInvalid(
            f"{name}: a task with a breaker has no @ in its name: that stands before the version of the code."
        )
    if limits.limit is not None and limits.singleton:
        raise OptionInvalid(f"{name}: a singleton is a limit of one: give singleton or limit, not both.")
    if limits.reply_on is not None:
        mask(limits.reply_on)
        if not limits.reply_to:
            raise OptionInvalid(f"{name}: reply_on is for replies: give reply_to too.")
    if limits.memory is not None and not limits.process:
        raise OptionInvalid(f"{name}: a memory cap needs process=True; a thread cannot be killed alone.")
    if limits.process and is_async:
        raise OptionInvalid(
            f"{name}: process=True is for plain functions; an async one shares its worker's loop."
        )
