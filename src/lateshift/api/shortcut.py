"""The short way to a route: a request whose path and method fit one is answered without the layers of a framework, which cost as
much as the answer. What fits none goes the usual way, and hears there what is wrong."""

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send


class Short(Route):
    """A route whose endpoint makes an answer of whatever goes wrong, so that nobody needs to stand around it. Its parameters are
    text."""


class Shortcut:
    """Finds the first route that fits, as the framework does."""

    def __init__(self, routes: Sequence[BaseRoute], otherwise: ASGIApp) -> None:
        self._otherwise = otherwise
        self._ways: dict[str, list[tuple[str, Any, Any]]] = {}
        for route in routes:
            if isinstance(route, Short):
                way = (route.path.partition("{")[0], route.path_regex, route.endpoint)
                for method in route.methods or ():
                    self._ways.setdefault(method, []).append(way)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Below a prefix, paths are not as the routes have them.
        path = "" if scope.get("root_path") else scope["path"]
        for before, pattern, endpoint in self._ways.get(scope["method"], ()):
            if path.startswith(before) and (found := pattern.match(path)) is not None:
                scope["path_params"] = found.groupdict()
                response = await endpoint(Request(scope, receive, send))
                await response(scope, receive, send)
                return
        await self._otherwise(scope, receive, send)
