"""What a sensitive queue's job was given is not found out by trying: whoever guesses right is told what is told of a wrong guess."""

from typing import Any

import pytest

from lateshift import Lateshift
from lateshift.api.application import make_api
from lateshift.api.owning import owned, owned_key
from lateshift.model.access import Scope, new_token
from lateshift.model.sealed import MASK, is_sealed
from lateshift.testing import Kit, testing
from tests.api.asking import Web, asking, token_of
from tests.dashboard.browsing import browsing
from tests.sealing.clinic import DIGEST, OLD, clinic

RIGHT, WRONG = "4242", "4243"
QUEUE = ("patients",)


@pytest.fixture
def ops(web: Web) -> str:
    return token_of(web.app, "ops", [Scope.OPERATE, Scope.ENQUEUE], QUEUE)


@pytest.fixture
def feeder(web: Web) -> str:
    return token_of(web.app, "feeder", [Scope.ENQUEUE], QUEUE)


@pytest.fixture
def other(web: Web) -> str:
    return token_of(web.app, "other", [Scope.ENQUEUE], QUEUE)


def dead_twice(app: Lateshift, kit: Kit) -> list[str]:
    """The ids of two dead letters that were given the same."""
    jobs = [app.tasks["fail"].enqueue(RIGHT) for _ in range(2)]
    kit.drain()
    return [str(job.id) for job in jobs]


def alike(told: dict[str, Any]) -> dict[str, Any]:
    """Without what differs from job to job anyway."""
    said = {"id", "created_at", "due_at", "settled_at", "fence"}
    history = [
        {name: each[name] for name in ("attempt", "reason", "message", "was")} for each in told["history"]
    ]
    return {name: value for name, value in told.items() if name not in said} | {"history": history}


def test_a_preview_of_a_right_guess_is_that_of_a_wrong_one(
    app: Lateshift, kit: Kit, web: Web, ops: str
) -> None:
    app.tasks["fail"].enqueue(RIGHT)
    kit.drain()
    said = [
        web("POST", "/v1/dead-letters/preview", {"queue": "patients", "change": {"name": guess}}, token=ops)
        for guess in (RIGHT, WRONG)
    ]
    assert [each.status_code for each in said] == [200, 200]
    assert said[0].json() == said[1].json()
    assert (said[0].json()["would_edit"], said[0].json()["examples"][0]["after"]) == (1, MASK)


def test_a_resubmission_with_a_right_guess_leaves_what_a_wrong_one_leaves(
    app: Lateshift, kit: Kit, web: Web, ops: str
) -> None:
    ids = dead_twice(app, kit)
    before = [app.job(id).view().payload for id in ids]
    for id, guess in zip(ids, (RIGHT, WRONG), strict=True):
        done = web("POST", f"/v1/jobs/{id}/resubmit", {"change": {"name": guess}}, token=ops)
        assert (done.status_code, done.json()["changed"]) == (200, True)
    right, wrong = (alike(web("GET", f"/v1/jobs/{id}", token=ops).json()) for id in ids)
    assert right == wrong
    assert right["history"][-1]["reason"] == "resubmitted"
    assert all(app.job(id).view().payload != old for id, old in zip(ids, before, strict=True))


def test_a_resubmission_of_many_tells_no_more(app: Lateshift, kit: Kit, web: Web, ops: str) -> None:
    said = []
    for guess in (RIGHT, WRONG):
        dead_twice(app, kit)
        body = {"queue": "patients", "change": {"name": guess}}
        said.append(web("POST", "/v1/dead-letters/resubmit", body, token=ops).json()["edited"])
        kit.drain()
        assert web("POST", "/v1/dead-letters/resubmit", {"queue": "patients"}, token=ops).status_code == 200
        for each in kit.enqueued():
            app.store.jobs.cancel([each.id], by="a test")
    assert said == [2, 2]


def test_the_page_that_previews_tells_no_more(app: Lateshift, kit: Kit) -> None:
    app.tasks["fail"].enqueue(RIGHT)
    kit.drain()
    with browsing(app) as browser:
        browser.sign_in_as(Scope.OPERATE, Scope.ENQUEUE, queues=QUEUE)
        told = []
        for guess in (RIGHT, WRONG):
            browser.look("/dead-letters?queue=patients")
            form = {"queue": "patients", "change": f'{{"name": "{guess}"}}'}
            assert browser.send("/dead-letters/preview", form).status_code == 200
            told.append(browser.text.replace(guess, "GUESS"))
    assert told[0] == told[1]


