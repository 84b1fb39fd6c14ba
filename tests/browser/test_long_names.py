"""Names as long as people give them: whatever stands on a page, nothing of it is beside the screen."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NARROW, WIDE, SignedIn
from tests.browser.crawling import reached
from tests.browser.long_names import QUEUE, SESSION
from tests.browser.serving import Served, serving

TOO_WIDE = """() => {
  const wide = (it) => it.scrollWidth > it.clientWidth;
  const tables = [...document.querySelectorAll("main .scroll")].filter(wide).map((it) => it.getAttribute("aria-label"));
  const beside = [...document.querySelectorAll("main td, main h1, main button, main time, main code, main dd")]
    .filter((it) => it.getBoundingClientRect().right > innerWidth && !it.closest(".scroll, .clamped, .drawing"));
  return [...(wide(document.documentElement) ? ["the page"] : []), ...tables, ...beside.map((it) => it.outerHTML.slice(0, 100))];
}"""
CLAMPED = "all => all.map(it => it.clientHeight / parseFloat(getComputedStyle(it).lineHeight))"
SCROLLED = ["Figures"]  # of which only the widest screen shows all columns; elsewhere it is scrolled
SIZES = {"wide": WIDE, "tablet": {"width": 900, "height": 1200}, "phone": NARROW}
BESIDES = {
    "dead": "/jobs?state=dead",
    "late": "/jobs?state=scheduled",
    "blocked": "/jobs?state=blocked",
    "queue": f"/queues/{QUEUE}",
}


@pytest.fixture(scope="module")
def named(new_store: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(new_store(), tmp_path_factory.mktemp("named"), text="", program="long_names") as served:
        yield served


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_no_page_with_long_names_is_wider_than_the_screen(
    signed_in: SignedIn, named: Served, size: dict[str, int]
) -> None:
    page = signed_in(named, viewport=size).new_page()
    allowed = [] if size is WIDE else SCROLLED
    wrong: list[str] = []
    for kind, path in (reached(page) | BESIDES).items():
        page.goto(path)
        wrong += [f"{kind}: {each}" for each in page.evaluate(TOO_WIDE) if each not in allowed]
    assert wrong == []


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "phone"])
def test_a_message_of_any_length_takes_three_lines_of_a_list(
    signed_in: SignedIn, named: Served, size: dict[str, int]
) -> None:
    page = signed_in(named, viewport=size).new_page()
    for path in ("/jobs?state=dead", "/dead-letters", "/workflows"):
        page.goto(path)
        lines = page.eval_on_selector_all("td.what .clamped", CLAMPED)
        assert lines
        assert max(lines) < 3.5, path


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_a_session_that_is_held_is_released_by_a_button_within_its_sheet(
    signed_in: SignedIn, named: Served, size: dict[str, int]
) -> None:
    page = signed_in(named, viewport=size).new_page()
    page.goto(f"/queues/{QUEUE}")
    held = page.get_by_role("region", name="Sessions that are held")
    expect(held).to_contain_text(SESSION)
    button, sheet = (
        held.get_by_role("button", name="Release").bounding_box(),
        held.locator("..").bounding_box(),
    )
    assert button is not None
    assert sheet is not None
    assert sheet["x"] <= button["x"]
    assert button["x"] + button["width"] <= sheet["x"] + sheet["width"]


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_what_can_be_done_with_dead_letters_is_on_the_screen_side_by_side(
    signed_in: SignedIn, named: Served, size: dict[str, int]
) -> None:
    page = signed_in(named, viewport=size).new_page()
    page.goto("/dead-letters")
    for row in page.locator("main tbody tr").all():
        buttons = [each.bounding_box() for each in row.get_by_role("button").all()]
        assert len({round(each["y"]) for each in buttons if each is not None}) == 1
        assert all(each is not None and each["x"] + each["width"] <= size["width"] for each in buttons)


def test_a_row_of_a_batch_on_a_phone_says_when_it_was_made(signed_in: SignedIn, named: Served) -> None:
    page = signed_in(named, viewport=NARROW).new_page()
    page.goto("/batches")
    page.locator("tbody tr a").first.click()
    made = page.locator(".jobs td.made time").first
    made.evaluate("it => it.scrollIntoView({ inline: 'start' })")
    expect(made).to_be_in_viewport(ratio=1)
    assert page.evaluate("scrollX") == 0


def test_no_heading_of_a_card_lies_over_another(signed_in: SignedIn, named: Served) -> None:
    """Each cell is at least as high as its heading, which is the first thing in it."""
    page = signed_in(named, viewport=NARROW).new_page()
    for path in ("/schedules", "/queues", "/members", "/batches"):
        page.goto(path)
        floats = page.eval_on_selector_all(
            ".cards td[data-label]", "all => all.map(it => getComputedStyle(it, '::before').position)"
        )
        assert floats
        assert "absolute" not in floats, path
