"""How a store would carry out a statement: the text of its plans, on the store's own connection as it is in use."""

import re
from typing import Any

from lateshift.store.contract import Store
from lateshift.store.postgres import PostgresStore
from lateshift.store.sqlite import SqliteStore
from tests.store_contract.judging_plans import with_numbers


def plans(store: Store, sql: str, parameters: Any = ()) -> list[str]:
    """On PostgreSQL the plan for these parameters and the one for any; SQLite's do not look at them."""
    if isinstance(store, SqliteStore):
        marks = re.findall(r"\?(\d*)", sql)
        count = max(int(mark) for mark in marks) if any(marks) else len(marks)
        with store._database.read() as connection:
            rows = connection.execute(f"EXPLAIN QUERY PLAN {sql}", (1,) * count).fetchall()
        return ["\n".join(row[3] for row in rows)]
    assert isinstance(store, PostgresStore)
    numbered, count = with_numbers(sql)
    values = f"({', '.join(['NULL'] * count)})" if count else ""
    with store._database.connect() as server:
        own = server.execute(f"EXPLAIN {sql}".encode(), parameters, prepare=False).fetchall()
        server.execute("SET plan_cache_mode = force_generic_plan")
        server.execute(f"PREPARE generic AS {numbered}".encode())
        generic = server.execute(f"EXPLAIN EXECUTE generic{values}".encode()).fetchall()
    return ["\n".join(row[0] for row in rows) for rows in (own, generic)]


def analyse(store: Store) -> None:
    """As an operator may, or autovacuum."""
    if isinstance(store, SqliteStore):
        with store._database.write() as connection:
            connection.execute("ANALYZE")
    else:
        assert isinstance(store, PostgresStore)
        with store._database.connect() as server:
            server.execute("ANALYZE")
