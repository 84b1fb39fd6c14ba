"""What hands and eyes do: keys, looks, and a page that keeps itself up to date."""

import re

import pytest
from playwright.sync_api import Browser, expect

from lateshift.dashboard.page import navigation
from lateshift.dashboard.pages.all import PAGES
from lateshift.model.access import new_token
from lateshift.model.job import JobFilter, State
from lateshift.store.open import open_store
from tests.browser.conftest import NARROW, WIDE, SignedIn
from tests.browser.serving import Served


@pytest.mark.parametrize("libraries", [True, False])
def test_a_list_keeps_itself_up_to_date_without_being_loaded_again(
    signed_in: SignedIn, full: Served, libraries: bool
) -> None:
    """Also where the package was built without what it uses of others."""
    page = signed_in(full).new_page()
    if not libraries:
        page.route(re.compile("vendor-"), lambda route: route.abort())
    page.goto("/jobs?task=thumbnail&state=scheduled")
    page.evaluate("window.same = true")
    before = page.locator("tbody tr").count()
    store = open_store(full.store)
    try:
        [waiting, *_] = store.reports.jobs(JobFilter(task="thumbnail", state=State.SCHEDULED), 1)
        store.jobs.cancel([waiting.id], by="a test")
        expect(page.locator("tbody tr")).to_have_count(before - 1, timeout=10_000)
        assert page.evaluate("window.same")
        assert page.evaluate("!!window.htmx") == libraries
    finally:
        store.close()


def test_rows_are_walked_and_pages_reached_by_keys(signed_in: SignedIn, full: Served) -> None:
    page = signed_in(full).new_page()
    page.goto("/")
    page.keyboard.press("g")
    page.keyboard.press("j")
    page.wait_for_url("**/jobs")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("tbody tr").nth(1)).to_have_class("chosen")
    with page.expect_response(lambda answer: "hx-request" in answer.request.headers):
        page.evaluate("htmx.trigger('#jobs', 'look')")
    page.wait_for_load_state("networkidle")
    expect(page.locator("tbody tr").nth(1)).to_have_class("chosen")
    expect(page.locator("tbody tr").nth(1).locator("a").first).to_be_focused()
    page.keyboard.press("k")
    expect(page.locator("tbody tr").nth(0)).to_have_class("chosen")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/*")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_the_chosen_row_is_ticked_by_a_key_and_the_keys_go_on(signed_in: SignedIn, full: Served) -> None:
    page = signed_in(full).new_page()
    page.goto("/jobs")
    ticks = page.locator("tbody input[type=checkbox]")
    page.keyboard.press("x")
    expect(page.locator("tbody input:checked")).to_have_count(0)
    for key in "jxjxjx":
        page.keyboard.press(key)
    page.keyboard.press("k")
    page.keyboard.press("x")
    for number, is_ticked in enumerate((True, False, True)):
        expect(ticks.nth(number)).to_be_checked(checked=is_ticked)
    assert "xtick the row" in " ".join((page.locator("#keys").text_content() or "").split())
    page.goto("/queues")
    page.keyboard.press("j")
    page.keyboard.press("x")  # where there is nothing to tick
    expect(page).to_have_url(full.url + "/queues")


def test_after_an_action_its_message_has_the_focus_beside_the_button_that_undoes_it(
    signed_in: SignedIn, full: Served
) -> None:
    page = signed_in(full).new_page()
    page.goto("/queues/tight")
    for button, back in (("Pause", "Resume"), ("Resume", "Pause")):
        page.get_by_role("button", name=button).press("Enter")
        expect(page.get_by_role("status")).to_be_focused()
        page.keyboard.press("Shift+Tab")
        expect(page.get_by_role("button", name=back)).to_be_focused()


def test_what_a_page_refuses_at_its_top_has_the_focus(signed_in: SignedIn, full: Served) -> None:
    page = signed_in(full).new_page()
    page.goto("/jobs?since=whenever")
    expect(page.get_by_role("alert")).to_be_focused()


VANISHED = """row => [...row.querySelectorAll(".tag, .state")]
  .filter((chip) => getComputedStyle(chip).backgroundColor === getComputedStyle(row).backgroundColor).map((chip) => chip.textContent)"""


@pytest.mark.parametrize("look", ["light", "dark"])
def test_no_chip_has_the_ground_of_its_row(signed_in: SignedIn, full: Served, look: str) -> None:
    """Also where a hand is over it, and where it was walked to."""
    page = signed_in(full, color_scheme=look).new_page()
    page.goto("/jobs?task=album")
    row = page.locator("tbody tr", has=page.locator(".tag")).first
    expect(row.locator(".tag").first).to_be_visible()
    assert row.evaluate(VANISHED) == []
    row.hover()
    assert row.evaluate(VANISHED) == []
    page.mouse.move(0, 0)
    page.keyboard.press("j")
    expect(row).to_have_class("chosen")
    assert row.evaluate(VANISHED) == []


LINES = """all => all.map((each) => {
  const range = document.createRange();
  range.selectNodeContents(each);
  return new Set([...range.getClientRects()].map((it) => Math.round(it.top))).size;
})"""


def test_a_mean_stays_on_one_line_with_its_unit(signed_in: SignedIn, full: Served) -> None:
    page = signed_in(full, viewport=WIDE).new_page()
    page.goto("/")
    mean = page.locator(".tile .whole")
    assert mean.evaluate_all(LINES) == [1]
    assert re.fullmatch("mean ([\\d.]+\u00a0.*|–)", mean.text_content() or "")


@pytest.mark.parametrize("libraries", [True, False])
def test_a_list_holds_still_while_a_row_is_chosen(signed_in: SignedIn, full: Served, libraries: bool) -> None:
    """Also on a page where new rows push the others away."""
    page = signed_in(full).new_page()
    if not libraries:
        page.route(re.compile("vendor-"), lambda route: route.abort())
    page.clock.install()
    page.goto("/jobs")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.wait_for_load_state("networkidle")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.run_for(10_000)
    assert asked == []
    held = "getComputedStyle(document.querySelector('#beside'), '::before').content"
    assert "Held while a row is chosen" in page.evaluate(held)
    page.keyboard.press("Escape")
    with page.expect_request(lambda request: request.url == full.url + "/jobs"):
        page.clock.run_for(3_000)
    expect(page.locator("tr.chosen")).to_have_count(0)
    assert page.evaluate(held) == "none"


def test_every_page_at_the_side_has_a_key_of_its_own(signed_in: SignedIn, full: Served) -> None:
    page = signed_in(full).new_page()
    page.goto("/")
    told = " ".join((page.locator("#keys").text_content() or "").split())
    for each, key in navigation(PAGES):
        with page.expect_navigation(url=full.url + each.path):
            page.keyboard.press("g")
            page.keyboard.press(key)
        assert f"{key} {each.section.lower()}" in told
    assert len({key for _, key in navigation(PAGES)}) == len({each.section for each in PAGES})


def test_the_look_that_was_chosen_is_kept(signed_in: SignedIn, full: Served) -> None:
    page = signed_in(full, color_scheme="light").new_page()
    page.goto("/")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Light or dark").click()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != ground
    page.goto("/jobs")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


def test_a_tab_that_nobody_sees_asks_nothing(signed_in: SignedIn, full: Served) -> None:
    page = signed_in(full).new_page()
    page.add_init_script("Object.defineProperty(document, 'hidden', { get: () => window.away ?? false })")
    page.clock.install()
    page.goto("/")
    page.evaluate("window.away = true")
    page.wait_for_load_state("networkidle")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.run_for(60_000)
    assert asked == []
    page.evaluate("window.away = false")
    with page.expect_request(lambda request: request.url == full.url + "/"):
        page.clock.run_for(3_000)


def test_who_is_signed_out_meanwhile_comes_back_to_the_same_page(
    signed_in: SignedIn, chromium: Browser, full: Served
) -> None:
    """A list that looks again finds the door, which leads back once somebody has signed in."""
    store = open_store(full.store)
    try:
        token, text = new_token("walker", ["read"], [], at=store.clock.now(), by="a test")
        store.tokens.create(token)
        with chromium.new_context(base_url=full.url) as context:
            page = context.new_page()
            page.goto("/jobs?task=thumbnail&state=scheduled")
            page.get_by_label("Token").fill(text)
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_url("**/jobs?task=thumbnail&state=scheduled")
            [own, *_] = [each for each in store.tokens.list(100, sign_ins=True) if each.parent == token.id]
            store.tokens.revoke(own.id, by="a test")
            page.wait_for_url("**/sign-in?next=*", timeout=15_000)
            page.get_by_label("Token").fill(text)
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_url("**/jobs?task=thumbnail&state=scheduled")
            expect(page.locator("tbody tr").first).to_be_visible()
    finally:
        store.close()


