"""The application that a server runs, made of the routes."""

from collections.abc import Awaitable, Callable, Collection, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp

from lateshift.api.answering import endpoint_of, problem_of
from lateshift.api.authentication import Doorkeeper
from lateshift.api.bounds import BOUNDS, Bounds
from lateshift.api.budget import Budgets
from lateshift.api.guard import Guard, Network
from lateshift.api.openapi import document_route
from lateshift.api.problem import Refused
from lateshift.api.rates import Rate
from lateshift.api.route import Route
from lateshift.api.routes.all import ROUTES
from lateshift.api.routes.metrics import metrics_route
from lateshift.api.shortcut import Short, Shortcut
from lateshift.api.streaming import Streams
from lateshift.api.turns import Turns
from lateshift.app.app import Lateshift

Missing = Callable[[Request, Exception], Awaitable[Response]]
LOOPBACK = ("127.0.0.1", "::1", "localhost")  # by which names a server on this machine is called


def make_api(
    app: Lateshift,
    *,
    hosts: Collection[str] = LOOPBACK,
    peers: Sequence[Network] = (),
    routes: Sequence[Route] = ROUTES,
    bounds: Bounds = BOUNDS,
) -> ASGIApp:
    """An ASGI application for an app: for uvicorn, or any server that speaks it. `hosts`: the names that clients may call it by.
    `peers`: the networks of its proxies, if only they may ask it. Raises TypeError for a route that does not say who may."""
    doorkeeper = doorkeeper_of(app, bounds, peers)
    return behind_guard(
        served_routes(app, doorkeeper, routes, bounds),
        hosts=hosts,
        peers=peers,
        rate=rate_of(app, bounds.address_rate),
    )


def rate_of(app: Lateshift, per_second: float) -> Rate:
    """By the clock that the app has at the time."""

    def now() -> float:
        return app.clock.monotonic()

    return Rate(per_second, now)


def doorkeeper_of(app: Lateshift, bounds: Bounds, peers: Sequence[Network]) -> Doorkeeper:
    turns = Turns(bounds.dear, bounds.dear_of_token)
    return Doorkeeper(
        app,
        rate_of(app, bounds.token_rate),
        by_address=not peers,
        turns=turns,
        budgets=Budgets(bounds),
    )


def served_routes(
    app: Lateshift, doorkeeper: Doorkeeper, routes: Sequence[Route] = ROUTES, bounds: Bounds = BOUNDS
) -> list[StarletteRoute]:
    """And the document about them, as Starlette has them."""
    streams = Streams(bounds)
    return [
        Short(route.path, endpoint_of(route, app, doorkeeper, bounds, streams), methods=[route.method])
        for route in with_document(routes)
    ]


def behind_guard(
    routes: Sequence[StarletteRoute],
    *,
    hosts: Collection[str],
    peers: Sequence[Network],
    rate: Rate | None = None,
    missing: Missing | None = None,
) -> ASGIApp:
    """What a server runs: nothing is reached but by the door. `rate`: of one address. `missing`: answers for what there is nothing at."""
    starlette = Starlette(routes=routes, exception_handlers={HTTPException: missing or not_there})
    starlette.router.redirect_slashes = False  # a path is what it is: no second way to the same
    return Guard(Shortcut(routes, starlette), hosts=hosts, peers=peers, rate=rate)


def with_document(routes: Sequence[Route]) -> list[Route]:
    """And those of the metrics and of the document about all of them; each looked at."""
    served = [*routes, metrics_route()]
    served.append(document_route(served))
    for route in served:
        route.check()
    return served


def matrix(routes: Sequence[Route] = ROUTES) -> list[tuple[str, str, str, str]]:
    """Who may do what: method, path, scope, and for a token of some queues, which."""
    return [
        (route.method, route.shown_path, route.scopes, "" if route.reach is None else str(route.reach))
        for route in with_document(routes)
    ]


async def not_there(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        allowed = ", ".join(sorted(headers.get("Allow", "").split(", ")))
        refused = Refused(
            405, "method-not-allowed", f"This path answers to {allowed}.", headers={"Allow": allowed}
        )
    elif error.status_code == 404:
        refused = Refused(
            404, "not-found", "There is nothing at this path. GET /v1/openapi.json lists what there is."
        )
    else:
        refused = Refused(error.status_code, "refused", error.detail, headers=headers)
    return problem_of(refused, request.url.path)
