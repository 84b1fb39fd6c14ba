"""What is wrong with a request is told where it is asked, with the field, and as what it is."""

from typing import Any

import pytest

from lateshift.model.access import Scope
from lateshift.model.job import JobFilter
from lateshift.testing import Kit
from tests.api.asking import Web, token_of
from tests.api.shop import Shop
from tests.walks.test_replies import SECRET

JSON = {"Content-Type": "application/json"}


def sent(web: Web, text: str) -> Any:
    return web("POST", "/v1/tasks/thumbnail/jobs", content=text.encode(), headers=JSON)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ('{"path": "a", "width": 1e999}', "arguments.width"),
        ('{"path": "a", "width": -1e999}', "arguments.width"),
        ('{"boxes": [{"width": 1}, {"height": 1e999}]}', "arguments.boxes[1].height"),
        ('{"wörter": {"a.b": 1e999}}', "arguments.wörter.a.b"),
    ],
)
def test_a_number_that_cannot_be_kept_is_told_with_its_field(web: Web, arguments: str, field: str) -> None:
    said = sent(web, f'{{"arguments": {arguments}}}').json()
    assert (said["type"], said["field"]) == ("urn:lateshift:problem:body-invalid", field)
    assert field in said["detail"]


@pytest.mark.parametrize(
    "text",
    [r"\ud800", r"\ud800x", r"\ud800\u0041", r"\udc00", r"\ud800 and then some more of it", r"\\\ud83d"],
)
@pytest.mark.parametrize("place", ['{{"arguments": {{"path": "{}"}}}}', '{{"arguments": {{"{}": 1}}}}'])
def test_a_character_that_is_written_by_half_is_told_as_that(web: Web, text: str, place: str) -> None:
    refused = sent(web, place.format(text))
    assert (refused.status_code, "written by half" in refused.json()["detail"]) == (400, True)


@pytest.mark.parametrize("text", ['{"arguments": {', '{"arguments": {"path": "\\\\ud800'])
def test_a_body_that_ends_too_early_is_told_as_that(web: Web, text: str) -> None:
    assert "ends too early" in sent(web, text).json()["detail"]


def test_a_character_of_two_halves_is_taken(web: Web, kit: Kit) -> None:
    made = sent(web, r'{"arguments": {"path": "\ud83d\ude00 \\ud800"}}').json()
    assert web("GET", f"/v1/jobs/{made['id']}").json()["arguments"] == {"path": "\U0001f600 \\ud800"}


@pytest.mark.parametrize("path", ["é", "a b", "\u202e"])
def test_a_receiver_whose_url_cannot_be_sent_to_is_refused_when_it_is_asked(
    web: Web, kit: Kit, path: str
) -> None:
    kit.app.reply_webhook("http://127.0.0.1:9", secret=SECRET, internal=True)
    body = {"arguments": {"path": "a"}, "reply_to": f"http://127.0.0.1:9/{path}"}
    refused = web("POST", "/v1/tasks/thumbnail/jobs", body)
    assert (refused.status_code, refused.json()["field"], path in refused.text) == (422, "reply_to", False)
    assert kit.app.store.reports.jobs(JobFilter(), 10) == []


def told(answer: Any, name: str) -> tuple[int, str]:
    """Without the name that was asked for."""
    return answer.status_code, answer.text.replace(name, "NAME")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/tasks/{}", None),
        ("GET", "/v1/tasks/{}/graph", None),
        ("POST", "/v1/tasks/{}/jobs", {}),
        ("POST", "/v1/tasks/{}/jobs", {"queue": "images"}),
        ("POST", "/v1/tasks/{}/schedules", {"name": "x", "every": 60}),
        ("GET", "/v1/schedules/{}", None),
        ("POST", "/v1/schedules/{}/pause", {}),
        ("POST", "/v1/tasks/thumbnail/jobs", {"arguments": {"path": "a"}, "reply_to": "task:{}"}),
        ("POST", "/v1/tasks/thumbnail/jobs", {"arguments": {"path": "a"}, "reply_to": ["task:{}"]}),
    ],
)
def test_what_is_of_another_queue_is_to_a_token_as_what_is_not_there(
    web: Web, kit: Kit, shop: Shop, method: str, path: str, body: Any
) -> None:
    @kit.app.task(queue="wards")
    def examine(name: str) -> None: ...

    some = token_of(web.app, "some", [Scope.READ, Scope.OPERATE, Scope.ENQUEUE], ("images",))

    def asked(name: str) -> tuple[int, str]:
        given = body and {key: _named(value, name) for key, value in body.items()}
        return told(web(method, path.format(name), given, token=some), name)

    there = "news" if "schedules/{" in path else "examine"
    assert asked(there) == asked("nobody-knows")
    assert asked(there)[0] in (403, 404, 422)


def _named(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return [_named(each, name) for each in value]
    return value.replace("{}", name) if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("path", "body", "title", "says"),
    [
        ("/v1/tasks/send/jobs", b'{"arguments": {"to": "ann"}, "delay": "soon"}', "Body invalid",
         "The body at 'delay': a number or null is expected, and this is a text."),
        ("/v1/tasks/send/jobs", b"[]", "Body invalid", "The body: an object is expected, and this is a list. Its fields: "),
        ("/v1/tasks/send/jobs", b"{", "JSON invalid", "The body cannot be read: "),
        ("/v1/jobs/no-id/cancel", b"{}", "ID unknown", ""),
    ],
)  # fmt: skip
def test_what_a_request_has_wrong_is_told_in_words(
    web: Web, shop: Shop, path: str, body: bytes, title: str, says: str
) -> None:
    told = web("POST", path, content=body, headers=JSON).json()
    assert (told["title"], told["detail"][: len(says)]) == (title, says)


def test_where_a_value_of_the_query_is_wrong_its_parameters_are_not_listed(web: Web, shop: Shop) -> None:
    """Where one is unknown they are, to choose from."""
    wrong = web("GET", "/v1/jobs?limit=many").json()["detail"]
    assert wrong == "The query at 'limit': a whole number is expected, and this is a text."
    assert "Its parameters: " in web("GET", "/v1/jobs?queues=mail").json()["detail"]
