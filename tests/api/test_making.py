"""Schedules made and changed, sessions, limits, pipelines, graphs, logs, batches and what triggers refused, over HTTP."""

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from lateshift import Lateshift, Limit, Permanent, Retry
from lateshift.api.bounds import BACKFILL_MOST
from lateshift.model.access import Scope
from lateshift.model.scheduling.schedule import NewSchedule
from lateshift.model.scheduling.timing import EARLIEST, LATEST
from lateshift.operating import names, refused
from lateshift.testing import Kit
from lateshift.testing.interposed import Interposed
from tests.api.asking import Web, token_of
from tests.api.shop import Shop

NEW = {"name": "nightly", "arguments": {"to": "ann"}, "cron": "0 3 * * *", "timezone": "Europe/Madrid"}
NOWHERE = "01900000-0000-7000-8000-000000000000"


@pytest.fixture
def app(store_url: str) -> Lateshift:
    app = Lateshift("shop", store=store_url)

    @app.task(queue="mail", limit=Limit(concurrency=3), retry=Retry(attempts=1))
    def count(word: str) -> int:
        logging.getLogger("words").warning("counting %s", word)
        if word == "bad":
            raise Permanent("a bad word")
        return len(word)

    @app.task
    def double(number: int) -> int:
        return number * 2

    app.pipeline(count | double, name="words")

    @app.on_webhook("orders", verify=lambda headers, body, now: headers["x-id"])
    @app.task
    def place(order: dict[str, int]) -> None: ...

    return app


def test_wrong_arguments_are_named_alike_wherever_they_are_given(web: Web) -> None:
    web("POST", "/v1/tasks/send/schedules", NEW)
    wrong = {"arguments": {"order": 7}}
    said = [
        web("POST", "/v1/tasks/send/jobs", wrong),
        web("POST", "/v1/tasks/send/schedules", NEW | {"name": "other"} | wrong),
        web("POST", "/v1/schedules/nightly/edit", wrong),
    ]
    assert [(answer.status_code, answer.json()["field"]) for answer in said] == [(422, "arguments.order")] * 3


# -- schedules ---------------------------------------------------------------------------------------------------------


def test_a_schedule_is_added_changed_and_removed_and_each_leaves_its_line(web: Web, kit: Kit) -> None:
    made = web("POST", "/v1/tasks/send/schedules", NEW)
    assert (made.status_code, made.headers["location"]) == (201, "/v1/schedules/nightly")
    assert made.json()["words"].endswith("Europe/Madrid")
    assert len(web("GET", "/v1/schedules/nightly?count=3").json()["upcoming"]) == 3
    again = web("POST", "/v1/tasks/send/schedules", NEW)
    assert again.status_code == 422
    changed = web("POST", "/v1/schedules/nightly/edit", {"every": 90, "overlap": "allow", "jitter": 5}).json()
    assert (changed["cron"], changed["every_seconds"], changed["jitter_seconds"]) == (None, 90, 5)
    assert changed["arguments"] == {"to": "ann"}
    other = web("POST", "/v1/schedules/nightly/edit", {"arguments": {"to": "bob"}}).json()
    assert (other["arguments"], other["every_seconds"]) == ({"to": "bob"}, 90)
    assert web("POST", "/v1/schedules/nightly/remove").json()["changed"] is True
    assert web("POST", "/v1/schedules/nightly/remove").status_code == 404
    lines = [
        (row.action, row.actor) for row in kit.app.store.audit.list(limit=10, subject="schedule nightly")
    ]
    assert [action for action, _ in lines] == ["remove", "edit", "edit", "add"]
    assert {actor for _, actor in lines} == {"token all"}


