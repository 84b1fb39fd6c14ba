"""Every route and every page, asked for in other words than its own, over a real socket: whoever is not let in by the door is let in by
no other way, and nothing is a fault."""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

import pytest

from lateshift.api.application import with_document
from lateshift.api.bounds import Bounds
from lateshift.api.route import PUBLIC
from lateshift.api.routes.all import ROUTES
from lateshift.dashboard.pages.all import PAGES
from lateshift.dashboard.site import Site
from lateshift.model.access import Scope
from lateshift.testing import Kit
from tests.api.asking import token_of
from tests.api.running import running
from tests.api.shop import Shop
from tests.dashboard.callers import ELSEWHERE
from tests.dashboard.filled import FORMS
from tests.dashboard.lookalikes import HEADS, HOST, METHODS, Wire, request, targets
from tests.dashboard.test_doors import DOORS

SIGN_OUT = ("POST", "/sign-out")
CLOSED = [
    *[(route.method, route.path) for route in with_document(ROUTES) if route.scope != PUBLIC],
    *[("GET", page.path) for page in PAGES],
    *[("POST", form.path) for form in FORMS],
    SIGN_OUT,
]
OPEN = [
    *[(route.method, route.path) for route in with_document(ROUTES) if route.scope == PUBLIC],
    *sorted(DOORS - {SIGN_OUT}),
]
PATTERNS = [
    re.compile(re.sub(r"{\w+}", "[^/]+", path.replace(".", "[.]").replace("{name:path}", ".+")))
    for _, path in (*CLOSED, *OPEN)
]
ENDLESS = [route.path for route in ROUTES if route.stream]
NAMES = {"tasks": "send", "queues": "mail", "schedules": "news", "breakers": "pay"}
DENIED = (400, 401, 403, 404, 405, 421)


@pytest.fixture
def wire(kit: Kit, shop: Shop) -> Iterator[Wire]:
    """To a server that counts no requests: the clock of the tests stands still."""
    site = Site(kit.app, bounds=Bounds(address_rate=1e9, token_rate=1e9))
    with running(site.application) as port:
        wire = Wire(port)
        yield wire
        wire.close()


@pytest.fixture
def run(kit: Kit, shop: Shop) -> str:
    """The id of a run, which is a job too."""
    job = shop.order.enqueue(1)
    kit.travel(seconds=1)
    return str(job.id)


def there(path: str, run: str) -> str:
    """The path with the names of what is there."""
    name = NAMES.get(path.removeprefix("/v1").split("/")[1], "x")
    return (
        path.replace("{id}", run).replace("{name:path}", name).replace("{name}", name).replace("{step}", "1")
    )


def let_in(
    wire: Wire, requests: Iterable[bytes], refused: tuple[int, ...] = DENIED
) -> list[tuple[bytes, int]]:
    """Those of them that were not refused; to be led to signing in is that, too."""
    found = []
    for sent in requests:
        status, headers, body = wire.ask(sent)
        to_door = status == 303 and headers["location"].partition("?")[0] == "/sign-in" and not body
        if not (status in refused or to_door) or "x-split" in headers or "set-cookie" in headers:
            found.append((sent, status))
    return found


def test_no_other_way_to_write_a_path_leads_there(wire: Wire, run: str) -> None:
    paths = [(method, there(path, run)) for method, path in CLOSED]
    asked = [request(method, target) for method, path in paths for target in targets(path)]
    assert let_in(wire, asked) == []
    assert let_in(wire, [request(method, path) for method, path in paths]) == []


def test_no_other_method_leads_there(wire: Wire, run: str) -> None:
    paths = {there(path, run) for _, path in CLOSED}
    assert let_in(wire, [request(method, path) for path in sorted(paths) for method in METHODS]) == []


def test_no_header_leads_there(wire: Wire, run: str) -> None:
    paths = [(method, there(path, run)) for method, path in CLOSED]
    asked = [request(method, path, head) for method, path in paths for head in HEADS]
    assert let_in(wire, asked) == []


def test_who_is_known_and_may_not_is_let_in_by_no_other_way_either(wire: Wire, run: str, kit: Kit) -> None:
    head = known_as(token_of(kit.app, "elsewhere", [Scope.ENQUEUE], ELSEWHERE))
    paths = [(method, there(path, run)) for method, path in CLOSED]
    asked = [request(method, target, head) for method, path in paths for target in targets(path)]
    assert let_in(wire, asked, refused=(*DENIED, 422)) == []


def test_who_may_is_answered_where_there_is_something_and_nowhere_else(
    wire: Wire, run: str, kit: Kit
) -> None:
    head = known_as(token_of(kit.app, "all", [Scope.ADMIN]))
    paths = [there(path, run) for method, path in CLOSED if method == "GET" and path not in ENDLESS]
    assert [wire.ask(request("GET", path, head))[0] for path in paths].count(200) > len(paths) / 2
    for target in [target for path in paths for target in targets(path)]:
        status, headers, _ = wire.ask(request("GET", target, head))
        assert status < 500, target
        assert is_somewhere(target) or status in DENIED, target
        assert "x-split" not in headers, target


def known_as(token: str) -> bytes:
    """To the API and to the pages."""
    sent = (
        f"Authorization: Bearer {token}\r\nCookie: lateshift-8642={token}\r\nSec-Fetch-Site: same-origin\r\n"
    )
    return HOST + sent.encode()


def is_somewhere(target: str) -> bool:
    """Whether it is the path of something, letter by letter."""
    path = unquote(target.partition("?")[0])
    return any(pattern.fullmatch(path) for pattern in PATTERNS)


def test_nothing_of_what_is_open_is_a_fault_however_it_is_asked_for(wire: Wire, run: str) -> None:
    paths = [(method, there(path, run)) for method, path in OPEN]
    asked = [request(method, target) for method, path in paths for target in targets(path)]
    asked += [request(method, path) for _, path in paths for method in METHODS]
    asked += [request(method, path, head) for method, path in paths for head in HEADS]
    answers = [(sent, *wire.ask(sent)) for sent in asked]
    assert [(sent, status) for sent, status, _, _ in answers if status not in (200, 415, 422, *DENIED)] == []
    assert not [
        sent for sent, _, headers, _ in answers if {"x-split", "set-cookie", "location"} & headers.keys()
    ]
