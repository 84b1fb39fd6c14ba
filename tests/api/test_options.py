"""Which option of a request is wrong is said in `field`, and when it is worth looking at a job, in `Retry-After`."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from lateshift.model.looking import RETRY_AFTER_MOST
from lateshift.testing import Kit
from tests.api.asking import Web

START = "/v1/tasks/thumbnail/jobs"
ARGUMENTS = {"arguments": {"path": "a"}}


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"queue": "a b"}, "queue"), ({"sequence": 1}, "session"), ({"session": "s", "sequence": 0}, "sequence"),
        ({"delay": 1, "at": "2030-01-01T00:00:00Z"}, "at"), ({"limit_key": "vendor"}, "limit_key"), ({"reply_to": "nowhere"}, "reply_to"),
        ({"reply_to": "task:nothing"}, "reply_to"), ({"reply_to": "channel:a b"}, "reply_to"), ({"reply_to": "http://127.0.0.1/"}, "reply_to"),
        ({"correlation_id": "7"}, "reply_to"), ({"reply_to": "channel:x", "reply_on": []}, "reply_on"), ({"priority": 10**6}, "priority"),
        ({"delay": -1}, "delay"), ({"tags": [f"t{number}" for number in range(100)]}, "tags"),
    ],
)  # fmt: skip
def test_an_option_that_cannot_be_is_named(web: Web, wrong: dict[str, Any], field: str) -> None:
    answer = web("POST", START, ARGUMENTS | wrong)
    assert (answer.status_code, answer.json().get("field")) == (422, field), answer.json()


def test_a_token_that_cannot_be_names_what_is_wrong(web: Web) -> None:
    for wrong, field in (
        ({"name": "a b"}, "name"),
        ({"queues": ["a b"]}, "queues"),
        ({"scopes": []}, "scopes"),
    ):
        answer = web("POST", "/v1/tokens", {"name": "x", "scopes": ["read"]} | wrong)
        assert (answer.status_code, answer.json()["field"]) == (422, field)


def test_a_moment_that_is_none_is_named(web: Web) -> None:
    assert web("GET", "/v1/jobs?since=soon").json()["field"] == "since"


DAY = int(RETRY_AFTER_MOST.total_seconds())


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ({"at": timedelta(minutes=10)}, 600), ({"at": timedelta(days=30)}, DAY), ({"at": timedelta(days=-1)}, 1),
        ({"delay": 90}, 90), ({"delay": 0.2}, 1), ({"delay": 30 * 86_400}, DAY), ({}, 1),
    ],
)  # fmt: skip
def test_a_job_is_not_looked_for_long_before_it_is_due(
    web: Web, kit: Kit, body: dict[str, Any], after: int
) -> None:
    now: datetime = kit.app.store.clock.now()
    said = {"at": (now + body["at"]).isoformat()} if "at" in body else body
    made = web("POST", START, ARGUMENTS | said)
    assert abs(int(made.headers["retry-after"]) - after) <= 2
