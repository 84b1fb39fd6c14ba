"""Readers of rows, killed a few times at each point; a hundred times each in tests/brokers/test_rows.py."""

from pathlib import Path

import pytest

from tests.triggers.killing import POINTS, survive

KILLS = 4


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_a_store_in_sqlite_and_rows_in_postgresql(
    migrated_sqlite_url: str, empty_postgres_url: str, point: str
) -> None:
    survive(migrated_sqlite_url, empty_postgres_url, point, KILLS)


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_a_store_in_postgresql_and_rows_in_sqlite(postgres_url: str, tmp_path: Path, point: str) -> None:
    survive(postgres_url, f"sqlite:///{tmp_path}/shop.db", point, KILLS)
