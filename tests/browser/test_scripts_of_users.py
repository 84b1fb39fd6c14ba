"""What users wrote is shown as it is, wherever it stands: no script of theirs runs."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Dialog, Page

from lateshift.dashboard.rendering import HEADERS, plain, pretty
from lateshift.store.open import open_store
from tests.browser import hostile
from tests.browser.conftest import SignedIn
from tests.browser.crawling import kind_of
from tests.browser.serving import Served, serving

WATCH = """
window.ran = [];
for (const name of ["alert", "confirm", "prompt", "print"]) window[name] = (...said) => { window.ran.push(name + said); };
document.addEventListener("securitypolicyviolation", (event) => window.ran.push("rule: " + event.violatedDirective + " " + event.sample));
"""
# What no page of ours has but its own files; and, when what a page loads at its beginning is there and it was drawn twice, what stands on it: what begins
# by itself has begun.
FOREIGN = "script, link, style, base, meta[http-equiv], iframe, object, embed, template, math, img, audio, video, marquee, [style]"
SEEN = """async (foreign) => {
  for (const _ of [1, 2]) await new Promise(requestAnimationFrame);
  const all = [...document.querySelectorAll("*")];
  const attributes = all.flatMap((it) => [...it.attributes]);
  const leads = ["href", "src", "action", "formaction", "data", "xlink:href"];
  const away = (it) => leads.includes(it.name) && new URL(it.value, location).origin !== location.origin;
  const ours = (it) => it.matches("script[src^='/static/'], link[href^='/static/']");
  return {
    ran: window.ran,
    foreign: [
      ...all.filter((it) => it.matches(foreign) && !ours(it)),
      ...attributes.filter((it) => it.name.startsWith("on") || away(it)).map((it) => it.ownerElement),
    ].map((it) => it.outerHTML.slice(0, 200)),
    text: document.documentElement.textContent,
    titles: attributes.filter((it) => it.name === "title").map((it) => it.value).join(" "),
    links: all.filter((it) => it.matches("main a[href], nav a[href]")).map((it) => it.getAttribute("href")),
  };
}"""
# On which much stands.
LISTS = [
    "/jobs?limit=200", "/jobs?state=running&limit=200", "/dead-letters?limit=200", "/workflows?limit=200", "/batches?limit=200",
    "/schedules?limit=200", "/audit?limit=200",
]  # fmt: skip
NOTICED = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<details open ontoggle=alert(1)>", "<a href=javascript:alert(1)>x", "onmouseover=alert(1)", "<base href=//evil.example/>",
]  # fmt: skip
IN_TITLES = ["zzlane"]  # which stand nowhere else
# What is shown after a form was sent: what would be done, what is asked first, and what was done.
FORMS = {
    "/dead-letters": ["/dead-letters/preview", "/dead-letters/discard-preview"],
    f"/schedules/{quote(hostile.OPEN_SCHEDULES[0], safe='')}": ["/remove", "/resume"],
    f"/queues/{hostile.QUEUE}": ["/release"],
}


@pytest.fixture(scope="module")
def full_of_scripts(
    new_store: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """A store in which every text that a user gives is a way to run a script."""
    folder, url = tmp_path_factory.mktemp("hostile"), new_store()
    with serving(url, folder, text="", program="hostile", is_full=hostile.is_full) as served:
        with closing(open_store(url)) as store:
            hostile.operate(store)
        yield served


@dataclass(slots=True)
class Seen:
    """What stood on pages. `wrong`: what was there that no template of ours has, or ran."""

    page: Page
    text: str = ""
    titles: str = ""
    wrong: list[str] = field(default_factory=list)

    def look(self, path: str) -> list[str]:
        """Gives where its links lead."""
        self.page.goto(path)
        return self.note()

    def look_again(self) -> None:
        """As the page does by itself every other second."""
        with self.page.expect_response(lambda answer: "hx-request" in answer.request.headers):
            self.page.evaluate("htmx.trigger(document.querySelector('[data-live]'), 'look')")
        self.note()

    def note(self) -> list[str]:
        found = self.page.evaluate(SEEN, FOREIGN)
        self.wrong += [f"{self.page.url}: {each}" for each in [*found["ran"], *found["foreign"]]]
        self.text += " " + _in_a_line(found["text"])
        self.titles += " " + _in_a_line(found["titles"])
        return [str(link) for link in found["links"]]


def test_no_script_that_users_wrote_runs_on_any_page(signed_in: SignedIn, full_of_scripts: Served) -> None:
    page = signed_in(full_of_scripts).new_page()
    page.add_init_script(WATCH)
    dialogs: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    seen = Seen(page)
    with closing(open_store(full_of_scripts.store)) as store:
        waiting = [*LISTS, *hostile.pages(store)]
    kinds = {kind_of(path.partition("?")[0]) for path in waiting} - {"/triggers/{name:path}"}
    for path in waiting:
        for link in seen.look(path):
            kind = kind_of(link.partition("?")[0].partition("#")[0])
            if kind is not None and (kind not in kinds or "cursor=" in link):
                kinds.add(kind)
                waiting.append(link)
        if path in LISTS:
            seen.look_again()
    for path, forms in FORMS.items():
        for form in forms:
            page.goto(path)
            with page.expect_navigation():
                page.evaluate("to => document.querySelector(`form[action$='${to}']`).submit()", form)
            seen.note()
    assert dialogs == []
    assert seen.wrong == []
    for word, texts in hostile.FIELDS.items():
        stood = seen.titles if word in IN_TITLES else seen.text
        missed = [text for text in texts if not any(form in stood for form in _shown(text))]
        assert missed == [], f"{word} was on no page as it is"


@pytest.mark.parametrize("rules", [HEADERS, {}], ids=["by the rules of our pages", "without rules"])
def test_a_script_that_a_page_lets_through_is_noticed(chromium: Browser, rules: dict[str, str]) -> None:
    body = ""
    with chromium.new_context() as context:
        page = context.new_page()
        page.add_init_script(WATCH)
        page.route("**/*", lambda route: route.fulfill(body=body, headers=rules, content_type="text/html"))
        for text in NOTICED:
            body, seen = f"<!doctype html><p {text} x=''>{text}", Seen(page)
            seen.look("http://shop.example/")
            assert seen.wrong, text


def _shown(text: str) -> list[str]:
    """How a page may write it so that it is read as it is: as a text, or as JSON."""
    lines = text.replace("\r\n", "\n")
    return [_in_a_line(plain(each)) for each in (lines, text, _in_a_line(text), pretty(text)[1:-1])]


def _in_a_line(text: str) -> str:
    return " ".join(text.split())
