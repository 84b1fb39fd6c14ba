"""Every GET of the API and every page, made of the routes themselves, asked about a store that has a secret wherever a job, a run, a schedule or
a refused event of a sensitive queue can have one: nothing that is told has any of them."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import product

import pytest

from lateshift import Lateshift
from lateshift.api.application import make_api, with_document
from lateshift.api.bounds import Bounds
from lateshift.api.route import PUBLIC
from lateshift.api.routes.all import ROUTES
from lateshift.dashboard.pages.all import PAGES
from lateshift.model.access import Scope
from lateshift.model.job import JobFilter
from lateshift.testing import Kit, testing
from tests.api.asking import Web, asking, token_of
from tests.dashboard.browsing import browsing
from tests.sealing.clinic import DIGEST, NEW, SECRETS, clinic, leaks
from tests.sealing.test_runs_by_queue import runs as runs
from tests.walks.test_replies import SECRET as SIGNING

READS = [route for route in with_document(ROUTES) if route.method == "GET" and route.scope != PUBLIC]
LOOKS = [page for page in PAGES if page.scope != PUBLIC]
NAMES = ("patients", "examine", "rounds", "admissions", "visit", "stay")
ADDRESS = "http://127.0.0.1:9"
QUERIES = {
    "/v1/jobs": ("?queue=patients", f"?queue=patients&state=dead&error={SECRETS['error']}", f"?state=dead&argument={SECRETS['argument']}"),
    "/v1/dead-letters": ("?queue=patients", "?reason=permanent"),
    "/v1/workflows": ("?state=held",),
    "/v1/events": (f"?channel=jobs.patients.{'examine'}",),
}  # fmt: skip
NOT_THERE = {
    "/v1/pipelines/{name}", "/v1/batches/{id}", "/v1/triggers/{name}", "/v1/schedules-tried", "/pipelines/{name}", "/batches/{id}",
    "/v1/events", "/v1/jobs/{id}/events", "/dead-letters/{name}", "/breakers/{name}", "/v1/tasks/{name}/graph",
}  # of which nothing is in this store, or which want more than a name  # fmt: skip


@pytest.fixture
def kit(runs: dict[str, str], store_url: str) -> Iterator[Kit]:
    """After the mark jobs have run, failed, remembered and replied."""
    app = clinic(store_url, NEW, DIGEST)
    app.reply_webhook(ADDRESS, secret=SIGNING, internal=True)
    with testing(app, store=store_url) as kit:
        for task in ("examine", "fail"):
            call = app.tasks[task].options(
                key=SECRETS["key"] + task, reply_to=f"{ADDRESS}/{SECRETS['batch']}"
            )
            call.enqueue(SECRETS["argument"])
        for _ in range(2):
            app.tasks["remember"].options(session="ann").enqueue(SECRETS["argument"])
        kit.drain()
        app.tasks["examine"].options(delay=timedelta(hours=1)).enqueue(SECRETS["argument"])
        yield kit


@pytest.fixture
def web(kit: Kit) -> Iterator[Web]:
    with asking(kit.app, make_api(kit.app, bounds=Bounds(stream=timedelta(seconds=0.3)))) as web:
        yield web


def ids(app: Lateshift, runs: dict[str, str]) -> list[str]:
    jobs = [str(view.id) for view in app.store.reports.jobs(JobFilter(), 200)]
    return list(dict.fromkeys([*runs.values(), *jobs]))


def filled(path: str, ids: Sequence[str]) -> list[str]:
    """With every name and id that there is."""
    given = [("{id}", ids)] * ("{id}" in path) + [("{name}", NAMES)] * ("{name}" in path)
    found = []
    for values in product(*(values for _, values in given)):
        whole = path
        for (parameter, _), value in zip(given, values, strict=True):
            whole = whole.replace(parameter, value)
        found += [whole + query for query in ("", *QUERIES.get(path, ()))]
    return found


def test_no_read_of_the_api_tells_a_secret(kit: Kit, web: Web, runs: dict[str, str]) -> None:
    everything = web.token
    elsewhere = token_of(web.app, "elsewhere", [Scope.READ], ("default", "replies.*"))
    told: set[str] = set()
    for route in READS:
        for path in filled(route.shown_path, ids(kit.app, runs)):
            for token in (everything, elsewhere):
                answer = web("GET", path, token=token)
                assert (path, answer.status_code < 500, leaks(answer.content)) == (path, True, [])
                if answer.status_code == 200 and token == everything:
                    told.add(route.shown_path)
    assert {route.shown_path for route in READS} - told - NOT_THERE == set()


@pytest.mark.parametrize("body", [{}, {"change": {"name": "another"}}], ids=["as they are", "changed"])
def test_no_preview_tells_a_secret(web: Web, body: dict[str, object]) -> None:
    for queue in ("patients", "default"):
        answer = web("POST", "/v1/dead-letters/preview", {"queue": queue} | body)
        assert leaks(answer.content) == []
        for deed in ("cancel", "resubmit"):
            assert leaks(web("POST", "/v1/bulk/preview", {"action": deed, "queue": queue}).content) == []
    assert leaks(web("POST", "/v1/dead-letters/discard/preview", {"all": True}).content) == []


def test_no_page_tells_a_secret(kit: Kit, runs: dict[str, str]) -> None:
    told: set[str] = set()
    with browsing(kit.app) as browser:
        for queues in ((), ("default", "replies.*")):
            browser.sign_in_as(Scope.ADMIN, queues=queues)
            for page in LOOKS:
                for path in filled(page.path.replace("{name:path}", "{name}"), ids(kit.app, runs)):
                    answer = browser.ask("GET", path)
                    assert (path, answer.status_code < 500, leaks(answer.content)) == (path, True, [])
                    if answer.status_code == 200 and not queues:
                        told.add(page.path.replace("{name:path}", "{name}"))
    assert {page.path.replace("{name:path}", "{name}") for page in LOOKS} - told - NOT_THERE == set()


def test_the_look_would_find_them_if_nothing_were_hidden(
    kit: Kit, web: Web, runs: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what came before the mark; the rest is sealed, and is no secret even unmasked."""
    monkeypatch.setattr("lateshift.documents.hiding.shown_runs", lambda store, views: list(views))
    monkeypatch.setattr("lateshift.model.sealed._hidden", lambda view: view)
    told = b"".join(
        web("GET", path).content
        for route in READS
        if route.shown_path in ("/v1/jobs/{id}", "/v1/workflows/{id}")
        for path in filled(route.shown_path, ids(kit.app, runs))
    )
    assert {"argument", "cancel", "error", "note", "result"} <= set(leaks(told))
