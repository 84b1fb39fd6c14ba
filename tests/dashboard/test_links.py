"""Every link of every page leads to a page that answers, whatever names users gave, on both stores."""

import re
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest

from lateshift import Breaker, Flow, Permanent, Retry
from lateshift.dashboard.page import navigation
from lateshift.dashboard.pages.all import PAGES
from lateshift.testing import Kit
from tests.browser.crawling import kind_of
from tests.dashboard.browsing import Browser
from tests.dashboard.test_workflows import html

ODD = "a/b c?d#e%41&f=g+h\"'ü"
LINKS_MOST = 600  # addresses that are looked at


@pytest.fixture
def odd(kit: Kit, tmp_path: Path) -> Kit:
    """Something of everything, all of it with a name that a URL cannot hold as it is."""
    app = kit.app

    @app.task(
        name=ODD,
        queue="a.b:c-d",
        breaker=Breaker(failures=1, open_for=timedelta(hours=10)),
        retry=Retry(attempts=1),
    )
    def work(to: str) -> str:
        if to == "nobody":
            raise ConnectionError(f"no {ODD}")
        return to

    @app.task(name=f"dying {ODD}", queue="a.b:c-d", retry=Retry(attempts=1))
    def dying(to: str) -> None:
        raise Permanent(ODD)

    @app.task(name=f"first {ODD}")
    def first(to: str) -> str:
        return to

    @app.task(name=f"second {ODD}")
    def second(to: str) -> str:
        return to

    @app.workflow(name=f"run {ODD}", on_failure="hold")
    async def run(flow: Flow, card: str) -> Any:
        await flow.step(dying, card)

    @app.on_file(str(tmp_path / "*.csv"), name=ODD)
    def read(path: str) -> None: ...

    app.schedule(dying, args=["ann"], name=ODD, cron="0 2 * * *")
    app.pipeline(first | second, name=f"line {ODD}").enqueue("ann")
    app.queue("a.b:c-d", on_dead="hold")
    work.options(tags=["ü"], tenant=ODD, key=ODD).enqueue("ann")
    dying.options(session=ODD).enqueue("ann")
    run.enqueue("ann")
    app.batch([dying.call("ann"), work.call("ann")], name=ODD)
    kit.drain()
    for _ in range(2):
        work.enqueue("nobody")
    kit.drain()
    app.store.triggers.declare([trigger.declared for trigger in app.triggers.values()], app="shop")
    app.store.triggers.tell(ODD, error="no such folder")
    app.store.queues.pause("a.b:c-d", by=ODD)
    kit.travel(seconds=1)
    kit.clock.move(days=2)
    return kit


def links(browser: Browser, at: str) -> set[str]:
    """Within the server, without the place on the page."""
    found = re.findall(r'\b(?:data-)?href="([^"]*)"', html(browser))
    return {urljoin(at, unescape(link)).partition("#")[0] for link in found}


def crawled(browser: Browser) -> dict[str, int]:
    """What each address answered that can be reached from the overview."""
    answered: dict[str, int] = {}
    waiting = ["/"]
    while waiting and len(answered) < LINKS_MOST:
        at = waiting.pop(0)
        answered[at] = browser.ask("GET", at).status_code
        if answered[at] == 200 and not at.startswith("/static/"):
            browser.look(at)
            waiting += sorted(links(browser, at) - answered.keys() - set(waiting))
    assert not waiting, f"more than {LINKS_MOST}"
    return answered


def test_every_link_of_every_page_leads_to_a_page(stranger: Browser, odd: Kit) -> None:
    stranger.sign_in()
    answered = crawled(stranger)
    assert {at: status for at, status in answered.items() if status != 200} == {}
    assert {kind_of(urlsplit(at).path) for at in answered} >= {page.path for page in PAGES}


def test_what_needs_somebody_links_to_where_it_is_mended(stranger: Browser, odd: Kit) -> None:
    stranger.sign_in()
    stranger.look("/")
    told = links(stranger, "/")
    quoted = "a/b%20c%3Fd%23e%2541%26f%3Dg%2Bh%22%27%C3%BC"
    for kind in ("triggers", "schedules", "breakers"):
        assert f"/{kind}/{quoted}" in told
        assert ODD in stranger.look(f"/{kind}/{quoted}")


def test_an_address_of_no_page_is_told_to_people_as_a_page_and_to_programs_as_a_problem(
    stranger: Browser,
) -> None:
    asked = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    for path in ("/nothing", "/jobs/a/b/c", "/v1/nothing"):
        page = stranger.ask("GET", path, headers=asked)
        assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "There is no page at this address." in page.text
        assert page.headers["content-security-policy"].startswith("default-src 'none'")
        program = stranger.ask("GET", path)
        assert (program.status_code, program.headers["content-type"]) == (404, "application/problem+json")
    assert (
        stranger.ask("POST", "/nothing", headers=asked).headers["content-type"] == "application/problem+json"
    )
    assert stranger.ask("GET", "/sign-out", headers=asked).status_code == 405


def test_every_page_at_the_side_has_a_key_of_its_own() -> None:
    keys = {page.section: key for page, key in navigation(PAGES)}
    assert keys["Jobs"] == "j"
    assert (keys["Triggers"], keys["Tokens"], keys["Batches"], keys["Breakers"]) == ("t", "k", "b", "r")
    assert len(set(keys.values())) == len(keys) == len({page.section for page in PAGES})
