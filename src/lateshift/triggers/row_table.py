"""A table of any database that SQLAlchemy speaks: connected, looked up, and read in pages of bounded size."""

import json
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Date,
    DateTime,
    Engine,
    MetaData,
    Table,
    and_,
    create_engine,
    event,
    func,
    literal,
    or_,
    select,
    true,
    type_coerce,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    NoSuchModuleError,
    NoSuchTableError,
    SAWarning,
    SQLAlchemyError,
)
from sqlalchemy.types import JSON, NullType

from lateshift.clock import SYSTEM
from lateshift.errors import TriggerInvalid
from lateshift.model.triggering.sources import RowSource
from lateshift.store.urls import shown
from lateshift.triggers.source import SourceAway
from lateshift.triggers.unreadable import Unreadable, read_any_value

CONNECT_SECONDS = 10
STATEMENT_SECONDS = 30
_MILLISECONDS = 1000
_QUARTER = timedelta(minutes=15)
_LIBPQ = {
    "connect_timeout": CONNECT_SECONDS, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
    "tcp_user_timeout": 20 * _MILLISECONDS, "application_name": "lateshift",
}  # fmt: skip
_MYSQL = {
    "connect_timeout": CONNECT_SECONDS, "read_timeout": STATEMENT_SECONDS, "write_timeout": STATEMENT_SECONDS,
}  # fmt: skip
TIMEOUTS: dict[str, dict[str, Any]] = {
    "psycopg": _LIBPQ, "psycopg2": _LIBPQ, "pymysql": _MYSQL, "mysqldb": _MYSQL, "pysqlite": {"timeout": CONNECT_SECONDS},
    "pyodbc": {"timeout": CONNECT_SECONDS}, "oracledb": {"tcp_connect_timeout": CONNECT_SECONDS},
}  # fmt: skip
OWN_OPTIONS = ("pooler", "durability")  # of Lateshift's store URLs, which may stand in a row's too


class Place(NamedTuple):
    """Where a row stands in the order of the table's reading."""

    cursor: Any
    key: Any


