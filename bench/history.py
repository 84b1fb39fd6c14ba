"""Does the cost grow? Drains with a million settled jobs in the store, and with a million ready ones."""

from dataclasses import dataclass
from statistics import median

from bench import measures
from bench.filling import fill_tables
from bench.measures import Sample
from bench.places import Places
from bench.subjects import Subject

FEW = 10_000


@dataclass(frozen=True, slots=True)
class History:
    """Takes both sides of a comparison turn by turn."""

    places: Places
    million: int
    jobs: int
    repetitions: int

    def settled(self, subject: Subject) -> Sample:
        """The same drain with an empty history, and with a long one (filled once)."""
        short: list[float] = []
        long: list[float] = []
        with self.places.place(subject.store) as full:
            fill_tables(subject, full, {"completed": self.million})
            for _ in range(self.repetitions):
                with self.places.place(subject.store) as empty:
                    for place, rates in ((empty, short), (full, long)):
                        measures.fill(subject, place, self.jobs, "async")
                        place.rest()
                        rates.append(measures.drained(subject, place, self.jobs, 1)["rate"])
        return {"none settled": median(short), "million settled": median(long)}

    def ready(self, subject: Subject) -> Sample:
        """By the bodies' starts alone, for the million is not drained to its end; over as many jobs in both."""
        few: list[float] = []
        many: list[float] = []
        for _ in range(self.repetitions):
            for ready, rates in ((FEW, few), (self.million, many)):
                with self.places.place(subject.store) as place:
                    fill_tables(subject, place, {"ready": ready})
                    place.rest()
                    rates.append(measures.begun(subject, place, FEW))
        return {"few ready": median(few), "million ready": median(many)}
