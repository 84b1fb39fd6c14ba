"""One large batch: made by one process, completed by one worker, in how much memory?"""

from dataclasses import dataclass

from bench import children, measures
from bench.measures import Sample
from bench.memory import peak
from bench.places import Places
from bench.producer import CALLBACK, FIRST
from bench.record import Record
from bench.subjects import Subject

WITHIN = 900.0  # seconds for either half


@dataclass(frozen=True, slots=True)
class Batches:
    """Takes a batch of so many jobs through its life."""

    places: Places
    jobs: int

    def one(self, subject: Subject) -> Sample:
        """Nobody works while it is made. Completed is from the start of its first body to that of its callback."""
        with self.places.place(subject.store) as place:
            environment = measures.environment(place)
            measures.install(subject, place)
            place.rest()
            made = children.ask(
                subject.producer("batch", self.jobs), environment, cwd=place.folder, limit=WITHIN
            )
            place.rest()
            record = Record.make(place.folder / "record", 2)
            with children.running(subject.workers(1), environment, cwd=place.folder) as started:
                children.wait_until(record.complete, started, cwd=place.folder, limit=WITHIN)
                working = [peak(process) for child in started for process in children.tree(child)]
            starts = record.starts()
            return {
                "batch jobs": self.jobs,
                "batch enqueue": made["rate"],
                "batch complete": self.jobs / (starts[CALLBACK] - starts[FIRST]) * 1e9,
                "batch producer": made["memory"],
                "batch worker": max(working),
                "batch memory": max(made["memory"], *working),
            }
