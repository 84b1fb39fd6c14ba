"""What stands beside what is looked at again and again, such as forms: it follows too, but for what somebody is at work in."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from lateshift.app.workflows import tell
from lateshift.model.ids import JobId
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from tests.browser import program
from tests.browser.conftest import SignedIn
from tests.browser.serving import Served, serving
from tests.walks.commands import eventually

SOON = 15_000


@pytest.fixture(scope="module")
def shop(new_store: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One of their own: what is done here would be missing elsewhere."""
    with serving(new_store(), tmp_path_factory.mktemp("parts"), text="cat.png") as served:
        yield served


@pytest.fixture
def store(shop: Served) -> Iterator[Store]:
    opened = open_store(shop.store)
    yield opened
    opened.close()


@pytest.fixture(params=[True, False], ids=["libraries", "no libraries"])
def page(signed_in: SignedIn, shop: Served, request: pytest.FixtureRequest) -> Page:
    """Also where the package was built without what it uses of others."""
    made = signed_in(shop).new_page()
    if not request.param:
        made.route(re.compile("vendor-"), lambda route: route.abort())
    return made


def run_that_waits(store: Store, page: Page) -> JobId:
    """A new one, which is looked at."""
    with program.app.using(store):
        run = program.order.enqueue(0, "cat.png").id
    eventually(lambda: store.workflows.look(run, limit=0) is not None, "the run has begun")
    page.goto(f"/workflows/{run}")
    expect(page.get_by_label("Data, as JSON")).to_be_attached(timeout=SOON)
    expect(page.locator("#run .facts .state").first).to_have_text("waiting", timeout=SOON)
    return run


def ended(page: Page) -> None:
    expect(page.locator("#run .facts .state").first).to_have_text("completed", timeout=SOON)


def test_a_run_that_ends_loses_its_forms_and_gets_its_result(page: Page, store: Store) -> None:
    run = run_that_waits(store, page)
    page.evaluate("window.same = true")
    tell(store, run, "picked", "bob", key=None, by="a test")
    ended(page)
    expect(page.get_by_role("heading", name="Result")).to_be_visible(timeout=SOON)
    expect(page.get_by_label("Data, as JSON")).to_have_count(0, timeout=SOON)
    expect(page.get_by_label("Why, for others to read")).to_have_count(0)
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    assert page.evaluate("window.same")


def test_what_somebody_types_is_kept_until_it_is_let_go(page: Page, store: Store) -> None:
    """Also when the field has been left."""
    run = run_that_waits(store, page)
    page.get_by_label("Why, for others to read").fill("it was a mistake")
    page.get_by_role("heading", level=1).click()
    tell(store, run, "picked", "bob", key=None, by="a test")
    ended(page)
    expect(page.get_by_label("Data, as JSON")).to_have_count(0, timeout=SOON)
    expect(page.get_by_label("Why, for others to read")).to_have_value("it was a mistake")
    page.get_by_label("Why, for others to read").fill("")
    page.get_by_role("heading", level=1).click()
    expect(page.get_by_label("Why, for others to read")).to_have_count(0, timeout=35_000)


def test_a_job_that_ends_gets_the_form_that_runs_it_again(page: Page, store: Store) -> None:
    with program.app.using(store):
        job = program.thumbnail.options(delay=timedelta(days=1)).enqueue("dog.png").id
    page.goto(f"/jobs/{job}")
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    store.jobs.cancel([job], by="a test")
    page.get_by_text("Resubmit with other arguments").click(timeout=SOON)
    page.get_by_label("Arguments, by name").fill('{"path": "bird.png"}')
    store.jobs.resubmit([job], by="a test")
    expect(page.locator("#job .facts .state").first).to_have_text("completed", timeout=SOON)
    expect(page.get_by_label("Arguments, by name")).to_have_value('{"path": "bird.png"}')
