"""Plans of SQLite: every statement on the tables of jobs is served by an index, on full tables, whatever the statistics say."""

import re

import apsw
import pytest

from lateshift.clock import ManualClock
from lateshift.store.open import open_store
from tests.store_contract.driving import file_of
from tests.store_contract.full_tables import FILL_SQLITE
from tests.store_contract.judging_plans import anything
from tests.store_contract.plans_on_sqlite import SORTED, SQLITE


@pytest.mark.parametrize("analysed", [False, True])
def test_no_statement_reads_a_whole_table_of_a_full_sqlite_file(
    sqlite_url: str, clock: ManualClock, analysed: bool
) -> None:
    store = open_store(sqlite_url, clock)
    store.ready()
    store.close()
    connection = apsw.Connection(str(file_of(sqlite_url)))
    connection.execute(f"BEGIN; {FILL_SQLITE} COMMIT")
    if analysed:
        connection.execute("ANALYZE")

    wrong = []
    for name, sql, index in SQLITE:
        plan = "\n".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", anything(sql)))
        whole = re.search(
            r"SCAN (job|settled|job_key|job_identity|job_tag|job_parent|run|step|signal|[br])\b(?! USING (COVERING )?INDEX)",
            plan,
        )
        if whole or index not in plan or (name in SORTED and "TEMP B-TREE" in plan):
            wrong.append(f"{name} wants {index}:\n{plan}")
    connection.close()
    assert wrong == [], "\n\n".join(wrong)
