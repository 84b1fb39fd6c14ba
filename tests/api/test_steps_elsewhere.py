"""Steps of a run that are jobs of another queue, seen and resubmitted by a token that is not for it."""

from uuid import UUID

import pytest

from lateshift import Flow
from lateshift.api.steps import ELSEWHERE
from lateshift.model.access import Scope
from lateshift.model.attempt_log import AttemptLog, LogLine
from lateshift.model.job import JobFilter
from lateshift.testing import Kit
from tests.api.asking import SENDS, Web, token_of
from tests.api.shop import Shop
from tests.dashboard.browsing import Browser


def test_a_run_shows_nothing_of_what_a_step_in_another_queue_holds(web: Web, held: str, some: str) -> None:
    whole = web("GET", f"/v1/workflows/{held}").json()
    assert (whole["steps"][1]["arguments"], "nobody" in whole["why"]) == ({"to": "nobody"}, True)
    assert web("GET", f"/v1/jobs/{whole['steps'][1]['job']}", token=some).status_code == 403
    answer = web("GET", f"/v1/workflows/{held}", token=some)
    own, other = answer.json()["steps"]
    assert (own["arguments"], own["result"]) == (whole["steps"][0]["arguments"], "charged")
    assert (other["name"], other["state"], other["job"]) == ("send", "held", None)
    assert (other["arguments"], other["error"]["error"], other["error"]["traceback"]) == (ELSEWHERE, ELSEWHERE, None)  # fmt: skip
    assert answer.json()["why"] == ELSEWHERE
    for path in (
        "/v1/workflows", f"/v1/workflows/{held}", f"/v1/workflows/{held}/graph", f"/v1/jobs/{held}/explain", "/v1/overview",
        f"/v1/jobs/{held}/logs",
    ):  # fmt: skip
        answer = web("GET", path, token=some)
        assert (path, answer.status_code, "nobody" in answer.text) == (path, 200, False)


ID = "01936f2e-8c1a-7000-8000-5b1d6c0e9a42"
OLD_LINES = [
    f"workflow {ID} is held: step 2 send failed: Permanent: there is nobody",
    f"workflow order {ID} failed: StepFailed: send: Permanent: there is\nnobody",
    f"step charge of workflow {ID} cannot be undone: there is nobody",
]


def logged(web: Web, run: str, token: str | None = "") -> list[str]:
    logs = web("GET", f"/v1/jobs/{run}/logs", token=token).json()["logs"]
    return [line["message"] for log in logs for line in log["lines"]]


def test_the_log_of_a_run_names_the_step_that_holds_it_and_leaves_its_error_there(
    web: Web, held: str
) -> None:
    assert logged(web, held) == [f"workflow {held} is held by step 2 send, where its error stands"]


def test_the_log_of_a_run_says_what_its_own_function_raised(
    kit: Kit, web: Web, shop: Shop, some: str
) -> None:
    run = shop.order.enqueue(1, "bad")
    kit.drain()
    said = f"workflow {run.id} is held by step 1 charge, which failed: Permanent: no such card"
    assert logged(web, str(run.id), some) == [said]


def test_the_log_of_a_run_that_fails_with_a_step_leaves_its_error_there(
    kit: Kit, web: Web, shop: Shop
) -> None:
    @kit.app.workflow(queue="orders")
    async def post(flow: Flow) -> None:
        await flow.step(shop.send, "nobody")

    run = post.enqueue()
    kit.drain()
    assert logged(web, str(run.id)) == [f"workflow post {run.id} has failed: StepFailed: step send did"]


def test_lines_that_older_releases_have_written_are_shown_to_those_alone_who_may_see_all(
    web: Web, browser: Browser, held: str, some: str
) -> None:
    store = web.app.store
    at, fence = store.clock.now(), store.reports.jobs(JobFilter(queue="orders"), 1)[0].fence
    told = [LogLine(at, "ERROR", "lateshift", line) for line in OLD_LINES]
    own = [LogLine(at, "INFO", "lateshift", "step by step"), LogLine(at, "INFO", "shop", OLD_LINES[0])]
    store.logs.keep([AttemptLog(job=UUID(held), attempt=99, fence=fence + 1, lines=[*told, *own], logged=5)])
    assert logged(web, held)[-5:] == [*OLD_LINES, *[line.message for line in own]]
    assert logged(web, held, some)[-5:] == [ELSEWHERE] * 3 + [line.message for line in own]
    browser.sign_in_as(*SENDS, queues=("orders",))
    assert browser.look(f"/jobs/{held}").count(ELSEWHERE) == 3


