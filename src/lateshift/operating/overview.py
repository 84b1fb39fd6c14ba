"""The course of an hour, a day or a week, and what each queue costs."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from lateshift.model.figures import Figures, Grain, Over, Sample, filled, together
from lateshift.operating.attention import Shows
from lateshift.store.contract import Store

QUEUES_SUMMED = 100  # whose figures are added up for one who may not see all queues
QUEUES_COSTED = 20  # told one by one in what it costs, those that ran longest


def course(store: Store, queue: str, over: Over, now: datetime) -> list[Sample]:
    """One sample for each period, of a queue or of ALL."""
    return filled(
        store.figures.of(queue, over.grain, over.begins(now)), over.periods(now), _sampled(store, over, now)
    )


def course_of(store: Store, queues: Sequence[str], over: Over, now: datetime) -> list[Sample]:
    """The same of several queues together."""
    summed: dict[datetime, Figures] = {}
    for queue in queues[:QUEUES_SUMMED]:
        for sample in store.figures.of(queue, over.grain, over.begins(now)):
            before = summed.setdefault(sample.at, Figures())
            backlog = before.backlog + sample.figures.backlog
            before.add(sample.figures)
            before.backlog = backlog
    samples = (Sample(at, figures) for at, figures in summed.items())
    return filled(samples, over.periods(now), _sampled(store, over, now))


def _sampled(store: Store, over: Over, now: datetime) -> set[datetime]:
    return store.figures.sampled(over.grain, over.begins(now))


class Cost(Struct, frozen=True, kw_only=True):
    """Seconds that attempts of a queue ran, and which part that is of all."""

    queue: str
    seconds: float
    share: float


def costs(store: Store, over: Over, now: datetime, shows: Shows) -> list[Cost]:
    """By queue, the dearest first. An hour is read in steps of five minutes, anything longer in hours, from the
    beginning of the first of them: nothing that the chart shows is missing."""
    grain = Grain.FIVE_MINUTES if over is Over.HOUR else Grain.HOUR
    found = store.figures.by_queue(grain, grain.begins(over.begins(now)), QUEUES_SUMMED)
    shown = {queue: figures.ran for queue, figures in found.items() if shows(queue) and figures.ran}
    total = sum(shown.values())
    return [
        Cost(queue=queue, seconds=seconds, share=seconds / total)
        for queue, seconds in list(shown.items())[:QUEUES_COSTED]
    ]


def merged(samples: Sequence[Sample], most: int) -> list[Sample]:
    """As few periods as a chart has room for; each several of the next finer ones together."""
    each = -(-len(samples) // most)
    lots = [samples[start : start + each] for start in range(0, len(samples), each)]
    return [
        Sample(lot[0].at, together(it.figures for it in lot), any(it.sampled for it in lot)) for lot in lots
    ]
