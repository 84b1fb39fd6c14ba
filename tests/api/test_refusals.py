"""Every route with every kind of credential that is not good enough, made of the routes themselves: all are refused."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from lateshift import Lateshift
from lateshift.api.application import make_api, matrix, with_document
from lateshift.api.asked import Asked
from lateshift.api.route import PUBLIC, Done, Reach, Route
from lateshift.api.routes.all import ROUTES
from lateshift.model.access import Scope
from lateshift.testing import Kit
from tests.api.asking import Web, asking, token_of
from tests.api.shop import Shop

CLOSED = [route for route in with_document(ROUTES) if route.scope != PUBLIC]
OTHERS = {
    Scope.ENQUEUE: [Scope.READ, Scope.OPERATE], Scope.READ: [Scope.ENQUEUE], Scope.OPERATE: [Scope.READ, Scope.ENQUEUE],
    Scope.ADMIN: [Scope.ENQUEUE, Scope.READ, Scope.OPERATE],
}  # fmt: skip
BODIES: dict[str, Any] = {
    "/v1/workflows/{id}/signal": {"name": "picked"}, "/v1/workflows/{id}/undo": {"why": "a test"},
    "/v1/bulk": {"action": "cancel", "all": True}, "/v1/bulk/preview": {"action": "cancel", "all": True},
    "/v1/dead-letters/preview": {"all": True}, "/v1/dead-letters/resubmit": {"all": True},
    "/v1/dead-letters/discard/preview": {"all": True}, "/v1/dead-letters/discard": {"all": True},
    "/v1/workflows/resume": {"name": "order"}, "/v1/sessions/release": {"queue": "mail", "session": "ann"},
    "/v1/tasks/{name}/schedules": {"name": "nightly", "arguments": {"to": "ann"}, "cron": "0 3 * * *"},
    "/v1/schedules/{name:path}/edit": {"cron": "0 3 * * *"},
    "/v1/schedules/{name:path}/backfill": {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T12:00:00Z"},
    "/v1/tokens": {"name": "new", "scopes": ["read"]}, "/v1/tasks/{name}/jobs": {"arguments": {"to": "ann"}},
}  # fmt: skip


# Of those that show what is of the token's queues: what they are asked, and what of another queue they would show.
OWN = {
    "/v1/tasks": ("", '"name":"send"'),
    "/v1/events": ("channel=jobs.mail.*", '"queue":"mail"'),
    "/v1/upcoming": ("", '"queue":"mail"'),
    "/v1/queues": ("", '"name":"mail"'),
    "/v1/sessions": ("", '"queue":"mail"'),
    "/v1/overview": ("", '"subject":"mail"'),
    "/v1/workflows": ("", '"queue":"orders"'),
    "/v1/schedules": ("", '"name":"news"'),
}
OF_NO_QUEUE = {"/v1/schedules-tried", "/v1/openapi.json"}


@pytest.fixture
def app(app: Lateshift) -> Lateshift:
    app.queue("mail", events=True)
    return app


def something_of_each(kit: Kit, shop: Shop) -> None:
    """Of other queues, for every listing."""
    shop.send.options(session="ann", sequence=1).enqueue("ann")
    shop.send.enqueue("nobody")
    shop.order.enqueue(1)
    kit.drain()
    kit.travel(seconds=1)
    shop.send.options(delay=timedelta(hours=1)).enqueue("ann")
    kit.app.store.queues.pause("mail", by="ann")
    shop.send.enqueue("bob")


def filled(route: Route, kit: Kit, shop: Shop) -> str:
    """The path with names and ids of things that are there."""
    name = (
        "send"
        if "tasks" in route.path
        else "mail"
        if "queues" in route.path
        else "news"
        if "schedules" in route.path
        else "pay"
    )
    made: Any = shop.order if "workflows" in route.path else shop.send
    job = made.enqueue(1) if "workflows" in route.path else made.enqueue("ann")
    if "schedules" in route.path or "workflows" in route.path:
        kit.travel(seconds=1)
    id: UUID = job.id
    return route.shown_path.replace("{id}", str(id)).replace("{name}", name).replace("{step}", "1")


def body_of(route: Route) -> Any:
    return BODIES.get(route.path, {}) if route.method == "POST" else None


@pytest.mark.parametrize("route", CLOSED, ids=lambda route: f"{route.method} {route.path}")
def test_who_may_not_is_refused_at_every_route_and_who_may_is_not(
    route: Route, kit: Kit, shop: Shop, web: Web
) -> None:
    path, body = filled(route, kit, shop), body_of(route)
    app = kit.app
    assert isinstance(route.scope, Scope)
    own = [route.scope] if route.besides is None else [route.scope, route.besides]
    long_ago = app.store.clock.now() - timedelta(days=9)
    real = token_of(app, "real", own)
    wrong = real[:-1] + ("A" if real[-1] != "A" else "B")
    unknown = {
        "none": None,
        "wrong": wrong,
        "short": real[:-1],
        "unknown": "lsh_" + "A" * 64,
        "expired": token_of(app, "old", own, at=long_ago, lives=timedelta(days=1)),
        "revoked": token_of(app, "gone", own, revoked=True),
    }
    for kind, token in unknown.items():
        answer = web(route.method, path, body, token=token)
        assert answer.status_code == 401, kind
        assert answer.headers["www-authenticate"].startswith("Bearer"), kind
    for scope in [*OTHERS[route.scope], *(own[:1] if len(route.always) > 1 else [])]:
        answer = web(route.method, path, body, token=token_of(app, f"is-{scope}", [scope]))
        assert answer.status_code == 403, scope
        assert "insufficient_scope" in answer.headers["www-authenticate"]
    for field in route.besides_for:
        asks = (body or {}) | {field: {"unset": ["to"], "tick_as": "to"}.get(field, {"to": "bob"})}
        alone = web(route.method, path, asks, token=token_of(app, f"alone-{field}", [route.scope]))
        assert (alone.status_code, alone.json()["field"]) == (403, field)
        assert web(route.method, path, asks, token=real).status_code not in (401, 403)
    elsewhere = web(route.method, path, body, token=token_of(app, "elsewhere", own, ("cellar.*",)))
    if route.reach is not Reach.OWN:  # of a task not even that there is one is told
        expected = 404 if "/tasks/{name}" in route.path else 403
        assert elsewhere.status_code == expected, elsewhere.text
    assert web(route.method, path, body, token=real).status_code not in (401, 403)


def test_every_listing_of_own_queues_has_something_that_it_leaves_out() -> None:
    listings = {route.path for route in CLOSED if route.reach is Reach.OWN}
    assert listings == OWN.keys() | OF_NO_QUEUE


@pytest.mark.parametrize("path", OWN)
def test_what_is_of_other_queues_is_left_out_of_every_listing(
    path: str, kit: Kit, shop: Shop, web: Web
) -> None:
    query, shown = OWN[path]
    something_of_each(kit, shop)
    headers = {"Last-Event-ID": "0"} if "events" in path else {}
    texts = {
        name: web(
            "GET", f"{path}?{query}", token=token_of(kit.app, name, [Scope.READ], queues), headers=headers
        )
        for name, queues in (("every", ()), ("own", ("mail", "orders")), ("elsewhere", ("cellar.*",)))
    }
    assert {name: answer.status_code for name, answer in texts.items()} == dict.fromkeys(texts, 200)
    assert {name: shown in answer.text for name, answer in texts.items()} == {
        "every": True, "own": True, "elsewhere": False,
    }  # fmt: skip
    for word in ("mail", "orders", "news", "ann"):
        assert f'"{word}"' not in texts["elsewhere"].text


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Basic bHNoXw==", "Bearer lsh_", "Token lsh_" + "A" * 64, "Bearer " + "A" * 3000]
)
def test_what_is_no_bearer_token_is_refused(web: Web, header: str) -> None:
    assert web("GET", "/v1/queues", token=None, headers={"Authorization": header}).status_code == 401


def test_a_token_is_good_for_nothing_as_soon_as_it_is_revoked(web: Web, kit: Kit) -> None:
    text = token_of(kit.app, "ann", [Scope.READ])
    assert web("GET", "/v1/queues", token=text).status_code == 200
    [token] = [each for each in kit.app.store.tokens.list(10) if each.name == "ann"]
    kit.app.store.tokens.revoke(token.id, by="a test")
    answer = web("GET", "/v1/queues", token=text)
    assert answer.status_code == 401
    assert "revoked" in answer.json()["detail"]


def test_a_token_of_some_queues_sees_and_does_what_is_in_them(web: Web, kit: Kit, shop: Shop) -> None:
    job, other = shop.send.enqueue("ann"), shop.thumbnail.enqueue("cat.png")
    text = token_of(kit.app, "mailer", [Scope.OPERATE, Scope.ENQUEUE], ("mail*",))
    assert [each["name"] for each in web("GET", "/v1/queues", token=text).json()["queues"]] == ["mail"]
    assert web("GET", f"/v1/jobs/{job.id}", token=text).status_code == 200
    assert web("GET", f"/v1/jobs/{other.id}", token=text).status_code == 403
    assert web("GET", "/v1/jobs", token=text).status_code == 403
    assert len(web("GET", "/v1/jobs?queue=mail", token=text).json()["jobs"]) == 1
    sent = web("POST", "/v1/tasks/send/jobs", {"arguments": {"to": "bob"}, "queue": "images"}, token=text)
    assert sent.status_code == 403
    assert web("POST", "/v1/tasks/send/jobs", {"arguments": {"to": "bob"}}, token=text).status_code == 202


LOOKALIKES = (
    "/v1/queues/", "//v1/queues", "/v1//queues", "/v1/queues;x", "/v1/queues/configs", "/V1/queues", "/v1/queues.", "/v1/./queues",
    "/v1/%2e%2e/v1/queues", "/v1%2fqueues", "/v1/queues%00", "/health/live/../../v1/queues", "/v1/queues%20", "/v1/queues%2f",
)  # fmt: skip


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "OPTIONS", "PUT", "TRACE"])
def test_a_path_that_only_looks_like_one_leads_nowhere(web: Web, method: str) -> None:
    override = {
        "X-HTTP-Method-Override": "GET",
        "X-Original-URL": "/health/live",
        "X-Rewrite-URL": "/health/live",
    }
    for path in LOOKALIKES:
        assert web(method, path, token=None, headers=override).status_code in (401, 404, 405), path


def test_a_route_that_says_nothing_of_who_may_is_not_served(kit: Kit) -> None:
    def handler(asked: Asked) -> Done:
        """Does something."""
        return Done(subject="x", action="done", changed=True)

    open_door = Route(method="POST", path="/v1/x", handler=handler, gives=Done)
    with pytest.raises(TypeError, match="POST /v1/x declares no scope"):
        make_api(kit.app, routes=[*ROUTES, open_door])


def test_a_handler_that_forgets_its_queue_shows_nothing(kit: Kit) -> None:
    def handler(asked: Asked) -> Done:
        """Shows what it should not."""
        return Done(subject="a secret", action="shown", changed=False)

    forgetful = Route(
        method="GET", path="/v1/x", handler=handler, gives=Done, scope=Scope.READ, reach=Reach.ONE
    )
    with asking(kit.app, make_api(kit.app, routes=[forgetful])) as web:
        answer = web("GET", "/v1/x", token=token_of(kit.app, "some", [Scope.READ], ("mail",)))
    assert answer.status_code == 500
    assert "a secret" not in answer.text


def test_a_handler_that_forgets_its_queue_can_do_nothing(kit: Kit) -> None:
    def handler(asked: Asked) -> Done:
        """Does what it should not."""
        asked.store.queues.pause("mail", by=asked.by)
        return Done(subject="mail", action="paused", changed=True)

    def by_the_app(asked: Asked) -> Done:
        """Does it in another way."""
        asked.app.store.queues.pause("mail", by=asked.by)
        return Done(subject="mail", action="paused", changed=True)

    routes = [
        Route(method="POST", path=path, handler=each, gives=Done, scope=Scope.OPERATE, reach=Reach.ONE)
        for path, each in (("/v1/x", handler), ("/v1/y", by_the_app))
    ]
    with asking(kit.app, make_api(kit.app, routes=routes)) as web:
        for route in routes:
            assert web("POST", route.path).status_code == 500
    assert [view.paused_at for view in kit.app.store.queues.list()] in ([], [None])


def test_the_matrix_names_every_route_and_who_may() -> None:
    lines = matrix()
    assert len(lines) == len(ROUTES) + 2  # the metrics, and the document
    assert ("POST", "/v1/tasks/{name}/jobs", "enqueue", "one queue") in lines
    assert ("GET", "/health/live", "public", "") in lines
    assert ("POST", "/v1/tasks/{name}/schedules", "operate, enqueue", "one queue") in lines
    assert (
        "POST",
        "/v1/schedules/{name}/edit",
        "operate, enqueue for arguments or tick_as",
        "one queue",
    ) in lines
    assert ("POST", "/v1/jobs/{id}/resubmit", "operate, enqueue for change or unset", "one queue") in lines
    taking = {
        route.path for route in ROUTES if route.takes is not None and Scope.OPERATE in route.always
        and {"change", "unset", "arguments"} & set(route.takes.__struct_fields__)
    }  # fmt: skip
    assert taking == {route.path for route in ROUTES if route.besides is Scope.ENQUEUE}


def test_a_second_scope_for_what_no_body_says_is_not_served() -> None:
    def handler(asked: Asked) -> Done:
        """Does something."""
        return Done(subject="x", action="done", changed=True)

    route = Route(
        method="POST", path="/v1/x", handler=handler, gives=Done, takes=Done, scope=Scope.OPERATE, reach=Reach.ALL,
        besides=Scope.ENQUEUE, besides_for=("arguments",),
    )  # fmt: skip
    with pytest.raises(TypeError, match="arguments is no field of its body"):
        route.check()


def test_when_a_token_was_used_is_noted_and_an_operators_deed_has_its_name(web: Web, kit: Kit) -> None:
    web("POST", "/v1/queues/mail/pause")
    [queue] = [each for each in web("GET", "/v1/queues").json()["queues"] if each["name"] == "mail"]
    assert queue["paused_by"] == "token all"
    [row] = kit.app.store.audit.list(limit=1, action="pause")
    assert row.actor == "token all"
    [token] = kit.app.store.tokens.list(10)
    assert token.last_used_at is not None


def test_a_token_starts_nothing_of_another_queue_by_naming_its_own(web: Web, shop: Shop) -> None:
    mine = token_of(web.app, "mine", [Scope.ENQUEUE, Scope.OPERATE], ("images",))
    started = {"arguments": {"to": "ann"}, "queue": "images"}
    assert web("POST", "/v1/tasks/send/jobs", started, token=mine).status_code == 404
    scheduled = {"name": "mine", "cron": "0 2 * * *", "arguments": {"to": "ann"}, "queue": "images"}
    assert web("POST", "/v1/tasks/send/schedules", scheduled, token=mine).status_code == 404
    assert (
        web("POST", "/v1/tasks/thumbnail/jobs", {"arguments": {"path": "x"}}, token=mine).status_code == 202
    )


def test_an_operator_makes_no_work_by_a_schedule(web: Web, shop: Shop) -> None:
    operator = token_of(web.app, "operator", [Scope.OPERATE])
    body = {"name": "mine", "cron": "0 2 * * *", "arguments": {"to": "ann"}}
    refused = web("POST", "/v1/tasks/send/schedules", body, token=operator)
    assert (refused.status_code, refused.json()["type"]) == (403, "urn:lateshift:problem:scope-forbidden")
    assert web("POST", "/v1/tasks/send/schedules", body).status_code == 201
    changed = {"arguments": {"to": "bob"}}
    assert web("POST", "/v1/schedules/mine/edit", changed, token=operator).status_code == 403
    assert web("POST", "/v1/schedules/mine/edit", {"cron": "0 3 * * *"}, token=operator).status_code == 200


def test_a_schedule_is_not_named_as_one_of_another_queue_and_hears_nothing_of_it(
    web: Web, kit: Kit, shop: Shop
) -> None:
    kit.travel(seconds=1)
    mine = token_of(web.app, "mine", [Scope.ENQUEUE, Scope.OPERATE], ("images",))
    body = {"cron": "0 2 * * *", "arguments": {"path": "x"}}
    refused = web("POST", "/v1/tasks/thumbnail/schedules", body | {"name": "news"}, token=mine)
    assert (refused.status_code, refused.json()["type"]) == (403, "urn:lateshift:problem:queue-forbidden")
    assert refused.json()["detail"].endswith("Give it another name.")
    assert web("POST", "/v1/tasks/thumbnail/schedules", body | {"name": "own"}, token=mine).status_code == 201
    for token in (mine, ""):
        again = web("POST", "/v1/tasks/thumbnail/schedules", body | {"name": "own"}, token=token)
        assert (again.status_code, "There is a schedule 'own' already" in again.text) == (422, True)


def test_a_token_gives_no_other_arguments_to_a_task_of_another_queue(web: Web, kit: Kit, shop: Shop) -> None:
    job = shop.send.options(queue="images").enqueue("nobody")
    kit.app.schedule(shop.send.options(queue="images"), args=["all"], name="here", cron="0 2 * * *")
    kit.travel(seconds=1)
    mine = token_of(web.app, "mine", [Scope.ENQUEUE, Scope.OPERATE], ("images",))
    changed = {"change": {"to": "ann"}}
    assert web("POST", f"/v1/jobs/{job.id}/resubmit", changed, token=mine).status_code == 403
    letters = web("POST", "/v1/dead-letters/resubmit", {"queue": "images", **changed}, token=mine)
    assert (letters.status_code, "Narrow the filter" in letters.text) == (422, True)
    edited = web("POST", "/v1/schedules/here/edit", {"arguments": {"to": "ann"}}, token=mine)
    assert (edited.status_code, edited.json()["type"]) == (403, "urn:lateshift:problem:queue-forbidden")
    assert web("POST", f"/v1/jobs/{job.id}/resubmit", token=mine).status_code == 200
