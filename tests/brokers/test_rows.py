"""Readers of rows, killed a hundred times at each point: `make test-brokers`. A few times in tests/triggers/test_rows_killed.py."""

import os
from pathlib import Path

import pytest

from tests.triggers.killing import POINTS, survive

KILLS = 100 if os.environ.get("LATESHIFT_BROKERS") == "all" else 2


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("point", POINTS)
def test_no_row_is_lost_or_doubled_on_a_store_in_sqlite(
    migrated_sqlite_url: str, empty_postgres_url: str, point: str
) -> None:
    survive(migrated_sqlite_url, empty_postgres_url, point, KILLS)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("point", POINTS)
def test_no_row_is_lost_or_doubled_on_a_store_in_postgresql(
    postgres_url: str, tmp_path: Path, point: str
) -> None:
    survive(postgres_url, f"sqlite:///{tmp_path}/shop.db", point, KILLS)
