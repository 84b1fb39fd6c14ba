"""Jobs by the million, by SQL directly: to make them as a program does would take a minute and more."""

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime

import psycopg

from bench import measures
from bench.places import POSTGRES, Place
from bench.subjects import Subject
from lateshift.model import history
from lateshift.model.ids import new_job_id
from lateshift.model.job import AttemptRecord

DAY = 86_400_000  # milliseconds
CAUSES = 5  # of which dead letters died

_JOB = "id, queue, lane, state, priority, attempts, due_at, created_at, time_limit, task, payload"
_BLOCKED = f"{_JOB}, session, turn, blocked_by"
_SETTLED = "id, queue, lane, state, priority, attempt, attempts, losses, fence, due_at, created_at, settled_at, expires_at, task, payload"
_DEAD = f"{_SETTLED}, reason, history"

_ID = "(lpad(to_hex(%(start)s::bigint + i / 1000), 12, '0') || '7' || lpad(to_hex(i %% 1000), 3, '0') || '8' || substr(md5(i::text), 1, 15))::uuid"
_PAYLOAD = """'noop', convert_to('{"number":' || i || '}', 'UTF8')"""
_EACH = "FROM generate_series(0, %(rows)s - 1) i"
_ENDED = "0, 1, 1, 0, 1, now(), now(), now(), now() + interval '1 day'"

POSTGRES_BY_KIND = {
    "ready": f"INSERT INTO lateshift.job ({_JOB}) SELECT {_ID}, 'default', 0, 1, 0, 1, now(), now(), interval '1 hour', {_PAYLOAD} {_EACH}",
    "scheduled": f"""INSERT INTO lateshift.job ({_JOB})
 SELECT {_ID}, 'default', 0, 0, 0, 1, now() + interval '1 day', now(), interval '1 hour', {_PAYLOAD} {_EACH}""",
    "blocked": f"""INSERT INTO lateshift.job ({_BLOCKED})
 SELECT {_ID}, 'default', 4, 3, 0, 1, now(), now(), interval '1 hour', {_PAYLOAD}, 'one', nextval('lateshift.turn'), 'session:one' {_EACH}""",
    "completed": f"INSERT INTO lateshift.settled ({_SETTLED}) SELECT {_ID}, 'default', 0, 4, {_ENDED}, {_PAYLOAD} {_EACH}",
    "dead": f"""INSERT INTO lateshift.settled ({_DEAD})
 SELECT {_ID}, 'default', 0, 6, {_ENDED}, {_PAYLOAD}, 'failed', (%(causes)s::bytea[])[1 + i %% {CAUSES}] {_EACH}""",
}
SQLITE_BY_KIND = {
    "ready": f"INSERT INTO job ({_JOB}) VALUES (:id, 'default', 0, 1, 0, 1, :at, :at, 3600000000, 'noop', :payload)",
    "scheduled": f"INSERT INTO job ({_JOB}) VALUES (:id, 'default', 0, 0, 0, 1, :at + 86400000000, :at, 3600000000, 'noop', :payload)",
    "blocked": f"""INSERT INTO job ({_BLOCKED})
 VALUES (:id, 'default', 4, 3, 0, 1, :at, :at, 3600000000, 'noop', :payload, 'one', :number, 'session:one')""",
    "completed": f"INSERT INTO settled ({_SETTLED}) VALUES (:id, 'default', 0, 4, 0, 1, 1, 0, 1, :at, :at, :at, :at + 86400000000, 'noop', :payload)",
    "dead": f"""INSERT INTO settled ({_DEAD})
 VALUES (:id, 'default', 0, 6, 0, 1, 1, 0, 1, :at, :at, :at, :at + 86400000000, 'noop', :payload, 'failed', :cause)""",
}


def fill_tables(subject: Subject, place: Place, rows: Mapping[str, int]) -> None:
    """So many jobs of each kind, made in the last day."""
    measures.install(subject, place)
    if place.store == POSTGRES:
        with psycopg.connect(place.url, autocommit=True) as connection:
            start = time.time_ns() // 1_000_000 - DAY
            for place_in_line, (kind, count) in enumerate(rows.items()):
                told = {"start": start + place_in_line * DAY // len(rows), "rows": count, "causes": _causes()}
                connection.execute(POSTGRES_BY_KIND[kind].encode(), told)
            connection.execute("VACUUM ANALYZE")
        return
    with closing(sqlite3.connect(place.file, isolation_level=None)) as file:
        file.execute("BEGIN IMMEDIATE")
        for kind, count in rows.items():
            file.executemany(SQLITE_BY_KIND[kind], _rows(count))
        file.execute("COMMIT")


def _rows(count: int) -> Iterator[dict[str, object]]:
    at, causes = time.time_ns() // 1000, _causes()
    for number in range(count):
        yield {
            "id": new_job_id().bytes, "payload": b'{"number":%d}' % number, "at": at, "number": number + 1,
            "cause": causes[number % CAUSES],
        }  # fmt: skip


def _causes() -> list[bytes]:
    """What stands in the histories of dead letters."""
    at = datetime.now(UTC)
    return [
        history.append(
            None,
            AttemptRecord(attempt=1, fence=1, at=at, reason="failed", error=error, message=f"no answer by {error}",
                          traceback=f'  File "shop.py", line 3, in {error}\n' * 10),
        )
        for error in (f"Error{letter}" for letter in "ABCDE"[:CAUSES])
    ]  # fmt: skip
