"""Idempotency-Key on every POST: done once, answered twice."""

import threading
from typing import Any

import pytest

from lateshift.api.application import make_api, with_document
from lateshift.api.problem import PROBLEM
from lateshift.api.route import PUBLIC, Answer, Asked, Done, Reach, Route
from lateshift.api.routes.all import ROUTES
from lateshift.model.access import Scope
from lateshift.store.answer_contract import ANSWER_KEPT, ANSWER_LIMIT, ANSWER_WITHIN
from lateshift.testing import Kit
from tests.api.asking import Web, asking, token_of
from tests.api.shop import Shop

KEY = {"Idempotency-Key": "k1"}


def test_the_same_request_is_answered_as_the_first_was(web: Web, kit: Kit) -> None:
    first, again = (web("POST", "/v1/queues/mail/pause", headers=KEY) for _ in range(2))
    assert first.json()["changed"] is True
    assert (again.status_code, again.content) == (200, first.content)
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["x-content-type-options"] == "nosniff"
    assert len(kit.app.store.audit.list(limit=10, action="pause")) == 1
    assert web("POST", "/v1/queues/mail/pause").json()["changed"] is False


def test_what_makes_something_makes_it_once(web: Web, kit: Kit) -> None:
    kit.travel(seconds=1)
    jobs = {web("POST", "/v1/schedules/news/fire", headers=KEY).json()["job"] for _ in range(3)}
    assert len(jobs) == 1
    kit.travel(seconds=ANSWER_KEPT.total_seconds())
    assert web("POST", "/v1/schedules/news/fire", headers=KEY).json()["job"] not in jobs


def test_another_request_under_the_key_is_refused(web: Web) -> None:
    web("POST", "/v1/queues/mail/pause", headers=KEY)
    other = web("POST", "/v1/queues/images/pause", headers=KEY)
    assert (other.status_code, other.json()["field"]) == (422, "Idempotency-Key")
    body = {"all": True, "limit": 1}
    assert web("POST", "/v1/dead-letters/resubmit", body, headers=KEY).status_code == 200
    assert web("POST", "/v1/dead-letters/resubmit", body | {"limit": 2}, headers=KEY).status_code == 422
    assert web("POST", "/v1/dead-letters/resubmit", body, headers=KEY).status_code == 200


def test_a_key_is_of_one_token_and_of_one_route(web: Web, kit: Kit) -> None:
    other = token_of(kit.app, "other", [Scope.OPERATE])
    assert web("POST", "/v1/queues/mail/pause", headers=KEY).json()["changed"] is True
    assert web("POST", "/v1/queues/mail/resume", headers=KEY).json()["changed"] is True
    assert web("POST", "/v1/queues/mail/pause", headers=KEY, token=other).json()["changed"] is True


def test_what_was_refused_is_not_kept_and_the_key_is_free(web: Web, shop: Shop) -> None:
    nothing = web("POST", "/v1/queues/no queue/pause", headers=KEY)
    assert nothing.status_code == 422
    assert web("POST", "/v1/queues/mail/pause", headers=KEY).status_code == 200


def test_a_token_that_was_shown_is_kept_nowhere(web: Web, kit: Kit) -> None:
    body = {"name": "new", "scopes": ["read"]}
    first, again = (web("POST", "/v1/tokens", body, headers=KEY) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 409)


def test_a_request_that_is_under_way_is_told_to_wait_and_one_that_was_given_up_is_done_again(
    kit: Kit,
) -> None:
    begun, end = threading.Event(), threading.Event()
    done: list[int] = []

    def slow(asked: Asked) -> Done:
        """Takes its time."""
        done.append(1)
        begun.set()
        assert end.wait(30)
        return Done(subject="x", action="done", changed=True)

    route = Route(method="POST", path="/v1/x", handler=slow, gives=Done, scope=Scope.OPERATE, reach=Reach.ALL)
    with asking(kit.app, make_api(kit.app, routes=[route])) as web:
        first: list[Any] = []
        thread = threading.Thread(target=lambda: first.append(web.plain("POST", "/v1/x", KEY)))
        thread.start()
        assert begun.wait(30)
        late = web.plain("POST", "/v1/x", KEY)
        assert (late.status_code, late.headers["retry-after"]) == (409, "1")
        kit.clock.move(seconds=ANSWER_WITHIN.total_seconds())
        end.set()
        assert web.plain("POST", "/v1/x", KEY).json()["changed"] is True
        thread.join(30)
    assert first[0].status_code == 200
    assert len(done) in (1, 2)  # the first may have ended before the second asked


@pytest.mark.parametrize(("spare", "status"), [(0, 200), (1, 409)])
def test_of_an_answer_over_the_limit_it_is_kept_that_it_was_given(kit: Kit, spare: int, status: int) -> None:
    done: list[int] = []

    def long(asked: Asked) -> Answer:
        """Has much to say."""
        done.append(1)
        return Answer("x" * (ANSWER_LIMIT + spare), text="text/plain")

    route = Route(method="POST", path="/v1/x", handler=long, gives=str, scope=Scope.OPERATE, reach=Reach.ALL)
    with asking(kit.app, make_api(kit.app, routes=[route])) as web:
        first, again = (web.plain("POST", "/v1/x", KEY) for _ in range(2))
    assert (first.status_code, again.status_code, done) == (200, status, [1])
    if spare:
        assert again.headers["content-type"] == PROBLEM
        assert again.json()["type"] == "urn:lateshift:problem:answer-too-large"
    else:
        assert again.text == first.text


def test_a_fault_leaves_the_key_taken_until_its_time_is_over(kit: Kit) -> None:
    tries: list[int] = []

    def broken(asked: Asked) -> Done:
        """Has a fault, once."""
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError("nobody knows how far it came")
        return Done(subject="x", action="done", changed=True)

    route = Route(
        method="POST", path="/v1/x", handler=broken, gives=Done, scope=Scope.OPERATE, reach=Reach.ALL
    )
    with asking(kit.app, make_api(kit.app, routes=[route])) as web:
        answers = [web.plain("POST", "/v1/x", KEY).status_code for _ in range(2)]
        kit.travel(seconds=ANSWER_WITHIN.total_seconds())
        answers.append(web.plain("POST", "/v1/x", KEY).status_code)
    assert answers == [500, 409, 200]


@pytest.mark.parametrize(
    "route", [each for each in with_document(ROUTES) if each.method == "POST"], ids=lambda route: route.path
)
def test_every_post_has_a_meaning_for_the_key_or_says_why_not(route: Route) -> None:
    assert route.remembers or route.keyed or route.forgets or route.scope == PUBLIC
