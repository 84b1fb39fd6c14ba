"""Dead letters discarded over HTTP: by ids, by what they died of, or all, seen first; what is still needed stays."""

from uuid import uuid4

import pytest

from lateshift import Job
from lateshift.dead_letters.discarding import DISCARD_MOST
from lateshift.model.access import Scope
from lateshift.testing import Kit
from tests.api.asking import Web, token_of
from tests.api.shop import Shop

PREVIEW, DISCARD = "/v1/dead-letters/discard/preview", "/v1/dead-letters/discard"


@pytest.fixture
def letters(kit: Kit, shop: Shop) -> list[Job[str]]:
    jobs = [shop.send.enqueue("nobody") for _ in range(3)]
    kit.drain()
    kit.clock.move(minutes=5)
    return jobs


def test_a_group_is_previewed_and_discarded(web: Web, kit: Kit, shop: Shop, letters: list[Job[str]]) -> None:
    good = shop.send.enqueue("ann")
    kit.drain()
    [group] = web("GET", "/v1/dead-letters?queue=mail").json()["groups"]
    body = {"like": group["fingerprint"], "limit": 2}

    plan = web("POST", PREVIEW, body).json()
    assert (plan["would_discard"], plan["kept"]) == (2, [])
    assert {each["id"] for each in plan["examples"]} == {str(job.id) for job in letters[1:]}
    assert len(web("GET", "/v1/jobs?state=dead").json()["jobs"]) == 3

    done = web("POST", DISCARD, body).json()
    assert done == {"discarded": [str(job.id) for job in reversed(letters[1:])], "kept": []}
    assert web("POST", DISCARD, {"all": True}).json()["discarded"] == [str(letters[0].id)]
    assert web("POST", DISCARD, {"all": True}).json() == {"discarded": [], "kept": []}
    assert web("GET", "/v1/dead-letters").json()["groups"] == []
    assert web("GET", f"/v1/jobs/{letters[0].id}").status_code == 404
    assert web("GET", f"/v1/jobs/{good.id}").json()["state"] == "completed"
    audit = web("GET", "/v1/audit?action=discard").json()["audit"]
    assert {(line["subject"], line["actor"]) for line in audit} == {
        (str(job.id), "token all") for job in letters
    }


def test_those_that_are_named_are_discarded_and_the_others_told(
    web: Web, kit: Kit, shop: Shop, letters: list[Job[str]]
) -> None:
    young, ready, nowhere = shop.send.enqueue("nobody"), None, str(uuid4())
    kit.drain()
    ready = shop.send.enqueue("ann")
    ids = [str(letters[0].id), str(young.id), str(ready.id), nowhere]
    plan = web("POST", PREVIEW, {"ids": ids}).json()
    assert plan["would_discard"] == 1
    done = web("POST", DISCARD, {"ids": ids}).json()
    assert done["discarded"] == ids[:1]
    assert done["kept"] == [each | {"until": None} for each in plan["kept"]]
    assert {each["why"]: each["ids"] for each in done["kept"]} == {"new": ids[1:2], "other": ids[2:]}
    assert "it can be discarded when they are over" in done["kept"][0]["says"]
    assert [web("GET", f"/v1/jobs/{id}").status_code for id in ids] == [404, 200, 200, 404]


def test_one_job_is_discarded_or_it_is_said_why_not(
    web: Web, kit: Kit, shop: Shop, letters: list[Job[str]]
) -> None:
    done = web("POST", f"/v1/jobs/{letters[0].id}/discard").json()
    assert done == {
        "subject": f"job {letters[0].id}", "action": "discarded", "changed": True, "state": None,
    }  # fmt: skip
    assert web("POST", f"/v1/jobs/{letters[0].id}/discard").status_code == 404
    young, ready = shop.send.enqueue("nobody"), shop.thumbnail.options(delay=None).enqueue("cat.png")
    kit.app.store.queues.pause("images", by="ann")
    kit.drain()
    refused = web("POST", f"/v1/jobs/{young.id}/discard")
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:lateshift:problem:still-needed")
    assert "it can be discarded when they are over" in refused.json()["detail"]
    unchanged = web("POST", f"/v1/jobs/{ready.id}/discard").json()
    assert (unchanged["changed"], unchanged["state"]) == (False, "ready")


def test_a_step_that_its_workflow_still_needs_stays(web: Web, kit: Kit, shop: Shop) -> None:
    shop.order.enqueue(1, card="task")
    kit.drain()
    kit.clock.move(minutes=5)
    [step] = web("GET", "/v1/jobs?state=dead").json()["jobs"]
    refused = web("POST", f"/v1/jobs/{step['id']}/discard")
    assert refused.status_code == 409
    assert "lateshift workflows resubmit-step" in refused.json()["detail"]
    [kept] = web("POST", DISCARD, {"all": True}).json()["kept"]
    assert (kept["why"], kept["count"], kept["ids"]) == ("step", 1, [step["id"]])


def test_which_must_be_said_in_one_way(web: Web) -> None:
    for body in (
        {},
        {"all": True, "queue": "mail"},
        {"all": True, "ids": [str(uuid4())]},
        {"like": "x"},
        {"limit": DISCARD_MOST + 1, "all": True},
        {"ids": [str(uuid4())] * (DISCARD_MOST + 1)},
        {"change": {}, "all": True},
    ):
        assert web("POST", DISCARD, body).status_code == 422, body
        assert web("POST", PREVIEW, body).status_code == 422, body


def test_a_token_of_other_queues_discards_nothing(web: Web, kit: Kit, letters: list[Job[str]]) -> None:
    other = token_of(kit.app, "painter", [Scope.OPERATE], ("images",))
    mine = token_of(kit.app, "mailer", [Scope.OPERATE], ("mail",))
    for body in ({"all": True}, {"queue": "mail"}, {"ids": [str(letters[0].id)]}):
        assert web("POST", DISCARD, body, token=other).status_code == 403, body
        assert web("POST", PREVIEW, body, token=other).status_code == 403, body
    assert web("POST", f"/v1/jobs/{letters[0].id}/discard", token=other).status_code == 403
    assert web("POST", DISCARD, {"all": True}, token=mine).status_code == 403
    assert web("POST", DISCARD, {"queue": "mail", "limit": 1}, token=mine).status_code == 200
    assert len(web("GET", "/v1/jobs?state=dead").json()["jobs"]) == 2


def test_a_request_that_is_repeated_under_its_key_discards_once(web: Web, letters: list[Job[str]]) -> None:
    key = {"Idempotency-Key": "once"}
    first, again = (web("POST", DISCARD, {"all": True, "limit": 1}, headers=key) for _ in range(2))
    assert (first.json(), again.headers["Idempotency-Replayed"]) == (again.json(), "true")
    assert len(web("GET", "/v1/jobs?state=dead").json()["jobs"]) == 2


def test_a_key_of_a_discarded_job_starts_nothing_within_its_window(web: Web, kit: Kit) -> None:
    key, body = {"Idempotency-Key": "order-1"}, {"arguments": {"to": "nobody"}}
    first = web("POST", "/v1/tasks/send/jobs", body, headers=key).json()
    kit.drain()
    kit.clock.move(minutes=5)
    assert web("POST", f"/v1/jobs/{first['id']}/discard").json()["changed"]
    again = web("POST", "/v1/tasks/send/jobs", body, headers=key).json()
    assert (again["id"], again["created"]) == (first["id"], False)
    assert web("GET", f"/v1/jobs/{first['id']}").status_code == 404
