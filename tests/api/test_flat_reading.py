"""`lateshift serve` as a real process, on both stores: however large the things are that it lists, its memory stays flat."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from lateshift import Lateshift, Permanent
from lateshift.api.bounds import DEAR_AT_ONCE, PAGE_BYTES, PAGE_MOST
from lateshift.model.ids import new_job_id
from lateshift.model.triggering.trigger import Arrival, NewTrigger, Refused
from lateshift.operating.schedule_making import add
from lateshift.testing import testing
from lateshift.worker.current import session
from tests.api.test_flat_memory import GROWTH, Server, serving
from tests.api.test_flat_reads import peak

PROGRAM = """
from lateshift import Lateshift

app = Lateshift("shop")


@app.task(name="fall")
def fall(text: str) -> str: ...
"""
MANY = 100  # large things of each kind
RESUBMITTED = 200
LARGE = "é" * 120_000  # 240 kB
EVENT = b'["' + b"x" * 1_000_000 + b'"]'
AT_ONCE = 4  # readers
# So many pages are under way, each of which is there as it was read, as it is shown and as it is sent; before there was a bound it
# was 450 MiB and more.
MOST = DEAR_AT_ONCE * 8 * PAGE_BYTES + 64 * 2**20


def refuse_events(app: Lateshift) -> None:
    triggers = app.store.triggers
    triggers.declare(
        [NewTrigger(name="vendor", kind="webhook", about="a", task="keep")], app="x", whole=False
    )
    for number in range(MANY):
        refused = Refused(id=new_job_id(), raw=EVENT, rest=b'{"kind":"Message","seen":{}}', reason="no job")
        arrival = Arrival(event=f"{number:04}", refused=refused)
        assert triggers.receive("vendor", [arrival], keep=timedelta(days=1)) is not None


def make_schedules(app: Lateshift) -> None:
    for number in range(MANY):
        bound = app.tasks["keep"].options()
        add(app.store, bound, f"s{number:04}", {"cron": "0 0 1 1 *"}, {"text": LARGE}, by="ann")


def make_jobs(app: Lateshift) -> None:
    keep = app.tasks["keep"]
    app.enqueue_many(keep.call(LARGE) for _ in range(MANY))


def make_upcoming(app: Lateshift) -> None:
    later = app.tasks["keep"].options(delay=timedelta(days=1))
    for _ in range(MANY):
        later.enqueue(LARGE)


def make_dead(app: Lateshift) -> None:
    app.enqueue_many(app.tasks["fall"].call(LARGE) for _ in range(MANY))


def make_sessions(app: Lateshift) -> None:
    for number in range(MANY):
        app.tasks["remember"].options(session=f"s{number:04}", sequence=1).enqueue(LARGE)


def shop(url: str) -> Lateshift:
    app = Lateshift("shop", store=url)

    @app.task(name="keep")
    def keep(text: str) -> str:
        return text

    @app.task(name="fall")
    def fall(text: str) -> str:
        raise Permanent("it fell")

    @app.task(name="remember")
    def remember(text: str) -> None:
        session.set_state(text)

    return app


def stock(url: str) -> None:
    app = shop(url)
    with testing(app, store=url) as kit:
        for make in (refuse_events, make_schedules, make_sessions, make_upcoming, make_jobs, make_dead):
            make(app)
        kit.drain()


def most_of(server: Server, read: Callable[[], object]) -> int:
    """How much more memory than at its start it had at the most, while several read from it."""
    most = server.memory
    with ThreadPoolExecutor(AT_ONCE) as readers:
        under_way = [readers.submit(read) for _ in range(2 * AT_ONCE)]
        while not all(each.done() for each in under_way):
            most = max(most, server.memory)
        for each in under_way:
            each.result()
    return max(most, server.memory) - server.begun_with


def assert_flat(grown: dict[str, int]) -> None:
    print({path: f"{more / 2**20:.1f} MiB" for path, more in grown.items()})
    assert {path: more for path, more in grown.items() if more > MOST} == {}


@contextmanager
def signed_in(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.client.base_url, trust_env=False, timeout=60) as browser:
        form, own = {"token": server.token}, {"Sec-Fetch-Site": "same-origin"}
        assert browser.post("/sign-in", data=form, headers=own).status_code == 303
        yield browser


LISTINGS = {
    "/v1/refused": ("refused", MANY),
    "/v1/schedules": ("schedules", MANY),
    "/v1/sessions": ("sessions", MANY),
    "/v1/upcoming": ("jobs", MANY),
    "/v1/jobs": ("jobs", 4 * MANY),
    "/v1/dead-letters": ("groups", 1),
}
PAGES = (
    "/triggers/vendor", "/schedules?limit=200", "/queues/default", "/jobs?limit=200", "/dead-letters", "/dead-letters/{like}", "/",
)  # fmt: skip
PREVIEWS: dict[str, dict[str, Any]] = {
    "/v1/bulk/preview": {"action": "resubmit", "all": True},
    "/v1/dead-letters/preview": {"all": True},
    "/v1/dead-letters/preview with a change": {"all": True, "change": {"text": "short"}},
    "/v1/dead-letters/discard/preview": {"all": True},
}


def test_the_memory_of_a_server_stays_flat_while_large_things_are_listed(
    tmp_path: Path, store_url: str
) -> None:
    """Page by page, to the end: each is there once, and no page is larger than one may be."""
    stock(store_url)
    with serving(tmp_path, store_url, PROGRAM) as server:

        def read(path: str, key: str, count: int) -> None:
            found: list[str] = []
            cursor: str | None = ""
            while cursor is not None:
                asked = {"limit": str(PAGE_MOST)} | ({"cursor": cursor} if cursor else {})
                answer = server.client.get(path, params=asked)
                assert answer.status_code == 200, answer.text
                assert len(answer.content) < 2 * PAGE_BYTES
                page = answer.json()
                found += [str(each.get("id") or each.get("name") or each) for each in page[key]]
                cursor = page["next"]
            assert len(found) == len(set(found)) == count

        grown = {
            path: most_of(server, partial(read, path, key, count)) for path, (key, count) in LISTINGS.items()
        }
    assert_flat(grown)


def test_the_memory_of_a_server_stays_flat_while_people_look_at_large_things(
    tmp_path: Path, store_url: str
) -> None:
    stock(store_url)
    with serving(tmp_path, store_url, PROGRAM) as server, signed_in(server) as browser:
        [group] = server.client.get("/v1/dead-letters").json()["groups"]

        def read(path: str) -> None:
            answer = browser.get(path.format(like=group["fingerprint"]))
            assert answer.status_code == 200, answer.text
            assert len(answer.content) < PAGE_BYTES

        grown = {path: most_of(server, partial(read, path)) for path in PAGES}
    assert_flat(grown)


def test_the_memory_of_a_server_stays_flat_while_many_large_jobs_are_chosen(
    tmp_path: Path, store_url: str
) -> None:
    """By a filter, and by their ids."""
    stock(store_url)
    with serving(tmp_path, store_url, PROGRAM) as server:

        def read(path: str, body: dict[str, Any]) -> list[str]:
            answer = server.client.post(path.partition(" ")[0], json=body)
            assert answer.status_code == 200, answer.text
            assert len(answer.content) < PAGE_BYTES
            told = answer.json()
            kept = sum(each["count"] for each in told.get("kept", ()))
            assert len(told["ids"]) + kept == MANY, told
            ids: list[str] = told["ids"]
            return ids

        ids = read("/v1/bulk/preview", PREVIEWS["/v1/bulk/preview"])
        grown = {}
        for path, body in PREVIEWS.items():
            named = {name: value for name, value in body.items() if name != "all"} | {"ids": ids}
            grown[path] = most_of(server, partial(read, path, body))
            grown[f"{path}, named"] = most_of(server, partial(read, path, named))
    assert_flat(grown)


def test_the_memory_of_a_server_stays_flat_while_many_large_jobs_are_resubmitted(
    tmp_path: Path, store_url: str
) -> None:
    """What nobody changes is moved where it is kept, and never comes to the server."""
    app = shop(store_url)
    with testing(app, store=store_url) as kit:
        for _ in range(RESUBMITTED // MANY):
            make_dead(app)
        kit.drain()
    with serving(tmp_path, store_url, PROGRAM) as server:
        ids = server.client.post("/v1/dead-letters/preview", json={"all": True}).json()["ids"]
        before = peak(server)
        answer = server.client.post("/v1/dead-letters/resubmit", json={"ids": ids})
        grown = peak(server) - before
        assert len(answer.json()["resubmitted"]) == RESUBMITTED, answer.text
    print(f"{before / 2**20:.1f} MiB, and {grown / 2**20:.1f} more")
    assert grown < GROWTH
