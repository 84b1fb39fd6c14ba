"""The ceiling on PostgreSQL: psycopg, prepared statements, binary rows, one connection in autocommit mode."""

import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import psycopg

from bench.ceilings import INSERTED, LEASED, UNCOUNTED, new_ids, number_in, payload
from bench.producer import Producer, main
from bench.record import Marks

Connection = psycopg.Connection[tuple[Any, ...]]

_COLUMNS = "id, queue, lane, state, priority, attempts, due_at, created_at, time_limit, task, payload"
INSERT = f"""INSERT INTO lateshift.job ({_COLUMNS})
 VALUES (%s, 'default', 0, 1, 0, 1, now(), now(), interval '1 hour', 'noop', %s)"""
INSERT_MANY = f"""INSERT INTO lateshift.job ({_COLUMNS})
 SELECT id, 'default', 0, 1, 0, 1, now(), now(), interval '1 hour', 'noop', payload
 FROM unnest(%s::uuid[], %s::bytea[]) AS new (id, payload)"""
LEASE = """UPDATE lateshift.job SET state = 2, attempt = attempt + 1, fence = fence + 1, holder = %s, leased_at = now(),
 complete_by = now() + time_limit WHERE id = ANY(ARRAY(SELECT id FROM lateshift.job
 WHERE state = 1 AND queue = 'default' AND lane = 0 ORDER BY priority DESC, due_at, id LIMIT %s
 FOR UPDATE SKIP LOCKED)) RETURNING id, fence, task, payload"""
_MOVED = """id, fence, due_at, created_at, leased_at, time_limit, holder, attempt, attempts, lane, priority, losses,
 queue, task, payload"""
SETTLE = f"""WITH gone AS (DELETE FROM lateshift.job WHERE id = ANY(%s::uuid[]) RETURNING *)
 INSERT INTO lateshift.settled ({_MOVED}, state, settled_at, expires_at)
 SELECT {_MOVED}, 4, now(), now() + interval '1 day' FROM gone"""
NOTIFY = "SELECT pg_notify('bench', '')"


def connect() -> Connection:
    connection: Connection = psycopg.connect(os.environ["BENCH_URL"], autocommit=True)
    connection.prepare_threshold = 0
    return connection


def insert_many(connection: Connection, ids: Sequence[UUID], payloads: Sequence[bytes]) -> None:
    for first in range(0, len(ids), INSERTED):
        connection.execute(
            INSERT_MANY, (list(ids[first : first + INSERTED]), list(payloads[first : first + INSERTED]))
        )


class Bare(Producer):
    async def open(self) -> None:
        self._connection = connect()
        self._ids = iter(new_ids(int(sys.argv[2]) + UNCOUNTED))

    async def close(self) -> None:
        self._connection.close()

    def send(self, number: int) -> None:
        self._connection.execute(INSERT, (next(self._ids), payload(number)))

    async def send_many(self, numbers: Sequence[int]) -> None:
        insert_many(
            self._connection, [next(self._ids) for _ in numbers], [payload(number) for number in numbers]
        )

    async def fill(self, jobs: int, kind: str) -> None:
        insert_many(self._connection, new_ids(jobs), [payload(number) for number in range(jobs)])


class Walking(Bare):
    """For the start latency: insert and wake-up in one commit."""

    def send(self, number: int) -> None:
        with self._connection.pipeline():
            self._connection.execute(INSERT, (next(self._ids), payload(number)))
            self._connection.execute(NOTIFY)


def drain(jobs: int) -> dict[str, float]:
    """Settle a batch and lease the next in one round trip and one commit, until all are settled."""
    with connect() as connection:
        holder, ids, done = uuid4(), list[UUID](), 0
        connection.execute(LEASE, (holder, 0)).fetchall()
        connection.execute(SETTLE, (ids,))
        begun = time.perf_counter()
        while done < jobs:
            with connection.pipeline():
                if ids:
                    connection.execute(SETTLE, (ids,))
                leased = connection.execute(LEASE, (holder, LEASED), binary=True)
            rows = leased.fetchall()
            done += len(ids)
            ids = [row[0] for row in rows]
            if not ids:
                break
        return {"rate": done / (time.perf_counter() - begun), "settled": done}


def walk() -> None:
    """The other end of the walk: wait for a wake-up, lease what there is, begin it."""
    marks, holder = Marks.from_environment(), uuid4()
    with connect() as listening, connect() as connection:
        listening.execute("LISTEN bench")
        while True:
            while rows := connection.execute(LEASE, (holder, LEASED), binary=True).fetchall():
                for row in rows:
                    marks.begin(number_in(row[3]))
            next(listening.notifies(timeout=60, stop_after=1), None)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["drain", jobs]:
            print(json.dumps(drain(int(jobs))))
        case ["walk"]:
            walk()
        case ["latency", *_]:
            main(Walking())
        case _:
            main(Bare())
