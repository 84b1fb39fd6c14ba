"""Plans of PostgreSQL: every statement on the tables of jobs is served by an index, on full tables, whatever the statistics say.

The connection that explains is the store's own, as it is in use; nothing is set here for the test."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from lateshift.store import postgres
from lateshift.store.open import open_store
from tests.postgres_databases import PostgresDatabases, unused_name
from tests.store_contract.full_tables import FILL_POSTGRES
from tests.store_contract.judging_plans import faults, with_numbers
from tests.store_contract.plans_on_postgres import POSTGRES


@pytest.fixture(params=["analysed", "analysed when empty", "never analysed"])
def full(
    request: pytest.FixtureRequest, postgres_server: PostgresDatabases, postgres_template: str
) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """A connection to a full database with such statistics."""
    name = unused_name()
    store = open_store(postgres_server.create_database(name, template=postgres_template))
    assert isinstance(store, postgres.PostgresStore)
    with store._database.connect() as connection:
        if request.param == "analysed when empty":
            connection.execute("ANALYZE")
        connection.execute(FILL_POSTGRES.encode(), prepare=False)
        if request.param == "analysed":
            connection.execute("ANALYZE")
        yield connection
    store.close()
    postgres_server.drop_database(name)


def test_no_statement_reads_a_whole_table_of_a_full_database(
    full: psycopg.Connection[tuple[Any, ...]],
) -> None:
    wrong = []
    for name, sql, parameters, indexes in POSTGRES:
        [[plan]] = full.execute(f"EXPLAIN (FORMAT JSON) {sql}".encode(), parameters, prepare=False).fetchall()
        wrong += faults(name, plan[0]["Plan"], indexes)
    assert wrong == [], "\n\n".join(wrong)


def test_no_plan_that_is_kept_for_any_parameters_reads_a_whole_table(
    full: psycopg.Connection[tuple[Any, ...]],
) -> None:
    """The store's statements are prepared: after a few runs PostgreSQL may make one plan for all parameters."""
    full.execute("SET plan_cache_mode = force_generic_plan")
    wrong = []
    for name, sql, _, indexes in POSTGRES:
        numbered, count = with_numbers(sql)
        full.execute(f"PREPARE generic AS {numbered}".encode())
        values = f"({', '.join(['NULL'] * count)})" if count else ""
        [[plan]] = full.execute(f"EXPLAIN (FORMAT JSON) EXECUTE generic{values}".encode()).fetchall()
        full.execute("DEALLOCATE generic")
        wrong += faults(f"{name}, any parameters", plan[0]["Plan"], indexes)
    assert wrong == [], "\n\n".join(wrong)
