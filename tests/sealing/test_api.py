"""The API in front of a sensitive queue: what comes in is checked by the task's types and sealed, what goes out is masked."""

import pytest

from lateshift import Lateshift
from lateshift.api import repeating
from lateshift.api.application import make_api
from lateshift.api.asked import Asked
from lateshift.model.sealed import MASK, is_sealed
from lateshift.testing import Kit, testing
from tests.api.asking import Web, asking
from tests.sealing.clinic import DIGEST, SECRETS, clinic, kept, leaks


def test_no_answer_has_a_secret(web: Web, kit: Kit, store_url: str) -> None:
    told = ""
    for task in ("examine", "fail"):
        body = {"arguments": {"name": SECRETS["argument"]}}
        keyed = {"Idempotency-Key": SECRETS["key"] + task}
        made = web("POST", f"/v1/tasks/{task}/jobs", body, headers=keyed)
        assert made.status_code == 202
        again = web("POST", f"/v1/tasks/{task}/jobs", body, headers=keyed)
        assert again.json()["id"] == made.json()["id"]
        where = made.headers["location"]
        assert web("GET", where).json()["arguments"] == MASK
        kit.drain()
        told += made.text + web("GET", where).text + web("GET", f"{where}/explain").text
    shown = web("GET", where).json()
    assert (shown["state"], shown["history"][-1]["message"]) == ("dead", MASK)
    for path in ("/v1/jobs", "/v1/dead-letters", f"{where}/logs", "/v1/queues", "/v1/overview", "/metrics"):
        answer = web("GET", path)
        assert (path, answer.status_code) == (path, 200)
        told += answer.text
    changed = web("POST", f"{where}/resubmit", {"change": {"name": SECRETS["batch"]}})
    assert changed.status_code == 200
    told += changed.text + web("GET", where).text
    assert leaks(told.encode()) == []
    assert {place: leaks(bytes) for place, bytes in kept(store_url) if leaks(bytes)} == {}


def test_a_body_that_does_not_fit_is_refused_before_anything_is_sealed(web: Web, kit: Kit) -> None:
    refused = web("POST", "/v1/tasks/examine/jobs", {"arguments": {"nome": "Ada"}})
    assert (refused.status_code, refused.json()["field"]) == (422, "arguments.nome")
    assert kit.enqueued() == []


def test_a_server_without_the_ring_says_so_and_writes_nothing(
    store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """To the client that it may ask again; what to do about it, to the log alone."""
    app = clinic(store_url, DIGEST)
    with testing(app, store=store_url) as kit, asking(app, make_api(app)) as web:
        body, key = {"arguments": {"name": "Ada"}}, {"Idempotency-Key": "one"}
        for headers in ({}, key, key):
            refused = web("POST", "/v1/tasks/examine/jobs", body, headers=headers)
            problem = refused.json()
            assert (refused.status_code, problem["type"]) == (503, "urn:lateshift:problem:seal-key-missing")
            assert (
                problem["detail"]
                == "This server lacks the key to seal with; its log says more. Nothing was done."
            )
            assert refused.headers["Retry-After"] == "1"
        assert "export LATESHIFT_KEYS=" in caplog.text
        assert kit.enqueued() == []


def test_what_the_api_took_is_sealed(web: Web, app: Lateshift) -> None:
    made = web("POST", "/v1/tasks/examine/jobs", {"arguments": {"name": "Ada"}})
    assert is_sealed(app.job(made.json()["id"]).view().payload)


def test_what_is_kept_of_a_request_cannot_be_tried_out(
    web: Web, kit: Kit, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads the table knows all but the argument, and has few to try."""
    made = web("POST", "/v1/tasks/fail/jobs", {"arguments": {"name": "4111"}})
    kit.drain()
    written: list[bytes] = []
    tried: list[bytes] = []
    made_of = repeating._request

    def seen(asked: Asked, secret: bytes) -> bytes:
        tried.append(made_of(asked, b""))
        written.append(made_of(asked, secret))
        return written[-1]

    monkeypatch.setattr(repeating, "_request", seen)
    body = {"change": {"name": "4242"}}
    keyed = {"Idempotency-Key": "once"}
    url = f"{made.headers['location']}/resubmit"
    assert [web("POST", url, body, headers=keyed).status_code for _ in range(2)] == [200, 200]
    assert len({*written}) == 1
    assert len({*tried}) == 1  # a digest that everybody can make
    told = b"".join(bytes for _, bytes in kept(store_url))
    assert (written[0] in told, tried[0] in told, b"4242" in told) == (True, False, False)
