"""When to try again: exponential backoff with full jitter, rules by exception, and the exception's own wish."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from lateshift.errors import OptionInvalid
from lateshift.model.remote import RemoteError, full_name, is_a

JITTER = 0.1  # of a wait that is given, so that those who failed together do not come back together
LONGEST_DELAY = timedelta(days=3650)  # what is longer is taken for this, so that no date runs over


@dataclass(frozen=True, slots=True)
class Retry:
    """`Retry(attempts=5)`: up to five attempts in all. The wait before attempt n+1 is drawn evenly from 0 to
    base * 2**(n-1), at most `cap` (full jitter: a crowd that failed together does not come back together).

    `waits` are instead of that: the wait after attempt n is the n-th of these, or the last, and up to a tenth more.

    `never` lists exceptions that make the job a dead letter at once. `rules` gives an exception type a Retry of its
    own; the most derived type that fits wins. An exception with an attribute `retry_after` (a timedelta or
    seconds) names its own wait; where somebody else says it, `patient` makes of that a wish which may have a wait longer, never shorter.
    """

    attempts: int = 5
    base: timedelta = timedelta(seconds=2)
    cap: timedelta = timedelta(hours=1)
    never: tuple[type[BaseException], ...] = ()
    rules: Mapping[type[BaseException], "Retry"] = field(default_factory=dict)
    waits: tuple[timedelta, ...] = ()
    patient: bool = False

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise OptionInvalid(f"Retry(attempts={self.attempts}): a job needs at least 1 attempt.")
        for name in ("base", "cap"):
            if not isinstance(getattr(self, name), timedelta):
                raise OptionInvalid(
                    f"Retry: {name} is a timedelta, such as timedelta(seconds=2), not {getattr(self, name)!r}."
                )
        if self.base < timedelta(0) or self.cap < timedelta(0):
            raise OptionInvalid("Retry: base and cap must not be negative.")
        given: tuple[object, ...] = self.waits
        if any(not isinstance(wait, timedelta) or wait < timedelta(0) for wait in given):
            raise OptionInvalid(
                "Retry: waits are timedeltas, such as (timedelta(seconds=5), timedelta(minutes=5)), none negative."
            )

    def never_for(self, error: BaseException) -> bool:
        return any(is_a(error, kind) for kind in self.rule_for(error).never)

    def delay(self, attempt: int, error: BaseException | None = None) -> timedelta:
        """How long to wait after attempt number `attempt` failed with `error`."""
        rule, wish = self.rule_for(error), _wish(error)
        if wish is not None and not rule.patient:
            return wish
        return max(rule._own_delay(attempt), wish or timedelta(0))

    def _own_delay(self, attempt: int) -> timedelta:
        if self.waits:
            fixed = self.waits[min(attempt, len(self.waits)) - 1].total_seconds()
            return timedelta(
                seconds=min(fixed * random.uniform(1, 1 + JITTER), LONGEST_DELAY.total_seconds())
            )
        ceiling = min(self.base.total_seconds() * 2.0 ** min(attempt - 1, 64), self.cap.total_seconds())
        return min(timedelta(seconds=ceiling * random.random()), LONGEST_DELAY)

    def exhausted(self, attempt: int, attempts: int, error: BaseException | None = None) -> bool:
        """Whether attempt number `attempt` was the last: of the job's `attempts`, or of the rule for this error."""
        rule = self.rule_for(error)
        return attempt >= (attempts if rule is self else rule.attempts)

    def rule_for(self, error: BaseException | None) -> "Retry":
        if isinstance(error, RemoteError):
            named = {full_name(kind): rule for kind, rule in self.rules.items()}
            return next((named[name] for name in error.lineage if name in named), self)
        for kind in type(error).__mro__:
            if kind in self.rules:
                return self.rules[kind]
        return self


def _wish(error: BaseException | None) -> timedelta | None:
    """The exception's own `retry_after`, if that is a time; it is user code, and may raise."""
    try:
        wish: object = getattr(error, "retry_after", None)
    except Exception:
        return None
    if isinstance(wish, int | float) and not isinstance(wish, bool) and wish == wish:  # not a NaN
        wish = timedelta(seconds=min(max(0, wish), LONGEST_DELAY.total_seconds()))
    return min(max(wish, timedelta(0)), LONGEST_DELAY) if isinstance(wish, timedelta) else None


NO_RETRY = Retry(attempts=1)
