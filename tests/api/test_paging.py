"""Every listing is read page by page, by its cursor, and no page is larger than the bound, on both stores."""

from base64 import urlsafe_b64decode
from datetime import timedelta
from hashlib import sha256, shake_256
from typing import Any

import pytest

from lateshift import Lateshift, Permanent
from lateshift.api import paging
from lateshift.api.application import make_api
from lateshift.api.bounds import PAGE, PAGE_MOST
from lateshift.api.cursor import SEAL
from lateshift.api.paging import Weight, within_bytes
from lateshift.api.route import Route
from lateshift.api.routes import dead_letters
from lateshift.api.routes.all import ROUTES
from lateshift.model.access import Scope
from lateshift.model.breaker import Breaker
from lateshift.model.gate import Gate
from lateshift.model.guard import Rule
from lateshift.model.ids import new_job_id, new_member_id
from lateshift.model.member import MemberView
from lateshift.model.triggering.trigger import Arrival, NewTrigger, Refused
from lateshift.testing import Kit, testing
from tests.api.asking import Web, asking, token_of
from tests.api.shop import Shop

MADE = 7
# Bounded otherwise: by what a person asks for in one look.
WITHOUT_CURSOR = {
    "/v1/schedules-tried",
    "/v1/overview",
    "/v1/history",
}


def lists(route: Route) -> bool:
    """Whether its answer has a list at its top."""
    kinds = getattr(route.gives, "__annotations__", {}).values()
    return (
        route.method == "GET" and not route.parameters and route.path.startswith("/v1/")
        and any(str(kind).startswith("list[") for kind in kinds)
    )  # fmt: skip


@pytest.mark.parametrize("route", [route for route in ROUTES if lists(route)], ids=lambda route: route.path)
def test_every_listing_has_a_bound_and_a_cursor_or_is_bounded_otherwise(route: Route) -> None:
    asks = getattr(route.asks, "__struct_fields__", ())
    if route.path in WITHOUT_CURSOR:
        assert "cursor" not in asks
        return
    assert {"limit", "cursor"} <= set(asks)
    assert "next" in route.gives.__struct_fields__