def test_a_token_for_both_queues_sees_both_steps(web: Web, held: str) -> None:
    both = token_of(web.app, "both", SENDS, ("orders", "mail"))
    shown = web("GET", f"/v1/workflows/{held}", token=both).json()
    assert shown == web("GET", f"/v1/workflows/{held}").json()
    again = {"arguments": {"to": "ann"}}
    assert web("POST", f"/v1/workflows/{held}/steps/2/resubmit", again, token=both).status_code == 200


@pytest.mark.parametrize("body", [{}, {"arguments": {"to": "ann"}}], ids=["as it was", "changed"])
def test_a_step_in_another_queue_is_not_resubmitted(
    kit: Kit, web: Web, held: str, some: str, body: dict[str, object]
) -> None:
    refused = web("POST", f"/v1/workflows/{held}/steps/2/resubmit", body, token=some)
    assert (refused.status_code, refused.json()["type"]) == (403, "urn:lateshift:problem:queue-forbidden")
    kit.drain()
    assert web("GET", f"/v1/workflows/{held}").json()["state"] == "held"


def test_other_arguments_for_a_step_ask_for_the_scope_enqueue(web: Web, held: str) -> None:
    operator = token_of(web.app, "operator", [Scope.OPERATE])
    path = f"/v1/workflows/{held}/steps/2/resubmit"
    refused = web("POST", path, {"arguments": {"to": "eve"}}, token=operator)
    assert (refused.status_code, refused.json()["field"]) == (403, "arguments")
    assert web("POST", path, {}, token=operator).status_code == 200


def test_nothing_is_shown_of_why_an_undo_in_another_queue_failed(
    kit: Kit, web: Web, letter: str, some: str
) -> None:
    web("POST", f"/v1/workflows/{letter}/undo", {"why": "a test"})
    kit.travel(seconds=5)
    assert "nobody can" in web("GET", f"/v1/workflows/{letter}").json()["steps"][0]["undo_error"]["message"]
    answer = web("GET", f"/v1/workflows/{letter}", token=some)
    step = answer.json()["steps"][0]
    assert (step["result"], step["undo_error"]["error"], step["undo_job"]) == ("written", ELSEWHERE, None)
    assert "nobody can" not in answer.text


def test_the_page_of_the_run_shows_as_little_and_has_no_form_for_it(browser: Browser, held: str) -> None:
    browser.sign_in_as(*SENDS, queues=("orders",))
    text = browser.look(f"/workflows/{held}")
    assert ("nobody" in text, ELSEWHERE in text, "Run step 2 again" in text) == (False, True, False)
    for path in ("/", "/workflows", "/workflows?state=held"):
        assert "nobody" not in browser.look(path)
    browser.sign_in_as(*SENDS)
    assert "Run step 2 again" in browser.look(f"/workflows/{held}")
    assert "Other arguments" in browser.text


def test_a_form_for_other_arguments_is_shown_to_those_who_may_make_work(
    browser: Browser, kit: Kit, shop: Shop, held: str
) -> None:
    job = shop.send.enqueue("nobody")
    kit.travel(seconds=1)
    pages = {f"/workflows/{held}": "Other arguments", f"/jobs/{job.id}": "Resubmit with other arguments", "/schedules/news": "Other arguments"}  # fmt: skip
    for scopes, shown in (([Scope.OPERATE], False), (SENDS, True)):
        browser.sign_in_as(*scopes)
        for path, words in pages.items():
            assert (path, words in browser.look(path)) == (path, shown)
    browser.sign_in_as(Scope.OPERATE)
    browser.look(f"/workflows/{held}")
    typed = {"of": "2", "arguments": '{"to": "eve"}'}
    assert browser.send(f"/workflows/{held}/steps/2/resubmit", typed).status_code == 403
    assert browser.send(f"/workflows/{held}/steps/2/resubmit", {"of": "2"}).status_code == 303


def test_a_token_for_one_queue_is_told_no_names_of_tasks(web: Web, some: str) -> None:
    for method, path in (("POST", "/v1/tasks/nothing/jobs"), ("GET", "/v1/tasks/nothing/graph")):
        refused = web(method, path, {} if method == "POST" else None, token=some)
        assert (refused.status_code, "thumbnail" in refused.text) == (404, False)
        assert "thumbnail" in web(method, path, {} if method == "POST" else None).text


def test_a_preview_is_of_now_whatever_the_key(web: Web, shop: Shop) -> None:
    body, key = {"action": "cancel", "queue": "mail"}, {"Idempotency-Key": "a"}
    assert web("POST", "/v1/bulk/preview", body, headers=key).json()["ids"] == []
    job = shop.send.enqueue("ann")
    assert web("POST", "/v1/bulk/preview", body, headers=key).json()["ids"] == [str(job.id)]
