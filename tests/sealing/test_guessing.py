"""What a sensitive queue's job was given is not found out by trying: whoever guesses right is told what is told of a wrong guess."""

from collections.abc import Iterator
from typing import Any

import pytest

from lateshift import Lateshift
from lateshift.api.application import make_api
from lateshift.model.access import Scope
from lateshift.model.sealed import MASK, is_sealed
from lateshift.testing import Kit, testing
from tests.api.asking import Web, asking, token_of
from tests.dashboard.browsing import browsing
from tests.sealing.clinic import DIGEST, OLD, clinic

RIGHT, WRONG = "4242", "4243"
QUEUE = ("patients",)


@pytest.fixture
def kit(app: Lateshift, store_url: str) -> Iterator[Kit]:
    with testing(app, store=store_url) as kit:
        yield kit


@pytest.fixture
def web(kit: Kit) -> Iterator[Web]:
    with asking(kit.app, make_api(kit.app)) as web:
        yield web


@pytest.fixture
def ops(web: Web) -> str:
    return token_of(web.app, "ops", [Scope.OPERATE, Scope.ENQUEUE], QUEUE)


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
                web("POST", "/v1/dead-letters/preview", {"queue": "patients", "change": {"name": guess}}).json()
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
