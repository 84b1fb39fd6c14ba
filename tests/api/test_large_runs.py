"""A run with many steps, or with large ones: it is shown page by page, and nobody reads the whole of it to say something about it."""

from typing import Any

import pytest

from lateshift import Flow, Permanent
from lateshift.api.bounds import PAGE_BYTES, PAGE_MOST
from lateshift.api.routes import workflows
from lateshift.app.workflows import tell
from lateshift.dashboard.pages import workflows as pages
from lateshift.model.access import Scope
from lateshift.testing import Kit
from tests.api.asking import Web, token_of
from tests.api.shop import Shop
from tests.dashboard.browsing import Browser

SIZE = 10_000  # bytes of a step's result
SCOPES = [Scope.READ, Scope.OPERATE, Scope.ENQUEUE]


@pytest.fixture
def wide(kit: Kit) -> str:
    """A run of 7 steps, each of which gave a text of SIZE, and then one that is held; it was told 5 things of SIZE that it has not taken."""

    @kit.app.task(queue="small")
    def fail() -> None:
        raise Permanent("no")

    @kit.app.workflow(queue="orders", on_failure="hold")
    async def wide(flow: Flow) -> None:
        for number in range(7):
            await flow.step(large, number)
        await flow.step(fail)

    def large(number: int) -> str:
        return str(number) * (SIZE - 2)

    run = wide.enqueue()
    kit.drain()
    for _ in range(5):
        tell(kit.app.store, run.id, "picked", "a" * (SIZE - 2), key=None, by="a test")
    return str(run.id)


