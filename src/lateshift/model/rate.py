"""How fast a lot of jobs is let go: so many in a second, a minute or an hour. Pure."""

import re

from msgspec import Struct

from lateshift.errors import OptionInvalid

SECONDS = {"s": 1, "sec": 1, "second": 1, "min": 60, "m": 60, "minute": 60, "h": 3600, "hour": 3600}
_FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*/\s*([a-z]+)\s*")


class Rate(Struct, frozen=True):
    """Jobs per second."""

    per_second: float

    @classmethod
    def read(cls, text: str) -> "Rate":
        """`10/s`, `300/min`, `5000/h`. Raises OptionInvalid."""
        count, seconds = parts(text)
        return cls(count / seconds)

    def batch(self, most: int) -> int:
        """How many to let go at once: about a fifth of a second's worth, and no less than one."""
        return max(1, min(most, int(self.per_second / 5)))

    def time_for(self, count: int) -> float:
        """Seconds that so many take."""
        return count / self.per_second


def parts(text: str) -> tuple[float, int]:
    """How many, in how many seconds. Raises OptionInvalid."""
    found = _FORM.fullmatch(text)
    if found is None or found[2] not in SECONDS or float(found[1]) == 0:
        raise OptionInvalid(f"{text!r} is no rate: give jobs per time, such as 10/s, 300/min or 5000/h.")
    return float(found[1]), SECONDS[found[2]]
