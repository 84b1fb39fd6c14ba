"""Each route by another name: whatever is done to its path, its method or its head, no door opens that was shut."""

import socket
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from lateshift.api.application import make_api, with_document
from lateshift.api.route import PUBLIC, Route
from lateshift.api.routes.all import ROUTES
from lateshift.model.access import Scope
from lateshift.testing import Kit
from tests.api.asking import token_of
from tests.api.running import connected, heard, running
from tests.api.shop import Shop
from tests.api.test_refusals import filled

CLOSED = [route for route in with_document(ROUTES) if route.scope != PUBLIC]
REFUSED = {400, 401, 403, 404, 405, 411, 413, 415, 421, 422}


def mutations(path: str) -> Iterator[str]:
    """The path, and paths that a careless router would take for it."""
    first, _, rest = path[1:].partition("/")
    last = path.rsplit("/", 1)[1]
    yield path
    yield from (
        path + end
        for end in (
            "/",
            "//",
            ";x",
            "/.",
            "/..",
            "/configs",
            ".",
            "%20",
            "%00",
            "%2f",
            "%0a",
            "?",
            "#x",
            ".json",
        )
    )
    yield from (
        "/" + path,
        f"/./{path[1:]}",
        f"/x/..{path}",
        f"/%2e{path}",
        f"/%2e%2e{path}",
        f"/health/live/..%2f..{path}",
    )
    yield from (
        f"/{first}//{rest}",
        f"/{first}%2f{rest}",
        f"/{first};a=b/{rest}",
        f"/{first}\\{rest}",
        f"/{first}/%2e/{rest}",
    )
    yield from (path.upper(), path.replace("v1", "V1"), path.replace(last, quote(last).replace("e", "%65")))
    yield from (
        f"http://127.0.0.1{path}",
        f"//127.0.0.1{path}",
        f"/health/live?next={path}",
        f"/health/live{path}",
    )


def heads(route: Route, path: str) -> Iterator[tuple[str, str]]:
    for method in dict.fromkeys(
        (route.method, "GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE")
    ):
        yield method, ""
    yield (
        "GET",
        f"X-HTTP-Method-Override: {route.method}\r\nX-Original-URL: {path}\r\nX-Rewrite-URL: {path}\r\n",
    )
    yield (
        "POST",
        f"X-HTTP-Method: {route.method}\r\nX-Forwarded-Prefix: {path}\r\nX-Forwarded-For: 127.0.0.1\r\n",
    )


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("route", CLOSED, ids=lambda route: f"{route.method} {route.path}")
def test_no_mutation_of_a_route_is_answered_without_a_token_or_with_one_that_may_not(
    route: Route, kit: Kit, shop: Shop
) -> None:
    path = filled(route, kit, shop)
    wrong = token_of(kit.app, "wrong", [Scope.READ if route.scope == Scope.ENQUEUE else Scope.ENQUEUE])
    before = len(kit.app.store.audit.list(limit=1000))
    with running(make_api(kit.app)) as port, connected(port) as connection:
        for bearer in ("", f"Authorization: Bearer {wrong}\r\n"):
            for mutation in mutations(path):
                seen = asked(port, connection, route.method, mutation, bearer)
                public = mutation.startswith("/health/live?")
                assert seen in ({405, 422} if public else REFUSED), (mutation, seen)
            for method, more in heads(route, path):
                assert asked(port, connection, method, path, bearer + more) in REFUSED, (method, more)
    assert len(kit.app.store.audit.list(limit=1000)) == before


def asked(port: int, connection: socket.socket, method: str, path: str, more: str) -> int:
    """On the same connection, or on another where the server has closed it."""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n{more}\r\n".encode()
    try:
        connection.sendall(head)
        answer = heard_head(connection, method)
    except OSError:
        answer = b""
    if not answer:
        with connected(port) as another:
            another.sendall(head)
            answer = heard_head(another, method)
    return int(answer.split(b" ", 2)[1]) if answer else 400


def heard_head(connection: socket.socket, method: str) -> bytes:
    if method != "HEAD":
        return heard(connection)
    got = b""
    while b"\r\n\r\n" not in got and (part := connection.recv(65536)):
        got += part
    return got
