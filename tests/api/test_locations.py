"""Where what was made is found: below whatever prefix the API is mounted at, on both stores."""

from typing import Any
from urllib.parse import quote

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from lateshift.api.application import make_api
from lateshift.api.asked import Asked
from lateshift.api.route import Answer, Reach, Route
from lateshift.api.routes.all import ROUTES
from lateshift.model.access import Scope
from lateshift.testing import Kit
from tests.api.asking import asking
from tests.api.shop import DAILY

LOCATING = [route for route in ROUTES if route.locates]
MADE: dict[str, tuple[str, dict[str, Any]]] = {
    "/v1/tasks/{name}/jobs": ("/v1/tasks/thumbnail/jobs", {"arguments": {"path": "a"}}),
    "/v1/tasks/{name}/schedules": (
        "/v1/tasks/send/schedules",
        {"name": "jeden Morgen/☀", "arguments": {"to": "ann"}, "cron": DAILY},
    ),
}


def test_what_is_made_says_where_it_is() -> None:
    assert {route.path for route in LOCATING} == MADE.keys()


@pytest.mark.parametrize("prefix", ["", "/jobs-api", "/été"])
@pytest.mark.parametrize("route", LOCATING, ids=lambda route: route.path)
def test_a_location_leads_to_what_was_made_below_any_prefix(kit: Kit, route: Route, prefix: str) -> None:
    path, body = MADE[route.path]
    with asking(kit.app, Starlette(routes=[Mount(prefix or "/", make_api(kit.app))])) as web:
        [made] = web.at_once(1, "POST", prefix + path, body)
        assert made.status_code == route.status, made.text
        assert made.headers["location"].startswith(quote(f"{prefix}/v1/"))
        assert web.plain("GET", made.headers["location"], {}).status_code == 200
    assert made.json().get("status", made.headers["location"]) == made.headers["location"]


@pytest.mark.parametrize(("locates", "location"), [(False, "/v1/queues"), (True, None)])
def test_a_route_that_does_not_say_that_it_gives_a_location_gives_none(
    kit: Kit, locates: bool, location: str | None
) -> None:
    def make(asked: Asked) -> Answer:
        """Make something."""
        return Answer({}, location=location)

    route = Route(
        method="POST", path="/v1/x", handler=make, gives=dict[str, int], scope=Scope.ADMIN, reach=Reach.ALL, locates=locates
    )  # fmt: skip
    with asking(kit.app, make_api(kit.app, routes=[route])) as web:
        assert web("POST", "/v1/x").status_code == 500
