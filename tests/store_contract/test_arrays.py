"""Arrays as they are sent to PostgreSQL: what it reads is what was meant."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from lateshift.model.instants import to_number
from lateshift.store.open import open_store
from lateshift.store.postgres import PostgresStore
from lateshift.store.postgres.arrays import BigInts, Blobs, Ids, Instants, Places, Texts, Uuids

NOW = datetime(2026, 11, 16, 12, 30, 1, 5, tzinfo=UTC)
LONG_AGO = datetime(1969, 12, 31, tzinfo=UTC)
ONE, TWO = uuid4(), uuid4()


@pytest.mark.parametrize(
    ("sent", "kind", "read"),
    [
        (Uuids([ONE, TWO]), "uuid", [ONE, TWO]),
        (Ids([ONE.bytes, TWO.bytes]), "uuid", [ONE, TWO]),
        (BigInts([0, -1, 2**63 - 1, -(2**63)]), "bigint", [0, -1, 2**63 - 1, -(2**63)]),
        (Instants([to_number(NOW), to_number(LONG_AGO)]), "timestamptz", [NOW, LONG_AGO]),
        (Instants([None, to_number(NOW)]), "timestamptz", [None, NOW]),
        (Blobs([b"", None, b"\0\xff"]), "bytea", [b"", None, b"\0\xff"]),
        (Texts(["", "a b", "é\U0001f600"]), "text", ["", "a b", "é\U0001f600"]),
        (Places([b"\0\0\0\x01\0\x02"]), "tid", ["(1,2)"]),
    ],
)
def test_what_is_read_is_what_was_sent(
    postgres_url: str, sent: list[Any], kind: str, read: list[Any]
) -> None:
    store = open_store(postgres_url)
    assert isinstance(store, PostgresStore)
    with store._database.connect() as connection:
        for values, expected in ((sent, read), (type(sent)(), [])):
            [[found]] = connection.execute(f"SELECT %b::{kind}[]".encode(), (values,)).fetchall()
            assert found == expected
    store.close()
