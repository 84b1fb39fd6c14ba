"""What operators come for, from end to end in a real browser: each is done by hand, and has happened."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import SignedIn
from tests.browser.serving import Served, serving
from tests.browser.test_flows import open_run


@pytest.fixture(scope="module")
def shop(new_store: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One of their own: what is done here would be missing elsewhere."""
    with serving(new_store(), tmp_path_factory.mktemp("shop"), text="cat.png") as served:
        yield served


def says(page: Page, text: str | re.Pattern[str]) -> None:
    expect(page.locator("p.said")).to_contain_text(text)


def agree(page: Page) -> None:
    """To the next question."""
    page.once("dialog", lambda dialog: dialog.accept())


def press(page: Page, name: str | re.Pattern[str]) -> None:
    page.get_by_role("button", name=name).click()


def test_a_job_runs_again_with_arguments_that_were_refused_at_first(
    signed_in: SignedIn, shop: Served
) -> None:
    page = signed_in(shop).new_page()
    page.goto("/jobs?task=album&state=dead")
    page.locator("tbody tr a").first.click()
    page.get_by_text("Resubmit with other arguments").click()
    page.get_by_label("Arguments, by name").fill('{"path": 7}')
    press(page, "Resubmit with these arguments")
    expect(page.get_by_role("alert")).to_contain_text("path")
    expect(page.get_by_role("alert")).to_be_focused()
    expect(page.get_by_role("alert")).to_be_in_viewport()
    with page.expect_response(lambda answer: "hx-request" in answer.request.headers) as looked:
        page.evaluate("htmx.trigger('#job', 'look')")
    assert looked.value.status == 200
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("button", name="Resubmit with the old arguments")).to_be_visible()
    expect(page.get_by_label("Arguments, by name")).to_have_value('{"path": 7}')
    page.get_by_label("Arguments, by name").fill('{"path": "dog.png"}')
    press(page, "Resubmit with these arguments")
    expect(page.locator("p.said")).to_be_visible()
    expect(page.locator("#job")).to_contain_text("dog.png")


def test_many_jobs_run_again_once_they_were_seen(signed_in: SignedIn, shop: Served) -> None:
    page = signed_in(shop).new_page()
    page.goto("/jobs?task=send&state=dead")
    press(page, "Resubmit…")
    button = page.get_by_role("button", name=re.compile(r"^Resubmit these \d+ jobs$"))
    [count] = re.findall(r"\d+", button.inner_text())
    expect(page.locator("tbody tr")).to_have_count(int(count))
    button.click()
    says(page, re.compile(rf"^{count} jobs "))


def test_a_run_that_waits_is_told_and_ends(signed_in: SignedIn, shop: Served) -> None:
    page = signed_in(shop).new_page()
    open_run(page, "waiting")
    page.get_by_label("Signal that it waits for").select_option("picked")
    page.get_by_label("Data, as JSON").fill('{"by": "ann"}')
    press(page, "Send the signal")
    expect(page.locator("p.said")).to_be_visible()
    expect(page.locator("#run .facts .state").first).to_have_text("completed", timeout=15_000)


def test_a_held_step_runs_again_with_other_arguments(signed_in: SignedIn, shop: Served) -> None:
    page = signed_in(shop).new_page()
    open_run(page, "held")
    page.get_by_label("Other arguments").fill('{"text": "Madrid"}')
    press(page, re.compile("Run step"))
    says(page, "begins anew")
    expect(page.locator("#run .facts .state").first).to_have_text("waiting", timeout=15_000)
    expect(page.locator(".steps")).to_contain_text("arguments of an operator")


def test_a_queue_is_paused_and_resumed(signed_in: SignedIn, shop: Served) -> None:
    page = signed_in(shop).new_page()
    page.goto("/queues/images")
    agree(page)
    press(page, "Pause")
    says(page, "queue images: paused.")
    page.goto("/")
    page.get_by_role("link", name="images", exact=True).first.click()
    press(page, "Resume")
    says(page, "queue images: resumed.")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()


def test_a_browser_is_out_at_once_when_its_token_is_revoked(
    signed_in: SignedIn, chromium: Browser, shop: Served
) -> None:
    page = signed_in(shop).new_page()
    page.goto("/tokens")
    page.get_by_label("Name, by which").fill("walker")
    page.get_by_role("checkbox", name="read look at everything").check()
    press(page, "Make the token")
    text = page.locator(".secret").inner_text()

    with chromium.new_context(base_url=shop.url) as other:
        theirs = other.new_page()
        theirs.goto("/sign-in")
        theirs.get_by_label("Token").fill(text)
        theirs.locator("form", has=theirs.get_by_label("Token")).get_by_role("button").click()
        theirs.wait_for_url(shop.url + "/")

        page.goto("/tokens")
        assert text not in page.content()
        agree(page)
        mine = page.get_by_role("row").filter(has=page.get_by_role("cell", name="walker", exact=True))
        mine.get_by_role("button", name="Revoke").click()
        says(page, "revoked")

        theirs.goto("/jobs")
        expect(theirs).to_have_url(shop.url + "/sign-in?next=%2Fjobs")


def test_a_schedule_is_fired_and_its_past_filled(signed_in: SignedIn, shop: Served) -> None:
    page = signed_in(shop).new_page()
    page.goto("/schedules/news")
    press(page, "Fire now")
    says(page, "Fired: the job")
    expect(page.locator("#schedule")).to_contain_text("fired by hand")

    page.get_by_label("From, in UTC").fill("2020-01-01T00:00")
    page.get_by_label("Until, in UTC").fill("2020-01-03T00:00")
    press(page, "Count the ticks")
    press(page, "Make 2 jobs")
    page.wait_for_url("**/batches/*")
    says(page, "A job for each of 2 ticks")


def test_a_breaker_is_closed_and_the_audit_says_by_whom(signed_in: SignedIn, shop: Served) -> None:
    page = signed_in(shop).new_page()
    page.goto("/breakers/pay")
    agree(page)
    press(page, "Close")
    says(page, "breaker pay: closed.")
    page.goto("/audit")
    line = page.get_by_role("row").filter(has_text="close breaker")
    expect(line.first).to_contain_text("token sign-in-link")