class RowTable:
    """Not connected until `open`. Raises SourceAway, which never tells a password."""

    def __init__(self, where: RowSource) -> None:
        self._where = where
        self._url = url_of(where.url)
        self._about = shown(where.url)
        self._secrets = {str(self._url.password or ""), urlsplit(where.url).password or ""} - {""}
        self._raw = self._url.get_backend_name() == "sqlite"
        self._engine: Engine | None = None
        self._streaming: Generator[list[Place], None, None] | None = None

    def open(self) -> None:
        if self._raw and not Path(str(self._url.database)).exists():  # to connect would make it
            raise SourceAway(f"there is no file {self._url.database}")
        arguments = {
            name: value
            for name, value in TIMEOUTS.get(self._url.get_driver_name(), {}).items()
            if name not in self._url.query
        }
        if _is_pooled(self._where.url) and self._url.get_driver_name() == "psycopg":
            arguments["prepare_threshold"] = None
        try:
            self._engine = create_engine(
                self._url, pool_size=1, max_overflow=0, pool_pre_ping=True, connect_args=arguments
            )
            if self._raw:
                event.listen(self._engine, "connect", _read_any_text)
            elif self._url.get_driver_name() == "psycopg":
                event.listen(self._engine, "connect", read_any_value)
        except NoSuchModuleError as error:
            raise TriggerInvalid(f"SQLAlchemy does not speak {self._url.drivername}: {error}") from error
        except ModuleNotFoundError as error:
            raise TriggerInvalid(
                f"{error.name}, by which SQLAlchemy reaches {self._url.drivername}, is not installed: install it, or name another "
                "driver in the URL, such as mysql+pymysql://"
            ) from error
        with self._reading() as connection:
            self._look_up(connection)

    @property
    def database(self) -> str:
        """What it is called: a SQLite file by its path, another by its name, however it is reached. A server may get another address,
        a database another password, and the rows are the same."""
        name = Path(str(self._url.database)).resolve() if self._raw else self._url.database or ""
        return f"{self._url.get_backend_name()} {name}"

    @property
    def holds_times(self) -> bool:
        """Whether the cursor is declared as a time, which SQLite keeps as text."""
        return isinstance(self._cursor.type, DateTime | Date)

    @property
    def sorts_times(self) -> bool:
        """Whether it keeps times as text, which then sorts by its bytes."""
        return self._raw and self.holds_times

    def present(self) -> tuple[datetime, timedelta]:
        """By the database's own clock; and how far ahead of UTC is what it, or we, would write without a zone."""
        with self._reading() as connection:
            told: datetime = connection.execute(select(func.current_timestamp())).scalar_one()
        ours = SYSTEM.now()
        if (
            told.tzinfo is None
        ):  # in UTC on SQLite; elsewhere in a zone that is not told: the nearest quarter of an hour
            zone = round((told - ours.replace(tzinfo=None)) / _QUARTER) * _QUARTER
            told = (told - zone).replace(tzinfo=UTC)
        else:
            zone = told.utcoffset() or timedelta(0)
        return told, max(timedelta(0), zone, ours.astimezone().utcoffset() or timedelta(0))

    def newest(self, upto: Any = None) -> Any:
        """The greatest cursor there is, up to one; None if there is none."""
        cursor = self._value(self._cursor)
        asked = select(cursor).where(self._from(None, None), self._upto(upto))
        with self._reading() as connection:
            return connection.execute(asked.order_by(cursor.desc()).limit(1)).scalar()

    def places(self, floor: Any, after: Place | None, upto: Any, limit: int) -> list[Place]:
        """Of the rows from `floor` on, or after a place, up to a cursor."""
        asked = select(self._value(self._cursor), self._value(self._key))
        asked = asked.where(self._from(floor, after), self._upto(upto))
        with self._reading() as connection:
            return [Place(*row) for row in connection.execute(self._in_order(asked).limit(limit))]

    def stream(self, floor: Any, limit: int) -> Iterator[list[Place]]:
        """Of all rows from `floor` on, as they are at one moment: one statement, whose answer is fetched bit by bit."""
        self._streaming = self._stream(floor, limit)
        return self._streaming

    def _stream(self, floor: Any, limit: int) -> Generator[list[Place], None, None]:
        asked = self._in_order(
            select(self._value(self._cursor), self._value(self._key)).where(self._from(floor, None))
        )
        with self._reading() as connection:
            connection = connection.execution_options(stream_results=True, max_row_buffer=limit)
            with connection.execute(asked) as answer:
                for page in answer.partitions(limit):
                    yield [Place(*row) for row in page]

    def after(self, place: Place | None, upto: Any, limit: int) -> list[dict[str, Any]]:
        """Whole rows after a place, up to a cursor."""
        asked = select(*self._values()).where(self._from(None, place), self._upto(upto))
        with self._reading() as connection:
            return self._told(connection.execute(self._in_order(asked).limit(limit)).fetchall())

    def load(self, places: Sequence[Place]) -> list[dict[str, Any]]:
        """These rows, as they are by now."""
        key = self._value(self._key)
        asked = select(*self._values()).where(
            key.in_([_asked(place.key, self._key) for place in places]),
            self._value(self._cursor) >= _asked(places[0].cursor, self._cursor),
        )
        with self._reading() as connection:
            return self._told(connection.execute(self._in_order(asked)).fetchall())

    def waiting(self, after: Any, upto: Any, most: int) -> int:
        """How many rows have a greater cursor, up to one, counted up to `most`."""
        place = None if after is None else Place(after, None)
        asked = select(literal(1).label("one")).where(self._from(None, place), self._upto(upto))
        with self._reading() as connection:
            return int(connection.scalar(select(func.count()).select_from(asked.limit(most).subquery())) or 0)

    def place_of(self, row: Mapping[str, Any]) -> Place:
        return Place(row[self._where.cursor], row[self._where.key])

    def close(self) -> None:
        engine, self._engine = self._engine, None
        streaming, self._streaming = self._streaming, None
        with suppress(Exception):  # it may be broken, which is why it is closed
            if streaming is not None:
                streaming.close()
        with suppress(Exception):
            if engine is not None:
                engine.dispose()

    # How it is asked

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        assert self._engine is not None
        try:
            with self._engine.connect() as connection:
                if connection.dialect.name == "postgresql":
                    connection = connection.execution_options(postgresql_readonly=True)
                    connection.exec_driver_sql(f"SET LOCAL statement_timeout = '{STATEMENT_SECONDS}s'")
                yield connection
        except NoSuchTableError as error:
            raise SourceAway(
                f"there is no table {self._where.table} in {self._about}, or we may not see it"
            ) from error
        except DBAPIError as error:
            raise SourceAway(f"{self._about}: {self._safe(error.orig)}") from error
        except SQLAlchemyError as error:
            raise SourceAway(f"{self._about}: {self._safe(error)}") from error

    def _safe(self, error: object) -> str:
        text = " ".join(str(error).split())
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return f"{type(error).__name__}: {text}"

    def _look_up(self, connection: Connection) -> None:
        schema, _, name = self._where.table.rpartition(".")
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", SAWarning
            )  # a column of a type that it does not know is read as it comes
            table = Table(
                name, MetaData(), schema=schema or None, autoload_with=connection, resolve_fks=False
            )
        for what in ("cursor", "key"):
            column = getattr(self._where, what)
            if column not in table.c:
                raise SourceAway(
                    f"the table {self._where.table} has no column {column}, which is to be the {what}. It has: "
                    f"{', '.join(table.c.keys())}."
                )
        self._columns: list[Column[Any]] = list(table.c)
        self._cursor: Column[Any] = table.c[self._where.cursor]
        self._key: Column[Any] = table.c[self._where.key]

    def _value(self, column: Column[Any]) -> ColumnElement[Any]:
        """As SQLite keeps it: what it compares is what was written, in whatever form, and a time written without fractions
        of a second is not equal to the same time with them."""
        return type_coerce(column, NullType()) if self._raw else column

    def _values(self) -> list[ColumnElement[Any]]:
        return [self._value(column).label(column.name) for column in self._columns]

    def _from(self, floor: Any, after: Place | None) -> ColumnElement[bool]:
        cursor, key = self._value(self._cursor), self._value(self._key)
        there = and_(self._cursor.is_not(None), self._key.is_not(None))
        if after is None:
            return there if floor is None else and_(there, cursor >= floor)
        past = cursor > _asked(after.cursor, self._cursor)
        if after.key is None:  # it stands for all rows of its cursor
            return and_(there, past)
        # The first condition is for the index, the second for rows of the same cursor.
        return and_(
            there, cursor >= _asked(after.cursor, self._cursor), or_(past, key > _asked(after.key, self._key))
        )

    def _upto(self, cursor: Any) -> ColumnElement[bool]:
        return true() if cursor is None else self._value(self._cursor) <= cursor

    def _in_order(self, asked: Any) -> Any:
        return asked.order_by(self._value(self._cursor), self._value(self._key))

    def _told(self, rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
        names = [column.name for column in self._columns]
        told = [dict(zip(names, row, strict=True)) for row in rows]
        if self._raw:
            for column in self._columns:
                _typed(told, column)
        return told


def _typed(rows: list[dict[str, Any]], column: Column[Any]) -> None:
    """What SQLite has no type for: booleans and JSON, where that is what is there."""
    if isinstance(column.type, Boolean):
        for row in rows:
            row[column.name] = {0: False, 1: True}.get(row[column.name], row[column.name])
    elif isinstance(column.type, JSON):
        for row in rows:
            with suppress(ValueError, TypeError, RecursionError):
                row[column.name] = json.loads(row[column.name])


def _asked(value: Any, column: Column[Any]) -> Any:
    """As the database is asked for it: what Python has no value for, by its text."""
    return literal(value.text, column.type) if isinstance(value, Unreadable) else value


def _read_any_text(connection: Any, _: object) -> None:
    """Text that is no UTF-8 is no reason to read none of the others."""
    connection.text_factory = lambda raw: raw.decode(errors="backslashreplace")


def url_of(url: str) -> URL:
    """As SQLAlchemy takes it. PostgreSQL is reached by psycopg, which is there, unless the URL says otherwise."""
    try:
        made = make_url(url)
        made = made.difference_update_query([name for name in OWN_OPTIONS if name in made.query])
        if made.drivername in ("postgresql", "postgres"):
            made = made.set(drivername="postgresql+psycopg")
        if made.get_backend_name() == "sqlite":
            made = made.difference_update_query(["driver", "network"])
            if not made.database or made.database == ":memory:":
                raise TriggerInvalid(
                    f"{shown(url)!r} names no file, and memory is seen by one connection alone"
                )
        made.get_driver_name()
    except (ArgumentError, NoSuchModuleError, ValueError) as error:
        if isinstance(error, TriggerInvalid):
            raise
        raise TriggerInvalid(
            f"{shown(url)!r} is no URL of a database that SQLAlchemy speaks, such as postgresql://user@host/shop"
        ) from error
    return made


def refuse_two_libraries(url: str, store: str) -> None:
    """A file that two copies of SQLite open in one process can lose what was accepted: see docs/decisions/two-sqlites.md."""
    ours, theirs = urlsplit(store), make_url(url)
    if ours.scheme != "sqlite" or theirs.get_backend_name() != "sqlite" or not theirs.database:
        return
    if dict(parse_qsl(ours.query)).get("driver") == "sqlite3":
        return
    if Path(unquote(ours.path[1:])).resolve() == Path(theirs.database).resolve():
        raise TriggerInvalid(
            f"the table is in the store's own file, which is then opened by two SQLite libraries: add ?driver=sqlite3 to the store's URL ({store})"
        )


def _is_pooled(url: str) -> bool:
    return dict(parse_qsl(urlsplit(url).query)).get("pooler") == "transaction"


__all__ = ["Place", "RowTable", "refuse_two_libraries", "url_of"]