@pytest.mark.parametrize("early", [True, False], ids=["before it is written", "right after"])
def test_a_schedule_that_is_removed_while_it_is_edited_is_said_to_be_gone(
    web: Web, kit: Kit, monkeypatch: pytest.MonkeyPatch, early: bool
) -> None:
    assert web("POST", "/v1/tasks/send/schedules", NEW).status_code == 201
    schedules = kit.app.store.schedules
    edit = schedules.edit

    def edit_beside_another(schedule: NewSchedule, *, by: str) -> bool:
        done = not early and edit(schedule, by=by)
        assert schedules.remove(schedule.name, by="another")
        return done or edit(schedule, by=by)

    monkeypatch.setattr(schedules, "edit", edit_beside_another)
    gone = web("POST", "/v1/schedules/nightly/edit", {"every": 90})

    assert (gone.status_code, gone.json()["type"]) == (404, "urn:lateshift:problem:schedule-unknown")
    assert ("Nothing was changed" in gone.json()["detail"]) is early
    edits = kit.app.store.audit.list(limit=10, action="edit")
    assert len(edits) == (0 if early else 1)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"cron": "every day"}, "cron"), ({"every": 0}, "every"), ({"timezone": "Mars"}, "Mars"), ({"at": "2020-01-01T00:00:00Z", "cron": None}, "has passed"),
        ({"arguments": {}}, "to"), ({"arguments": {"to": 7}}, "to"), ({"name": ""}, "name"), ({"overlap": "never"}, "overlap"),
        ({"every": 60}, "one of"), ({"nonsense": 1}, "nonsense"), ({"start": "2026-01-01T00:00:00"}, "timezone"),
    ],
)  # fmt: skip
def test_a_schedule_that_cannot_be_is_refused_with_what_is_wrong(
    web: Web, change: dict[str, Any], says: str
) -> None:
    answer = web("POST", "/v1/tasks/send/schedules", NEW | change)
    assert answer.status_code == 422
    assert says in answer.text
    assert web("GET", "/v1/schedules/nightly").status_code == 404


OUT_OF_REACH = [
    ({"at": "9999-12-31T23:59:59-14:00", "cron": None}, "at"),
    ({"at": "9999-12-31T23:59:59Z", "cron": None}, "at"),
    ({"start": "9999-12-31T23:59:59-14:00"}, "start"),
    ({"start": "0001-01-01T00:00:00Z"}, "start"),
    ({"end": "0001-01-01T00:00:00+14:00"}, "end"),
]


@pytest.mark.parametrize(("change", "field"), OUT_OF_REACH)
def test_a_time_that_some_zone_could_not_show_is_refused_by_its_name(
    web: Web, change: dict[str, Any], field: str
) -> None:
    answer = web("POST", "/v1/tasks/send/schedules", NEW | change)
    assert (answer.status_code, answer.json().get("field")) == (422, field)
    web("POST", "/v1/tasks/send/schedules", NEW)
    said = {name: value for name, value in change.items() if value is not None}
    answer = web("POST", "/v1/schedules/nightly/edit", said)
    assert (answer.status_code, answer.json().get("field")) == (422, field)


@pytest.mark.parametrize(
    ("start", "end", "field"),
    [
        ("0001-01-01T00:00:00Z", "0001-01-02T00:00:00Z", "start"),
        ("0001-01-01T00:00:00+14:00", "2020-01-01T00:00:00Z", "start"),
        ("2020-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00", "end"),
    ],
)
def test_a_backfill_of_times_that_some_zone_could_not_show_is_refused_by_their_name(
    web: Web, start: str, end: str, field: str
) -> None:
    web("POST", "/v1/tasks/send/schedules", NEW)
    answer = web("POST", "/v1/schedules/nightly/backfill", {"start": start, "end": end})
    assert (answer.status_code, answer.json().get("field")) == (422, field)


def test_the_first_and_the_last_time_of_a_schedule_can_be_said(web: Web) -> None:
    ends = {"start": EARLIEST.isoformat(), "end": LATEST.isoformat()}
    assert web("POST", "/v1/tasks/send/schedules", NEW | ends).status_code == 201
    assert web("GET", "/v1/schedules/nightly").json()["end"] == "9990-01-01T00:00:00Z"
    last = {"name": "last", "arguments": {"to": "ann"}, "at": LATEST.isoformat(), "timezone": "Asia/Tokyo"}
    assert web("POST", "/v1/tasks/send/schedules", last).status_code == 201
    assert web("GET", "/v1/schedules/last").status_code == 200
    past = {"start": EARLIEST.isoformat(), "end": EARLIEST.isoformat()}
    assert "no tick" in web("POST", "/v1/schedules/nightly/backfill", past).json()["detail"]


