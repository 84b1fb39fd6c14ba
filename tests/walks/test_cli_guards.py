"""`lateshift sessions` and `lateshift limits`, on both stores."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from lateshift import Lateshift, Limit, Permanent, State, session
from tests.walks.commands import Cli
from tests.walks.waiting import until

pytestmark = pytest.mark.anyio

SOON = timedelta(seconds=20)


@pytest.fixture
def bank(store_url: str) -> Iterator[Lateshift]:
    app = Lateshift("bank", store=store_url)
    app.limit("vendor", Limit(concurrency=5))

    @app.task(retry=None, limit=Limit(rate="600/min"))
    async def book(amount: int) -> None:
        if amount < 0:
            raise Permanent("no such booking")
        session.set_state({"balance": amount})

    yield app
    app.close()


async def test_a_held_session_is_listed_and_released(cli: Cli, bank: Lateshift) -> None:
    book = bank.find_task("book")
    assert cli("sessions", "list").out == "No session keeps anything.\n"
    async with bank.running():
        await (await book.options(session="a").aenqueue(5)).aresult(SOON)
        dead = await book.options(session="b", on_dead="hold").aenqueue(-1)
        await until(dead.aview, lambda view: view.state is State.DEAD)
        waits = await book.options(session="b").aenqueue(7)
        listed = cli("sessions", "list", "--held", "--json").document["sessions"]
        assert listed == [
            {
                "queue": "default", "session": "b", "held_by": str(dead.id), "held_why": "dead", "expects": None,
                "state": None,
            }
        ]  # fmt: skip
        shown = cli("sessions", "list").out
        assert '{"balance":5}' in shown
        assert "dead letter" in shown
        released = cli("sessions", "release", "b")
        assert (released.code, released.out) == (0, "The session b of queue default goes on.\n")
        await waits.aresult(SOON)
    assert cli("sessions", "list", "--held").out == "No session is held.\n"


def test_releasing_what_is_not_held_says_so(cli: Cli, bank: Lateshift) -> None:
    bank.store.ready()
    said = cli("sessions", "release", "x", "--queue", "orders")
    assert said.code == 4
    assert (
        said.out
        == "No session x of queue orders is held. `lateshift sessions list --held` shows those that are.\n"
    )
    assert cli("sessions", "release", "x", "--json").document == {
        "queue": "default",
        "session": "x",
        "released": False,
    }


async def test_releasing_a_session_in_the_wrong_queue_says_in_which_it_is_held(
    cli: Cli, bank: Lateshift
) -> None:
    book = bank.find_task("book").options(queue="orders", session="b", on_dead="hold")
    async with bank.running():
        dead = await book.aenqueue(-1)
        await until(dead.aview, lambda view: view.state is State.DEAD)
    said = cli("sessions", "release", "b")
    assert said.code == 4
    assert (
        said.out
        == "No session b of queue default is held. One of that name is held in queue orders: add --queue orders. "
        "`lateshift sessions list --held` shows those that are.\n"
    )
    assert cli("sessions", "release", "b", "--queue", "orders").code == 0


def test_jobs_are_listed_by_session_and_tenant(cli: Cli, bank: Lateshift) -> None:
    book = bank.find_task("book")
    first = book.options(session="a", tenant="ana").enqueue(1)
    second = book.options(session="a", queue="orders").enqueue(2)
    book.options(session="b", tenant="bob").enqueue(3)
    for arguments, found in {
        ("--session", "a"): [second, first],
        ("--session", "a", "--queue", "orders"): [second],
        ("--session", "a", "--tenant", "ana"): [first],
        ("--tenant", "ana", "--state", "ready"): [first],
        ("--tenant", "bob", "--session", "a"): [],
    }.items():
        listed = cli("jobs", "list", *arguments, "--json").document["jobs"]
        assert [job["id"] for job in listed] == [str(job.id) for job in found], arguments
        shown = cli("jobs", "list", *arguments).out
        assert all(str(job.id) in shown for job in found)
    assert (
        cli("jobs", "list", "--session", "a", "--tenant", "bob").out
        == "No jobs with session a, tenant bob.\n"
    )


async def test_the_limits_of_the_code_are_listed(cli: Cli, bank: Lateshift) -> None:
    assert cli("limits").out == "Nothing is limited.\n"
    async with bank.running():
        await (await bank.find_task("book").options(session="a").aenqueue(5)).aresult(SOON)
    assert cli("limits", "--json").document == {
        "limits": [
            {
                "scope": "key",
                "name": "vendor",
                "concurrency": 5,
                "rate": None,
                "per_seconds": None,
                "burst": None,
            },
            {
                "scope": "task",
                "name": "book",
                "concurrency": None,
                "rate": 600,
                "per_seconds": 60.0,
                "burst": 10,
            },
        ]
    }
    out = cli("limits").out
    assert "600 in 60 s" in out
    assert "each key of" in out
