"""Jobs over HTTP, many at once: found by whatever they have, and cancelled or resubmitted after a look."""

from urllib.parse import urlencode

import pytest

from lateshift.api.bounds import SHOWN_OF_BULK
from lateshift.model.access import Scope
from lateshift.model.tags import TAG_LIMIT, TAGS_LIMIT
from lateshift.operating.bulk import BULK_MOST
from lateshift.store import searching
from lateshift.testing import Kit
from tests.api.asking import Web, token_of
from tests.api.shop import Shop

START = "/v1/tasks/thumbnail/jobs"


def started(web: Web, path: str, **options: object) -> str:
    return str(web("POST", START, {"arguments": {"path": path}, **options}).json()["id"])


def test_a_job_is_found_by_tag_argument_error_time_and_key(web: Web, kit: Kit, shop: Shop) -> None:
    cat = started(web, "cat.png", tags=["eu", "vip"])
    keyed = web("POST", START, {"arguments": {"path": "x"}}, headers={"Idempotency-Key": "k"}).json()["id"]
    dead = str(shop.send.enqueue("nobody").id)
    kit.drain()
    fits = {
        "tag=vip": cat, "argument=path%3Dcat.png&since=1h": cat, "argument=cat&tag=vip": cat, "error=there+is+nobody&state=dead": dead, "key=k": keyed,
        "since=1h&tag=eu": cat, "until=2199-01-01&tag=eu": cat,
    }  # fmt: skip
    for query, id in fits.items():
        assert [job["id"] for job in web("GET", f"/v1/jobs?{query}").json()["jobs"]] == [id], query
    assert web("GET", "/v1/jobs?until=1h").json() == {"jobs": [], "next": None, "cut": False}
    assert web("GET", f"/v1/jobs/{cat}").json()["tags"] == ["eu", "vip"]


@pytest.mark.parametrize(
    "query", ["since=soon", "since=", "tag=", f"tag={'x' * 51}", "until=99999999d", "argument=%00"]
)
def test_a_filter_that_cannot_be_is_refused(web: Web, query: str) -> None:
    assert web("GET", f"/v1/jobs?{query}").status_code == 422


@pytest.mark.parametrize("text", ["argument", "error"])
@pytest.mark.parametrize("beside", [{}, {"queue": "images", "task": "thumbnail"}, {"state": "completed"}])
def test_a_text_that_would_be_looked_for_in_every_job_is_refused_and_it_is_said_what_to_add(
    web: Web, text: str, beside: dict[str, str]
) -> None:
    asked = {text: "cat", **beside}
    for answer in (
        web("GET", f"/v1/jobs?{urlencode(asked)}"),
        web("POST", "/v1/bulk/preview", {"action": "cancel", **asked}),
    ):
        problem = answer.json()
        assert (answer.status_code, problem["field"]) == (422, text)
        assert problem["type"].endswith("filter-too-wide")
        assert "since=7d" in problem["detail"]
    for bound in (
        {"since": "7d"},
        {"tag": "eu"},
        {"session": "ann"},
        {"state": "dead"},
        {"state": "running"},
    ):
        assert web("GET", f"/v1/jobs?{urlencode(asked | bound)}").status_code == 200, bound


@pytest.mark.parametrize(
    "tags", [["x"] * (TAGS_LIMIT + 1), ["x" * (TAG_LIMIT + 1)], [""], ["\0"], "eu", [7], {"eu": 1}]
)
def test_tags_that_cannot_be_are_refused(web: Web, tags: object) -> None:
    answer = web("POST", START, {"arguments": {"path": "a"}, "tags": tags})
    assert answer.status_code == 422
    assert answer.json()["field"].startswith("tags")


def test_a_search_that_looked_at_enough_goes_on_with_its_cursor(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "STRIDE", 1)
    monkeypatch.setattr(searching, "LOOKED_AT", 4)
    wanted = started(web, "wanted")
    for _ in range(5):
        started(web, "other")
    page = web("GET", "/v1/jobs?argument=wanted&since=1d").json()
    assert (page["jobs"], page["cut"]) == ([], True)
    page = web("GET", f"/v1/jobs?argument=wanted&since=1d&cursor={page['next']}").json()
    assert ([job["id"] for job in page["jobs"]], page["next"], page["cut"]) == ([wanted], None, False)


def test_many_jobs_are_cancelled_after_a_look(web: Web, kit: Kit) -> None:
    ids = [started(web, f"{number}", tags=["eu"]) for number in range(SHOWN_OF_BULK + 5)]
    started(web, "other")
    seen = web("POST", "/v1/bulk/preview", {"action": "cancel", "tag": "eu"}).json()
    assert seen["ids"] == ids[::-1]
    assert (len(seen["first"]), seen["others"], seen["cut"]) == (SHOWN_OF_BULK, 0, False)
    done = web("POST", "/v1/bulk", {"action": "cancel", "ids": seen["ids"]}).json()
    assert (len(done["done"]), done["others"]) == (len(ids), 0)
    again = web("POST", "/v1/bulk", {"action": "cancel", "ids": seen["ids"]}).json()
    assert (again["done"], again["others"]) == ([], len(ids))
    assert len(web("GET", "/v1/jobs?state=ready").json()["jobs"]) == 1
    assert [line.subject for line in kit.app.store.audit.list(limit=1, action="cancel")] != []


def test_a_limit_is_kept_and_told(web: Web) -> None:
    for number in range(3):
        started(web, f"{number}")
    done = web("POST", "/v1/bulk", {"action": "cancel", "queue": "images", "limit": 2}).json()
    assert (len(done["done"]), done["cut"]) == (2, True)


def test_dead_ones_are_resubmitted_but_no_steps_of_workflows(web: Web, kit: Kit, shop: Shop) -> None:
    dead = str(shop.send.enqueue("nobody").id)
    shop.order.enqueue(1, "task")
    kit.drain()
    seen = web("POST", "/v1/bulk/preview", {"action": "resubmit", "task": "send"}).json()
    assert (seen["ids"], seen["others"]) == ([dead], 1)
    assert web("POST", "/v1/bulk", {"action": "resubmit", "all": True}).json()["done"] == [dead]


@pytest.mark.parametrize(
    "body",
    [
        {"action": "cancel"},
        {"action": "cancel", "all": True, "queue": "images"},
        {"action": "cancel", "ids": ["x"]},
        {"action": "cancel", "ids": ["01a1e5f5-0000-7000-8000-000000000000"] * (BULK_MOST + 1)},
        {"action": "burn", "all": True},
        {"action": "cancel", "tag": "eu", "limit": BULK_MOST + 1},
        {"action": "cancel", "since": "soon"},
    ],
)
def test_what_names_no_jobs_is_refused(web: Web, body: dict[str, object]) -> None:
    started(web, "cat.png")
    assert web("POST", "/v1/bulk", body).status_code == 422
    assert web("POST", "/v1/bulk/preview", body).status_code == 422
    assert len(web("GET", "/v1/jobs?state=ready").json()["jobs"]) == 1


def test_a_token_for_some_queues_takes_none_of_others(web: Web, kit: Kit) -> None:
    id = started(web, "cat.png")
    mail = token_of(kit.app, "mail", [Scope.OPERATE], ("mail",))
    for body in ({"ids": [id]}, {"tag": "eu"}, {"queue": "images"}, {"all": True}):
        assert web("POST", "/v1/bulk", {"action": "cancel", **body}, token=mail).status_code == 403
    assert web("POST", "/v1/bulk", {"action": "cancel", "queue": "mail"}, token=mail).json()["done"] == []