def test_a_change_of_nothing_and_one_that_contradicts_itself_are_refused(web: Web) -> None:
    web("POST", "/v1/tasks/send/schedules", NEW | {"start": "2026-01-01T00:00:00Z"})
    assert web("POST", "/v1/schedules/nightly/edit", {}).status_code == 422
    both = {"start": "2026-01-01T00:00:00Z", "clear": ["start"]}
    assert web("POST", "/v1/schedules/nightly/edit", both).json()["field"] == "start"
    assert web("POST", "/v1/schedules/nightly/edit", {"clear": ["start"]}).json()["start"] is None


def test_a_token_of_some_queues_makes_schedules_of_them_only(web: Web, kit: Kit) -> None:
    text = token_of(kit.app, "mailer", [Scope.OPERATE, Scope.ENQUEUE], ("mail",))
    assert web("POST", "/v1/tasks/send/schedules", NEW, token=text).status_code == 201
    other = NEW | {"name": "other", "queue": "images"}
    assert web("POST", "/v1/tasks/send/schedules", other, token=text).status_code == 403
    assert (
        web("POST", "/v1/tasks/pay/schedules", {"name": "x", "cron": "@daily"}, token=text).status_code == 404
    )


def test_whose_time_a_schedule_gives_its_jobs_as_which_argument_is_another_argument(
    web: Web, kit: Kit
) -> None:
    web("POST", "/v1/tasks/count/schedules", NEW | {"arguments": {"word": "ann"}})
    url = "/v1/schedules/nightly/edit"
    operates = token_of(kit.app, "operates", [Scope.OPERATE])
    both = token_of(kit.app, "both", [Scope.OPERATE, Scope.ENQUEUE], ("mail",))

    for change, field in (({"tick_as": "word"}, "tick_as"), ({"clear": ["tick_as"]}, "clear")):
        refused = web("POST", url, change, token=operates)
        assert (refused.status_code, refused.json()["field"]) == (403, field)
    assert web("POST", url, {"clear": ["start"]}, token=operates).status_code == 200
    changed = web("POST", url, {"tick_as": "word"}, token=both)
    assert (changed.status_code, changed.json()["tick_as"]) == (200, "word")


def test_a_token_changes_what_no_task_of_another_queue_is_given_by_its_tick(web: Web, kit: Kit) -> None:
    web(
        "POST",
        "/v1/tasks/double/schedules",
        {"name": "x", "cron": "@daily", "arguments": {"number": 1}, "queue": "mail"},
    )
    text = token_of(kit.app, "mailer", [Scope.OPERATE, Scope.ENQUEUE], ("mail",))

    for change in ({"arguments": {"number": 2}}, {"tick_as": "number"}, {"clear": ["tick_as"]}):
        refused = web("POST", "/v1/schedules/x/edit", change, token=text)
        assert (refused.status_code, refused.json()["type"]) == (
            403,
            "urn:lateshift:problem:queue-forbidden",
        ), change


def test_the_past_of_a_schedule_is_filled_once_and_bounded(web: Web, kit: Kit) -> None:
    web("POST", "/v1/tasks/send/schedules", NEW)
    end = kit.app.store.clock.now()
    body = {"start": (end - timedelta(days=3)).isoformat(), "end": end.isoformat()}
    filled = web("POST", "/v1/schedules/nightly/backfill", body).json()
    assert filled["total"] == 3
    assert web("POST", "/v1/schedules/nightly/backfill", body).json()["id"] == filled["id"]
    web("POST", "/v1/schedules/nightly/edit", {"every": 1})
    much = {"start": (end - timedelta(seconds=BACKFILL_MOST + 1)).isoformat(), "end": end.isoformat()}
    assert web("POST", "/v1/schedules/nightly/backfill", much).json()["field"] == "end"
    future = {"start": end.isoformat(), "end": (end + timedelta(seconds=60)).isoformat()}
    assert web("POST", "/v1/schedules/nightly/backfill", future).status_code == 422
    [line] = kit.app.store.audit.list(limit=10, action="backfill")
    assert (line.actor, line.subject) == ("token all", "schedule nightly")