def test_what_came_before_the_mark_is_no_more_to_be_guessed_where_the_code_has_no_mark(
    store_url: str,
) -> None:
    """The store knows that the queue is sensitive; the code of this server does not."""
    plain = clinic(store_url, OLD, DIGEST, sensitive=False)
    with testing(plain, store=store_url) as kit:
        job = plain.tasks["fail"].enqueue(RIGHT)
        kit.drain()
        clinic(store_url, OLD, DIGEST).store.close()
        with asking(plain, make_api(plain)) as web:
            assert web("GET", f"/v1/jobs/{job.id}").json()["arguments"] == MASK
            said = [
                web(
                    "POST", "/v1/dead-letters/preview", {"queue": "patients", "change": {"name": guess}}
                ).json()
                for guess in (RIGHT, WRONG)
            ]
            assert said[0] == said[1]
            done = web("POST", f"/v1/jobs/{job.id}/resubmit", {"change": {"name": RIGHT}})
            assert (done.status_code, is_sealed(job.view().payload)) == (200, True)


def test_what_is_resubmitted_as_it_is_stays_as_it_was_sealed(app: Lateshift, kit: Kit) -> None:
    job = app.tasks["fail"].enqueue(RIGHT)
    kit.drain()
    before = job.view().payload
    assert app.dead_letters().resubmit({}).edited == 0
    assert job.view().payload == before


def start(web: Web, token: str | None, name: str, key: str | None = "visit-7", task: str = "examine") -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    return web("POST", f"/v1/tasks/{task}/jobs", {"arguments": {"name": name}}, token=token, headers=headers)


def test_another_token_s_repeat_of_a_key_is_another_job_whatever_it_was_given(
    kit: Kit, web: Web, feeder: str, other: str
) -> None:
    first = start(web, feeder, RIGHT).json()
    said = [start(web, other, name) for name in (RIGHT, RIGHT, WRONG)]
    assert [(each.status_code, each.json().get("created")) for each in said] == [
        (202, True),
        (202, False),
        (409, None),
    ]
    assert first["id"] not in {each.json().get("id") for each in said}
    fresh = token_of(web.app, "fresh", [Scope.ENQUEUE], QUEUE)
    wrong, right = start(web, other, WRONG, "visit-8"), start(web, fresh, RIGHT)
    assert [(each.status_code, each.json()["created"]) for each in (wrong, right)] == [(202, True)] * 2
    assert len(kit.enqueued()) == 4


def test_one_s_own_repeat_is_the_same_job_and_with_other_arguments_a_conflict(
    kit: Kit, web: Web, feeder: str
) -> None:
    first, again = start(web, feeder, RIGHT).json(), start(web, feeder, RIGHT).json()
    assert (again["id"], again["created"]) == (first["id"], False)
    assert start(web, feeder, WRONG).status_code == 409
    assert len(kit.enqueued()) == 1


def test_what_a_program_gave_a_key_is_not_to_be_guessed_by_a_token(
    app: Lateshift, kit: Kit, web: Web, feeder: str
) -> None:
    app.tasks["examine"].options(key="visit-7").enqueue(RIGHT)
    assert start(web, feeder, RIGHT).json()["created"]
    assert len(kit.enqueued()) == 2


def test_browsers_of_a_token_count_as_it(app: Lateshift) -> None:
    parent, _ = new_token("who", ["enqueue"], [], at=app.clock.now(), by="a test")
    child, _ = new_token("who-browser", ["enqueue"], [], at=app.clock.now(), by="a test", parent=parent.id)
    keyed = app.tasks["examine"].options(key="visit-7")
    first, again = (owned(keyed.call(RIGHT), token).job.key for token in (parent, child))
    assert first == again != keyed.call(RIGHT).job.key
    assert owned_key("a", parent, sensitive=True) == owned_key("a", child, sensitive=True) != "a"
    assert owned_key("a", parent, sensitive=False) == "a"


def test_a_duplicate_of_another_token_s_job_is_another_job(store_url: str, app: Lateshift) -> None:
    @app.task(queue="patients", unique=True)
    async def admit(name: str) -> None: ...

    with testing(app, store=store_url) as kit, asking(app, make_api(app)) as web:
        feeder, other = (token_of(app, name, [Scope.ENQUEUE], QUEUE) for name in ("a", "b"))
        first = start(web, feeder, RIGHT, None, "admit").json()
        assert start(web, feeder, RIGHT, None, "admit").json() | {"created": True} == first
        for name in (RIGHT, WRONG):
            assert start(web, other, name, None, "admit").json()["created"]
        assert len(kit.enqueued()) == 3


def test_keys_of_other_queues_are_everybody_s(store_url: str) -> None:
    app = clinic(store_url, OLD, DIGEST, sensitive=False)
    with testing(app, store=store_url) as kit, asking(app, make_api(app)) as web:
        feeder, other = (token_of(app, name, [Scope.ENQUEUE], QUEUE) for name in ("a", "b"))
        assert start(web, feeder, RIGHT).json()["id"] == start(web, other, RIGHT).json()["id"]
        assert start(web, other, WRONG).status_code == 409
        assert len(kit.enqueued()) == 1
