"""What users wrote is shown as it is, wherever it stands: no script of theirs runs."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Dialog

from tests.browser.conftest import SignedIn
from tests.browser.crawling import reached
from tests.browser.scripts import CORPUS
from tests.browser.serving import Served, serving

WATCH = """
window.ran = [];
for (const name of ["alert", "confirm", "prompt", "print"]) window[name] = (...said) => { window.ran.push(name + said); };
document.addEventListener("securitypolicyviolation", (event) => window.ran.push("rule: " + event.violatedDirective + " " + event.sample));
"""


@pytest.fixture(scope="module")
def hostile(new_store: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A store in which every text that a user gives is a way to run a script."""
    with serving(new_store(), tmp_path_factory.mktemp("hostile"), text="\n".join(CORPUS)) as served:
        yield served


def test_no_script_that_users_wrote_runs_on_any_page(signed_in: SignedIn, hostile: Served) -> None:
    page = signed_in(hostile).new_page()
    page.add_init_script(WATCH)
    dialogs: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    seen = 0
    for path in reached(page).values():
        page.goto(path)
        page.wait_for_load_state("networkidle")
        assert page.evaluate("window.ran") == [], path
        seen += page.content().count("&lt;script&gt;alert")
    assert dialogs == []
    assert seen > 5  # the texts were on the pages
