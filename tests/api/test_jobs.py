"""Jobs over HTTP: started, looked at, cancelled, run again, on both stores."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from lateshift.api.bounds import PAGE_MOST, WAIT_MOST
from lateshift.model.access import Scope
from lateshift.model.job import Enqueued, JobFilter, NewJob, State
from lateshift.testing import Kit
from tests.api.asking import Web, token_of
from tests.api.shop import Shop

START = "/v1/tasks/thumbnail/jobs"


def test_a_job_is_started_looked_at_and_its_result_is_given(web: Web, kit: Kit) -> None:
    made = web("POST", START, {"arguments": {"path": "cat.png", "width": 100}})
    assert made.status_code == 202
    assert made.headers["location"] == made.json()["status"] == f"/v1/jobs/{made.json()['id']}"
    assert made.headers["retry-after"] == "1"
    assert web("GET", made.headers["location"]).json()["state"] == "ready"
    kit.drain()
    done = web("GET", made.headers["location"]).json()
    assert (done["state"], done["result"]) == ("completed", "cat.png at 100")
    assert done["arguments"] == {"path": "cat.png", "width": 100}


def test_requests_that_come_together_share_commits_and_looks_at_tokens(
    web: Web, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits: list[int] = []
    enqueue = kit.app.client._enqueue

    def counted(jobs: Sequence[NewJob]) -> list[Enqueued]:
        commits.append(len(jobs))
        return enqueue(jobs)

    monkeypatch.setattr(kit.app.client, "_enqueue", counted)
    answers = web.at_once(60, "POST", START, {"arguments": {"path": "a"}})
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 60 == sum(commits)
    assert len(commits) < 30


def test_options_stand_beside_the_arguments(web: Web, kit: Kit) -> None:
    body = {
        "arguments": {"path": "a"},
        "queue": "slow",
        "delay": 90,
        "priority": 7,
        "session": "s",
        "sequence": 1,
        "tenant": "acme",
    }
    made = web("POST", START, body)
    assert made.headers["retry-after"] == "90"
    job = web("GET", made.headers["location"]).json()
    assert {name: job[name] for name in ("queue", "priority", "session", "sequence", "tenant", "state")} == {
        "queue": "slow", "priority": 7, "session": "s", "sequence": 1, "tenant": "acme", "state": "scheduled",
    }  # fmt: skip
    at = (kit.clock.now() + timedelta(days=1)).isoformat()
    later = web("POST", START, {"arguments": {"path": "a"}, "at": at})
    assert web("GET", later.headers["location"]).json()["state"] == "scheduled"


def test_the_same_key_is_the_same_job_and_other_arguments_are_refused(web: Web) -> None:
    key = {"Idempotency-Key": "order-7"}
    first = web("POST", START, {"arguments": {"path": "a"}}, headers=key).json()
    again = web("POST", START, {"arguments": {"path": "a"}}, headers=key)
    assert again.status_code == 202
    assert (first["created"], again.json()["created"], again.json()["id"]) == (True, False, first["id"])
    other = web("POST", START, {"arguments": {"path": "b"}}, headers=key)
    assert (other.status_code, other.json()["field"]) == (409, "Idempotency-Key")
    assert other.json()["type"] == "urn:lateshift:problem:key-conflict"


@pytest.mark.parametrize(
    "option", [{"queue": "slow"}, {"priority": 7}, {"delay": 60}, {"tenant": "acme"}, {"tags": ["a"]}]
)
def test_the_same_key_with_other_options_is_refused(web: Web, option: dict[str, Any]) -> None:
    key, plain = {"Idempotency-Key": "order-7"}, {"arguments": {"path": "a"}}
    first = web("POST", START, plain | option, headers=key).json()
    again = web("POST", START, plain | option, headers=key).json()
    assert (again["created"], again["id"]) == (False, first["id"])
    assert web("POST", START, plain, headers=key).status_code == 409
    assert web("POST", START, plain | {"session": "s"}, headers=key).status_code == 409


def test_a_key_without_options_is_the_same_as_in_code(web: Web, shop: Shop) -> None:
    job = shop.thumbnail.options(key="order-7").enqueue("a")
    same = web("POST", START, {"arguments": {"path": "a"}}, headers={"Idempotency-Key": "order-7"}).json()
    assert (same["created"], same["id"]) == (False, str(job.id))


def test_a_token_that_is_revoked_while_an_answer_waits_does_not_get_it(
    web: Web, kit: Kit, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = shop.thumbnail.enqueue("a")
    reader = token_of(kit.app, "reader", [Scope.READ])
    named = kit.app.store.tokens.named("reader")
    assert named is not None
    aview = kit.app.client.aview

    async def revoke_and_look(id: UUID, *, whole: bool) -> Any:
        kit.app.store.tokens.revoke(named.id, by="ana")
        return await aview(id, whole=whole)

    monkeypatch.setattr(kit.app.client, "aview", revoke_and_look)
    late = web("GET", f"/v1/jobs/{job.id}?wait=0.05", token=reader)
    assert (late.status_code, late.json()["type"]) == (401, "urn:lateshift:problem:unauthorized")
    assert "www-authenticate" in late.headers


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"arguments": {"path": 7}}, "arguments.path"),
        ({"arguments": {"path": "a", "width": "wide"}}, "arguments.width"),
        ({"arguments": {"path": "a", "boxes": [{"width": 1, "height": "x"}]}}, "arguments.boxes[0].height"),
        ({"arguments": {"path": "a", "colour": "red"}}, "arguments.colour"),
        ({"arguments": {}}, "arguments.path"),
        ({}, "arguments.path"),
        ({"arguments": {"self": 1, "path": "a"}}, "arguments.self"),
        ({"arguments": [1]}, "arguments"),
        ({"arguments": {"path": "a"}, "prioritty": 1}, "prioritty"),
        ({"arguments": {"path": "a"}, "priority": 101}, "priority"),
        ({"arguments": {"path": "a"}, "delay": -1}, "delay"),
        ({"arguments": {"path": "a"}, "delay": 1e300}, "delay"),
        ({"arguments": {"path": "a"}, "at": "2030-01-01T00:00:00"}, "at"),
        ({"arguments": {"path": "a"}, "at": "0001-01-01T00:00:00+14:00"}, "at"),
        ({"arguments": {"path": "a"}, "session": "x\0"}, "session"),
        ([], None),
    ],
)
def test_a_wrong_body_is_refused_and_the_answer_names_the_field(
    web: Web, kit: Kit, body: object, field: str | None
) -> None:
    answer = web("POST", START, body)
    assert answer.status_code == 422
    assert answer.json().get("field") == field
    assert web("GET", "/v1/jobs").json()["jobs"] == []


def test_what_no_option_can_be_is_refused(web: Web) -> None:
    assert web("POST", START, {"arguments": {"path": "a"}, "queue": "a b"}).status_code == 422
    assert web("POST", START, {"arguments": {"path": "a"}, "sequence": 1}).status_code == 422
    both = {"arguments": {"path": "a"}, "delay": 1, "at": "2030-01-01T00:00:00Z"}
    assert web("POST", START, both).json()["detail"] == "Give delay or at, not both."
    assert web("POST", START, {"arguments": {"path": "a" * 300_000}}).status_code == 413
    assert web("POST", "/v1/tasks/no/jobs", {"arguments": {}}).status_code == 404
    assert web("POST", "/v1/tasks/no%00/jobs", {"arguments": {}}).status_code == 404


def test_a_full_queue_answers_that_it_may_be_tried_again(web: Web) -> None:
    body = {"arguments": {"path": "a"}, "queue": "tight"}
    assert web("POST", START, body).status_code == 202
    full = web("POST", START, body)
    assert (full.status_code, full.headers["retry-after"]) == (429, "1")


def test_who_has_the_answer_already_is_told_so(web: Web, kit: Kit, shop: Shop) -> None:
    path = f"/v1/jobs/{shop.thumbnail.enqueue('a').id}"
    first = web("GET", path)
    tag = first.headers["etag"]
    again = web("GET", path, headers={"If-None-Match": f'"x", W/{tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    kit.drain()
    assert web("GET", path, headers={"If-None-Match": tag}).status_code == 200


def test_an_answer_may_wait_for_the_end_of_a_job(web: Web, kit: Kit, shop: Shop) -> None:
    job = shop.thumbnail.enqueue("a")
    kit.drain()
    assert web("GET", f"/v1/jobs/{job.id}?wait={WAIT_MOST}").json()["state"] == "completed"
    waiting = shop.thumbnail.enqueue("b")
    assert web("GET", f"/v1/jobs/{waiting.id}?wait=0.05").json()["state"] == "ready"
    assert web("GET", f"/v1/jobs/{waiting.id}?wait={WAIT_MOST + 1}").json()["field"] == "wait"


def test_what_is_waited_for_is_read_whole_once(
    web: Web, kit: Kit, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, looks, aview = f"/v1/jobs/{shop.thumbnail.enqueue('a').id}", [], kit.app.client.aview

    async def counted(id: UUID, *, whole: bool) -> Any:
        looks.append(whole)
        return await aview(id, whole=whole)

    def asked(wait: float) -> list[bool]:
        looks.clear()
        assert web("GET", f"{path}?wait={wait}").json()["arguments"] == {"path": "a"}
        return list(looks)

    monkeypatch.setattr(kit.app.client, "aview", counted)
    assert asked(0) == [True]
    assert set(asked(0.05)[:-1]) == {False}
    assert looks[-1]
    kit.drain()
    assert asked(0) == [True]
    assert asked(WAIT_MOST) == [False, True]


def test_jobs_are_listed_by_filters_page_by_page(web: Web, kit: Kit, shop: Shop) -> None:
    ids = [str(shop.send.enqueue(f"{number}").id) for number in range(5)]
    shop.thumbnail.enqueue("a")
    seen: list[str] = []
    path = "/v1/jobs?task=send&queue=mail&state=ready&limit=2"
    page = web("GET", path).json()
    seen += [job["id"] for job in page["jobs"]]
    while page["next"]:
        page = web("GET", f"{path}&cursor={page['next']}").json()
        seen += [job["id"] for job in page["jobs"]]
    assert seen == ids[::-1]


def test_a_cursor_that_was_changed_or_is_of_something_else_is_refused(web: Web, kit: Kit, shop: Shop) -> None:
    for number in range(3):
        shop.send.enqueue(f"{number}")
    cursor = web("GET", "/v1/jobs?limit=1&queue=mail").json()["next"]
    other = "A" if cursor[20] != "A" else "B"
    reader = token_of(kit.app, "reader", [Scope.READ])
    assert web("GET", f"/v1/jobs?limit=2&queue=mail&cursor={cursor}").status_code == 200
    for path, token in (
        (f"/v1/jobs?queue=mail&cursor={cursor[:20]}{other}{cursor[21:]}", ""),
        (f"/v1/jobs?queue=mail&cursor={cursor[:-2]}", ""),
        (f"/v1/jobs?queue=mail&cursor={cursor}=", ""),
        (f"/v1/jobs?queue=mail&cursor={cursor}====", ""),
        (f"/v1/jobs?queue=mail&cursor={cursor[:8]}!{cursor[8:]}", ""),
        (f"/v1/jobs?queue=mail&cursor=%20{cursor}", ""),
        ("/v1/jobs?queue=mail&cursor=x", ""),
        ("/v1/jobs?queue=mail&cursor=%C3%A4%00", ""),
        ("/v1/jobs?queue=mail&cursor=", ""),
        (f"/v1/jobs?queue=images&cursor={cursor}", ""),
        (f"/v1/batches?cursor={cursor}", ""),
        (f"/v1/jobs?queue=mail&cursor={cursor}", reader),
    ):
        answer = web("GET", path, token=token)
        assert (answer.status_code, answer.json()["field"]) == (400, "cursor"), path


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"), (f"limit={PAGE_MOST + 1}", "limit"), ("limit=x", "limit"), ("state=gone", "state"), ("colour=red", "colour"),
        ("batch=7", "batch"), ("queue=a&queue=b", "queue"), ("queue=", "queue"), ("task=a%00", "task"), (f"task={'a' * 201}", "task"),
    ],
)  # fmt: skip
def test_a_filter_that_is_none_is_refused_by_name(web: Web, query: str, field: str) -> None:
    answer = web("GET", f"/v1/jobs?{query}")
    assert (answer.status_code, answer.json()["field"]) == (422, field)


def test_a_job_is_cancelled_once_and_a_repeat_changes_nothing(web: Web, kit: Kit, shop: Shop) -> None:
    job = shop.send.enqueue("ann")
    first = web("POST", f"/v1/jobs/{job.id}/cancel").json()
    assert first == {"subject": f"job {job.id}", "action": "cancelled", "changed": True, "state": "cancelled"}
    assert web("POST", f"/v1/jobs/{job.id}/cancel", {}).json() == first | {"changed": False}
    assert kit.app.store.reports.job(job.id).reason == "cancelled by token all"  # type: ignore[union-attr]


def test_a_dead_letter_is_run_again_with_other_arguments_that_are_checked(
    web: Web, kit: Kit, shop: Shop
) -> None:
    job = shop.send.enqueue("nobody")
    kit.drain()
    path = f"/v1/jobs/{job.id}/resubmit"
    wrong = web("POST", path, {"change": {"to": 7}})
    assert (wrong.status_code, wrong.json()["field"]) == (422, "change")
    done = web("POST", path, {"change": {"to": "ann"}}).json()
    assert (done["changed"], done["state"]) == (True, "ready")
    assert web("POST", path).json()["changed"] is False
    kit.drain()
    assert kit.result(job) == "sent to ann"
    assert web("POST", path, {"change": {"to": "ann"}}).status_code == 422


def test_the_dead_job_of_a_step_is_left_to_its_run(web: Web, kit: Kit, shop: Shop) -> None:
    run = shop.order.enqueue(1, "task")
    kit.drain()
    [step] = [view for view in kit.app.store.reports.jobs(dead(), 10) if view.task == "send"]
    answer = web("POST", f"/v1/jobs/{step.id}/resubmit")
    assert answer.status_code == 409
    assert "resubmit-step" in answer.json()["detail"]
    assert web("GET", f"/v1/jobs/{step.id}").json()["workflow"] == str(run.id)


def test_why_a_job_waits_is_told(web: Web, shop: Shop) -> None:
    job = shop.send.enqueue("ann")
    web("POST", "/v1/queues/mail/pause")
    said = web("GET", f"/v1/jobs/{job.id}/explain").json()
    assert "queue_paused" in [reason["code"] for reason in said["reasons"]]


@pytest.mark.parametrize("id", ["01900000-0000-7000-8000-000000000000", "7", "x" * 36, "%00"])
@pytest.mark.parametrize(
    ("method", "end"), [("GET", ""), ("GET", "/explain"), ("POST", "/cancel"), ("POST", "/resubmit")]
)
def test_an_id_of_nothing_is_not_found(web: Web, id: str, method: str, end: str) -> None:
    assert web(method, f"/v1/jobs/{id}{end}").status_code == 404


def dead() -> JobFilter:
    return JobFilter(state=State.DEAD)


@pytest.mark.parametrize(
    ("path", "body", "values"),
    [
        ("/v1/tasks/send/jobs", {"arguments": {"to": "ann"}, "reply_to": ["channel:c"], "reply_on": ["done"]},
         "received, started, progress, retrying, completed, cancelled, failed"),
        ("/v1/bulk", {"action": "done", "all": True}, "cancel, resubmit"),
        ("/v1/tokens", {"name": "x", "scopes": ["done"]}, "enqueue, read, operate, admin"),
    ],
)  # fmt: skip
def test_a_value_that_a_field_has_not_is_told_with_those_it_has(
    web: Web, shop: Shop, path: str, body: dict[str, Any], values: str
) -> None:
    answer = web("POST", path, body)
    assert answer.status_code == 422
    assert all(value in answer.json()["detail"] for value in values.split(", ")), answer.json()["detail"]