def test_a_backfill_that_breaks_off_is_in_the_audit(web: Web, kit: Kit) -> None:
    """Its line is written with the batch, and not after the jobs."""
    web("POST", "/v1/tasks/send/schedules", NEW)
    end = kit.app.store.clock.now()
    schedule = names.schedule(kit.app.store, "nightly")

    def breaks(count: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        schedule.backfill(end - timedelta(days=3), end, breaks, by="ann")
    [line] = kit.app.store.audit.list(limit=10, action="backfill")
    assert (line.actor, line.subject) == ("ann", "schedule nightly")


@pytest.mark.parametrize("name", ["jeden Morgen ☀", "été", "a/b c", "100%", "ש?x=1#y"])
def test_a_schedule_of_any_name_is_led_to(web: Web, name: str) -> None:
    """A header holds no such letters: it was a fault, after the schedule was made."""
    made = web("POST", "/v1/tasks/send/schedules", NEW | {"name": name})
    assert made.status_code == 201
    assert web("GET", made.headers["location"]).json()["name"] == name


def test_an_expression_is_tried(web: Web) -> None:
    tried = web("GET", "/v1/schedules-tried?cron=0 3 * * *&timezone=Europe/Madrid&count=2").json()
    assert (len(tried["next"]), tried["timezone"]) == (2, "Europe/Madrid")
    assert len(web("GET", "/v1/schedules-tried?every=60&count=3").json()["next"]) == 3
    for wrong in ("", "?cron=x", "?cron=* * * * *&every=60", "?every=60&timezone=x", "?every=60&count=0"):
        assert web("GET", f"/v1/schedules-tried{wrong}").status_code == 422


# -- jobs ----------------------------------------------------------------------------------------------------------------


def test_what_waits_for_its_time_is_listed_the_next_first(web: Web, kit: Kit, shop: Shop) -> None:
    later = shop.send.options(delay=timedelta(hours=2)).enqueue("ann")
    sooner = shop.thumbnail.options(delay=timedelta(hours=1)).enqueue("cat.png")
    assert [job["id"] for job in web("GET", "/v1/upcoming").json()["jobs"]] == [str(sooner.id), str(later.id)]
    text = token_of(kit.app, "mailer", [Scope.READ], ("mail",))
    assert [job["id"] for job in web("GET", "/v1/upcoming", token=text).json()["jobs"]] == [str(later.id)]


def test_what_an_attempt_logged_is_shown(web: Web, kit: Kit) -> None:
    job = kit.app.find_task("count").enqueue("one")
    kit.drain()
    [log] = web("GET", f"/v1/jobs/{job.id}/logs").json()["logs"]
    assert (log["attempt"], log["lines"][0]["message"]) == (1, "counting one")
    assert web("GET", f"/v1/jobs/{job.id}/logs?attempt=2").json()["logs"] == []
    assert web("GET", f"/v1/jobs/{NOWHERE}/logs").status_code == 404


def test_arguments_are_left_out_when_a_job_is_resubmitted(web: Web, kit: Kit, shop: Shop) -> None:
    job = shop.thumbnail.enqueue("cat.png", width=7)
    web("POST", f"/v1/jobs/{job.id}/cancel")
    wrong = web("POST", f"/v1/jobs/{job.id}/resubmit", {"unset": ["path"]})
    assert wrong.status_code == 422
    assert (
        web("POST", f"/v1/jobs/{job.id}/resubmit", {"change": {"width": 1}, "unset": ["width"]}).status_code
        == 422
    )
    assert web("POST", f"/v1/jobs/{job.id}/resubmit", {"unset": ["width"]}).json()["changed"] is True
    assert web("GET", f"/v1/jobs/{job.id}").json()["arguments"] == {"path": "cat.png"}


# -- sessions, limits, pipelines, graphs -----------------------------------------------------------------------------


def test_a_held_session_is_listed_and_released(web: Web, kit: Kit, shop: Shop) -> None:
    kit.app.queue("mail", on_dead="hold")
    shop.send.options(session="ann").enqueue("nobody")
    shop.send.options(session="ann").enqueue("ann")
    kit.drain()
    [held] = web("GET", "/v1/sessions?held=true").json()["sessions"]
    assert (held["queue"], held["session"], held["held_why"]) == ("mail", "ann", "dead")
    text = token_of(kit.app, "painter", [Scope.OPERATE], ("images",))
    assert web("GET", "/v1/sessions?held=true", token=text).json()["sessions"] == []
    body = {"queue": "mail", "session": "ann"}
    assert web("POST", "/v1/sessions/release", body, token=text).status_code == 403
    assert [web("POST", "/v1/sessions/release", body).json()["changed"] for _ in range(2)] == [True, False]
    assert kit.app.store.audit.list(limit=5, action="release")


def test_limits_are_listed(web: Web, kit: Kit) -> None:
    kit.app.find_task("count").enqueue("one")
    kit.drain()
    [limit] = [each for each in web("GET", "/v1/limits").json()["limits"] if each["name"] == "count"]
    assert (limit["scope"], limit["concurrency"], limit["rate"]) == ("task", 3, None)


def test_a_pipeline_is_listed_shown_and_drawn(web: Web, kit: Kit) -> None:
    kit.app.find_task("words").enqueue("three")
    kit.drain()
    [listed] = web("GET", "/v1/pipelines").json()["pipelines"]
    shown = web("GET", "/v1/pipelines/words").json()
    assert shown == listed
    assert (shown["chain"], shown["completed"]) == ("count | double", 1)
    assert web("GET", "/v1/pipelines/nothing").status_code == 404


def test_a_workflow_and_a_run_are_drawn_in_every_form(web: Web, kit: Kit, shop: Shop) -> None:
    run = shop.order.enqueue(1)
    kit.drain()
    for path in ("/v1/tasks/order/graph", f"/v1/workflows/{run.id}/graph"):
        assert web("GET", path).json()["nodes"]
        picture = web("GET", f"{path}?format=svg")
        assert picture.headers["content-type"] == "image/svg+xml"
        assert "sandbox" in picture.headers["content-security-policy"]
        assert picture.text.startswith("<svg")
        tag = {"If-None-Match": picture.headers["etag"]}
        assert web("GET", f"{path}?format=svg", headers=tag).status_code == 304
        drawn = web("GET", f"{path}?format=mermaid")
        assert (drawn.headers["content-type"], "flowchart" in drawn.text) == (
            "text/vnd.mermaid",
            True,
        )
    assert web("GET", "/v1/tasks/order/graph?format=png").json()["field"] == "format"
    assert web("GET", "/v1/tasks/send/graph").status_code == 422
    assert web("GET", "/v1/tasks/nothing/graph").status_code == 404
    assert web("GET", f"/v1/workflows/{NOWHERE}/graph").status_code == 404


def test_all_held_runs_of_a_workflow_go_on_seen_first(web: Web, kit: Kit, shop: Shop) -> None:
    runs = [shop.order.enqueue(number, "bad") for number in range(3)]
    kit.drain()
    body = {"name": "order", "preview": True, "limit": 2}
    seen = web("POST", "/v1/workflows/resume", body).json()
    assert (len(seen["runs"]), seen["resumed"]) == (2, False)
    rest = web("POST", "/v1/workflows/resume", body | {"before": seen["next_before"]}).json()
    assert {*seen["runs"], *rest["runs"]} == {str(run.id) for run in runs}
    assert web("POST", "/v1/workflows/resume", {"name": "order", "why_like": "weather"}).json()["runs"] == []
    assert len(web("POST", "/v1/workflows/resume", {"name": "order"}).json()["runs"]) == 3


def test_the_arguments_of_a_held_step_are_checked_by_its_task(web: Web, kit: Kit, shop: Shop) -> None:
    run = shop.order.enqueue(1, "task")
    kit.drain()
    url = f"/v1/workflows/{run.id}/steps/2/resubmit"
    assert web("POST", url, {"arguments": {"to": 7}}).status_code == 422
    assert web("POST", url, {"arguments": ["ann"]}).status_code == 422
    assert web("POST", url, {"arguments": {"to": "ann"}}).json()["changed"] is True


# -- batches, and what was refused -------------------------------------------------------------------------------------


def test_the_dead_letters_of_a_batch_are_resubmitted(web: Web, kit: Kit, shop: Shop) -> None:
    batch = kit.app.batch([shop.send.call("nobody"), shop.send.call("ann")])
    kit.drain()
    assert web("POST", f"/v1/batches/{batch.id}/resubmit").json() == {
        "batch": str(batch.id),
        "resubmitted": 1,
    }
    assert web("POST", f"/v1/batches/{batch.id}/seal").json()["changed"] is False
    for action in ("resubmit", "seal"):
        assert web("POST", f"/v1/batches/{NOWHERE}/{action}").status_code == 404


def test_what_was_refused_is_listed_shown_retried_and_discarded(web: Web, kit: Kit) -> None:
    kit.app.declare_webhooks()
    for number in range(4):
        body = b'{"id": "x"}' if number else b'{"id": 1, "x": "y"}'
        web("POST", "/hooks/orders", content=body, token=None, headers={"X-Id": f"d{number}"})
    page = web("GET", "/v1/refused?trigger=orders&limit=3").json()
    rest = web("GET", f"/v1/refused?trigger=orders&limit=3&cursor={page['next']}").json()
    ids = [each["id"] for each in page["refused"] + rest["refused"]]
    assert len(set(ids)) == 4
    assert web("GET", f"/v1/refused/{ids[0]}").json()["event"] == "d0"
    told = web("POST", f"/v1/refused/{ids[0]}/retry").json()
    assert (told["jobs"], list(told["refused"])) == ([], [ids[0]])
    kit.app.triggers["orders"]._decode = lambda message: {"n": len(message.body)}
    assert len(web("POST", f"/v1/refused/{ids[0]}/retry").json()["jobs"]) == 1
    assert web("POST", f"/v1/refused/{ids[0]}/retry").status_code == 404
    assert [web("POST", f"/v1/refused/{ids[1]}/discard").json()["changed"] for _ in range(2)] == [True, False]
    assert len(web("POST", "/v1/triggers/orders/retry", {"limit": 1}).json()["jobs"]) == 1
    assert len(web("POST", "/v1/triggers/orders/retry").json()["jobs"]) == 1
    assert web("POST", "/v1/triggers/nothing/retry").status_code == 404
    assert web("GET", f"/v1/refused/{NOWHERE}").status_code == 404
    actions = [row.action for row in kit.app.store.audit.list(limit=10)]
    assert (actions.count("accept"), actions.count("discard")) == (3, 1)


def test_which_were_refused_is_known_without_reading_what_came(
    web: Web, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit.app.declare_webhooks()
    for number in range(5):
        web("POST", "/hooks/orders", content=b'{"id": "x"}', token=None, headers={"X-Id": f"d{number}"})
    verbs: set[str] = set()

    def look(verb: str, call: Callable[..., Any], /, *args: Any) -> Any:
        verbs.add(verb)
        return call(*args)

    store = Interposed(kit.app.store, look)
    ids = [view.id for view in kit.app.store.triggers.refused("orders", None, 10)]
    monkeypatch.setattr(refused, "READ_AT_ONCE", 2)
    assert refused.ids_of(store, "orders") == ids
    assert [refused.ids_of(store, "orders", most) for most in (3, 4)] == [ids[:3], ids[:4]]
    assert refused.ids_of(store, "nothing") == []
    assert verbs == {"triggers.which_refused"}