@pytest.fixture
def bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page has as much as three steps of SIZE."""
    for module in (workflows, pages):
        monkeypatch.setattr(module, "PAGE_BYTES", 3 * SIZE + 500)


def pages_of(web: Web, path: str, token: str | None = "") -> list[Any]:
    found = [web("GET", path, token=token).json()]
    while found[-1]["next"] is not None:
        joined = "&" if "?" in path else "?"
        found.append(web("GET", f"{path}{joined}cursor={found[-1]['next']}", token=token).json())
        assert len(found) < 50
    return found


def numbers(page: Any) -> list[str]:
    return [step["step"] for step in page["steps"]]


EIGHT = [str(number) for number in range(1, 9)]


def test_a_run_is_shown_whole_as_long_as_it_is_small(web: Web, wide: str) -> None:
    [page] = pages_of(web, f"/v1/workflows/{wide}")
    assert (numbers(page), len(page["signals"]), page["next"]) == (EIGHT, 5, None)


@pytest.mark.usefixtures("bounded")
def test_a_large_run_is_shown_page_by_page_its_signals_first_and_each_thing_once(web: Web, wide: str) -> None:
    whole = pages_of(web, f"/v1/workflows/{wide}")
    assert [number for page in whole for number in numbers(page)] == EIGHT
    assert [len(page["signals"]) for page in whole][:2] == [3, 2]
    assert sum(len(page["signals"]) for page in whole) == 5
    for page in whole:
        held = [step["result"] or "" for step in page["steps"]] + [
            signal["data"] for signal in page["signals"]
        ]
        assert sum(map(len, held)) <= 3 * SIZE + 500 or len(page["steps"]) == 1
        assert (page["id"], page["workflow"], page["state"]) == (wide, "wide", "held")


def test_a_page_of_a_run_has_as_many_steps_as_are_asked_for(web: Web, wide: str) -> None:
    whole = pages_of(web, f"/v1/workflows/{wide}?limit=3")
    assert [numbers(page) for page in whole] == [["1", "2", "3"], ["4", "5", "6"], ["7", "8"]]
    assert [len(page["signals"]) for page in whole] == [3, 2, 0]
    assert web("GET", f"/v1/workflows/{wide}?limit={PAGE_MOST + 1}").status_code == 422
    assert PAGE_BYTES == 4 * 2**20


@pytest.mark.usefixtures("bounded")
def test_a_step_that_is_larger_than_a_page_is_a_page(
    web: Web, wide: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflows, "PAGE_BYTES", 100)
    whole = pages_of(web, f"/v1/workflows/{wide}")
    assert [numbers(page) for page in whole] == [[number] for number in EIGHT]
    assert [len(page["signals"]) for page in whole] == [1] * 5 + [0] * 3


@pytest.mark.usefixtures("bounded")
def test_the_cursor_of_a_run_is_good_for_its_token_and_not_to_be_changed(
    web: Web, kit: Kit, wide: str
) -> None:
    path = f"/v1/workflows/{wide}"
    cursor = web("GET", path).json()["next"]
    other = token_of(kit.app, "other", SCOPES, ("orders",))
    assert web("GET", f"{path}?cursor={cursor}", token=other).status_code == 400
    assert web("GET", f"{path}?cursor={cursor[:-1]}{'A' if cursor[-1] != 'A' else 'B'}").status_code == 400


@pytest.mark.usefixtures("bounded")
def test_each_page_of_a_run_has_a_tag_of_its_own_which_changes_with_the_run(web: Web, wide: str) -> None:
    path = f"/v1/workflows/{wide}"
    first = web("GET", path)
    second = f"{path}?cursor={first.json()['next']}"
    tags = [web("GET", each).headers["ETag"] for each in (path, second)]
    assert tags[0] != tags[1]
    for each, tag in zip((path, second), tags, strict=True):
        assert web("GET", each, headers={"If-None-Match": tag}).status_code == 304
    web("POST", f"{path}/undo", {"why": "a test"})
    assert web("GET", path, headers={"If-None-Match": tags[0]}).status_code == 200


@pytest.mark.usefixtures("bounded")
def test_the_page_of_a_large_run_has_no_more_than_fits_and_leads_on(browser: Browser, wide: str) -> None:
    browser.sign_in()
    browser.look(f"/workflows/{wide}")
    seen: list[str] = []
    for _ in range(10):
        assert browser.page is not None
        steps = [part.partition('"')[0] for part in browser.page.text.split('<tr id="step-')[1:]]
        assert 1 <= len(steps) <= 3
        seen += steps
        more = browser.page.text.partition("cursor=")[2].partition('"')[0]
        if not more:
            break
        browser.look(f"/workflows/{wide}?cursor={more}")
    assert seen == EIGHT


@pytest.mark.parametrize("concealed", [False, True], ids=["open", "with a sensitive queue"])
def test_nobody_reads_a_whole_run_to_say_something_about_it(
    kit: Kit,
    web: Web,
    browser: Browser,
    shop: Shop,
    wide: str,
    monkeypatch: pytest.MonkeyPatch,
    concealed: bool,
) -> None:
    store = kit.app.store
    if concealed:
        store.queues.conceal(["secret"])

    def whole(*_: Any) -> Any:
        raise AssertionError("a whole run was read")

    job = web("GET", f"/v1/workflows/{wide}").json()["steps"][7]["job"]
    some = token_of(kit.app, "some", SCOPES, ("orders", "small"))
    monkeypatch.setattr(store.workflows, "view", whole)
    monkeypatch.setattr(store.workflows, "load", whole)
    for path in (
        f"jobs/{job}", f"jobs/{job}?wait=0.02", f"jobs/{wide}", f"jobs/{wide}/logs", f"jobs/{wide}/explain", "workflows",
        f"workflows/{wide}", f"workflows/{wide}/graph", "overview",
    ):  # fmt: skip
        for token in ("", some):
            assert (path, web("GET", f"/v1/{path}", token=token).status_code) == (path, 200)
    browser.sign_in_as(*SCOPES, queues=("orders", "small"))
    for path in (f"/workflows/{wide}", f"/jobs/{job}", f"/jobs/{wide}", "/workflows", "/"):
        browser.look(path)
    for path, body, status in (
        (f"jobs/{job}/resubmit", {}, 409),
        (f"workflows/{wide}/steps/8/resubmit", {"preview": True}, 200),
        (f"workflows/{wide}/steps/7/resubmit", {}, 409),
        (f"workflows/{wide}/signal", {"name": "x"}, 200),
        ("bulk/preview", {"action": "cancel", "queue": "orders"}, 200),
        (f"workflows/{wide}/resume", {}, 200),
        (f"workflows/{wide}/undo", {"why": "a test"}, 200),
        (f"workflows/{wide}/cancel", {}, 200),
    ):
        answer = web("POST", f"/v1/{path}", body, token=some)
        assert (path, answer.status_code) == (path, status), answer.text


def test_a_step_that_is_not_held_is_told_apart_from_the_held_ones(web: Web, wide: str) -> None:
    for number, status, said in (
        ("7", 409, "Held: 8 fail."),
        ("9", 404, "Held: 8 fail."),
        ("x", 422, "no number"),
    ):
        answer = web("POST", f"/v1/workflows/{wide}/steps/{number}/resubmit", {})
        assert (answer.status_code, said in answer.json()["detail"]) == (status, True), answer.text


def test_why_is_told_by_a_page_only_if_no_step_of_it_may_be_in_a_queue_of_others(
    web: Web, kit: Kit, wide: str
) -> None:
    both = token_of(kit.app, "both", SCOPES, ("orders", "small"))
    whole = pages_of(web, f"/v1/workflows/{wide}?limit=3", both)
    assert [page["why"] for page in whole] == ["[another queue]"] * 3
    [page] = pages_of(web, f"/v1/workflows/{wide}", both)
    assert "Permanent" in page["why"]
