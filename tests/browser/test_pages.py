"""Every page in a real browser: it is reached by links, has no fault that axe knows of, fits a phone, and works without scripts."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page, Request

from lateshift.dashboard.pages.all import PAGES
from tests.browser.conftest import NARROW, WIDE, SignedIn
from tests.browser.crawling import reached
from tests.browser.serving import ROOT, Served

AXE = Path(
    os.environ.get("LATESHIFT_AXE", ROOT / ".cache/assets/node_modules/axe-core/axe.min.js")
).read_text()
SHOTS = os.environ.get("LATESHIFT_SCREENSHOTS")  # a folder to keep pictures in
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
LOOKS = [("light", WIDE), ("dark", WIDE), ("light", NARROW), ("dark", NARROW)]


def faults(page: Page) -> list[str]:
    """Axe is put in over the page's own rules, which forbid scripts of others."""
    page.evaluate(AXE)
    found = page.evaluate("rules => axe.run(document, { runOnly: rules })", RULES)
    return [
        f"{each['id']}: {each['help']}: {node['html'][:150]}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


@pytest.mark.parametrize(("look", "size"), LOOKS, ids=["light", "dark", "light phone", "dark phone"])
@pytest.mark.parametrize("filled", [True, False], ids=["full", "empty"])
def test_every_page_meets_wcag_aa_and_fits_the_screen(
    signed_in: SignedIn, full: Served, empty: Served, filled: bool, look: str, size: dict[str, int]
) -> None:
    page = signed_in(full if filled else empty, color_scheme=look, viewport=size, bypass_csp=True).new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    for kind, path in reached(page).items():
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 200, path
        wrong += [f"{kind}: {fault}" for fault in faults(page)]
        if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            wrong.append(f"{kind}: wider than the screen")
        if SHOTS:
            name = kind.strip("/").replace("/", "-") or "overview"
            page.screenshot(
                path=f"{SHOTS}/{name}-{'full' if filled else 'empty'}-{look}-{size['width']}.png",
                full_page=True,
            )
    assert wrong == [], "\n".join(wrong)


CUT_OFF = """() => [...document.querySelectorAll("main table")].flatMap((table) => {
  const region = table.closest(".scroll");
  if (!region) return table.getBoundingClientRect().right > innerWidth ? ["no way to its end: " + table.innerText] : [];
  const reachable = region.tabIndex === 0 && getComputedStyle(region).overflowX === "auto";
  const wider = region.scrollWidth > region.clientWidth;
  if (wider && (!reachable || table.matches(".cards, .jobs"))) return ["cut off: " + table.innerText];
  return [];
})"""


def test_no_table_is_cut_off_on_a_phone(signed_in: SignedIn, full: Served) -> None:
    """It is a card for each row, or a region that is scrolled by hand and by keys."""
    page = signed_in(full, viewport=NARROW).new_page()
    wrong: list[str] = []
    for kind, path in reached(page).items():
        page.goto(path)
        wrong += [f"{kind}: {each}" for each in page.evaluate(CUT_OFF)]
    assert wrong == []
    page.goto("/overview/table")
    region = page.get_by_role("region", name="Figures")
    region.focus()
    before = region.evaluate("it => it.scrollLeft")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("before => document.querySelector('.scroll').scrollLeft > before", arg=before)


UNSEEN = """() => [...document.querySelectorAll(".bar rect, .chart rect, .chart path, .chart polyline")]
  .filter((shape) => getComputedStyle(shape).display !== "inline").map((shape) => shape.outerHTML)"""


def test_what_bars_and_charts_show_is_drawn(signed_in: SignedIn, full: Served) -> None:
    """A rule that was meant for something else hides no part of them."""
    page = signed_in(full, viewport=WIDE).new_page()
    page.goto("/")
    page.locator(".bar .part").first.wait_for(state="attached")
    wrong = [
        shape for path in reached(page).values() for shape in (page.goto(path), page.evaluate(UNSEEN))[1]
    ]
    assert wrong == []


def test_every_page_is_reached_by_links_from_the_overview(signed_in: SignedIn, full: Served) -> None:
    page = signed_in(full).new_page()
    assert sorted(reached(page)) == sorted(each.path for each in PAGES)


def test_pages_work_without_scripts(signed_in: SignedIn, full: Served) -> None:
    page = signed_in(full, java_script_enabled=False).new_page()
    page.goto("/jobs")
    page.get_by_label("Task").fill("thumbnail")
    page.get_by_role("button", name="Find").click()
    assert page.locator("tbody tr").count() >= 2
    page.locator("tbody tr a").first.click()
    page.get_by_role("heading", level=1, name="thumbnail").wait_for()


def test_nothing_is_asked_of_any_other_server(signed_in: SignedIn, full: Served) -> None:
    page = signed_in(full).new_page()
    asked: list[str] = []

    def note(request: Request) -> None:
        asked.append(request.url)

    page.on("request", note)
    for path in reached(page).values():
        page.goto(path)
    assert all(url.startswith((full.url, "data:")) for url in asked)


def test_no_page_breaks_its_own_rules(signed_in: SignedIn, full: Served) -> None:
    page = signed_in(full).new_page()
    said: list[str] = []
    page.on(
        "console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None
    )
    for path in reached(page).values():
        page.goto(path)
        page.wait_for_load_state("networkidle")
    assert said == []
