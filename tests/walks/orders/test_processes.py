"""Agents, schedulers and supervisors that die while an order is Processing: real processes, killed with -9."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from examples.orders import app
from examples.orders.database import Order, prepare, query
from examples.orders.remote import Remote
from examples.orders.replies import heard
from examples.orders.submission import receive
from examples.orders.table import Row, rows
from lateshift.store.open import open_store
from tests.crash.scene import PATH, Group, until
from tests.walks.commands import environment
from tests.walks.orders.desk import shared

HEARTBEAT = 3  # seconds until somebody who says nothing is dead
LONG, SHORT = 60, 6  # seconds for a step: so long that nobody is late, or so short that somebody is soon


class Company:
    """Hosts on one store, each with a worker and a supervisor."""

    def __init__(self, folder: Path, url: str, remote: Remote) -> None:
        self.remote = remote
        self._folder = folder
        self._url = url
        self._groups: list[Group] = []

    def host(self, complete_by: int, *, crash: str = "") -> Group:
        variables = {
            "PYTHONPATH": PATH, "LATESHIFT_STORE": self._url, "LATESHIFT_HEARTBEAT": str(HEARTBEAT),
            "ORDERS_REMOTE": self.remote.url, "ORDERS_COMPLETE_BY": str(complete_by), "ORDERS_ONE_CALL": str(complete_by),
        }  # fmt: skip
        if crash:
            variables["LATESHIFT_CRASH"] = f"{crash}:kill:{self._folder}/hit"
        group = Group(
            ["-m", "lateshift", "work", "examples.orders:app"], environment(**variables),
            self._folder / f"{len(self._groups)}.log",
        )  # fmt: skip
        self._groups.append(group)
        until(lambda: group.workers() or group.ended, "it has a worker")
        return group

    def row(self) -> Row:
        [found] = rows()
        return found

    def until_called(self) -> None:
        until(lambda: self.remote.calls["charge", 7], "an agent has called")

    def until_processed(self) -> None:
        """Charged once, shipped once, whatever died."""
        until(lambda: [row.state for row in rows()] == ["Processed"], "the order is processed")
        assert self.remote.log == ["charge 7", "ship 7"]
        until(lambda: heard(7)[-1:] == ["Processed"], "the shop has heard of it")
        assert heard(7) == ["Pending", "Processing", "Processed"]

    def close(self) -> None:
        for group in self._groups:
            group.kill()
            print(group.log.read_text(errors="replace")[-3000:])


@pytest.fixture
def company(tmp_path: Path, store_url: str, remote: Remote) -> Iterator[Company]:
    with (
        app.using(open_store(shared(store_url))),
        closing(Company(tmp_path, shared(store_url), remote)) as company,
    ):
        prepare()
        yield company


def test_an_agent_that_is_killed_in_the_middle_of_its_call_is_followed_by_another(company: Company) -> None:
    host = company.host(LONG)
    receive.enqueue(Order(7, mode="hang"))
    company.until_called()
    assert company.row().state == "Processing"
    assert company.row().locked_by.startswith("payments ")
    company.remote.tell(7, "work")
    [worker] = host.workers()
    os.kill(worker, signal.SIGKILL)
    company.until_processed()
    assert company.row().failures == 0  # all of it inside the complete-by


@pytest.mark.parametrize(
    "point",
    [
        "workflow.before_advance:2",
        "workflow.after_commit:2",
        "worker.before_settle:2",
        "worker.after_settle_commit:3",
    ],
)
def test_a_scheduler_that_is_killed_while_it_processes_an_order_is_resumed_where_it_stood(
    company: Company, tmp_path: Path, point: str
) -> None:
    company.host(LONG, crash=point)
    receive.enqueue(Order(7))
    company.until_processed()
    assert (tmp_path / "hit").exists()


def test_orders_that_were_posted_while_nobody_worked_are_processed_when_somebody_does(
    company: Company,
) -> None:
    receive.enqueue(Order(7))
    assert rows() == []
    company.host(LONG)
    company.until_processed()


def leads() -> bool:
    """Whether somebody does."""
    schema = "" if app.settings.store.startswith("sqlite") else "lateshift."
    return bool(query(f"SELECT 1 FROM {schema}lock WHERE name = 'supervisor' AND owner IS NOT NULL"))


def test_another_supervisor_takes_over_when_the_one_that_leads_is_killed(company: Company) -> None:
    first = company.host(SHORT)
    until(leads, "the first leads")
    company.host(SHORT)
    receive.enqueue(Order(7, mode="hang"))
    company.until_called()
    assert company.row().failures == 0
    first.kill()
    until(lambda: company.row().failures, "the second finds the step past its complete-by")
    company.remote.tell(7, "work")
    company.until_processed()
    assert company.row().failures >= 1