def test_a_page_whose_server_is_gone_says_so_until_it_is_back(signed_in: SignedIn, full: Served) -> None:
    page = signed_in(full).new_page()
    page.goto("/members")
    row = page.locator("tbody tr").first
    expect(row).to_be_visible()
    page.route("**/members", lambda route: route.abort())
    expect(page.locator("body")).to_have_class("gone", timeout=15_000)
    expect(row).to_be_visible()
    page.unroute("**/members")
    expect(page.locator("body")).not_to_have_class("gone", timeout=15_000)


def test_the_menu_of_a_phone_shows_where_one_is(signed_in: SignedIn, full: Served) -> None:
    page = signed_in(full, viewport=NARROW).new_page()
    for path in ("/", "/schedules", "/audit"):
        page.goto(path)
        expect(page.locator("nav [aria-current]")).to_be_in_viewport(ratio=0.9)


def test_buttons_follow_what_others_do(signed_in: SignedIn, full: Served) -> None:
    page = signed_in(full).new_page()
    page.goto("/queues/images")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    store = open_store(full.store)
    try:
        store.queues.pause("images", by="a test")
        expect(page.get_by_role("button", name="Resume")).to_be_visible(timeout=10_000)
    finally:
        store.queues.resume("images", by="a test")
        store.close()


def test_a_slash_goes_to_the_search_which_on_jobs_is_the_one_for_ids(
    signed_in: SignedIn, full: Served
) -> None:
    page = signed_in(full).new_page()
    for path, label in (("/jobs", "Id of a job, or its end"), ("/queues", "Name has")):
        page.goto(path)
        page.keyboard.press("/")
        expect(page.get_by_label(label)).to_be_focused()
