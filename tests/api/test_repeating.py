"""Idempotency-Key on every POST: done once, answered twice."""

import threading
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest

from lateshift.api import answering, repeating
from lateshift.api.application import make_api, with_document
from lateshift.api.bounds import Bounds
from lateshift.api.problem import PROBLEM
from lateshift.api.route import PUBLIC, Answer, Asked, Done, Reach, Route
from lateshift.api.routes.all import ROUTES
from lateshift.errors import StoreUnavailable
from lateshift.model.access import Scope
from lateshift.operating import bulk
from lateshift.runtime.log import log
from lateshift.store.answer_contract import ANSWER_KEPT, ANSWER_LIMIT, ANSWER_WITHIN, Answered, Begun
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
    assert (other.status_code, other.json()["field"]) == (409, "Idempotency-Key")
    body = {"all": True, "limit": 1}
    assert web("POST", "/v1/dead-letters/resubmit", body, headers=KEY).status_code == 200
    assert web("POST", "/v1/dead-letters/resubmit", body | {"limit": 2}, headers=KEY).status_code == 409
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


def test_the_same_token_is_known_again_by_every_server(kit: Kit) -> None:
    answers = []
    with asking(kit.app, make_api(kit.app)) as web:
        token = web.token
        answers.append(web("POST", "/v1/queues/mail/pause", headers=KEY))
    with asking(kit.app, make_api(kit.app)) as web:
        answers.append(web("POST", "/v1/queues/mail/pause", headers=KEY, token=token))
        other = web("POST", "/v1/queues/images/pause", headers=KEY, token=token)
    assert answers[1].headers["idempotency-replayed"] == "true"
    assert (answers[0].content, other.status_code) == (answers[1].content, 409)


class Slow:
    """A route whose handler waits to be let go, and counts what it did."""

    def __init__(self) -> None:
        self.begun, self.end = threading.Event(), threading.Event()
        self.done = 0
        self.route = Route(
            method="POST", path="/v1/x", handler=self.handle, gives=Done, scope=Scope.OPERATE, reach=Reach.ALL
        )

    def handle(self, asked: Asked) -> Done:
        """Takes its time."""
        self.begun.set()
        assert self.end.wait(30)
        self.done += 1
        return Done(subject="x", action="done", changed=True)


