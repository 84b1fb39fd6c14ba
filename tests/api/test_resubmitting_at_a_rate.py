"""A lot is resubmitted over HTTP as the command line does it: a few first, looked at, then the rest at a rate. The request answers at
once, and the store keeps the times."""

from datetime import datetime
from typing import Any

import pytest

from lateshift import Lateshift, Permanent
from lateshift.testing import Kit
from tests.api.asking import Web
from tests.api.shop import Shop

BULK, LETTERS = "/v1/bulk", "/v1/dead-letters/resubmit"
BODIES: dict[str, dict[str, Any]] = {BULK: {"action": "resubmit", "task": "pack"}, LETTERS: {"task": "pack"}}
PREVIEWS = {BULK: "/v1/bulk/preview", LETTERS: "/v1/dead-letters/preview"}
ROUTES = pytest.mark.parametrize("route", [BULK, LETTERS])


class Packing(Shop):
    """A shop with a task that fails until somebody has mended it."""

    def __init__(self, app: Lateshift) -> None:
        super().__init__(app)
        self.mended = False

        @app.task
        def pack(order: int) -> None:
            if not self.mended:
                raise Permanent("no box fits")

        self.pack = pack


@pytest.fixture
def shop(app: Lateshift) -> Packing:
    return Packing(app)


def bury(kit: Kit, shop: Packing, count: int) -> list[str]:
    """Dead letters, the newest first."""
    ids = [str(shop.pack.enqueue(number).id) for number in range(count)]
    kit.drain()
    return ids[::-1]


def ids_in(answer: dict[str, Any]) -> list[str]:
    return list(answer.get("done", answer.get("resubmitted", ())))


def states(web: Web, ids: list[str]) -> list[str]:
    return [web("GET", f"/v1/jobs/{id}").json()["state"] for id in ids]


def due(web: Web, ids: list[str]) -> list[float]:
    """In seconds after the first."""
    at = [datetime.fromisoformat(web("GET", f"/v1/jobs/{id}").json()["due_at"]) for id in ids]
    return [(each - at[0]).total_seconds() for each in at]


@ROUTES
def test_each_is_due_at_its_time_and_the_answer_says_when_the_last_is(
    web: Web, kit: Kit, shop: Packing, route: str
) -> None:
    ids = bury(kit, shop, 5)

    done = web("POST", route, BODIES[route] | {"rate": "30/min"}).json()

    assert (ids_in(done), done["spread"]) == (ids, 8)
    assert states(web, ids) == ["ready"] + ["scheduled"] * 4
    assert due(web, ids) == pytest.approx([0, 2, 4, 6, 8], abs=0.5)


@ROUTES
def test_without_a_rate_all_are_ready_at_once(web: Web, kit: Kit, shop: Packing, route: str) -> None:
    ids = bury(kit, shop, 3)
    done = web("POST", route, BODIES[route]).json()
    assert (ids_in(done), done["spread"]) == (ids, 0)
    assert states(web, ids) == ["ready"] * 3


@ROUTES
def test_the_first_are_watched_and_the_rest_follows_at_a_rate(
    web: Web, kit: Kit, shop: Packing, route: str
) -> None:
    """As docs/api.md tells it."""
    ids, body = bury(kit, shop, 6), BODIES[route]
    shop.mended = True

    first = ids_in(web("POST", route, body | {"limit": 2}, headers={"Idempotency-Key": "first"}).json())
    assert first == ids[:2]
    kit.drain()  # a worker does
    watched = [web("GET", f"/v1/jobs/{id}?wait=20").json() for id in first]
    assert [job["state"] for job in watched] == ["completed"] * 2
    assert states(web, ids[2:]) == ["dead"] * 4

    again = [
        web("POST", route, body | {"rate": "1/min"}, headers={"Idempotency-Key": "rest"}) for _ in range(2)
    ]
    assert again[0].content == again[1].content
    assert again[1].headers["idempotency-replayed"] == "true"
    assert ids_in(again[0].json()) == ids[2:]
    assert states(web, ids[2:]) == ["ready"] + ["scheduled"] * 3
    for done in range(1, 5):
        kit.drain()
        assert states(web, ids[2:]) == ["completed"] * done + ["scheduled"] * (4 - done)
        kit.travel(seconds=61)


