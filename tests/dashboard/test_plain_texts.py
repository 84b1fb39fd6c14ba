"""What a terminal would obey, or what turns text around, is on no page as it was written, wherever users wrote it."""

import json
import logging
import re
from datetime import timedelta
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest
from msgspec import structs

from lateshift import Breaker, Flow, Permanent, Retry, progress
from lateshift.dashboard.pages.all import PAGES
from lateshift.dashboard.rendering import plain, pretty, templates
from lateshift.model.access import Scope
from lateshift.model.escaping import OBEYED
from lateshift.model.ids import new_member_id
from lateshift.testing import Kit
from lateshift.worker.service import introduce
from tests.api.shop import Shop
from tests.dashboard.browsing import Browser
from tests.dashboard.filled import FORMS

HOSTILE = "a\x1b[31mred\x1b]0;title\x07 \u202egnp.exe\u2066\u2028 \x9b31m \x7f\x08b"
RAW = set(OBEYED) - {9, 10, 13}
OF_EACH = 6  # pages of one kind that are looked at


@pytest.fixture
def hostile(kit: Kit, shop: Shop, tmp_path: Path) -> Kit:
    """Whatever takes any text has been given this one."""
    app, store = kit.app, kit.app.store
    log = logging.getLogger(HOSTILE)

    @app.task(queue="raw", retry=Retry(attempts=1), tags=["t"])
    def fails(text: str) -> None:
        log.error("%s", text)
        progress(1, 2, note=text)
        raise Permanent(text)

    @app.task(queue="raw")
    def works(text: str) -> str:
        return text

    @app.task(queue="raw", breaker=Breaker(failures=1, open_for=timedelta(hours=1)), retry=Retry(attempts=1))
    def calls(text: str) -> None:
        raise ConnectionError(text)

    @app.workflow(queue="raw", on_failure="hold")
    async def held(flow: Flow, text: str) -> None:
        flow.status(text)
        await flow.step(works, text)
        await flow.step(breaks, text)

    def breaks(text: str) -> None:
        raise Permanent(text)

    app.schedule(works, args=[HOSTILE], name="hostile", cron="0 2 * * *")
    for task in (fails, works, calls, calls):
        task.options(tags=[HOSTILE]).enqueue(HOSTILE)
    works.options(key=HOSTILE, session=HOSTILE, tenant=HOSTILE, delay=timedelta(days=1)).enqueue(HOSTILE)
    held.enqueue(HOSTILE)
    app.batch([works.call(HOSTILE), fails.call(HOSTILE)], name=HOSTILE)
    app.pipeline(works | works, name="line").enqueue(HOSTILE)
    kit.travel(seconds=1)
    Shop.watch_files(app, tmp_path)
    store.triggers.declare([it.declared for it in app.triggers.values()], app=app.name)
    store.triggers.tell("files", error=HOSTILE)
    store.queues.pause("raw", by=HOSTILE)
    store.schedules.pause("hostile", by=HOSTILE)
    store.breakers.open("calls", by=HOSTILE)
    store.audit.record(HOSTILE, HOSTILE, by=HOSTILE)
    for bury in (False, True):
        member = structs.replace(introduce(new_member_id(), "worker", HOSTILE, kit.clock), host=HOSTILE)
        store.members.join(member, timedelta(days=1))
        store.members.report(member.id, {"late_loops": {HOSTILE: 100}})
        if bury:
            store.members.bury([member.id])
    return kit


def raw(text: str) -> set[str]:
    """Also what a browser would make of a number."""
    return {f"U+{ord(letter):04X}" for letter in unescape(text) if ord(letter) in RAW}


def kind_of(path: str) -> str | None:
    for page in PAGES:
        pattern = re.sub(r"\\{\w+:path\\}", ".+", re.escape(page.path))
        if re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", pattern), path.partition("?")[0]):
            return page.path
    return None


def test_no_page_shows_what_a_terminal_would_obey_or_what_turns_text_around(
    hostile: Kit, browser: Browser
) -> None:
    waiting, seen = ["/", "/overview/table"], dict[str, list[str]]()
    shown = 0
    while waiting:
        path = waiting.pop(0)
        kind = kind_of(path)
        if kind is None or path in seen.setdefault(kind, []) or len(seen[kind]) >= OF_EACH:
            continue
        seen[kind].append(path)
        browser.look(path)
        assert browser.page is not None
        assert raw(browser.page.text) == set(), path
        shown += browser.page.text.count("gnp.exe")
        waiting += [unescape(link) for link in re.findall(r'href="(/[^"#]*)"', browser.page.text)]

    assert set(seen) == {page.path for page in PAGES if page.path in seen}
    assert {page.path for page in PAGES} - set(seen) <= {"/sign-in", "/sign-out"}
    assert shown > 40


def test_nor_does_a_page_that_says_back_what_was_asked_nor_one_that_refuses(
    hostile: Kit, browser: Browser
) -> None:
    text = quote(HOSTILE)
    for path in (
        f"/jobs?task={text}", f"/jobs?argument={text}&error={text}&key={text}&session={text}", f"/audit?actor={text}&subject={text}",
        f"/queues/{text}", f"/jobs/{text}", f"/schedules/{text}", f"/triggers/{text}", f"/breakers/{text}", f"/nothing/{text}",
        f"/dead-letters?like={text}", f"/jobs?cursor={text}", f"/workflows?name={text}", f"/batches/{text}",
    ):  # fmt: skip
        assert raw(browser.ask("GET", path).text) == set(), path


def test_nor_does_the_answer_to_a_form(hostile: Kit, browser: Browser) -> None:
    browser.look("/")
    for form in FORMS:
        path = re.sub(r"\{\w+(:path)?\}", quote(HOSTILE), form.path)
        browser.look("/")
        fields = dict.fromkeys(("name", "task", "queue", "arguments", "cron", "reason", "value"), HOSTILE)
        assert raw(browser.send(path, fields).text) == set(), form.path


def test_what_is_shown_to_be_changed_comes_back_as_it_was() -> None:
    value = {"text": HOSTILE, "plain": "ünïcödé 🐈\t\n"}

    assert json.loads(pretty(value)) == value
    assert raw(pretty(value)) == set()
    assert plain(pretty(value)) == pretty(value)


def test_whatever_a_template_writes_is_plain_without_saying_so() -> None:
    made = templates().from_string(
        '<p title="{{ text }}">{{ text }} {{ text | upper }} {{ [text] | join(", ") }} {{ "x" ~ text }}</p>'
    )

    assert raw(made.render(text=HOSTILE)) == set()


def test_lines_that_were_typed_stay_lines() -> None:
    made = templates().from_string("<textarea>{{ typed }}</textarea>")

    assert made.render(typed='{\r\n\t"a": 1\r\n}') == "<textarea>{\n\t&#34;a&#34;: 1\n}</textarea>"


def test_scopes_do_not_matter(hostile: Kit, stranger: Browser) -> None:
    stranger.sign_in_as(Scope.READ, queues=("raw",))
    for path in ("/", "/jobs", "/dead-letters", "/workflows"):
        stranger.look(path)
        assert stranger.page is not None
        assert raw(stranger.page.text) == set(), path
