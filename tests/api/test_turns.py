"""Requests that look at a lot wait for their turn, and keep nobody else waiting."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from threading import Event
from typing import Any
from uuid import UUID

import httpx
import pytest

from lateshift.api.bounds import DEAR_AT_ONCE, DEAR_OF_TOKEN
from lateshift.api.problem import Refused
from lateshift.api.route import PUBLIC, Asked, Done, Reach, Route
from lateshift.api.routes.all import ROUTES
from lateshift.api.turns import Turns
from lateshift.dashboard.pages.all import PAGES
from lateshift.dashboard.site import Site
from lateshift.model.access import Scope
from lateshift.store import searching
from lateshift.testing import Kit
from tests.api.asking import LOCAL, SENDS, token_of
from tests.api.shop import Shop

ANN, BOB, EVE = (UUID(int=number) for number in (1, 2, 3))
DEAR = {
    "GET /v1/dead-letters", "POST /v1/dead-letters/preview", "POST /v1/dead-letters/resubmit", "POST /v1/dead-letters/discard/preview",
    "POST /v1/dead-letters/discard", "POST /v1/bulk/preview", "POST /v1/bulk", "GET /v1/jobs", "GET /v1/overview", "GET /v1/history",
    "GET /v1/queues", "GET /v1/workflows", "POST /v1/workflows/resume", "GET /v1/audit",
    "GET /v1/refused", "GET /v1/schedules", "GET /v1/sessions", "GET /v1/upcoming",
}  # fmt: skip


JUDGED = {
    "POST /v1/workflows/{id}/resume", "POST /v1/workflows/{id}/undo", "POST /v1/workflows/{id}/cancel",
    "POST /v1/workflows/{id}/steps/{step}/resubmit", "POST /v1/jobs/{id}/cancel", "POST /v1/jobs/{id}/resubmit",
}  # fmt: skip


class Work:
    """Counts what is under way, and ends it when it is told to."""

    def __init__(self) -> None:
        self.begun: list[UUID] = []
        self.ends: list[asyncio.Future[None]] = []

    def of(self, whose: UUID) -> Callable[[], Coroutine[Any, Any, None]]:
        async def work() -> None:
            self.begun.append(whose)
            self.ends.append(asyncio.get_running_loop().create_future())
            await self.ends[-1]

        return work

    async def end(self, number: int) -> None:
        self.ends[number].set_result(None)
        await settled()


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.anyio
async def test_so_many_are_under_way_and_tokens_take_turns() -> None:
    turns, work = Turns(2, 5), Work()
    asking = [
        asyncio.create_task(turns.run(whose, work.of(whose))) for whose in (EVE, EVE, EVE, EVE, ANN, BOB, ANN)
    ]
    await settled()
    assert work.begun == [EVE, EVE]
    for number in range(len(asking)):
        await work.end(number)
        assert len(work.begun) == min(number + 3, len(asking))
    assert work.begun == [EVE, EVE, EVE, ANN, BOB, EVE, ANN]
    await asyncio.gather(*asking)


@pytest.mark.anyio
async def test_a_token_that_asks_for_too_much_at_once_is_told_so_and_no_other_is() -> None:
    turns, work = Turns(1, 2), Work()
    asking = [asyncio.create_task(turns.run(EVE, work.of(EVE))) for _ in range(2)]
    await settled()
    with pytest.raises(Refused) as refused:
        await turns.run(EVE, work.of(EVE))
    assert (refused.value.problem.status, refused.value.headers) == (429, {"Retry-After": "1"})
    asking.append(asyncio.create_task(turns.run(ANN, work.of(ANN))))
    await settled()
    for number in range(3):
        await work.end(number)
    await asyncio.gather(*asking)
    asking.append(asyncio.create_task(turns.run(EVE, work.of(EVE))))  # and comes again
    await settled()
    await work.end(3)
    await asking[-1]


@pytest.mark.anyio
async def test_who_is_late_while_it_waits_leaves_its_place_and_what_was_begun_keeps_it_until_it_ends() -> (
    None
):
    turns, work = Turns(1, 2), Work()
    begun, late, next_ = (asyncio.create_task(turns.run(who, work.of(who))) for who in (EVE, ANN, BOB))
    await settled()
    begun.cancel()
    late.cancel()
    await settled()
    assert work.begun == [EVE]  # nobody hears of it, and its thread is not free
    await work.end(0)
    assert work.begun == [EVE, BOB]
    await work.end(1)
    await next_
    again = [asyncio.create_task(turns.run(EVE, work.of(EVE))) for _ in range(2)]
    await settled()
    await work.end(2)
    await work.end(3)
    await asyncio.gather(*again)


@pytest.mark.anyio
async def test_a_turn_that_comes_to_one_who_leaves_in_that_moment_is_passed_on() -> None:
    turns, work = Turns(1, 2), Work()
    first, late, next_ = (asyncio.create_task(turns.run(who, work.of(who))) for who in (EVE, ANN, BOB))
    await settled()
    work.ends[0].add_done_callback(lambda _: asyncio.get_running_loop().call_soon(late.cancel))
    await work.end(0)
    await settled()
    await first
    await work.end(len(work.ends) - 1)
    await next_


def test_what_looks_at_a_lot_says_so() -> None:
    assert {f"{route.method} {route.path}" for route in ROUTES if route.dear} >= DEAR
    assert {f"{route.method} {route.path}" for route in ROUTES if route.judges is not None} == JUDGED
    assert {page.path for page in PAGES if page.dear} >= {
        "/",
        "/dead-letters",
        "/jobs",
        "/queues",
        "/audit",
        "/schedules",
        "/triggers/{name:path}",
    }
    for page in PAGES:
        assert page.route.dear is page.dear


@pytest.mark.parametrize("public", [True, False])
def test_what_looks_at_a_lot_has_a_token_and_a_thread(public: bool) -> None:
    def on_a_thread(asked: Asked) -> Done:
        """Looks."""
        raise AssertionError

    async def on_the_loop(asked: Asked) -> Done:
        """Looks."""
        raise AssertionError

    route = Route(
        method="GET", path="/v1/x", handler=on_a_thread if public else on_the_loop, gives=Done, dear=True,
        scope=PUBLIC if public else Scope.READ, reach=None if public else Reach.ALL,
    )  # fmt: skip
    with pytest.raises(TypeError, match="asked for by a token, and runs on a thread"):
        route.check()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """Searches for jobs in either store end when this is set."""
    end, search = Event(), searching.search

    def slow(*what: Any, **more: Any) -> Any:
        assert end.wait(60)
        return search(*what, **more)

    monkeypatch.setattr(searching, "search", slow)
    yield end
    end.set()


@pytest.mark.anyio
async def test_one_token_that_looks_at_a_lot_keeps_nobody_else_waiting(
    kit: Kit, shop: Shop, held: Event
) -> None:
    job = shop.send.enqueue("ann")
    eve, ann = token_of(kit.app, "eve", [Scope.READ]), token_of(kit.app, "ann", [Scope.ADMIN])
    transport = httpx.ASGITransport(Site(kit.app).application, client=("127.0.0.1", 50000))
    async with httpx.AsyncClient(transport=transport, base_url=LOCAL, timeout=None) as client:

        def ask(method: str, path: str, token: str, body: Any = None) -> Awaitable[httpx.Response]:
            return client.request(method, path, json=body, headers={"Authorization": f"Bearer {token}"})

        hers = [asyncio.ensure_future(ask("GET", "/v1/jobs", eve)) for _ in range(DEAR_OF_TOKEN + 24)]
        first = asyncio.as_completed(hers)
        refused = [await next(first) for _ in range(24)]
        assert {(each.status_code, each.headers["retry-after"]) for each in refused} == {(429, "1")}
        mine = asyncio.ensure_future(ask("GET", "/v1/jobs", ann))
        assert (await ask("GET", f"/v1/jobs/{job.id}", ann)).status_code == 200
        started = await ask("POST", "/v1/tasks/send/jobs", ann, {"arguments": {"to": "bob"}})
        assert started.status_code == 202
        assert (await ask("POST", "/v1/queues/mail/pause", ann)).status_code == 200
        assert (await ask("GET", "/health/ready", ann)).status_code == 200
        assert not mine.done()
        held.set()
        assert (await mine).status_code == 200
        answers = await asyncio.gather(*hers)
        assert [each.status_code for each in answers].count(200) == DEAR_OF_TOKEN


@pytest.mark.anyio
async def test_what_a_token_for_some_queues_does_to_a_run_waits_for_its_turn_and_nothing_else_does(
    kit: Kit, shop: Shop, held: Event
) -> None:
    runs = [str(shop.order.enqueue(number).id) for number in (1, 2)]
    await kit.adrain()
    jobs = [str(shop.thumbnail.enqueue(path).id) for path in ("cat.png", "dog.png")]
    eve = token_of(kit.app, "eve", [Scope.READ])
    some, every = token_of(kit.app, "some", SENDS, ("orders", "images")), token_of(kit.app, "every", SENDS)
    transport = httpx.ASGITransport(Site(kit.app).application, client=("127.0.0.1", 50000))
    async with httpx.AsyncClient(transport=transport, base_url=LOCAL, timeout=None) as client:

        def ask(path: str, token: str, body: Any = None) -> asyncio.Future[httpx.Response]:
            method = "GET" if path == "/v1/jobs" else "POST"
            bearer = {"Authorization": f"Bearer {token}"}
            return asyncio.ensure_future(client.request(method, path, json=body, headers=bearer))

        hers = [ask("/v1/jobs", eve) for _ in range(DEAR_OF_TOKEN + 1)]
        await asyncio.wait(hers, return_when=asyncio.FIRST_COMPLETED)  # all others are under way, or wait
        waiting = [
            ask(f"/v1/workflows/{runs[0]}/resume", some), ask(f"/v1/workflows/{runs[0]}/undo", some, {"why": "a test"}),
            ask(f"/v1/workflows/{runs[0]}/cancel", some), ask(f"/v1/workflows/{runs[0]}/steps/1/resubmit", some, {}),
            ask(f"/v1/jobs/{runs[0]}/cancel", some), ask(f"/v1/jobs/{runs[0]}/resubmit", some, {}),
        ]  # fmt: skip
        for path, token in (
            (f"jobs/{jobs[0]}/cancel", some), (f"jobs/{jobs[1]}/cancel", every), (f"jobs/{jobs[0]}/resubmit", some),
            (f"workflows/{runs[1]}/cancel", every), (f"jobs/{runs[1]}/cancel", every),
        ):  # fmt: skip
            assert (path, (await ask(f"/v1/{path}", token)).status_code) == (path, 200)
        assert not any(each.done() for each in waiting)
        held.set()
        answers = await asyncio.gather(*waiting)
        assert {each.status_code for each in answers} <= {200, 409}
        await asyncio.gather(*hers)


@pytest.mark.anyio
async def test_the_pages_are_under_the_same_bound(kit: Kit, shop: Shop, held: Event) -> None:
    eve = token_of(kit.app, "eve", [Scope.READ])
    transport = httpx.ASGITransport(Site(kit.app).application, client=("127.0.0.1", 50000))
    own = {"Sec-Fetch-Site": "same-origin", "Origin": LOCAL}
    async with httpx.AsyncClient(transport=transport, base_url=LOCAL, timeout=None) as client:
        assert (await client.post("/sign-in", data={"token": eve}, headers=own)).status_code == 303
        asking = [asyncio.ensure_future(client.get("/jobs")) for _ in range(DEAR_OF_TOKEN + 1)]
        [first], _ = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        assert first.result().status_code == 429
        api = await client.get("/v1/jobs", headers={"Authorization": f"Bearer {eve}"})
        assert api.status_code == 429  # the browsers of a token count as that token
        held.set()
        answers = await asyncio.gather(*asking)
        assert [each.status_code for each in answers].count(200) == DEAR_OF_TOKEN
        assert DEAR_AT_ONCE < DEAR_OF_TOKEN
