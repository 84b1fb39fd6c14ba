"""Every route that does something leaves a line of the audit that names the token; made of the routes themselves."""

from typing import Any

import pytest

from lateshift.api.application import with_document
from lateshift.api.route import PUBLIC, Route
from lateshift.api.routes.all import ROUTES
from lateshift.model.access import Scope
from lateshift.testing import Kit
from tests.api.asking import Web, token_of
from tests.api.shop import Shop
from tests.api.test_refusals import body_of, filled

LOOKS = {
    "/v1/bulk/preview",
    "/v1/dead-letters/preview",
    "/v1/dead-letters/discard/preview",
}  # which change nothing
DEEDS = [
    route
    for route in with_document(ROUTES)
    if route.method == "POST" and route.scope != PUBLIC and route.path not in LOOKS
]


@pytest.mark.parametrize("route", DEEDS, ids=lambda route: route.path)
def test_what_a_token_did_is_in_the_audit_by_its_name_and_what_it_was_refused_is_not(
    route: Route, kit: Kit, shop: Shop, web: Web
) -> None:
    path, body, app = filled(route, kit, shop), body_of(route), kit.app
    token = token_of(app, "doer", [Scope.ADMIN])
    answer = web(route.method, path, body, token=token)
    lines = app.store.audit.list(limit=10, actor="token doer")
    if answer.status_code >= 400 or not _changed(answer.json()):
        assert lines == [], answer.text
    else:
        assert lines != [], answer.text
    refused = token_of(app, "other", [Scope.READ])
    web(route.method, path, body, token=refused)
    assert app.store.audit.list(limit=10, actor="token other") == []


def _changed(told: dict[str, Any]) -> bool:
    """Whether the answer says that something was done."""
    if "changed" in told:
        return bool(told["changed"])
    return all(
        told.get(name) != [] for name in ("runs", "resubmitted", "discarded")
    )  # all others that are answered well have done what was asked for


def test_most_deeds_did_something_here(kit: Kit, shop: Shop, web: Web) -> None:
    """So that the test above has something to find."""
    token = token_of(kit.app, "doer", [Scope.ADMIN])
    done = 0
    for route in DEEDS:
        answer = web(route.method, filled(route, kit, shop), body_of(route), token=token)
        done += answer.status_code < 400 and _changed(answer.json())
    assert done >= 12


def test_who_started_a_job_is_found_by_the_jobs_id(web: Web, kit: Kit, shop: Shop) -> None:
    token = token_of(kit.app, "ci", [Scope.ENQUEUE])
    key = {"Idempotency-Key": "once"}
    made = [
        web("POST", "/v1/tasks/send/jobs", {"arguments": {"to": "ann"}}, token=token, headers=key).json()
        for _ in range(2)
    ]
    assert (made[0]["id"], made[1]["created"]) == (made[1]["id"], False)
    [line] = web("GET", f"/v1/audit?subject={made[0]['id']}").json()["audit"]
    assert (line["action"], line["actor"]) == ("start", "token ci")
    assert web("GET", "/v1/audit?starts=false&actor=token%20ci").json()["audit"] == []
