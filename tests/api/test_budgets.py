"""What is held at once for those who ask, of bodies and of answers: each may have what one may, and all together no more than there is."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlencode

import httpx
import msgspec
import pytest
from starlette.types import ASGIApp, Message

from lateshift import Flow, Permanent
from lateshift.api.application import make_api
from lateshift.api.bounds import (
    BODIES_OF_TOKEN,
    KNOWN_BODIES,
    LARGE_ANSWER,
    PROBLEM_LIMIT,
    QUESTION_LIMIT,
    SIGN_IN_LIMIT,
    SMALL_BODY,
    UNKNOWN_BODIES,
    UNKNOWN_OF_ADDRESS,
    UNREAD_ANSWERS,
    UNREAD_OF_TOKEN,
    Bounds,
)
from lateshift.dashboard.site import Site
from lateshift.model.access import Scope
from lateshift.model.job import State
from lateshift.operating.schedule_making import add
from lateshift.testing import Kit
from tests.api.asking import LOCAL, asking, token_of
from tests.api.shop import Shop
from tests.dashboard.browsing import OWN, Browser

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
START = "/v1/tasks/thumbnail/jobs"
LISTED = "/v1/schedules?limit=200"
LARGE = 300_000  # bytes
HELD = 100_000


class Call:
    """One request, whose body comes and whose answer is read as far as the test says."""

    def __init__(
        self, api: ASGIApp, method: str, path: str, token: str, parts: Sequence[bytes] = (), address: str = "127.0.0.1", *, key: str = "",
    ) -> None:  # fmt: skip
        self.sent: list[Message] = []
        self.reads = asyncio.Event()
        self.ends = asyncio.Event()
        self._parts = list(parts)
        self._stands = asyncio.Event()  # it waits for more, or for its client to read
        raw = [
            (b"host", b"127.0.0.1"),
            (b"authorization", b"Bearer " + token.encode()),
            (b"content-type", b"application/json"),
        ]
        if key:
            raw.append((b"idempotency-key", key.encode()))
        path, _, query = path.partition("?")
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path,
            "raw_path": path.encode(), "query_string": query.encode(), "root_path": "", "scheme": "http", "headers": raw,
            "client": (address, 50000), "server": ("127.0.0.1", 8642),
        }  # fmt: skip
        self._task = asyncio.ensure_future(api(scope, self._receive, self._send))

    async def _receive(self) -> Message:
        if self._parts:
            return {"type": "http.request", "body": self._parts.pop(0), "more_body": True}
        if not self.ends.is_set():
            self._stands.set()
        await self.ends.wait()
        return {"type": "http.request", "body": b"", "more_body": False}

    async def _send(self, message: Message) -> None:
        self.sent.append(message)
        if message["type"] == "http.response.body" and message.get("more_body", False):
            self._stands.set()
            await self.reads.wait()

    async def under_way(self) -> "Call":
        stands = asyncio.ensure_future(self._stands.wait())
        await asyncio.wait({stands, self._task}, return_when=asyncio.FIRST_COMPLETED)
        stands.cancel()
        assert not self._task.done(), self.problem
        return self

    async def answered(self) -> "Call":
        self.ends.set()
        self.reads.set()
        await self._task
        return self

    async def unread(self) -> "Call":
        """Its body is whole, and a part of its answer was sent."""
        self.ends.set()
        return await self.under_way()

    async def gone(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent[1:])

    @property
    def problem(self) -> tuple[int, str]:
        return self.status, msgspec.json.decode(self.body)["type"].rpartition(":")[
            2
        ] if self.status >= 400 else ""


def tokens(kit: Kit, *scopes: Scope) -> list[str]:
    return [token_of(kit.app, name, list(scopes)) for name in ("ann", "bob", "eve")]


@pytest.mark.anyio
async def test_large_bodies_of_those_who_are_known_share_a_budget_and_small_ones_are_taken(kit: Kit) -> None:
    api = make_api(kit.app, bounds=Bounds(known_bodies=2 * LARGE, bodies_of_token=LARGE + LARGE // 2))
    ann, bob, eve = tokens(kit, Scope.ENQUEUE)

    def sends(token: str, parts: Sequence[bytes]) -> Call:
        return Call(api, "POST", START, token, parts)

    part, most = b" " * (LARGE - 1_000), Bounds()
    first = await sends(ann, [part]).under_way()
    more = await sends(ann, [part]).answered()
    assert (more.problem, more.headers[b"retry-after"]) == ((429, "bodies-of-token"), b"1")
    second = await sends(bob, [part]).under_way()
    full = await sends(eve, [part]).answered()
    assert (full.problem, full.headers[b"retry-after"]) == ((503, "bodies-full"), b"1")
    assert full.headers[b"connection"] == b"close"
    letters = await sends(eve, [b" "] * (SMALL_BODY // 60)).answered()  # each costs more than itself
    assert letters.problem == (503, "bodies-full")
    for token in (ann, bob, eve):
        small = await sends(
            token, [b'{"arguments": {"path": "', b"a" * (SMALL_BODY - 1_000), b'"}}']
        ).answered()
        assert small.status == 202
    assert (await first.answered()).status == 422
    await second.gone()
    for _ in range(3):  # what was answered is given back, and what nobody waits for any more
        assert (await sends(eve, [part]).answered()).status == 422
    assert (most.known_bodies, most.bodies_of_token) == (KNOWN_BODIES, BODIES_OF_TOKEN)


@pytest.mark.anyio
@pytest.mark.parametrize("proxied", [False, True], ids=["asked directly", "behind a proxy"])
async def test_one_stranger_has_half_of_what_is_held_for_strangers_and_small_bodies_are_taken_all_the_while(
    kit: Kit, proxied: bool
) -> None:
    @kit.app.on_webhook("own", verify=lambda headers, body, now: "")
    @kit.app.task
    def other(event: Any) -> None: ...

    peers = [ip_network("10.0.0.0/8")] if proxied else ()
    api = make_api(kit.app, peers=peers, bounds=Bounds(unknown_bodies=2 * LARGE, unknown_of_address=LARGE))

    def sends(address: str, size: int) -> Call:
        return Call(api, "POST", "/hooks/own", "", [b"a" * (size - 1_000)], address)

    most, mine, other_one = Bounds(), "10.0.0.1", "10.0.0.2"
    first = await sends(mine, LARGE).under_way()
    more = sends(mine, LARGE)
    if proxied:  # it may be anybody's
        await more.under_way()
    else:
        assert (await more.answered()).problem == (429, "bodies-of-address")
        assert (more.headers[b"retry-after"], more.headers[b"connection"]) == (b"1", b"close")
        more = await sends(other_one, LARGE).under_way()
    third = "10.0.0.3"
    assert (await sends(third, LARGE).answered()).problem == (503, "bodies-full")
    for address in (mine, other_one, third):
        small = await sends(address, SMALL_BODY).answered()
        assert small.problem == (401, "signature-invalid")  # it was read
    await first.gone()
    await more.answered()
    for _ in range(3):  # what was answered is given back, and what nobody waits for any more
        assert (await sends(mine, LARGE).answered()).problem == (401, "signature-invalid")
    assert (most.unknown_bodies, most.unknown_of_address) == (UNKNOWN_BODIES, UNKNOWN_OF_ADDRESS)
    assert UNKNOWN_OF_ADDRESS == UNKNOWN_BODIES // 2
    assert SIGN_IN_LIMIT < SMALL_BODY


@pytest.mark.anyio
async def test_whoever_signs_in_is_let_in_while_strangers_hold_all_there_is_for_them(kit: Kit) -> None:
    api = Site(kit.app, bounds=Bounds(unknown_bodies=0)).application
    token = token_of(kit.app, "ann", [Scope.READ])
    form = urlencode({"token": token, "next": "/" + "a" * (SIGN_IN_LIMIT - 200)})
    transport = httpx.ASGITransport(api, client=("127.0.0.1", 50000))
    async with httpx.AsyncClient(transport=transport, base_url=LOCAL) as client:
        answer = await client.post("/sign-in", content=form, headers=OWN | FORM)
    assert answer.status_code == 303


def test_forms_of_pages_share_the_budget_of_bodies(browser: Browser, kit: Kit) -> None:
    browser.site = Site(kit.app, bounds=Bounds(known_bodies=LARGE))
    browser.client._transport.app = browser.site.application  # type: ignore[attr-defined]
    browser.sign_in()
    browser.look("/queues/images")
    for _ in range(3):  # what was answered is given back
        assert browser.send("/queues/images/pause", {"more": "a" * (LARGE - 1_000)}).status_code == 422
        browser.look("/queues/images")
    full = browser.send("/queues/images/pause", {"more": "a" * LARGE})
    assert (full.status_code, full.headers["retry-after"]) == (503, "1")
    assert "large bodies" in full.text
    browser.look("/queues/images")
    assert browser.send("/queues/images/pause").status_code == 303


@pytest.fixture
def listing(kit: Kit, shop: Shop) -> int:
    """How many bytes a page has that is large."""
    for number in range(2):
        add(
            kit.app.store,
            shop.thumbnail.options(),
            f"s{number}",
            {"cron": "0 0 1 1 *"},
            {"path": "a" * 200_000},
            by="ann",
        )
    return 400_000


@pytest.mark.anyio
async def test_large_answers_that_are_not_read_share_a_budget_and_small_ones_are_given(
    kit: Kit, listing: int
) -> None:
    bounds = Bounds(unread_answers=5 * listing // 2, unread_of_token=3 * listing // 2)
    api = make_api(kit.app, bounds=bounds)
    ann, bob, eve = tokens(kit, Scope.READ)

    def asks(token: str, path: str = LISTED) -> Call:
        return Call(api, "GET", path, token)

    first = await asks(ann).under_way()
    held = sum(len(message.get("body", b"")) for message in first.sent)
    assert 0 < held <= LARGE_ANSWER  # the rest is not handed on before this was read
    more = await asks(ann).answered()
    assert (more.problem, more.headers[b"retry-after"]) == ((429, "answers-of-token"), b"1")
    second = await asks(bob).under_way()
    full = await asks(eve).answered()
    assert (full.problem, full.headers[b"retry-after"]) == ((503, "answers-full"), b"1")
    assert (await asks(eve, "/v1/queues").answered()).status == 200
    await first.answered()
    assert int(first.headers[b"content-length"]) == len(first.body) > listing
    assert len(msgspec.json.decode(first.body)["schedules"]) == 2
    await second.gone()
    for _ in range(4):  # what was read is given back, and what nobody waits for any more
        whole = await asks(eve).answered()
        assert (whole.status, whole.body) == (200, first.body)
    assert (Bounds().unread_answers, Bounds().unread_of_token) == (UNREAD_ANSWERS, UNREAD_OF_TOKEN)


@pytest.fixture
def held(kit: Kit) -> list[str]:
    """The paths of two steps that are held, and have arguments so large that twice as much is a large answer which can be kept."""

    @kit.app.task
    def fail(text: str) -> None:
        raise Permanent("no")

    @kit.app.workflow(on_failure="hold")
    async def wide(flow: Flow) -> None:
        await flow.step(fail, "a" * HELD)

    runs = [wide.enqueue() for _ in range(2)]
    kit.drain()
    return [f"/v1/workflows/{run.id}/steps/1/resubmit" for run in runs]


@pytest.mark.anyio
async def test_large_answers_to_what_was_done_are_told_and_counted_and_those_to_what_was_not_may_be_refused(
    kit: Kit, held: list[str]
) -> None:
    bounds = Bounds(unread_answers=7 * HELD, unread_of_token=3 * HELD)
    api = make_api(kit.app, bounds=bounds)
    ann, bob, eve = tokens(kit, Scope.OPERATE, Scope.ENQUEUE)

    def asks(token: str, *, preview: bool = True, key: str = "") -> Call:
        body = msgspec.json.encode({"preview": preview})
        return Call(api, "POST", held[preview], token, [body], key=key)

    shown = await asks(ann).unread()
    assert 0 < sum(len(message.get("body", b"")) for message in shown.sent) <= LARGE_ANSWER
    assert (await asks(ann).answered()).problem == (429, "answers-of-token")
    done = await asks(ann, preview=False, key="k").unread()  # though no more than the preview may be
    assert done.status == 200
    more = await asks(bob).unread()
    assert (await asks(eve).answered()).problem == (503, "answers-full")
    assert (await asks(ann, preview=False, key="k").answered()).problem == (429, "answers-of-token")
    pause = "/v1/queues/images/pause"
    assert (await Call(api, "POST", pause, ann).answered()).problem == (429, "answers-of-token")
    started = await Call(api, "POST", START, ann, [b'{"arguments": {"path": "a"}}']).answered()
    assert started.status == 202
    paused = await Call(api, "POST", pause, bob).answered()
    assert msgspec.json.decode(paused.body)["changed"] is True  # it was not before
    for call in (shown, done, more):
        assert len(msgspec.json.decode((await call.answered()).body)["after"]["text"]) == HELD
    for _ in range(4):  # what was read is given back
        again = await asks(ann, preview=False, key="k").answered()
        assert (again.body, again.headers[b"idempotency-replayed"]) == (done.body, b"true")
    assert (await Call(api, "POST", pause, ann).answered()).status == 200


def few(browser: Browser, kit: Kit, unread: int) -> None:
    """One who is signed in where so much may be unread."""
    browser.site = Site(kit.app, bounds=Bounds(unread_of_token=unread))
    browser.client._transport.app = browser.site.application  # type: ignore[attr-defined]
    browser.client.cookies.clear()
    browser.sign_in()


def test_pages_that_ask_first_and_refused_forms_are_of_the_budget_of_answers(
    browser: Browser, kit: Kit, shop: Shop
) -> None:
    run = shop.order.enqueue(1)
    kit.drain()
    at = f"/workflows/{run.id}"
    asked = (f"{at}/undo", {"question": "Undo it?", "why": '"' * 50_000}, 200)
    refused = (f"{at}/signal", {"name": "picked", "data": '"' * 50_000}, 422)
    for unread, full in ((UNREAD_OF_TOKEN, False), (LARGE_ANSWER, True)):
        few(browser, kit, unread)
        for path, form, status in (asked, refused):
            for _ in range(3):
                browser.look(at)
                answer = browser.send(path, form)
                assert answer.status_code == (429 if full else status)
                assert ("large answers" in answer.text) is full
    assert run.view().state is State.SCHEDULED


def test_a_page_that_asks_first_repeats_no_more_than_there_is_room_for(
    browser: Browser, kit: Kit, shop: Shop
) -> None:
    job = shop.thumbnail.enqueue("cat.png")
    browser.sign_in()
    for name, value in (
        ("more", "x" * QUESTION_LIMIT),
        ("x" * QUESTION_LIMIT, "more"),
        ("verb", "x" * QUESTION_LIMIT),
    ):
        browser.look(f"/jobs/{job.id}")
        answer = browser.send(f"/jobs/{job.id}/cancel", {"question": "Cancel?", name: value})
        assert (answer.status_code, "Nothing was done" in answer.text) == (413, True)
        assert len(answer.content) < LARGE_ANSWER
    browser.look(f"/jobs/{job.id}")
    fits = {"question": "Cancel?", "more": "x" * (QUESTION_LIMIT - 100)}
    assert browser.send(f"/jobs/{job.id}/cancel", fits).status_code == 200
    assert job.view().state is State.READY


def test_a_problem_says_no_more_than_there_is_room_for_whatever_was_sent(kit: Kit) -> None:
    with asking(kit.app, make_api(kit.app)) as web:
        for path, body in (
            ("/v1/queues/images/pause", {"x" * 900_000: 1}),
            (START, {"arguments": {"path": "a", '"' * 400_000: 1}}),
        ):
            answer = web("POST", path, body)
            said = answer.json()
            assert (answer.status_code, said["detail"][-1], said["field"][-1]) == (422, "…", "…")
            assert max(len(said["detail"]), len(said["field"])) == PROBLEM_LIMIT


def test_large_pages_are_of_the_budget_of_answers(browser: Browser, kit: Kit, listing: int) -> None:
    few = listing // 4
    for bounds, told in (
        (Bounds(), 200),
        (Bounds(unread_of_token=few), 429),
        (Bounds(unread_answers=few), 503),
    ):
        browser.site = Site(kit.app, bounds=bounds)
        browser.client._transport.app = browser.site.application  # type: ignore[attr-defined]
        browser.sign_in()
        for _ in range(3):  # what was read is given back
            answer = browser.ask("GET", "/schedules/s0")
            assert (answer.status_code, answer.headers.get("retry-after")) == (
                told,
                None if told == 200 else "1",
            )
        assert ("large answers" in answer.text) is (told != 200)
        assert browser.ask("GET", "/queues").status_code == 200