def read(web: Web, path: str, key: str, size: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    joined = "&" if "?" in path else "?"
    page = web("GET", f"{path}{joined}limit={size}").json()
    while True:
        assert len(page[key]) <= size
        found += page[key]
        if page["next"] is None:
            return found
        page = web("GET", f"{path}{joined}limit={size}&cursor={page['next']}").json()


def stock(kit: Kit, shop: Shop, count: int) -> None:
    store, names = kit.app.store, [f"x{number:04}" for number in range(count)]
    for name in names:
        kit.clock.move(milliseconds=1)
        shop.send.options(queue=name).enqueue("ann")
        store.members.join(
            MemberView(
                id=new_member_id(), name=name, kind="worker", host="h", pid=1, started_at=store.clock.now(),
                expires_at=store.clock.now(), dead=False, stats={},
            ),
            timedelta(minutes=1),
        )  # fmt: skip
    store.triggers.declare(
        [NewTrigger(name=name, kind="webhook", about="a", task="send") for name in names],
        app="x",
        whole=False,
    )
    store.rules.declare([Rule("key", name, 1) for name in names], by="x")
    breakers = {name: Breaker(failures=3) for name in names}
    store.breakers.declare(breakers, [Gate("t", name) for name in names], tasks=["t"], by="x")


def test_a_page_ends_where_its_entries_have_as_much_as_one_may_and_has_one_at_the_least(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paging, "PAGE_BYTES", 10)
    monkeypatch.setattr(paging, "READ_BYTES", 60)
    sizes, read_at_once = [4, 4, 4, 30, 1, 1, 1, 10], list[int]()

    def read(after: int | None, limit: int) -> list[int]:
        read_at_once.append(limit)
        first = 0 if after is None else after + 1
        return list(range(first, min(first + limit, len(sizes))))

    def page(after: int | None, limit: int = 200) -> tuple[list[int], bool]:
        return within_bytes(read, after, limit, lambda each: each, Weight[int](lambda each: sizes[each], 20))

    assert page(None) == ([0, 1], True)
    assert page(1) == ([2], True)
    assert page(2) == ([3], True)
    assert page(3) == ([4, 5, 6], True)
    assert page(6) == ([7], False)
    assert page(3, 2) == ([4, 5], True)
    assert page(7) == ([], False)
    assert max(read_at_once) == 3


def test_a_page_of_what_strangers_sent_ends_by_its_size_and_the_next_goes_on(
    web: Web, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "PAGE_BYTES", 2_500)
    triggers = kit.app.store.triggers
    triggers.declare([NewTrigger(name="v", kind="webhook", about="a", task="send")], app="x", whole=False)
    for number in range(MADE):
        refused = Refused(
            id=new_job_id(), raw=b"x" * 1_000, rest=b'{"kind":"Message","seen":{}}', reason="no"
        )
        triggers.receive("v", [Arrival(event=str(number), refused=refused)], keep=timedelta(days=1))
    assert len(web("GET", "/v1/refused?limit=200").json()["refused"]) == 2
    found = read(web, "/v1/refused", "refused", 200)
    assert [each["event"] for each in found] == [str(number) for number in range(MADE)]


@pytest.mark.parametrize("size", [1, 3, MADE, 200])
def test_what_is_listed_is_read_page_by_page_each_once_and_in_order(
    web: Web, kit: Kit, shop: Shop, size: int
) -> None:
    stock(kit, shop, MADE)
    for path, key in (
        ("/v1/queues", "queues"), ("/v1/members", "members"), ("/v1/triggers", "triggers"), ("/v1/limits", "limits"),
        ("/v1/breakers", "breakers"),
    ):  # fmt: skip
        names = [each["name"] for each in read(web, path, key, size) if each["name"].startswith("x")]
        assert names == [f"x{number:04}" for number in range(MADE)], path
    ready = {each["name"]: each["ready"] for each in read(web, "/v1/queues", "queues", size)}
    assert [ready[f"x{number:04}"] for number in range(MADE)] == [1] * MADE


def test_pipelines_are_read_page_by_page(app: Lateshift, store_url: str) -> None:
    @app.task
    def count(text: str) -> int:
        return len(text)

    @app.task
    def double(number: int) -> int:
        return 2 * number

    pipelines = [app.pipeline(count | double, name=name) for name in ("p1", "p2", "p3")]
    with testing(app, store=store_url) as kit, asking(app, make_api(app)) as web:
        for pipeline in pipelines:
            pipeline.enqueue("three")
        kit.drain()
        found = read(web, "/v1/pipelines", "pipelines", 2)
    assert [(each["name"], each["completed"]) for each in found] == [("p1", 1), ("p2", 1), ("p3", 1)]


@pytest.mark.parametrize("size", [1, 3, 200])
def test_jobs_to_come_are_read_page_by_page_also_those_that_are_due_in_the_same_moment(
    web: Web, kit: Kit, shop: Shop, size: int
) -> None:
    at = kit.clock.now() + timedelta(hours=1)
    last = shop.send.options(at=at + timedelta(hours=1)).enqueue("ann")
    same = [shop.send.options(at=at).enqueue("ann") for _ in range(MADE)]
    found = [each["id"] for each in read(web, "/v1/upcoming", "jobs", size)]
    assert found == [*sorted(str(job.id) for job in same), str(last.id)]


@pytest.mark.parametrize("size", [1, 3, 200])
def test_sessions_are_read_page_by_page_and_so_are_those_that_are_held(
    web: Web, kit: Kit, shop: Shop, size: int
) -> None:
    places = [(queue, f"s{number}") for queue in ("images", "mail") for number in range(MADE)]
    held = places[::2]
    for queue in ("images", "mail"):
        kit.app.queue(queue, on_dead="hold")
    for queue, name in places:
        to = "nobody" if (queue, name) in held else "ann"
        shop.send.options(queue=queue, session=name, sequence=1).enqueue(to)
    kit.drain()
    for path, kept in (("/v1/sessions", places), ("/v1/sessions?held=true", held)):
        found = read(web, path, "sessions", size)
        assert [(each["queue"], each["session"]) for each in found] == kept
    own = token_of(kit.app, "some", [Scope.READ], ("mail",))
    page = web("GET", f"/v1/sessions?limit={MADE}", token=own).json()
    assert (page["sessions"], page["next"] is None) == ([], False)
    rest = web("GET", f"/v1/sessions?limit={MADE}&cursor={page['next']}", token=own).json()
    assert [each["session"] for each in rest["sessions"]] == [
        name for queue, name in places if queue == "mail"
    ]


@pytest.mark.parametrize("size", [1, 2, 200])
def test_groups_of_dead_letters_are_read_page_by_page_and_beyond_those_that_one_look_sees(
    app: Lateshift, store_url: str, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    @app.task
    def fall(why: str) -> None:
        raise Permanent(why)

    monkeypatch.setattr(dead_letters, "DEAD_MOST", 4)
    with testing(app, store=store_url) as kit, asking(app, make_api(app)) as web:
        for why in ("ice", "fog", "rain", "rain", "fog", "fog", "ice", "snow", "rain"):
            kit.clock.move(milliseconds=1)
            fall.enqueue(why)
        kit.drain()
        found = read(web, "/v1/dead-letters", "groups", size)
    told = [(each["message"], each["count"]) for each in found]
    assert sorted(told[:4]) == [("fog", 1), ("ice", 1), ("rain", 1), ("snow", 1)]  # the newest four
    assert (sorted(told[4:6]), told[6:]) == (
        [("fog", 2), ("rain", 2)],
        [("ice", 1)],
    )  # then the next, and the last


def test_a_page_has_so_many_unless_said_and_no_more_than_its_bound(web: Web, kit: Kit, shop: Shop) -> None:
    stock(kit, shop, PAGE + 1)
    for path in ("queues", "members", "triggers", "limits", "breakers"):
        page = web("GET", f"/v1/{path}").json()
        assert (len(page[path]), page["next"] is None) == (PAGE, False), path
        assert web("GET", f"/v1/{path}?limit={PAGE_MOST + 1}").json()["field"] == "limit"


def test_a_token_for_some_queues_reads_full_pages_of_them(web: Web, kit: Kit, shop: Shop) -> None:
    stock(kit, shop, MADE)
    own = token_of(kit.app, "some", [Scope.READ], ("x0002", "x0005"))
    page = web("GET", "/v1/queues?limit=1", token=own).json()
    assert [each["name"] for each in page["queues"]] == ["x0002"]
    rest = web("GET", f"/v1/queues?limit=1&cursor={page['next']}", token=own).json()
    assert [each["name"] for each in rest["queues"]] == ["x0005"]
    assert web("GET", f"/v1/queues?limit=1&cursor={page['next']}").json()["field"] == "cursor"


@pytest.mark.parametrize("path", ["/v1/schedules", "/v1/sessions", "/v1/upcoming"])
def test_where_the_next_page_begins_tells_a_token_nothing_of_other_queues(
    web: Web, kit: Kit, shop: Shop, path: str
) -> None:
    canary = "canary-of-others"
    new = {"name": canary, "cron": "@daily", "arguments": {"path": "cat.png"}}
    assert web("POST", "/v1/tasks/thumbnail/schedules", new).status_code == 201
    for number in (1, 2):
        shop.thumbnail.options(session=canary, sequence=number, queue="images").enqueue("cat.png")
    later = shop.thumbnail.options(delay=timedelta(days=1)).enqueue("cat.png")
    kit.drain()
    token = token_of(kit.app, "mailer", [Scope.READ], ("mail",))

    page = web("GET", f"{path}?limit=1", token=token).json()
    assert page["next"], "it ends behind something that is not shown"
    [kept] = [each for each in kit.app.store.tokens.list(10) if each.name == "mailer"]
    place = urlsafe_b64decode(page["next"] + "==")[SEAL:]
    # Also to one who makes of the token whatever is kept of it.
    streams = [bytes(len(place)), *(shake_256(key + b"\nhidden\n" + urlsafe_b64decode(page["next"] + "==")[:SEAL]).digest(len(place))
                                    for key in (kept.digest, sha256(kept.digest).digest()))]  # fmt: skip
    for stream in streams:
        read = bytes(one ^ other for one, other in zip(place, stream, strict=True))
        assert canary.encode() not in read
        assert str(later.id).encode() not in read
