"""Sessions, limits and tenants as a program uses them, with a real worker."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from lateshift import (
    Lateshift,
    LateshiftError,
    Limit,
    Permanent,
    Retry,
    State,
    acheckpoint,
    last_checkpoint,
    session,
)
from lateshift.errors import SequenceUsed, StateInvalid
from lateshift.model.guard import Rule
from lateshift.model.job import JobFilter
from lateshift.runtime.aside import aside
from lateshift.worker.program import find_app
from tests.walks.waiting import until

pytestmark = pytest.mark.anyio

SOON = timedelta(seconds=20)
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
async def app(store_url: str) -> AsyncIterator[Lateshift]:
    app = Lateshift("shop", store=store_url)
    yield app
    app.close()


async def test_a_session_runs_in_order_and_keeps_its_state_from_one_job_to_the_next(app: Lateshift) -> None:
    ran: dict[str, list[int]] = {"ana": [], "bob": []}

    @app.task
    async def add(name: str, number: int) -> int:
        total: int = session.get_state(0, int) + number
        session.set_state(total)
        ran[name].append(number)
        assert session.name == name
        return total

    @app.task
    def close(name: str) -> int:
        ran[name].append(-1)
        return session.get_state(0)

    jobs = [await add.options(session=name).aenqueue(name, n) for n in range(10) for name in ran]
    ends = [await close.options(session=name).aenqueue(name) for name in ran]
    async with app.running():
        assert [await job.aresult(SOON) for job in ends] == [45, 45]
    assert ran == {name: [*range(10), -1] for name in ran}
    assert [await job.aresult(SOON) for job in jobs[-2:]] == [45, 45]


async def test_what_an_attempt_sets_is_as_if_never_written_when_it_fails(app: Lateshift) -> None:
    seen: list[str | None] = []

    @app.task(retry=Retry(attempts=3, base=timedelta(milliseconds=1)))
    async def flaky(fail: bool) -> None:
        seen.append(session.get_state())
        session.set_state("set")
        assert session.get_state() == "set"
        if fail and len(seen) < 3:
            raise RuntimeError("not yet")

    async with app.running():
        await (await flaky.options(session="s").aenqueue(True)).aresult(SOON)
        await (await flaky.options(session="s").aenqueue(False)).aresult(SOON)
    assert seen == [None, None, None, "set"]


async def test_a_state_that_is_not_of_the_type_asked_for_is_said_in_words(app: Lateshift) -> None:
    caught: list[str] = []

    @app.task
    async def work() -> None:
        session.set_state({"balance": "much"})
        await acheckpoint("much")
        for read in (session.get_state, last_checkpoint):
            for wanted in (int, dict[str, int]):
                with pytest.raises(StateInvalid) as error:
                    read(0, type=wanted)
                caught.append(str(error.value))

    async with app.running():
        await (await work.options(session="ana").aenqueue()).aresult(SOON)
    remedy = "Give a type that takes what is kept, or leave it out."
    of_session = "The state of the session 'ana' does not fit the type that it is to be read as"
    of_checkpoint = "The checkpoint does not fit the type that it is to be read as"
    assert caught == [
        f"{of_session}: expected `int`, got `object`. {remedy}",
        f"{of_session}: at '[...]', expected `int`, got `str`. {remedy}",
        f"{of_checkpoint}: expected `int`, got `str`. {remedy}",
        f"{of_checkpoint}: expected `object`, got `str`. {remedy}",
    ]


async def test_a_job_in_no_session_has_no_state(app: Lateshift) -> None:
    caught: list[str] = []

    @app.task
    async def work() -> None:
        try:
            session.set_state(1)
        except LateshiftError as error:
            caught.append(str(error))

    async with app.running():
        await (await work.aenqueue()).aresult(SOON)
    assert "in no session" in caught[0]


async def test_a_dead_letter_holds_its_session_until_it_is_resubmitted(app: Lateshift) -> None:
    broken = True
    ran: list[int] = []

    @app.task
    async def step(number: int) -> None:
        if broken and number == 1:
            raise Permanent("the vendor is closed")
        ran.append(number)

    jobs = [await step.options(session="order:7", on_dead="hold").aenqueue(n) for n in range(3)]
    async with app.running():
        await until(jobs[1].aview, lambda view: view.state is State.DEAD)
        assert (ran, jobs[2].state) == ([0], State.BLOCKED)
        broken = False
        app.client.resubmit([jobs[1].id])
        await jobs[2].aresult(SOON)
    assert ran == [0, 1, 2]


async def test_numbered_jobs_run_by_their_numbers(app: Lateshift) -> None:
    ran: list[int] = []

    @app.task
    async def step(number: int) -> None:
        ran.append(number)

    jobs = [await step.options(session="s", sequence=n).aenqueue(n) for n in (2, 3, 1)]
    with pytest.raises(SequenceUsed):
        await step.options(session="s", sequence=3).aenqueue(3)
    async with app.running():
        for job in jobs:
            await job.aresult(SOON)
    assert ran == [1, 2, 3]


async def test_no_more_run_than_the_limits_say(app: Lateshift) -> None:
    now = {"vendor:a": 0, "vendor:b": 0, "task": 0}
    most = dict.fromkeys(now, 0)
    app.limit("vendor", Limit(concurrency=2))

    async def held(*names: str) -> None:
        for name in names:
            now[name] += 1
            most[name] = max(most[name], now[name])
        await asyncio.sleep(0.002)
        for name in names:
            now[name] -= 1

    @app.task
    async def call(vendor: str) -> None:
        await held(vendor)

    @app.task(limit=Limit(concurrency=3))
    async def few() -> None:
        await held("task")

    jobs = [
        await call.options(limit_key=key).aenqueue(key) for _ in range(10) for key in ("vendor:a", "vendor:b")
    ]
    jobs += [await few.aenqueue() for _ in range(12)]
    async with app.running():
        for job in jobs:
            await job.aresult(SOON)
    assert most == {"vendor:a": 2, "vendor:b": 2, "task": 3}
    assert app.store.rules.list() == [Rule("key", "vendor", 2), Rule("task", "few", 3)]


async def test_a_limit_that_the_code_gives_up_is_withdrawn_when_its_worker_starts(
    app: Lateshift, store_url: str
) -> None:
    @app.task(name="few", limit=Limit(concurrency=1))
    async def before() -> None: ...

    async with app.running():
        await (await before.aenqueue()).aresult(SOON)
    later = Lateshift("shop", store=store_url)

    @later.task(name="few")
    async def after() -> None: ...

    async with later.running():
        await (await after.aenqueue()).aresult(SOON)
    assert later.store.rules.list() == []
    later.close()


async def test_a_tenant_with_much_waiting_delays_another_by_a_round(app: Lateshift) -> None:
    order: list[str] = []

    @app.task(limit=Limit(concurrency=1))
    async def work(tenant: str) -> None:
        order.append(tenant)

    await app.aenqueue_many(work.options(tenant="acme").call("acme") for _ in range(200))
    small = await work.options(tenant="bob").aenqueue("bob")
    async with app.running():
        await small.aresult(SOON)
    assert order.index("bob") <= 2


async def test_a_rate_spaces_the_starts(app: Lateshift) -> None:
    loop = asyncio.get_running_loop()
    starts: list[float] = []

    @app.task(limit=Limit(rate="100/s", burst=2))
    async def call() -> None:
        starts.append(loop.time())

    jobs = [await call.aenqueue() for _ in range(12)]
    async with app.running():
        for job in jobs:
            await job.aresult(SOON)
    assert starts[-1] - starts[0] >= 0.08  # ten tokens must have grown, but for the moment of the lease


async def test_the_example_books_in_order(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATESHIFT_STORE", store_url)
    example = find_app(str(EXAMPLES / "sessions.py"))
    example.settings = replace(example.settings, store=store_url)
    await example.start()
    async with example.running():
        views = await until(
            lambda: aside(example.store.reports.jobs, JobFilter(), 100),
            lambda views: len(views) == 60 and all(view.state is State.COMPLETED for view in views),
        )
    kept = {
        view.name: msgspec.json.decode(view.state or b"")
        for view in example.store.sessions.list(held=False, limit=9)
    }
    assert kept == {f"account:{n}": sum(range(n, 30, 3)) for n in range(3)}
    assert len(views) == 60
    example.close()


async def test_no_more_of_a_queue_run_than_its_limit_says(app: Lateshift) -> None:
    now = most = 0
    app.queue("mail", limit=Limit(concurrency=2))

    @app.task(queue="mail")
    async def send() -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.002)
        now -= 1

    @app.task
    async def other() -> None:
        await send.function()

    jobs = [await send.aenqueue() for _ in range(8)]
    jobs += [await other.options(queue="mail").aenqueue() for _ in range(8)]
    async with app.running():
        for job in jobs:
            await job.aresult(SOON)
    assert most == 2
    assert app.store.rules.list() == [Rule("queue", "mail", 2)]
