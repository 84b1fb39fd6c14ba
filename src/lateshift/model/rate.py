"""How fast a lot of jobs is let go: so many in a second, a minute or an hour. Pure."""

import re
from collections.abc import Iterable
from datetime import timedelta

from msgspec import Struct

from lateshift.errors import OptionInvalid
from lateshift.model.ids import JobId

SECONDS = {"s": 1, "sec": 1, "second": 1, "min": 60, "m": 60, "minute": 60, "h": 3600, "hour": 3600}
RATE_LEAST = 1 / 3600  # jobs in a second
RATE_MOST = 10_000
_FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*/\s*([a-z]+)\s*")


class Rate(Struct, frozen=True):
    """Jobs per second."""

    per_second: float

    @classmethod
    def read(cls, text: str) -> "Rate":
        """`10/s`, `300/min`, `5000/h`. Raises OptionInvalid."""
        count, seconds = parts(text)
        if not RATE_LEAST <= count / seconds <= RATE_MOST:
            raise OptionInvalid(f"{text!r}: give a rate from 1/h to {RATE_MOST:,}/s.", "rate")
        return cls(count / seconds)

    def delays(self, ids: Iterable[JobId], *, after: int = 0) -> dict[JobId, timedelta]:
        """How long each of them waits, the first not at all; `after`: so many others that go before them."""
        return {id: timedelta(seconds=place / self.per_second) for place, id in enumerate(ids, after)}


def parts(text: str) -> tuple[float, int]:
    """How many, in how many seconds. Raises OptionInvalid."""
    found = _FORM.fullmatch(text)
    if found is None or found[2] not in SECONDS or float(found[1]) == 0:
        raise OptionInvalid(
            f"{text!r} is no rate: give jobs per time, such as 10/s, 300/min or 5000/h.", "rate"
        )
    return float(found[1]), SECONDS[found[2]]