def test_a_first_one_that_fails_is_seen_and_the_rest_is_still_dead(web: Web, kit: Kit, shop: Packing) -> None:
    ids = bury(kit, shop, 4)
    [first] = web("POST", LETTERS, {"task": "pack", "limit": 1}).json()["resubmitted"]
    kit.drain()

    job = web("GET", f"/v1/jobs/{first}?wait=20").json()

    assert (first, job["state"], job["reason"]) == (ids[0], "dead", "permanent")
    assert states(web, ids[1:]) == ["dead"] * 3


def test_with_other_arguments_they_go_at_a_rate_too(web: Web, kit: Kit, shop: Packing) -> None:
    ids = bury(kit, shop, 2)
    done = web("POST", LETTERS, {"task": "pack", "change": {"order": 7}, "rate": "1/h"}).json()
    assert (done["resubmitted"], done["edited"], done["spread"]) == (ids, 2, 3600)
    job = web("GET", f"/v1/jobs/{ids[1]}").json()
    assert (job["state"], job["arguments"]) == ("scheduled", {"order": 7})


def test_what_waits_for_its_time_can_be_cancelled_and_resubmitted_anew(
    web: Web, kit: Kit, shop: Packing
) -> None:
    ids = bury(kit, shop, 3)
    web("POST", BULK, BODIES[BULK] | {"rate": "1/h"})
    stop = {"action": "cancel", "task": "pack", "state": "scheduled"}
    assert web("POST", BULK, stop).json()["done"] == ids[1:]
    again = web("POST", BULK, BODIES[BULK] | {"state": "cancelled", "rate": "1/min"}).json()
    assert (again["done"], again["spread"]) == (ids[1:], 60)


def test_jobs_by_their_ids_go_in_that_order(web: Web, kit: Kit, shop: Packing) -> None:
    ids = bury(kit, shop, 3)
    order = [ids[2], ids[0], ids[1]]
    assert web("POST", BULK, {"action": "resubmit", "ids": order, "rate": "6/min"}).json()["done"] == order
    assert due(web, order) == pytest.approx([0, 10, 20], abs=0.5)


@ROUTES
@pytest.mark.parametrize(
    "rate",
    ["0/s", "-1/s", "fast", "10", "", "1/year", "0.5/h", "10001/s", "9" * 150 + "/s", "1e3/s", "nan/s", "\0", "x" * 1000,
     10, 0, -1, 2.5, True, [], {"per": 1}],
)  # fmt: skip
def test_what_is_no_rate_is_refused_by_name_and_nothing_is_done(
    web: Web, kit: Kit, shop: Packing, route: str, rate: object
) -> None:
    ids = bury(kit, shop, 1)
    for path in (route, PREVIEWS[route]):
        answer = web("POST", path, BODIES[route] | {"rate": rate})
        assert (answer.status_code, answer.json()["field"]) == (422, "rate"), answer.json()
    assert states(web, ids) == ["dead"]


def test_only_a_resubmission_has_a_rate(web: Web) -> None:
    for path in (BULK, PREVIEWS[BULK]):
        answer = web("POST", path, {"action": "cancel", "task": "pack", "rate": "1/s"})
        assert (answer.status_code, answer.json()["field"]) == (422, "rate")


@ROUTES
def test_a_preview_takes_the_same_body_and_writes_nothing(
    web: Web, kit: Kit, shop: Packing, route: str
) -> None:
    ids = bury(kit, shop, 2)
    assert web("POST", PREVIEWS[route], BODIES[route] | {"rate": "1/s"}).status_code == 200
    assert states(web, ids) == ["dead"] * 2


def test_the_document_says_what_a_rate_looks_like(web: Web) -> None:
    schemas = web("GET", "/v1/openapi.json").json()["components"]["schemas"]
    with_rate = [
        each["properties"]["rate"] for each in schemas.values() if "rate" in each.get("properties", {})
    ]
    assert sum("10/s" in str(rate) for rate in with_rate) >= 2
