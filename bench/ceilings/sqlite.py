"""The ceiling on SQLite: apsw, one connection with the settings that Lateshift's own has."""

import json
import os
import select
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from uuid import uuid4

import apsw

from bench.ceilings import INSERTED, LEASED, UNCOUNTED, new_ids, number_in, payload
from bench.producer import Producer, main
from bench.record import Marks

INSERT = """INSERT INTO job (id, queue, lane, state, priority, attempts, due_at, created_at, time_limit, task, payload)
 VALUES (?1, 'default', 0, 1, 0, 1, ?3, ?3, 3600000000, 'noop', ?2)"""
LEASE = """UPDATE job SET state = 2, attempt = attempt + 1, fence = fence + 1, holder = ?1, leased_at = ?2,
 complete_by = ?2 + time_limit WHERE id IN (SELECT id FROM job WHERE state = 1 AND queue = 'default' AND lane = 0
 ORDER BY priority DESC, due_at, id LIMIT ?3) RETURNING id, fence, task, payload"""
_MOVED = """id, queue, lane, priority, attempt, attempts, losses, fence, due_at, created_at, time_limit, holder,
 leased_at, task, payload"""
COPY = f"""INSERT INTO settled ({_MOVED}, state, settled_at, expires_at)
 SELECT {_MOVED}, 4, ?2, ?2 + 86400000000 FROM job WHERE id = ?1"""
DROP = "DELETE FROM job WHERE id = ?1"


def file() -> Path:
    return Path(os.environ["BENCH_URL"].removeprefix("sqlite:///"))


def pipe() -> Path:
    """Made by the end that comes first."""
    path = file().with_name("walk.fifo")
    with suppress(FileExistsError):
        os.mkfifo(path, 0o600)
    return path


def connect() -> apsw.Connection:
    connection = apsw.Connection(str(file()))
    connection.set_busy_timeout(15_000)
    for setting in (
        "journal_mode = WAL", "synchronous = FULL", "journal_size_limit = 67108864", "wal_autocheckpoint = 4000",
        "cache_size = -8000", "temp_store = MEMORY",
    ):  # fmt: skip
        connection.execute(f"PRAGMA {setting}")
    return connection


def now() -> int:
    return time.time_ns() // 1000


class Bare(Producer):
    async def open(self) -> None:
        self._connection = connect()
        self._ids = iter([id.bytes for id in new_ids(int(sys.argv[2]) + UNCOUNTED)])

    async def close(self) -> None:
        self._connection.close()

    def send(self, number: int) -> None:
        self._connection.execute(INSERT, (next(self._ids), payload(number), now()))

    async def send_many(self, numbers: Sequence[int]) -> None:
        self._insert([next(self._ids) for _ in numbers], [payload(number) for number in numbers])

    async def fill(self, jobs: int, kind: str) -> None:
        ids = [id.bytes for id in new_ids(jobs)]
        for first in range(0, jobs, INSERTED):
            numbers = range(first, min(first + INSERTED, jobs))
            self._insert(ids[first : first + INSERTED], [payload(number) for number in numbers])

    def _insert(self, ids: list[bytes], payloads: list[bytes]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(INSERT, zip(ids, payloads, repeat(now()), strict=False))
        self._connection.execute("COMMIT")


class Walking(Bare):
    """For the start latency: insert and commit, then a byte through a named pipe."""

    async def open(self) -> None:
        await super().open()
        self._pipe = os.open(pipe(), os.O_WRONLY)  # waits for its reader

    def send(self, number: int) -> None:
        super().send(number)
        os.write(self._pipe, b"x")


def drain(jobs: int) -> dict[str, float]:
    """Settle a batch and lease the next in one transaction, until all are settled."""
    connection, holder, done = connect(), uuid4().bytes, 0
    ids: list[bytes] = []
    begun = time.perf_counter()
    while done < jobs:
        at = now()
        connection.execute("BEGIN IMMEDIATE")
        if ids:
            connection.executemany(COPY, zip(ids, repeat(at), strict=False))
            connection.executemany(DROP, [(id,) for id in ids])
        rows = connection.execute(LEASE, (holder, at, LEASED)).fetchall()
        connection.execute("COMMIT")
        done += len(ids)
        ids = [row[0] for row in rows]  # type: ignore[misc]  # blobs, by the schema
        if not ids:
            break
    return {"rate": done / (time.perf_counter() - begun), "settled": done}


def walk() -> None:
    """The other end of the walk: wait for a wake-up, lease what there is, begin it."""
    marks, holder, connection = Marks.from_environment(), uuid4().bytes, connect()
    woken = os.open(pipe(), os.O_RDWR | os.O_NONBLOCK)
    while True:
        select.select([woken], [], [])
        os.read(woken, 4096)
        for row in connection.execute(LEASE, (holder, now(), LEASED)).fetchall():
            marks.begin(number_in(bytes(row[3])))  # type: ignore[arg-type]  # a blob, by the schema


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
