"""A limit as a program gives it: how many jobs run at once, and how many start in a time."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from lateshift.errors import OptionInvalid
from lateshift.model.guard import Rule
from lateshift.model.rate import parts

LARGEST = 1_000_000_000  # of a concurrency, the count of a rate, a burst


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """`concurrency`: so many run at once, over all machines. `rate`: so many start, such as "100/min"; after a pause
    `burst` may start together, unless said otherwise a second's worth."""

    concurrency: int | None = None
    rate: str | None = None
    burst: int | None = None

    def __post_init__(self) -> None:
        if self.concurrency is None and self.rate is None:
            raise OptionInvalid('A Limit limits something: give concurrency=5, or rate="100/min", or both.')
        _check("concurrency", self.concurrency)
        _check("burst", self.burst)
        if self.burst is not None and self.rate is None:
            raise OptionInvalid("burst says how many may start together under a rate: give a rate too.")
        if self.rate is not None:
            self._parts()

    def rule(self, scope: str, name: str) -> Rule:
        if self.rate is None:
            return Rule(scope, name, self.concurrency)
        count, seconds = self._parts()
        burst = self.burst if self.burst is not None else max(1, count // seconds)
        return Rule(scope, name, self.concurrency, count, timedelta(seconds=seconds), burst)

    def _parts(self) -> tuple[int, int]:
        if not isinstance(self.rate, str):
            raise OptionInvalid(f'rate is text such as "100/min", not {self.rate!r}.')
        count, seconds = parts(self.rate)
        if not count.is_integer():
            raise OptionInvalid(
                f"{self.rate!r}: the rate of a limit is a whole number, such as 30/min for 0.5/s."
            )
        _check("the count of a rate", int(count))
        return int(count), seconds


def _check(name: str, value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise OptionInvalid(f"{name} must be a whole number from 1 up, not {value!r}.")
    if value > LARGEST:
        raise OptionInvalid(f"{name} must be at most {LARGEST:,}, not {value:,}. For no limit, leave it out.")
