"""Does the cost grow? Drains with a million settled jobs in the store, and with a million ready ones."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from statistics import median

import psycopg

from bench import measures
from bench.measures import Sample
from bench.places import POSTGRES, Place, Places
from bench.subjects import Subject
from lateshift.model.ids import new_job_id

FEW = 10_000

_JOB = "id, queue, lane, state, priority, attempts, due_at, created_at, time_limit, task, payload"
_SETTLED = "id, queue, lane, state, priority, attempt, attempts, losses, fence, due_at, created_at, settled_at, expires_at, task, payload"
_ID = "(lpad(to_hex(%s::bigint + i / 1000), 12, '0') || '7' || lpad(to_hex(i %% 1000), 3, '0') || '8' || substr(md5(i::text), 1, 15))::uuid"

FILL_POSTGRES = {
    "ready": f"""INSERT INTO lateshift.job ({_JOB}) SELECT {_ID}, 'default', 0, 1, 0, 1, now(), now(),
 interval '1 hour', 'noop', convert_to('{{"number":' || i || '}}', 'UTF8') FROM generate_series(0, %s - 1) i""",
    "settled": f"""INSERT INTO lateshift.settled ({_SETTLED}) SELECT {_ID}, 'default', 0, 4, 0, 1, 1, 0, 1, now(), now(),
 now(), now() + interval '1 day', 'noop', convert_to('{{"number":' || i || '}}', 'UTF8') FROM generate_series(0, %s - 1) i""",
}
FILL_SQLITE = {
    "ready": f"INSERT INTO job ({_JOB}) VALUES (?1, 'default', 0, 1, 0, 1, ?3, ?3, 3600000000, 'noop', ?2)",
    "settled": f"""INSERT INTO settled ({_SETTLED})
 VALUES (?1, 'default', 0, 4, 0, 1, 1, 0, 1, ?3, ?3, ?3, ?3 + 86400000000, 'noop', ?2)""",
}


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
            fill_table(subject, full, "settled", self.million)
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
                    fill_table(subject, place, "ready", ready)
                    place.rest()
                    rates.append(measures.begun(subject, place, FEW))
        return {"few ready": median(few), "million ready": median(many)}


def fill_table(subject: Subject, place: Place, table: str, rows: int) -> None:
    """By SQL directly: a million jobs that have run would take a minute and more to make."""
    measures.install(subject, place)
    if place.store == POSTGRES:
        with psycopg.connect(place.url, autocommit=True) as connection:
            long_ago = time.time_ns() // 1_000_000 - 86_400_000
            connection.execute(FILL_POSTGRES[table].encode(), (long_ago, rows))
            connection.execute("VACUUM ANALYZE")
            return
    with closing(sqlite3.connect(place.file, isolation_level=None)) as file:
        file.execute("BEGIN IMMEDIATE")
        file.executemany(FILL_SQLITE[table], _rows(rows))
        file.execute("COMMIT")


def _rows(count: int) -> Iterator[tuple[bytes, bytes, int]]:
    at = time.time_ns() // 1000
    for number in range(count):
        yield new_job_id().bytes, b'{"number":%d}' % number, at
