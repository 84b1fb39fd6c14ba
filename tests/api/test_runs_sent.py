"""A token that is for some queues makes no job in another one by the way that it sends a whole run: neither of a step that is held there, nor
of an undo that is a task there."""

from typing import Any

import pytest

from lateshift.model.job import JobFilter
from lateshift.testing import Kit
from tests.api.asking import SENDS, Web, token_of
from tests.api.shop import Shop
from tests.dashboard.browsing import Browser

WHY = {"why": "a test"}
ENDS: list[tuple[str, str, Any]] = [
    ("undo", "/v1/workflows/{id}/undo", WHY),
    ("cancel", "/v1/workflows/{id}/cancel", None),
    ("cancel of its job", "/v1/jobs/{id}/cancel", None),
]


def in_mail(kit: Kit) -> int:
    return len(kit.app.store.reports.jobs(JobFilter(queue="mail"), 100))


def whole(browser: Browser, path: str) -> str:
    """The page with its tags."""
    browser.look(path)
    assert browser.page is not None
    return browser.page.text


def refused(answer: Any) -> bool:
    said = answer.json()
    assert "mail" not in said["detail"]
    return (answer.status_code, said["type"]) == (403, "urn:lateshift:problem:queue-forbidden")


def test_a_run_that_a_step_in_another_queue_holds_is_not_resumed(
    kit: Kit, web: Web, held: str, some: str
) -> None:
    before = in_mail(kit)
    assert refused(web("POST", f"/v1/workflows/{held}/resume", {}, token=some))
    kit.drain()
    assert (in_mail(kit), web("GET", f"/v1/workflows/{held}").json()["state"]) == (before, "held")


def test_a_token_for_both_queues_resumes_it_and_one_for_the_run_s_own_resumes_what_its_own_step_holds(
    kit: Kit, web: Web, shop: Shop, held: str, some: str
) -> None:
    both = token_of(web.app, "both", SENDS, ("orders", "mail"))
    assert web("POST", f"/v1/workflows/{held}/resume", {}, token=both).status_code == 200
    own = shop.order.enqueue(2, "bad")
    kit.drain()
    assert web("POST", f"/v1/workflows/{own.id}/resume", {}, token=some).status_code == 200


def test_all_runs_of_a_workflow_are_resumed_by_a_token_for_all_queues_alone(
    web: Web, held: str, some: str
) -> None:
    for preview in (True, False):
        body = {"name": "order", "preview": preview}
        assert refused(web("POST", "/v1/workflows/resume", body, token=some))
    assert web("POST", "/v1/workflows/resume", {"name": "order"}).json()["runs"] == [held]


@pytest.mark.parametrize(("_", "path", "body"), ENDS, ids=[name for name, *_ in ENDS])
def test_a_run_that_is_undone_by_a_task_of_another_queue_is_not_ended(
    kit: Kit, web: Web, letter: str, some: str, _: str, path: str, body: Any
) -> None:
    assert refused(web("POST", path.format(id=letter), body, token=some))
    kit.travel(seconds=5)
    assert (in_mail(kit), web("GET", f"/v1/workflows/{letter}").json()["state"]) == (0, "waiting")
    assert web("POST", path.format(id=letter), body).status_code == 200
    kit.travel(seconds=5)
    assert in_mail(kit) == 1


@pytest.mark.parametrize(("_", "path", "body"), ENDS, ids=[name for name, *_ in ENDS])
def test_one_that_is_undone_by_functions_of_its_own_is_ended(
    web: Web, held: str, some: str, _: str, path: str, body: Any
) -> None:
    assert web("POST", path.format(id=held), body, token=some).status_code == 200


def test_what_could_not_be_undone_in_another_queue_is_not_tried_again_there(
    kit: Kit, web: Web, letter: str, some: str
) -> None:
    web("POST", f"/v1/workflows/{letter}/undo", WHY)
    kit.travel(seconds=5)
    assert web("GET", f"/v1/workflows/{letter}").json()["state"] == "compensation_failed"
    before = in_mail(kit)
    for path in ("workflows/{id}/resume", "jobs/{id}/resubmit"):
        assert refused(web("POST", f"/v1/{path.format(id=letter)}", {}, token=some))
    for path, body in (
        ("bulk", {"action": "resubmit", "queue": "orders"}),
        ("bulk", {"action": "resubmit", "ids": [letter]}),
        ("dead-letters/preview", {"queue": "orders"}),
        ("dead-letters/resubmit", {"queue": "orders"}),
        ("dead-letters/preview", {"ids": [letter]}),
        ("dead-letters/resubmit", {"ids": [letter]}),
        ("dead-letters/resubmit", {"ids": [letter], "change": {}}),
    ):
        answer = web("POST", f"/v1/{path}", body, token=some)
        done = answer.json() | {"skipped": []}  # where it is named among those that were not sent
        assert (path, body, answer.status_code, letter in str(done)) == (path, body, 200, False)
    kit.travel(seconds=5)
    assert in_mail(kit) == before
    assert web("POST", f"/v1/workflows/{letter}/resume", {}).status_code == 200
    kit.travel(seconds=5)
    assert in_mail(kit) == before + 1


def test_no_form_for_dead_letters_sends_it_either(kit: Kit, web: Web, browser: Browser, letter: str) -> None:
    web("POST", f"/v1/workflows/{letter}/undo", WHY)
    kit.travel(seconds=5)
    before = in_mail(kit)
    browser.sign_in_as(*SENDS, queues=("orders",))
    for form in ({"queue": "orders"}, {"ids": letter}):
        browser.look("/dead-letters?queue=orders")
        assert letter not in browser.send("/dead-letters/preview", form).text
        browser.look("/dead-letters?queue=orders")
        browser.send("/dead-letters/resubmit", form)
    kit.travel(seconds=5)
    assert in_mail(kit) == before
    browser.sign_in_as(*SENDS)
    browser.look("/dead-letters")
    browser.send("/dead-letters/resubmit", {"ids": letter})
    kit.travel(seconds=5)
    assert in_mail(kit) == before + 1


def test_a_bulk_leaves_out_the_runs_that_it_would_not_end(
    web: Web, letter: str, held: str, some: str
) -> None:
    body = {"action": "cancel", "ids": [letter, held]}
    preview = web("POST", "/v1/bulk/preview", body, token=some).json()
    assert (preview["ids"], preview["others"]) == ([held], 1)
    done = web("POST", "/v1/bulk", body, token=some).json()
    assert (done["done"], done["others"]) == ([held], 1)
    assert letter in web("POST", "/v1/bulk/preview", body).json()["ids"]


def test_pages_have_no_button_for_it_and_refuse_it(browser: Browser, held: str, letter: str) -> None:
    browser.sign_in_as(*SENDS, queues=("orders",))
    assert f'/workflows/{held}/resume"' not in whole(browser, f"/workflows/{held}")
    assert browser.send(f"/workflows/{held}/resume").status_code == 403
    shown = whole(browser, f"/workflows/{letter}")
    for deed, form in (("undo", WHY), ("cancel", {})):
        assert f'/workflows/{letter}/{deed}"' not in shown
        assert browser.send(f"/workflows/{letter}/{deed}", form).status_code == 403
        browser.look(f"/workflows/{letter}")
    browser.sign_in_as(*SENDS)
    assert f'/workflows/{held}/resume"' in whole(browser, f"/workflows/{held}")
    assert f'/workflows/{letter}/undo"' in whole(browser, f"/workflows/{letter}")
