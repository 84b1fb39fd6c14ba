"""Workflows, schedules and tokens with hands: a box of the graph leads to its step, what is open stays open, a held run is mended."""

import re

import pytest
from playwright.sync_api import Dialog, Page, expect

from tests.browser.conftest import SignedIn
from tests.browser.serving import Served


def open_run(page: Page, state: str) -> None:
    page.goto(f"/workflows?name=order&state={state}")
    page.locator("tbody tr a").first.click()
    page.get_by_role("heading", level=1, name="order").wait_for()


def test_a_box_of_the_graph_leads_to_the_row_of_its_step(signed_in: SignedIn, full: Served) -> None:
    page = signed_in(full).new_page()
    open_run(page, "waiting")
    page.locator(".lateshift-graph a").first.click()
    page.wait_for_url("**#step-1")
    expect(page.locator("tr#step-1")).to_be_in_viewport()


def test_what_was_opened_stays_open_when_the_page_brings_itself_up_to_date(
    signed_in: SignedIn, full: Served
) -> None:
    page = signed_in(full).new_page()
    open_run(page, "waiting")
    page.locator("#data-1 summary").click()
    facts = page.locator("#run .facts")
    before = facts.locator("dt").all_text_contents()
    for _ in range(2):
        page.evaluate("document.querySelector('#run .facts').replaceChildren()")
        with page.expect_response(lambda answer: "hx-request" in answer.request.headers) as looked:
            expect(facts.locator("dt")).to_have_text(before)
        assert (looked.value.status, looked.value.url) == (200, page.url)
        expect(page.locator("#data-1 pre").first).to_be_visible()


def test_a_held_step_runs_again_from_its_form(signed_in: SignedIn, full: Served) -> None:
    page = signed_in(full).new_page()
    open_run(page, "held")
    number = page.get_by_role("button", name=re.compile("Run step")).inner_text().split()[2]
    page.get_by_label("Other arguments").fill("no JSON")
    page.get_by_role("button", name=f"Run step {number} again").click()
    expect(page.get_by_role("alert")).to_contain_text("is no JSON")
    expect(page.get_by_label("Other arguments")).to_have_value("no JSON")
    page.get_by_label("Other arguments").fill("")
    page.get_by_role("button", name=f"Run step {number} again").click()
    expect(page.get_by_role("status")).to_contain_text("begins anew")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_a_schedule_is_paused_at_once_and_removed_only_if_one_says_yes(
    signed_in: SignedIn, full: Served, scripts: bool
) -> None:
    page = signed_in(full, java_script_enabled=scripts).new_page()
    page.goto("/schedules/news")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("status")).to_contain_text("paused")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("status")).to_contain_text("resumed")
    asked: list[str] = []

    def decline(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", decline)
    page.get_by_role("button", name="Remove").click()
    if not scripts:
        asked.append(page.get_by_role("heading", level=1).inner_text())
        expect(page.get_by_role("button", name="Remove")).to_be_visible()
        page.get_by_role("link", name="Back").click()
    assert asked == ["Remove this schedule? It fires no more; its jobs stay."]
    page.goto("/schedules")
    expect(page.get_by_role("link", name="news", exact=True)).to_be_visible()


def test_a_token_is_made_and_shown_once(signed_in: SignedIn, full: Served) -> None:
    page = signed_in(full).new_page()
    page.goto("/tokens")
    page.get_by_label("Name, by which").fill("from-a-browser")
    page.get_by_role("checkbox", name="read look at everything").check()
    page.get_by_role("button", name="Make the token").click()
    expect(page.locator(".secret")).to_have_text(re.compile("^lsh_"))
    text = page.locator(".secret").inner_text()
    page.get_by_role("link", name="Done").click()
    expect(page.get_by_role("cell", name="from-a-browser", exact=True)).to_be_visible()
    assert text not in page.content()
