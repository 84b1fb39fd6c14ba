"""What Lateshift itself has as tasks signs with secrets: nobody starts it, and nobody says what it is given."""

from datetime import timedelta
from typing import Any

import pytest

from lateshift import Flow, Lateshift
from lateshift.errors import OptionInvalid
from lateshift.model.access import Scope
from lateshift.testing import Kit
from tests.api.asking import Web, token_of
from tests.api.shop import Shop

HERE = "http://127.0.0.1:9/"
SECRET = "whsec_" + "A" * 40
FORGED = {"event": {"name": "alert.forged", "at": "2026-01-01T00:00:00Z", "data": {}}}


@pytest.fixture(params=["ops-alerts", "lateshift.alert_webhook", "lateshift.reply_webhook.hooks", "lateshift.reply_broker.rabbit"])  # fmt: skip
def own(app: Lateshift, shop: Shop, request: pytest.FixtureRequest) -> str:
    """The name of each kind of them, one that the program chose among them."""
    app.reply_webhook(HERE, secret=SECRET, internal=True, name="hooks")
    app.reply_broker("rabbit", "memory://", queue="out")
    app.alert_webhook(HERE, secret=SECRET, internal=True)
    app.alert_webhook(HERE, secret=SECRET, internal=True, name="ops-alerts")
    return str(request.param)


def test_it_is_started_by_nobody(web: Web, own: str) -> None:
    refused = web("POST", f"/v1/tasks/{own}/jobs", {"arguments": FORGED})
    assert (refused.status_code, refused.json()["type"]) == (403, "urn:lateshift:problem:task-forbidden")
    scheduled = {"name": "mine", "arguments": FORGED, "cron": "0 2 * * *"}
    assert web("POST", f"/v1/tasks/{own}/schedules", scheduled).status_code == 403


def test_no_job_replies_to_it_by_its_name(web: Web, shop: Shop, own: str) -> None:
    body = {"arguments": {"to": "ann"}, "reply_to": f"task:{own}"}
    refused = web("POST", "/v1/tasks/send/jobs", body)
    assert (refused.status_code, "of Lateshift itself" in refused.json()["detail"]) == (422, True)
    with pytest.raises(OptionInvalid, match="of Lateshift itself"):
        shop.send.options(reply_to=f"task:{own}")


def test_what_it_is_given_is_changed_by_nobody(kit: Kit, app: Lateshift, web: Web, own: str) -> None:
    given: dict[str, Any] = {"event": {"name": "alert.true", "at": "2026-01-01T00:00:00Z", "data": {}}}
    if "reply_webhook" in own:
        given["url"] = HERE
    job = app.tasks[own].options(delay=timedelta(hours=1)).enqueue(**given)
    web("POST", f"/v1/jobs/{job.id}/cancel")
    refused = web("POST", f"/v1/jobs/{job.id}/resubmit", {"change": FORGED})
    assert (refused.status_code, "of Lateshift itself" in refused.json()["detail"]) == (422, True)
    assert web("GET", f"/v1/jobs/{job.id}").json()["state"] == "cancelled"
    assert web("POST", f"/v1/jobs/{job.id}/resubmit").json()["changed"] is True
    app.schedule(app.tasks[own], kwargs=given, name="own", cron="0 2 * * *")
    kit.travel(seconds=1)
    edited = web("POST", "/v1/schedules/own/edit", {"arguments": FORGED})
    assert (edited.status_code, "of Lateshift itself" in edited.json()["detail"]) == (422, True)


def test_dead_letters_of_it_run_again_as_they_are(kit: Kit, app: Lateshift, web: Web, shop: Shop) -> None:
    app.reply_webhook(HERE, secret=SECRET, internal=True, name="hooks")
    shop.send.options(reply_to=HERE, reply_on=["completed"]).enqueue("ann")
    kit.travel(days=9)
    chosen = {"queue": "replies.hooks"}
    changed: dict[str, Any] = {**chosen, "change": {"event": {}}}
    for path in ("/v1/dead-letters/preview", "/v1/dead-letters/resubmit"):
        refused = web("POST", path, changed)
        assert (refused.status_code, "of Lateshift itself" in refused.json()["detail"]) == (422, True)
    assert len(web("POST", "/v1/dead-letters/resubmit", chosen).json()["resubmitted"]) == 1


def test_a_step_that_is_one_runs_again_as_it_was(kit: Kit, app: Lateshift, web: Web) -> None:
    deliver = app.reply_webhook(HERE, secret=SECRET, internal=True, name="hooks")

    @app.workflow(queue="orders", on_failure="hold")
    async def tell(flow: Flow) -> None:
        await flow.step(
            deliver, {"id": "1", "kind": "completed", "at": "", "job_id": ""}, "http://127.0.0.1:8/"
        )

    run = tell.enqueue()
    kit.drain()
    path = f"/v1/workflows/{run.id}/steps/1/resubmit"
    refused = web("POST", path, {"arguments": {"event": {"id": "2"}, "url": HERE}})
    assert (refused.status_code, "of Lateshift itself" in refused.json()["detail"]) == (422, True)
    assert web("POST", path).status_code == 200


def test_an_operator_makes_no_new_work_of_a_job_that_he_cancelled(web: Web, shop: Shop) -> None:
    job = shop.send.options(delay=timedelta(hours=1)).enqueue("ann")
    operator = token_of(web.app, "operator", [Scope.OPERATE])
    assert web("POST", f"/v1/jobs/{job.id}/cancel", token=operator).status_code == 200
    for change in ({"change": {"to": "eve"}}, {"unset": ["to"]}):
        refused = web("POST", f"/v1/jobs/{job.id}/resubmit", change, token=operator)
        assert (refused.status_code, refused.json()["type"]) == (403, "urn:lateshift:problem:scope-forbidden")
    both = token_of(web.app, "both", [Scope.OPERATE, Scope.ENQUEUE])
    assert (
        web("POST", f"/v1/jobs/{job.id}/resubmit", {"change": {"to": "eve"}}, token=both).status_code == 200
    )
    assert web("GET", f"/v1/jobs/{job.id}").json()["arguments"] == {"to": "eve"}