def test_a_request_that_is_under_way_is_told_to_wait_however_long_it_takes(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, answers = Slow(), kit.app.store.answers
    hold, held = answers.hold, threading.Semaphore(0)

    def hold_and_tell(id: bytes, *, turn: int) -> bool:
        answer = hold(id, turn=turn)
        held.release()
        return answer

    monkeypatch.setattr(answers, "hold", hold_and_tell)
    monkeypatch.setattr(repeating, "HELD_EVERY", 0.001)
    with asking(kit.app, make_api(kit.app, routes=[slow.route])) as web:
        first: list[Any] = []
        thread = threading.Thread(target=lambda: first.append(web.plain("POST", "/v1/x", KEY)))
        thread.start()
        assert slow.begun.wait(30)
        for _ in range(3):
            kit.clock.move(seconds=ANSWER_WITHIN.total_seconds() - 1)
            while held.acquire(blocking=False):
                pass
            assert held.acquire(timeout=30)  # it may have looked at the clock before
            assert held.acquire(timeout=30)
            late = web.plain("POST", "/v1/x", KEY)
            assert (late.status_code, late.headers["retry-after"]) == (409, "1")
            assert late.json()["type"] == "urn:lateshift:problem:request-under-way"
        slow.end.set()
        thread.join(30)
        assert web.plain("POST", "/v1/x", KEY).content == first[0].content
    assert slow.done == 1


def test_what_outlasts_its_deadline_goes_on_and_its_answer_is_kept(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, answers, kept = Slow(), kit.app.store.answers, threading.Event()
    keep = answers.keep

    def keep_and_tell(id: bytes, answer: Answered, *, turn: int) -> bool:
        done = keep(id, answer, turn=turn)
        kept.set()
        return done

    monkeypatch.setattr(answers, "keep", keep_and_tell)
    bounds = Bounds(deadline=timedelta(seconds=0.2))
    with asking(kit.app, make_api(kit.app, routes=[slow.route], bounds=bounds)) as web:
        late = web.plain("POST", "/v1/x", KEY)
        assert (late.status_code, late.json()["type"]) == (503, "urn:lateshift:problem:deadline")
        assert slow.begun.wait(30)
        slow.end.set()
        assert kept.wait(30)
        kit.travel(seconds=ANSWER_WITHIN.total_seconds())
        again = web.plain("POST", "/v1/x", KEY)
    assert (again.status_code, again.headers["idempotency-replayed"]) == (200, "true")
    assert slow.done == 1


def test_of_a_server_that_was_killed_after_it_was_done_nobody_does_it_again(
    web: Web, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit.travel(seconds=1)
    with monkeypatch.context() as killed:
        killed.setattr(kit.app.store.answers, "keep", lambda *args, **kwargs: False)
        assert web("POST", "/v1/schedules/news/fire", headers=KEY).status_code == 200
    kit.travel(seconds=ANSWER_WITHIN.total_seconds())
    again = web("POST", "/v1/schedules/news/fire", headers=KEY)
    assert (again.status_code, again.json()["type"]) == (409, "urn:lateshift:problem:request-unknown")
    assert again.json()["field"] == "Idempotency-Key"
    assert len(kit.app.store.audit.list(limit=10, action="fire")) == 1
    other = web("POST", "/v1/schedules/news/fire", headers={"Idempotency-Key": "k2"})
    assert other.status_code == 200


def test_who_was_paused_before_it_began_does_nothing_and_the_key_is_free(
    web: Web, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = kit.app.store.answers.begin

    def begin_and_pause(id: bytes, request: bytes, *, turn: int) -> Begun:
        begun = begin(id, request, turn=turn)
        kit.clock.move(seconds=ANSWER_WITHIN.total_seconds())
        return begun

    with monkeypatch.context() as paused:
        paused.setattr(kit.app.store.answers, "begin", begin_and_pause)
        late = web("POST", "/v1/queues/mail/pause", headers=KEY)
    assert (late.status_code, late.headers["retry-after"]) == (503, "1")
    assert kit.app.store.audit.list(limit=10, action="pause") == []
    assert web("POST", "/v1/queues/mail/pause", headers=KEY).json()["changed"] is True


def test_where_the_store_is_away_before_it_began_nothing_is_done_and_the_key_is_free(
    web: Web, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(id: bytes, *, turn: int) -> bool:
        raise StoreUnavailable("away")

    with monkeypatch.context() as gone:
        gone.setattr(kit.app.store.answers, "hold", away)
        assert web("POST", "/v1/queues/mail/pause", headers=KEY).status_code == 503
    assert web("POST", "/v1/queues/mail/pause", headers=KEY).json()["changed"] is True


def test_a_fault_after_the_deadline_is_logged(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    end, told = threading.Event(), threading.Event()
    faults: list[BaseException] = []

    def broken(asked: Asked) -> Done:
        """Has a fault, late."""
        assert end.wait(30)
        raise RuntimeError("late")

    def logged(text: str, *, exc_info: BaseException) -> None:
        faults.append(exc_info)
        told.set()

    monkeypatch.setattr(log, "error", logged)
    route = Route(
        method="POST", path="/v1/x", handler=broken, gives=Done, scope=Scope.OPERATE, reach=Reach.ALL
    )
    bounds = Bounds(deadline=timedelta(seconds=0.2))
    with asking(kit.app, make_api(kit.app, routes=[route], bounds=bounds)) as web:
        assert web.plain("POST", "/v1/x", KEY).status_code == 503
        end.set()
        assert told.wait(30)
    assert [str(fault) for fault in faults] == ["late"]


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


def test_after_a_fault_nobody_knows_whether_it_was_done_and_it_is_not_done_again(kit: Kit) -> None:
    tries: list[int] = []

    def broken(asked: Asked) -> Done:
        """Has a fault."""
        tries.append(1)
        raise RuntimeError("nobody knows how far it came")

    route = Route(
        method="POST", path="/v1/x", handler=broken, gives=Done, scope=Scope.OPERATE, reach=Reach.ALL
    )
    with asking(kit.app, make_api(kit.app, routes=[route])) as web:
        answers = [web.plain("POST", "/v1/x", KEY).status_code]
        kit.travel(seconds=ANSWER_WITHIN.total_seconds())
        late = web.plain("POST", "/v1/x", KEY)
    assert (answers, late.json()["type"]) == ([500], "urn:lateshift:problem:request-unknown")
    assert tries == [1]


def held_up_at(point: str, kit: Kit, monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
    """For longer than a request is held, once."""

    def pause(name: str) -> None:
        if name == point:
            monkeypatch.setattr(module, "crashpoint", lambda name: None)
            kit.clock.move(seconds=ANSWER_WITHIN.total_seconds())

    monkeypatch.setattr(module, "crashpoint", pause)


def test_who_was_paused_right_before_its_deed_does_nothing_says_so_and_the_key_is_free(
    web: Web, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit.travel(seconds=1)
    held_up_at("api.before_deed", kit, monkeypatch, answering)
    late = web("POST", "/v1/schedules/news/fire", headers=KEY)
    assert (late.status_code, late.json()["type"]) == (503, "urn:lateshift:problem:begun-late")
    assert "nothing was done" in late.json()["detail"]
    assert late.headers["retry-after"] == "1"
    assert kit.app.store.audit.list(limit=10, action="fire") == []
    assert web("POST", "/v1/schedules/news/fire", headers=KEY).status_code == 200
    assert len(kit.app.store.audit.list(limit=10, action="fire")) == 1


def test_who_was_paused_in_the_middle_does_no_more_and_says_that_a_part_was_done(
    web: Web, kit: Kit, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = kit.app.find_task("send")
    ids = [str(send.enqueue(to).id) for to in ("ann", "bob", "eve")]
    monkeypatch.setattr(bulk, "BATCH", 1)
    held_up_at("bulk.after_batch", kit, monkeypatch, bulk)
    body = {"action": "cancel", "ids": ids}
    late, again = (web("POST", "/v1/bulk", body, headers=KEY) for _ in range(2))
    assert (late.status_code, late.json()["type"]) == (409, "urn:lateshift:problem:request-unknown")
    assert "A part of it was done" in late.json()["detail"]
    assert (again.status_code, again.json()["type"]) == (409, "urn:lateshift:problem:request-unknown")
    assert len(kit.app.store.audit.list(limit=10, action="cancel")) == 1
    rest = web("POST", "/v1/bulk", body, headers={"Idempotency-Key": "k2"}).json()
    assert rest["done"] == ids[1:]


def test_a_route_that_is_done_once_for_a_key_has_a_plain_function() -> None:
    async def wandering(asked: Asked) -> Done:
        """Does its deed on any thread."""
        return Done(subject="x", action="done", changed=True)

    route = Route(
        method="POST", path="/v1/x", handler=wandering, gives=Done, scope=Scope.OPERATE, reach=Reach.ALL
    )
    with pytest.raises(TypeError, match="its handler is a plain function"):
        route.check()


@pytest.mark.parametrize(
    "route", [each for each in with_document(ROUTES) if each.method == "POST"], ids=lambda route: route.path
)
def test_every_post_has_a_meaning_for_the_key_or_says_why_not(route: Route) -> None:
    assert route.remembers or route.keyed or route.forgets or route.previews or route.scope == PUBLIC
