"""Tables that tests write to, in a SQLite file and in PostgreSQL, and a reader that is turned until it rests."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import msgspec
from sqlalchemy import Connection, create_engine, text

from lateshift import Lateshift
from lateshift.model.ids import new_member_id
from lateshift.model.job import JobFilter
from lateshift.model.triggering.sources import RowSource
from lateshift.model.triggering.trigger import TriggerView
from lateshift.triggers.reader import Reader
from lateshift.triggers.row_table import url_of

ORDERS = "CREATE TABLE orders (id bigint PRIMARY KEY, at timestamp, note text)"
TURNS = 10_000


class Orders:
    """The user's database, written to by connections of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = create_engine(url_of(url))

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        with self.engine.begin() as connection:
            yield connection

    def run(self, *statements: str) -> None:
        with self.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def put(self, ids: Iterable[int], **values: Any) -> None:
        """In one transaction."""
        rows = [{"id": id, "at": None, "note": None, **values} for id in ids]
        with self.begin() as connection:
            connection.execute(text("INSERT INTO orders (id, at, note) VALUES (:id, :at, :note)"), rows)

    def close(self) -> None:
        self.engine.dispose()


class Turned:
    """An app with one trigger on a table, and a reader of it that begins anew when asked to."""

    def __init__(self, app: Lateshift, name: str = "handle") -> None:
        self.app = app
        self.name = name
        self.reader = self._begun()

    def again(self) -> None:
        """As after a restart: another reader, which finds nothing in memory."""
        self.reader.resign()
        self.reader = self._begun()

    def _begun(self) -> Reader:
        self.declare()
        return Reader(self.app.store, self.app.triggers[self.name], new_member_id(), self.app.clock)

    def declare(self) -> None:
        self.app.readers()[0].say()  # type: ignore[attr-defined]

    def turn(self) -> timedelta:
        """Until there is nothing more for now. Gives the pause."""
        for _ in range(TURNS):
            pause = self.reader.round()
            if pause:
                return pause
        raise AssertionError(f"it has more after {TURNS} turns")

    @property
    def where(self) -> RowSource:
        where = self.app.triggers[self.name].where
        assert isinstance(where, RowSource)
        return where

    @property
    def view(self) -> TriggerView:
        view = self.app.store.triggers.get(self.name)
        assert view is not None
        return view

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Of the jobs, in the order in which they were made."""
        jobs = self.app.store.reports.jobs(JobFilter(task="handle"), TURNS)
        return [msgspec.json.decode(job.payload)["row"] for job in reversed(jobs)]

    @property
    def ids(self) -> list[int]:
        return [row["id"] for row in self.rows]

    @property
    def receipts(self) -> list[str]:
        return self.app.store.triggers.receipts(self.name, "", TURNS)


Watch = Callable[..., Turned]
