"""Headers of which one value is read stand once: of two nobody knows which is meant."""

import pytest

from lateshift.api.guard import ONCE
from lateshift.testing import Kit
from tests.api.asking import LOCAL, Web
from tests.api.running import answered, running
from tests.api.shop import Shop

PAIRS = {
    "content-type": ("application/json", "text/plain"),
    "content-length": ("2", "20"),
    "last-event-id": ("1", "2"),
    "origin": (LOCAL, "https://evil.example"),
    "sec-fetch-site": ("same-origin", "cross-site"),
    "cookie": ("a=1", "a=2"),
}


def test_each_of_them_is_tried() -> None:
    assert {name.lower() for name in ONCE.values()} == PAIRS.keys()


@pytest.mark.parametrize(
    "path", ["/v1/tasks/thumbnail/jobs", "/v1/queues/images/pause", "/hooks/nosuch", "/v1/nothing"]
)
@pytest.mark.parametrize("name", sorted(PAIRS.keys() - {"content-length"}))
def test_a_header_of_which_one_value_is_read_is_refused_if_it_stands_twice(
    web: Web, name: str, path: str
) -> None:
    for pair in (PAIRS[name], PAIRS[name][::-1], PAIRS[name][:1] * 2):
        answer = web.twice("POST", path, name, pair)
        assert (answer.status_code, answer.json()["type"]) == (400, "urn:lateshift:problem:header-twice")
        assert answer.json()["field"].lower() == name
    assert web("GET", "/v1/jobs").json()["jobs"] == []


def test_two_lengths_are_no_request(kit: Kit, shop: Shop, web: Web) -> None:
    with running(web.api) as port:
        head = f"POST /v1/tasks/thumbnail/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {web.token}\r\n"
        said = answered(port, f"{head}Content-Length: 2\r\nContent-Length: 20\r\n\r\n{{}}".encode())
    assert said.startswith(b"HTTP/1.1 400 ")
