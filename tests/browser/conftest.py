"""A real server and a real worker of a full store, one of an empty one, and Chromium before them."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from tests.browser.serving import Served, serving
from tests.postgres_databases import PostgresDatabases, unused_name

WIDE = {"width": 1280, "height": 900}
NARROW = {"width": 390, "height": 844}

SignedIn = Callable[..., BrowserContext]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The machine's own. Not found is an error: nothing passes that was not looked at."""
    names = [os.environ.get("LATESHIFT_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"]
    path = next((found for name in names if name and (found := shutil.which(name))), None)
    if path is None:
        raise pytest.UsageError(
            "The browser tests need Chromium on the PATH, or LATESHIFT_CHROMIUM=/path/to/it."
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def new_store(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    postgres_server: PostgresDatabases,
) -> Iterator[Callable[[], str]]:
    """Stores for servers of a whole run, once of each kind."""
    made: list[str] = []

    def make() -> str:
        if request.param == "sqlite":
            return f"sqlite:///{tmp_path_factory.mktemp('store')}/jobs.db"
        made.append(unused_name())
        return postgres_server.create_database(made[-1])

    yield make
    for name in made:
        postgres_server.drop_database(name)


@pytest.fixture(scope="session")
def full(new_store: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With something of everything."""
    with serving(new_store(), tmp_path_factory.mktemp("full"), text="cat.png") as served:
        yield served


@pytest.fixture(scope="session")
def empty(new_store: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(new_store(), tmp_path_factory.mktemp("empty")) as served:
        yield served


@pytest.fixture(scope="session")
def states(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Cookies of servers that were signed in to, whose links are used up."""
    return {}


@pytest.fixture
def signed_in(chromium: Browser, states: dict[str, Path], tmp_path: Path) -> Iterator[SignedIn]:
    """A new window at a server, signed in; with such options as a light or a dark look."""
    opened: list[BrowserContext] = []

    def sign_in(served: Served, **options: object) -> BrowserContext:
        kept = states.get(served.url)
        context = chromium.new_context(base_url=served.url, storage_state=kept, **options)  # type: ignore[arg-type]
        context.set_default_timeout(15_000)
        opened.append(context)
        if kept is None:
            page = context.new_page()
            page.goto(served.link)
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_url(served.url + "/")
            states[served.url] = tmp_path / "state.json"
            context.storage_state(path=states[served.url])
            page.close()
        return context

    yield sign_in
    for context in opened:
        context.close()
