"""What an exchange with a SQLite file reads of gates."""

from pathlib import Path
from typing import Any

import apsw

from lateshift.clock import ManualClock
from lateshift.model.breaker import Breaker
from lateshift.model.gate import Gate
from lateshift.model.job import Place
from lateshift.model.outcome import Settlement
from lateshift.store.contract import Want
from lateshift.store.open import open_store
from lateshift.store.sqlite import SqliteStore, gates
from tests.store_contract.driving import DONE, GUARDED, Worker, added, make_job


def test_settling_and_leasing_in_one_exchange_read_once_what_stands_before_tasks(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/jobs.db", ManualClock())
    assert isinstance(store, SqliteStore)
    store.ready()
    store.breakers.declare({"payments": Breaker()}, [Gate("charge", "payments")], tasks=["charge"], by="shop")
    added(store, *(make_job(place=Place(), task="charge") for _ in range(4)))
    worker = Worker(store)
    leases = worker.lease(2, GUARDED)
    ran: list[str] = []

    def trace(cursor: Any, sql: str, bindings: Any) -> bool:
        ran.append(sql)
        return True

    with store._database.write() as connection:
        assert isinstance(connection, apsw.Connection)
        connection.exec_trace = trace
    exchanged = store.jobs.exchange(
        worker.id,
        [Settlement(lease, DONE) for lease in leases],
        [Want(GUARDED, 1, False), Want(GUARDED, 1, False)],
    )
    store.close()
    assert len(exchanged.leases) == 2
    assert ran.count(gates.GATES) == 1
