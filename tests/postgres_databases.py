"""The databases of a PostgreSQL server where tests may make them, and a quick way to an untouched one for each test.

Copying a template costs 30 to 170 ms and dropping the copy as much again; putting the rows of a used copy back
costs about 5 ms. So a copy is used again, unless the test changed more than rows.
"""

import secrets
import time
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

# What must be as in the template for a database to be used again: every relation, constraint, function and trigger
# outside the system's schemas, the planner's statistics, and the settings of the database.
_SHAPE = """
WITH ours AS (SELECT oid FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema')
SELECT (SELECT array_agg((c.oid, c.relname, c.relnatts, c.reltuples, c.relhasrules)::text ORDER BY c.oid)
          FROM pg_class c WHERE c.relnamespace IN (SELECT oid FROM ours)),
       (SELECT array_agg(oid ORDER BY oid) FROM pg_constraint WHERE connamespace IN (SELECT oid FROM ours)),
       (SELECT array_agg((p.oid, md5(p.prosrc))::text ORDER BY p.oid)
          FROM pg_proc p WHERE p.pronamespace IN (SELECT oid FROM ours)),
       (SELECT array_agg((t.oid, t.tgenabled)::text ORDER BY t.oid) FROM pg_trigger t WHERE NOT t.tgisinternal),
       (SELECT array_agg(nspname::text ORDER BY nspname) FROM pg_namespace WHERE oid IN (SELECT oid FROM ours)),
       (SELECT array_agg(setconfig ORDER BY setrole) FROM pg_db_role_setting s
          JOIN pg_database d ON d.oid = s.setdatabase WHERE d.datname = current_database())
"""
_TABLES = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY c.oid
"""
_OTHER_CLIENTS = """
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""
_SIZE = "SELECT pg_database_size(current_database())"
_MAY_GROW = 16 * 1024 * 1024  # bytes of dead rows that a database is used again with
_CLIENTS_LEAVE_WITHIN = 0.5  # seconds; a closed connection is seen for a moment


class PostgresDatabases:
    """The databases of a server where the tests may create and drop them."""

    def __init__(self, admin_url: str) -> None:
        self.admin_url = admin_url

    def url(self, database: str) -> str:
        parts = urlsplit(self.admin_url)
        query = f"?{parts.query}" if parts.query else ""
        return f"{parts.scheme}://{parts.netloc}/{database}{query}"

    def create_database(self, name: str, template: str | None = None) -> str:
        """Makes a database, as a copy of `template` if given (nobody may be connected to that); gives its URL."""
        copied = sql.SQL(" TEMPLATE {}").format(sql.Identifier(template)) if template else sql.SQL("")
        with self.connect() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}{}").format(sql.Identifier(name), copied))
        return self.url(name)

    def drop_database(self, name: str) -> None:
        with self.connect() as connection:
            connection.execute(
                sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
            )

    def connect(self, database: str | None = None) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection in autocommit mode, to the server's own database unless another is named."""
        url = self.admin_url if database is None else self.url(database)
        return psycopg.connect(url, autocommit=True, connect_timeout=5)


class ClonedDatabase:
    """A copy of a template, one test at a time: `take()` gives the name, `give_back()` makes it as new."""

    def __init__(self, databases: PostgresDatabases, template: str) -> None:
        self._databases = databases
        self._template = template
        self._name: str | None = None
        self._restore: sql.Composed | None = None
        self._shape: tuple[Any, ...] | None = None
        self._size = 0

    def take(self) -> str:
        if self._name is None:
            self._name = unused_name()
            self._databases.create_database(self._name, template=self._template)
            with self._databases.connect(self._name) as connection:
                self._learn(connection)
        return self._name

    def give_back(self) -> None:
        if self._name is not None and not self._restored(self._name):
            self.drop()

    def drop(self) -> None:
        if self._name is not None:
            self._databases.drop_database(self._name)
            self._name = None

    def _learn(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._shape = connection.execute(_SHAPE).fetchone()
        self._size = _number(connection, _SIZE)
        self._restore = _restoring(connection)

    def _restored(self, name: str) -> bool:
        """False where the database cannot be used again: changed, grown, gone, or with somebody still in it."""
        try:
            with self._databases.connect(name) as connection:
                if not _left_alone(connection) or connection.execute(_SHAPE).fetchone() != self._shape:
                    return False
                if self._restore is None or _number(connection, _SIZE) > self._size + _MAY_GROW:
                    return False
                connection.execute(self._restore)
        except psycopg.Error:
            return False
        return True


def unused_name() -> str:
    return f"lateshift_test_{secrets.token_hex(6)}"


def _restoring(connection: psycopg.Connection[tuple[Any, ...]]) -> sql.Composed:
    """One script that empties every table, puts the template's rows back and sets the sequences."""
    # As a replica no trigger and no foreign key fires, whatever the order; needs a superuser, else an error.
    script: list[sql.Composable] = [sql.SQL("BEGIN; SET LOCAL session_replication_role = replica")]
    for table in connection.execute(_TABLES).fetchall():
        into = sql.Identifier(*table)
        script.append(sql.SQL("DELETE FROM {}").format(into))
        found = connection.execute(sql.SQL("SELECT json_agg(t)::text FROM {} t").format(into)).fetchone()
        if found and found[0]:
            again = "INSERT INTO {0} OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::{0}, {1})"
            script.append(sql.SQL(again).format(into, sql.Literal(found[0])))
    sequences = "SELECT schemaname, sequencename, coalesce(last_value, start_value), last_value IS NOT NULL FROM pg_sequences"
    for schema, name, value, called in connection.execute(sequences).fetchall():
        number = sql.Literal(sql.Identifier(schema, name).as_string(connection))
        script.append(sql.SQL("SELECT setval({}, {}, {})").format(number, value, called))
    return sql.SQL("; ").join([*script, sql.SQL("COMMIT")])


def _left_alone(connection: psycopg.Connection[tuple[Any, ...]]) -> bool:
    until = time.monotonic() + _CLIENTS_LEAVE_WITHIN
    while _number(connection, _OTHER_CLIENTS):
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def _number(connection: psycopg.Connection[tuple[Any, ...]], query: str) -> int:
    row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0
