"""What stands in a sensitive queue unsealed, as it came before the queue was marked, is shown to nobody either."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from lateshift import Cancel, Job, Lateshift
from lateshift.api.application import make_api
from lateshift.api.bounds import Bounds
from lateshift.model.job import Progress, State
from lateshift.model.sealed import MASK, masked_view
from lateshift.model.watching import events
from lateshift.testing import testing
from tests.api.asking import Web, asking
from tests.dashboard.browsing import browsing
from tests.sealing.clinic import DIGEST, NEW, SECRETS, clinic, leaks
from tests.walks.commands import Cli


def before(url: str) -> list[str]:
    """Jobs of a program that knows nothing of a sensitive queue, with all that they leave behind. Gives their ids."""
    app = clinic(url, sensitive=False)
    examine, fail, remember = (app.tasks[name] for name in ("examine", "fail", "remember"))

    @app.task(queue="patients")
    async def give_up(name: str) -> None:
        raise Cancel(SECRETS["cancel"])

    with testing(app, store=url) as kit:
        name = SECRETS["argument"]
        jobs: list[Job[Any]] = [
            examine.enqueue(name),
            fail.enqueue(name),
            give_up.enqueue(name),
            remember.options(session="ward").enqueue(name),
        ]
        kit.drain()
        assert app.dead_letters(task="fail").resubmit({"name": SECRETS["batch"]}).edited == 1
        kit.drain()
        jobs.append(examine.enqueue(name))
        return [str(job.id) for job in jobs]


@pytest.fixture
def ids(store_url: str) -> list[str]:
    return before(store_url)


@pytest.fixture
def marked(ids: list[str], store_url: str) -> Iterator[Lateshift]:
    """The same store, of a program that has marked the queue."""
    app = clinic(store_url, NEW, DIGEST)
    with testing(app, store=store_url):
        yield app


@pytest.fixture
def web(marked: Lateshift) -> Iterator[Web]:
    bounds = Bounds(stream=timedelta(seconds=0.3))
    with asking(marked, make_api(marked, bounds=bounds)) as web:
        yield web


def test_the_jobs_of_before_can_be_read_in_the_store(ids: list[str], store_url: str) -> None:
    """What the other tests look for is there."""
    app = Lateshift("looks", store=store_url)
    told = "".join(f"{app.job(id).view()}{app.store.logs.of(app.job(id).id)}" for id in ids)
    told += str(app.store.sessions.list(held=False, limit=10))
    app.close()
    assert sorted(leaks(told.encode())) == sorted(SECRETS.keys() - {"key"})


def test_no_answer_of_the_api_has_what_came_unsealed(web: Web, ids: list[str]) -> None:
    paths = [f"/v1/jobs/{id}{more}" for id in ids for more in ("", "/explain", "/logs", "/events")]
    paths += [
        "/v1/jobs",
        "/v1/jobs?state=dead",
        "/v1/dead-letters",
        "/v1/sessions",
        "/v1/overview",
        "/metrics",
        "/v1/audit",
    ]
    for path in paths:
        answer = web("GET", path)
        assert (path, answer.status_code, leaks(answer.content)) == (path, 200, [])
    body = {"action": "resubmit", "ids": ids}
    assert leaks(web("POST", "/v1/bulk/preview", body).content) == []
    plan = {"queue": "patients", "change": {"name": "Ada"}}
    preview = web("POST", "/v1/dead-letters/preview", plan)
    assert (preview.status_code, leaks(preview.content)) == (200, [])
    shown = web("GET", f"/v1/jobs/{ids[0]}").json()
    assert (shown["arguments"], shown["result"], shown["checkpoint"]) == (MASK, MASK, MASK)
    failed = web("GET", f"/v1/jobs/{ids[1]}").json()["history"]
    assert [(each["error"], each["message"], each["was"]) for each in failed] == [
        ("Permanent", MASK, None),
        (None, failed[1]["message"], {"name": MASK}),
        ("Permanent", MASK, None),
    ]


@pytest.mark.parametrize("query", ["argument=canary", "error=canary", "argument=name=x"])
def test_no_search_tells_what_came_unsealed(web: Web, ids: list[str], query: str) -> None:
    assert web("GET", f"/v1/jobs?since=2020-01-01T00:00:00Z&{query}").json()["jobs"] == []


def test_no_page_has_what_came_unsealed(marked: Lateshift, ids: list[str]) -> None:
    with browsing(marked) as browser:
        browser.sign_in()
        for path in ("/", "/jobs", "/dead-letters", "/queues", *[f"/jobs/{id}" for id in ids]):
            page = browser.ask("GET", path)
            assert (path, page.status_code, leaks(page.content)) == (path, 200, [])


def test_the_form_for_other_arguments_promises_no_old_values(marked: Lateshift, ids: list[str]) -> None:
    with browsing(marked) as browser:
        browser.sign_in()
        page = browser.look(f"/jobs/{ids[1]}")
        assert "Resubmit with other arguments" in page
        assert "what they were is shown nowhere" in page
        assert "old values stay in the timeline" not in page


def test_the_command_line_shows_nothing_that_came_unsealed(
    marked: Lateshift, ids: list[str], cli: Cli
) -> None:
    commands = [["jobs", what, id] for id in ids for what in ("show", "logs", "explain")]
    commands += [["jobs", "list"], ["jobs", "dead"], ["sessions", "list"], ["metrics"], ["audit", "list"]]
    for command in [*commands, *[[*command, "--json"] for command in commands if command != ["metrics"]]]:
        said = cli(*command)
        assert (command, said.code, leaks((said.out + said.err).encode())) == (command, 0, [])


def test_the_note_of_what_runs_is_hidden_and_its_numbers_are_not(marked: Lateshift, ids: list[str]) -> None:
    view = replace(marked.job(ids[4]).view(), progress=Progress(1, 2, SECRETS["note"]))
    assert masked_view(view).progress == Progress(1, 2, MASK)
    assert leaks(str(events(replace(view, state=State.RUNNING))).encode()) == []


def test_a_queue_that_is_marked_later_hides_from_then_on(store_url: str) -> None:
    app = Lateshift("shop", store=store_url)

    @app.task
    def plain() -> None: ...

    plain.enqueue()
    app.queue("patients", sensitive=True)
    assert app.store.queues.concealed() == {"patients"}
    app.close()
