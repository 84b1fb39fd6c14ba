"""The matrix in docs/sensitive.md is what PostgreSQL gives: each role tries each kind of statement on each column of each table that there is."""

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import errors as pg

from lateshift.store.postgres.roles import ROLES
from tests.roles.conftest import Realm

PAGE = (Path(__file__).parents[2] / "docs" / "sensitive.md").read_text()
LETTERS = {"r": "read", "a": "add", "c": "change", "d": "delete"}
SHOWN = ROLES[1:]
# EXPLAIN looks at the rights, and does nothing.
TRIES = {
    "read": "EXPLAIN SELECT {column} FROM lateshift.{table}",
    "add": "EXPLAIN INSERT INTO lateshift.{table} ({column}) VALUES (DEFAULT)",
    "change": "EXPLAIN UPDATE lateshift.{table} SET {column} = DEFAULT",
}


def rows_of(heading: str) -> Iterator[list[str]]:
    """The table below that line of headings, cell by cell."""
    _, _, below = PAGE.partition(f"| {heading} |\n")
    assert below, heading
    for line in below.splitlines()[1:]:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def published() -> dict[str, list[str]]:
    """Of each table, the letters of each role."""
    return {
        table: cells for names, *cells in rows_of(f"tables | {' | '.join(SHOWN)}") for table in quoted(names)
    }


def some_columns() -> dict[tuple[str, str, str], set[str]]:
    found = {}
    for what, columns in rows_of("some columns | of"):
        role, _, rest = what.partition(", ")
        found[role, rest.partition(" ")[0], quoted(rest)[0]] = set(quoted(columns))
    return found


def columns_of(realm: Realm) -> dict[str, list[str]]:
    with psycopg.connect(realm.admin, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT table_name, array_agg(column_name::text) FROM information_schema.columns WHERE table_schema = 'lateshift' GROUP BY 1"
        ).fetchall()
    return dict(rows)


def may(connection: psycopg.Connection, statement: str) -> bool:
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(statement.encode())
    except pg.InsufficientPrivilege:
        return False
    return True


def test_every_table_that_there_is_stands_in_the_matrix(realm: Realm) -> None:
    assert columns_of(realm).keys() == published().keys()


@pytest.mark.parametrize("role", SHOWN)
def test_a_role_may_do_with_each_column_what_is_published_and_nothing_else(realm: Realm, role: str) -> None:
    given, some = published(), some_columns()
    wrong = []
    with realm.connect(role) as connection:
        for table, columns in columns_of(realm).items():
            cell = given[table][SHOWN.index(role)]
            assert re.fullmatch(r"–|(r\*?)?(a\*?)?c?d?", cell), cell
            for letter, verb in LETTERS.items():
                for column in columns if verb in TRIES else []:
                    listed = column in some.get((role, verb, table), set())
                    expected = letter in cell and (listed or f"{letter}*" not in cell)
                    if may(connection, TRIES[verb].format(table=table, column=column)) != expected:
                        wrong.append(f"{verb} {table}.{column}: published {expected}")
            if may(connection, f"EXPLAIN DELETE FROM lateshift.{table}") != ("d" in cell):
                wrong.append(f"delete {table}")
            for mode in ("ROW EXCLUSIVE", "SHARE", "ACCESS EXCLUSIVE"):
                writes = {letter for letter in cell if letter in "acd"} - ({"a"} if "a*" in cell else set())
                expected = bool(writes - (set() if mode == "ROW EXCLUSIVE" else {"a"}))
                if may(connection, f"LOCK TABLE lateshift.{table} IN {mode} MODE") != expected:
                    wrong.append(f"lock {table} in {mode}: published {expected}")
            if may(connection, f"TRUNCATE lateshift.{table}"):
                wrong.append(f"truncate {table}")
    assert wrong == []


def test_what_is_said_of_columns_is_of_columns_that_there_are(realm: Realm) -> None:
    there = columns_of(realm)
    for (role, verb, table), columns in some_columns().items():
        assert columns < set(there[table])
        letter = next(letter for letter, each in LETTERS.items() if each == verb)
        assert f"{letter}*" in published()[table][SHOWN.index(role)]


def test_each_function_may_be_called_by_those_for_whom_it_is_published(realm: Realm) -> None:
    given = {
        (function, role)
        for names, *cells, _ in rows_of(f"functions | {' | '.join(SHOWN)} | what for")
        for function in quoted(names)
        for role, cell in zip(SHOWN, cells, strict=True)
        if cell == "x"
    }
    with psycopg.connect(realm.admin, autocommit=True) as connection:
        found = connection.execute(
            "SELECT p.proname, r.role FROM pg_proc p, unnest(%s::text[]) AS r (role) WHERE p.pronamespace = 'lateshift'::regnamespace"
            " AND has_function_privilege(%s || '_' || r.role, p.oid, 'EXECUTE')",
            (list(SHOWN), realm.prefix),
        ).fetchall()
        definers = connection.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'lateshift'::regnamespace AND prosecdef"
            " AND NOT 'search_path=pg_catalog, pg_temp' = ANY(proconfig)"
        ).fetchall()
    assert set(found) == given
    assert definers == []
