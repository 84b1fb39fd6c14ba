"""Queues, breakers, workflows, schedules, batches, triggers and dead letters over HTTP, on both stores. What is done twice is
done once."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from lateshift.api import bounds
from lateshift.api.bounds import GROUPS_MOST, RESUBMIT_MOST
from lateshift.api.routes import workflows
from lateshift.errors import OptionInvalid, RunEnded
from lateshift.model.access import Scope, new_token
from lateshift.model.member import Program, Serves
from lateshift.model.workflow.step import Kind, StepState
from lateshift.operating import runs
from lateshift.testing import Kit
from tests.api.asking import Web, token_of
from tests.api.shop import Shop
from tests.dashboard.test_overview import joined

NOWHERE = "01900000-0000-7000-8000-000000000000"


def test_a_queue_is_paused_and_resumed(web: Web, shop: Shop) -> None:
    shop.send.enqueue("ann")
    assert web("POST", "/v1/queues/mail/pause").json()["changed"] is True
    assert web("POST", "/v1/queues/mail/pause").json() == {
        "subject": "queue mail", "action": "paused", "changed": False, "state": None, "unknown": False,
    }  # fmt: skip
    [queue] = [each for each in web("GET", "/v1/queues").json()["queues"] if each["name"] == "mail"]
    assert (queue["name"], queue["ready"], queue["paused"]) == ("mail", 1, True)
    assert web("POST", "/v1/queues/mail/resume").json()["changed"] is True
    assert web("POST", "/v1/queues/mail/resume").json()["changed"] is False
    assert web("POST", "/v1/queues/a b/pause").status_code == 422


def test_a_queue_that_nobody_knows_is_paused_and_said_to_be_unknown_and_is_forgotten_when_it_goes_on(
    web: Web, shop: Shop
) -> None:
    def names() -> list[str]:
        return [queue["name"] for queue in web("GET", "/v1/queues").json()["queues"]]

    shop.send.enqueue("ann")
    assert web("POST", "/v1/queues/mail/pause").json()["unknown"] is False

    said = web("POST", "/v1/queues/maill/pause").json()
    assert (said["changed"], said["unknown"]) == (True, True)
    assert "maill" in names()

    web("POST", "/v1/queues/maill/resume")
    assert "maill" not in names()


def test_queues_without_jobs_are_listed_if_the_program_declares_them_or_a_living_worker_serves_them(
    web: Web, shop: Shop, kit: Kit
) -> None:
    def names(token: str | None = "") -> list[str]:
        return [queue["name"] for queue in web("GET", "/v1/queues", token=token).json()["queues"]]

    before = names()
    assert {"images", "mail", "orders", "pay", "tight"} <= set(before)
    farm = Program(app="farm", version="1", tasks={}, queues=("barn",))
    serves = Serves(
        app="farm", version="1", code=farm.digest, queues=("field", "x.*"), slots={}, heartbeat=30.0
    )  # fmt: skip
    member = joined(kit)
    assert kit.app.store.members.introduce(member, serves, farm)
    assert set(names()) - set(before) == {"barn", "field"}
    assert names(token_of(kit.app, "farmer", [Scope.READ], ("bar*",))) == ["barn"]
    kit.app.store.members.bury([member])
    assert names() == before


def test_members_are_listed(web: Web, kit: Kit, shop: Shop) -> None:
    shop.send.enqueue("ann")
    kit.drain()
    assert isinstance(web("GET", "/v1/members").json()["members"], list)


def test_a_breaker_is_opened_and_closed_by_hand(web: Web, kit: Kit, shop: Shop) -> None:
    shop.pay.enqueue()
    kit.drain()
    assert [web("POST", "/v1/breakers/pay/open").json()["changed"] for _ in range(2)] == [True, False]
    [breaker] = web("GET", "/v1/breakers").json()["breakers"]
    assert (breaker["state"], breaker["opened_by"]) == ("open", "token all")
    assert [web("POST", "/v1/breakers/pay/close").json()["changed"] for _ in range(2)] == [True, False]
    assert web("POST", "/v1/breakers/no/open").status_code == 404


def test_a_run_is_listed_shown_and_told(web: Web, kit: Kit, shop: Shop) -> None:
    run = shop.order.enqueue(1)
    kit.drain()
    [brief] = web("GET", "/v1/workflows?name=order&state=waiting").json()["runs"]
    assert (brief["id"], brief["waits_for"]) == (str(run.id), "the signal picked")
    whole = web("GET", f"/v1/workflows/{run.id}").json()
    assert [step["state"] for step in whole["steps"]] == ["completed", "running"]
    body, key = {"name": "picked", "data": {"by": "ann"}}, {"Idempotency-Key": "1"}
    told = [
        web("POST", f"/v1/workflows/{run.id}/signal", body, headers=key).json()["changed"] for _ in range(2)
    ]
    assert told == [True, False]
    for other in ({"name": "early", "data": {"by": "ann"}}, {"name": "picked", "data": {"by": "bob"}}):
        refused = web("POST", f"/v1/workflows/{run.id}/signal", other, headers=key)
        said = refused.json()
        assert (refused.status_code, said["type"], said["field"]) == (
            409,
            "urn:lateshift:problem:key-conflict",
            "Idempotency-Key",
        )
    kit.drain()
    assert kit.result(run) == {"by": "ann"}
    assert not web("POST", f"/v1/workflows/{run.id}/signal", body, headers=key).json()["changed"]
    assert web("POST", f"/v1/workflows/{run.id}/signal", other, headers=key).status_code == 409
    assert web("POST", f"/v1/workflows/{run.id}/signal", body).status_code == 409
    assert web("POST", f"/v1/workflows/{run.id}/resume").status_code == 409
    assert web("GET", "/v1/workflows?state=odd").json()["field"] == "state"


def test_runs_are_listed_page_by_page(web: Web, kit: Kit, shop: Shop) -> None:
    ids = [str(shop.order.enqueue(number).id) for number in range(3)]
    kit.drain()
    first = web("GET", "/v1/workflows?limit=2").json()
    rest = web("GET", f"/v1/workflows?limit=2&cursor={first['next']}").json()
    assert [run["id"] for run in first["runs"] + rest["runs"]] == ids[::-1]
    assert rest["next"] is None


def test_a_state_is_looked_for_among_so_many_runs_and_the_cursor_goes_on_behind_them(
    web: Web, kit: Kit, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bounds.RUNS_LOOKED_AT == 1_000
    monkeypatch.setattr(workflows, "RUNS_LOOKED_AT", 2)
    monkeypatch.setattr(runs, "PAGE", 2)
    held = str(shop.order.enqueue(0, "bad").id)
    ended = shop.order.enqueue(0)
    for number in range(3):
        shop.order.enqueue(number)
    kit.drain()
    ended.cancel()
    kit.drain()
    first = web("GET", "/v1/workflows?state=cancelled").json()
    assert first["runs"] == []
    rest = web("GET", f"/v1/workflows?state=cancelled&cursor={first['next']}").json()
    assert [run["id"] for run in rest["runs"]] == [str(ended.id)]
    assert [run["id"] for run in web("GET", "/v1/workflows?state=held").json()["runs"]] == [held]


def test_a_held_step_that_would_only_be_held_again_is_refused_and_a_fan_out_takes_a_list(
    web: Web, kit: Kit, shop: Shop
) -> None:
    run = shop.order.enqueue(1, "task")
    kit.drain()
    view = kit.app.store.workflows.view(run.id)
    assert view is not None
    [step] = [each for each in view.steps if each.state is StepState.HELD]
    assert runs.new_arguments(step, {"to": "ann"}) == b'{"to":"ann"}'
    assert runs.new_arguments(step, None) is None
    path = f"/v1/workflows/{run.id}/steps/2/resubmit"
    assert web("POST", path, {"arguments": ["ann"]}).status_code == 422
    gather = structs.replace(step, kind=Kind.GATHER)
    assert runs.new_arguments(gather, [1]) == b"[1]"
    with pytest.raises(OptionInvalid):
        runs.new_arguments(gather, {"a": 1})
    for again in (gather, structs.replace(step, kind=Kind.FIXED)):
        with pytest.raises(RunEnded):
            runs.new_arguments(again, None)


def test_a_held_step_runs_again_with_other_arguments(web: Web, kit: Kit, shop: Shop) -> None:
    run = shop.order.enqueue(1, "bad")
    kit.drain()
    assert web("GET", f"/v1/workflows/{run.id}").json()["state"] == "held"
    assert web("POST", f"/v1/workflows/{run.id}/steps/9/resubmit").status_code == 404
    assert web("POST", f"/v1/workflows/{run.id}/steps/x/resubmit").status_code == 422
    large = {"arguments": {"card": "x" * 300_000}}
    assert web("POST", f"/v1/workflows/{run.id}/steps/1/resubmit", large).status_code == 413
    path = f"/v1/workflows/{run.id}/steps/1/resubmit"
    looked = web("POST", path, {"arguments": {"card": "good"}, "preview": True}).json()
    assert (looked["changed"], looked["before"], looked["after"]) == (
        False,
        {"args": ["bad"]},
        {"card": "good"},
    )
    assert web("POST", path, {"preview": True}).json()["after"] == looked["before"]
    assert web("GET", f"/v1/workflows/{run.id}").json()["state"] == "held"
    done = web("POST", path, {"arguments": {"card": "good"}}).json()
    assert (done["changed"], done["after"]) == (True, {"card": "good"})
    kit.drain()
    assert web("GET", f"/v1/workflows/{run.id}").json()["steps"][0]["state"] == "completed"
    assert web("POST", path).status_code == 409


def test_a_run_is_undone_and_another_cancelled(web: Web, kit: Kit, shop: Shop) -> None:
    run, other = shop.order.enqueue(1), shop.order.enqueue(2)
    kit.drain()
    assert web("POST", f"/v1/workflows/{run.id}/undo").json()["field"] == "why"
    body = {"why": "the customer has gone"}
    assert [web("POST", f"/v1/workflows/{run.id}/undo", body).json()["changed"] for _ in range(2)] == [
        True,
        False,
    ]
    assert [web("POST", f"/v1/workflows/{other.id}/cancel").json()["changed"] for _ in range(2)] == [
        True,
        False,
    ]
    kit.drain()
    assert web("GET", f"/v1/workflows/{run.id}").json()["state"] == "undone"
    assert web("GET", f"/v1/workflows/{other.id}").json()["state"] == "cancelled"
    assert web("POST", f"/v1/workflows/{run.id}/undo", body).status_code == 409


def test_what_is_no_run_is_said_to_be_none(web: Web, kit: Kit, shop: Shop) -> None:
    job = shop.send.enqueue("ann")
    for id in (str(job.id), NOWHERE):
        assert web("GET", f"/v1/workflows/{id}").status_code == 404
        assert web("POST", f"/v1/workflows/{id}/signal", {"name": "x"}).status_code == 404
        assert web("POST", f"/v1/workflows/{id}/cancel").status_code == 404


def test_a_schedule_is_paused_resumed_and_fired(web: Web, kit: Kit, shop: Shop) -> None:
    kit.travel(seconds=1)
    page = web("GET", "/v1/schedules?limit=1").json()
    assert [each["name"] for each in page["schedules"]] == ["news"]
    assert web("GET", f"/v1/schedules?limit=1&cursor={page['next']}").json() == {
        "schedules": [],
        "next": None,
    }
    shown = web("GET", "/v1/schedules/news").json()
    assert (shown["arguments"], len(shown["upcoming"])) == ({"to": "all"}, 5)
    assert [web("POST", "/v1/schedules/news/pause").json()["changed"] for _ in range(2)] == [True, False]
    assert [web("POST", "/v1/schedules/news/resume").json()["changed"] for _ in range(2)] == [True, False]
    fired = web("POST", "/v1/schedules/news/fire").json()
    assert web("GET", f"/v1/jobs/{fired['job']}").json()["task"] == "send"
    once = [web("POST", "/v1/schedules/news/fire", headers={"Idempotency-Key": "1"}).json() for _ in range(2)]
    assert once[0] == once[1] != fired
    missing = web("GET", "/v1/schedules/newz")
    assert missing.status_code == 404
    assert "Did you mean news?" in missing.json()["detail"]


def test_a_batch_is_listed_shown_and_cancelled(web: Web, kit: Kit, shop: Shop) -> None:
    batch = kit.app.batch([shop.send.call(f"{number}") for number in range(3)], name="letters")
    [brief] = web("GET", "/v1/batches").json()["batches"]
    assert (brief["name"], brief["total"], brief["state"]) == ("letters", 3, "running")
    assert [web("POST", f"/v1/batches/{batch.id}/cancel").json()["changed"] for _ in range(2)] == [
        True,
        False,
    ]
    assert web("GET", f"/v1/batches/{batch.id}").json()["cancelled"] == 3
    assert web("GET", f"/v1/batches/{NOWHERE}").status_code == 404
    assert web("POST", f"/v1/batches/{NOWHERE}/cancel").status_code == 404


def test_a_trigger_is_shown_paused_and_resumed(web: Web, kit: Kit, shop: Shop, tmp_path: Path) -> None:
    shop.watch_files(kit.app, tmp_path)
    declared = [trigger.declared for trigger in kit.app.triggers.values()]
    kit.app.store.triggers.declare(declared, app="shop")
    [trigger] = web("GET", "/v1/triggers").json()["triggers"]
    assert (trigger["name"], trigger["kind"]) == ("files", "file")
    assert web("GET", "/v1/triggers/files").json()["paused"] is False
    assert [web("POST", "/v1/triggers/files/pause").json()["changed"] for _ in range(2)] == [True, False]
    assert [web("POST", "/v1/triggers/files/resume").json()["changed"] for _ in range(2)] == [True, False]
    assert web("GET", "/v1/triggers/no").status_code == 404


def test_dead_letters_are_grouped_previewed_and_resubmitted(web: Web, kit: Kit, shop: Shop) -> None:
    jobs = [shop.send.enqueue("nobody") for _ in range(3)]
    kit.drain()
    [group] = web("GET", "/v1/dead-letters?queue=mail").json()["groups"]
    assert (group["count"], group["task"]) == (3, "send")
    body = {"like": group["fingerprint"], "change": {"to": "ann"}, "limit": 2}
    plan = web("POST", "/v1/dead-letters/preview", body).json()
    assert (plan["would_resubmit"], plan["would_edit"]) == (2, 2)
    assert plan["examples"][0]["after"] == {"to": "ann"}
    assert web("GET", "/v1/jobs?state=dead").json()["jobs"][2:]
    wrong = web("POST", "/v1/dead-letters/resubmit", body | {"change": {"to": 7}})
    assert (wrong.status_code, wrong.json()["field"]) == (422, "change")
    assert wrong.json()["detail"].startswith("2 of 2 cannot be resubmitted so, nothing was written: ")
    assert "(2)" not in wrong.json()["detail"]
    done = web("POST", "/v1/dead-letters/resubmit", body).json()
    assert (len(done["resubmitted"]), done["edited"]) == (2, 2)
    rest = web("POST", "/v1/dead-letters/resubmit", {"all": True, "change": {"to": "bob"}}).json()
    assert len(rest["resubmitted"]) == 1
    assert web("POST", "/v1/dead-letters/resubmit", {"all": True}).json()["resubmitted"] == []
    kit.drain()
    assert {kit.result(job) for job in jobs} == {"sent to ann", "sent to bob"}


def test_those_of_a_preview_are_resubmitted_and_none_that_died_since(web: Web, kit: Kit, shop: Shop) -> None:
    seen = str(shop.send.enqueue("nobody").id)
    kit.drain()
    change = {"change": {"to": "bob"}}
    plan = web("POST", "/v1/dead-letters/preview", {"task": "send", "limit": 1} | change).json()
    assert plan["ids"] == [seen]
    since = str(shop.send.enqueue("nobody").id)
    kit.drain()
    body = {"ids": plan["ids"]} | change
    done = web("POST", "/v1/dead-letters/resubmit", body).json()
    assert (done["resubmitted"], done["edited"], done["skipped"]) == ([seen], 1, [])
    again = web("POST", "/v1/dead-letters/resubmit", body).json()
    assert (again["resubmitted"], again["edited"], again["skipped"]) == ([], 0, [seen])
    assert web("GET", f"/v1/jobs/{since}").json()["state"] == "dead"


def test_dead_letters_of_other_queues_are_not_resubmitted_by_their_ids(
    web: Web, kit: Kit, shop: Shop
) -> None:
    id = str(shop.send.enqueue("nobody").id)
    kit.drain()
    others = web("POST", "/v1/tokens", {"name": "pete", "scopes": ["operate"], "queues": ["pay"]}).json()[
        "token"
    ]
    for path in ("/v1/dead-letters/preview", "/v1/dead-letters/resubmit"):
        assert web("POST", path, {"ids": [id]}, token=others).status_code == 403
    assert web("GET", f"/v1/jobs/{id}").json()["state"] == "dead"


def test_which_dead_letters_must_be_said(web: Web) -> None:
    for body in (
        {},
        {"all": True, "queue": "mail"},
        {"ids": [NOWHERE], "queue": "mail"},
        {"like": "x"},
        {"limit": RESUBMIT_MOST + 1, "all": True},
        {"alll": True},
    ):
        assert web("POST", "/v1/dead-letters/resubmit", body).status_code == 422, body
    assert web("GET", f"/v1/dead-letters?limit={GROUPS_MOST + 1}").json()["field"] == "limit"


@pytest.mark.parametrize(("expires", "seconds"), [("30d", 2_592_000), ("1h30m", 5_400), (60, 60)])
def test_how_long_a_token_lasts_is_said_in_seconds_or_as_on_the_command_line(
    web: Web, expires: object, seconds: int
) -> None:
    made = web("POST", "/v1/tokens", {"name": "ann", "scopes": ["read"], "expires": expires}).json()
    lasts = datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"])
    assert lasts.total_seconds() == seconds


@pytest.mark.parametrize("expires", ["soon", "30", "0d", "900000d", "9" * 30 + "d", -1, True])
def test_a_time_that_no_token_lasts_is_refused_with_its_field(web: Web, expires: object) -> None:
    said = web("POST", "/v1/tokens", {"name": "ann", "scopes": ["read"], "expires": expires})
    assert (said.status_code, said.json()["field"]) == (422, "expires")


def test_a_token_without_a_scope_is_told_what_it_lacks_in_words(web: Web) -> None:
    said = web("POST", "/v1/tokens", {"name": "ann", "scopes": []}).json()["detail"]
    assert "at 'scopes': wants at least 1." in said
    assert "`" not in said.partition("Its fields")[0]


@pytest.mark.parametrize(("given", "status"), [({}, 201), ({"queues": None}, 201), ({"queues": []}, 422)])
def test_a_token_is_for_all_queues_only_if_nothing_is_said_of_them(
    web: Web, given: dict[str, Any], status: int
) -> None:
    said = web("POST", "/v1/tokens", {"name": "ann", "scopes": ["read"]} | given)
    assert said.status_code == status
    assert said.json().get("field") == ("queues" if status == 422 else None)


def test_a_token_is_made_shown_once_listed_and_revoked(web: Web) -> None:
    body = {"name": "ann", "scopes": ["read"], "queues": ["mail"], "expires": 60}
    made = web("POST", "/v1/tokens", body)
    assert made.status_code == 201
    assert web("GET", "/v1/queues", token=made.json()["token"]).status_code == 200
    assert web("POST", "/v1/tokens", body).status_code == 409
    assert made.json()["token"] not in web("GET", "/v1/tokens").text
    path = f"/v1/tokens/{made.json()['id']}/revoke"
    assert [web("POST", path).json()["changed"] for _ in range(2)] == [True, False]
    assert web("POST", f"/v1/tokens/{NOWHERE}/revoke").status_code == 404
    assert web("POST", "/v1/tokens", {"name": "a b", "scopes": ["read"]}).status_code == 422
    assert web("POST", "/v1/tokens", {"name": "x", "scopes": ["all"]}).json()["field"] == "scopes[0]"
    [row] = web("GET", "/v1/audit?action=revoke&limit=1").json()["audit"]
    assert row["actor"] == "token all"


def test_tokens_are_listed_page_by_page_and_no_sign_in_or_expired_one_hides_another(
    web: Web, kit: Kit
) -> None:
    store, now = kit.app.store, kit.app.store.clock.now()
    admin = store.tokens.named("all")
    assert admin is not None
    for number in range(5):
        token_of(kit.app, f"short-{number}", [Scope.READ], lives=timedelta(hours=1))
        browser, _ = new_token(
            f"all:browser-{number}", [Scope.ADMIN], [], at=now, by="token all", expires_at=now + timedelta(hours=1),
            parent=admin.id,
        )  # fmt: skip
        store.tokens.create(browser)
    token_of(kit.app, "gone", [Scope.READ], revoked=True)
    kit.clock.move(hours=2)

    def names(asked: str = "") -> list[str]:
        found: list[str] = []
        page = web("GET", f"/v1/tokens?limit=2{asked}").json()
        while page["next"] is not None:
            found += [token["name"] for token in page["tokens"]]
            page = web("GET", f"/v1/tokens?limit=2{asked}&cursor={page['next']}").json()
        return found + [token["name"] for token in page["tokens"]]

    expired = [f"short-{number}" for number in range(4, -1, -1)]
    assert names() == ["all", *expired, "gone"]
    assert names("&state=good") == ["all"]
    assert names("&state=expired") == expired
    assert names("&state=revoked") == ["gone"]
    assert names("&sign_ins=true&state=expired") == names("&sign_ins=true")
    assert len(names("&sign_ins=true")) == 5
    cursor = web("GET", "/v1/tokens?limit=2").json()["next"]
    assert web("GET", f"/v1/tokens?limit=2&state=good&cursor={cursor}").json()["field"] == "cursor"
    assert web("GET", "/v1/tokens?state=odd").json()["field"] == "state"


def test_probes_ask_for_no_token(web: Web) -> None:
    assert web("GET", "/health/live", token=None).json() == {"status": "live"}
    assert web("GET", "/health/ready", token=None).json() == {"status": "ready"}


@pytest.mark.parametrize("header", ["If-Match", "If-Unmodified-Since", "if-match"])
@pytest.mark.parametrize("path", ["/v1/schedules/news/edit", "/v1/queues/mail/pause", "/v1/tasks/send/jobs"])
def test_a_condition_on_a_change_is_refused_and_not_passed_over(
    web: Web, kit: Kit, shop: Shop, header: str, path: str
) -> None:
    kit.travel(seconds=1)
    before = web("GET", "/v1/schedules/news")
    body = {"arguments": {"to": "ann"}} if "jobs" in path else {"cron": "0 5 * * *"} if "edit" in path else {}
    answer = web("POST", path, body, headers={header: before.headers["etag"]})
    assert (answer.status_code, answer.json()["field"].lower()) == (400, header.lower())
    assert web("GET", "/v1/schedules/news").json()["cron"] == before.json()["cron"]
    assert kit.app.store.audit.list(limit=5, actor="token all") == []
    assert web("POST", path, body).status_code < 300
