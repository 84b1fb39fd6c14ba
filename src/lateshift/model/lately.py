"""How many jobs there were in a second of the last minutes, from what was counted in each. When a queue will be empty is another
question, of how fast its jobs end while there are some: draining.py."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from lateshift.model.figures import Figures, Grain, Sample

RECENT = timedelta(minutes=5)  # in which figures are of now
LEAST = timedelta(minutes=1)  # over which they are told: a few jobs of a moment would be thousands a minute


def seconds_counted(samples: Sequence[Sample], now: datetime, came: datetime | None) -> float:
    """Of how long it is told: of RECENT, or since the first worker `came`, if that is less and nothing had happened before."""
    if came is None or _happened_before(samples, Grain.MINUTE.begins(came)):
        return RECENT.total_seconds()
    return min(RECENT, max(LEAST, now - came)).total_seconds()


def per_second(
    samples: Sequence[Sample], count: Callable[[Figures], int], now: datetime, seconds: float
) -> float:
    """Of minutes; of the one in which RECENT begins as much as lies in it, as if it were spread evenly."""
    begun, step = now - RECENT, Grain.MINUTE.step
    parts = ((min(step, sample.at + step - begun) / step, count(sample.figures)) for sample in samples)
    return sum(part * number for part, number in parts if part > 0) / seconds


def _happened_before(samples: Sequence[Sample], at: datetime) -> bool:
    return any(
        it.at < at and (it.figures.started or it.figures.completed or it.figures.failed) for it in samples
    )
