"""An item of a pipeline that a fan_out holds, seen and sent on by a token that is for some of the queues of its filters."""

from typing import Any

import pytest

from lateshift import NO_RETRY, fan_in, fan_out
from lateshift.api.steps import ELSEWHERE
from lateshift.model.job import JobFilter
from lateshift.testing import Kit
from tests.api.asking import SENDS, Web, token_of
from tests.dashboard.browsing import Browser

BODIES: list[dict[str, Any]] = [
    {},
    {"arguments": [6, 7]},
    {"arguments": []},
    {"arguments": [6], "preview": True},
]


class Till:
    """An item in the queue intake, held at step 3: its fan_out got no list."""

    def __init__(self, kit: Kit) -> None:
        app = kit.app

        @app.task(queue="texts")
        def parse(text: str) -> Any:
            return {"secret": "S3CRET"}

        @app.task(queue="intake")
        def halve(number: int) -> list[int]:
            return [number // 2, number - number // 2]

        @app.task(queue="payments", retry=NO_RETRY)
        def bill(number: int) -> int:
            return number

        @app.task(queue="intake")
        def total(numbers: list[Any]) -> int:
            return len(numbers)

        @app.task(queue="payments")
        def book(numbers: list[Any]) -> int:
            return len(numbers)

        app.pipeline(parse | fan_out(bill), name="paid", queue="intake")
        app.pipeline(parse | fan_out(halve | fan_out(bill)), name="deep", queue="intake")
        app.pipeline(parse | fan_out(fan_out(bill)), name="deeper", queue="intake")
        app.pipeline(parse | fan_out(halve) | fan_in(book), name="booked", queue="intake")
        app.pipeline(parse | fan_out(halve) | fan_in(total), name="counted", queue="intake")
        self.kit, self.app = kit, app

    def item(self, name: str) -> str:
        made = self.app.tasks[name].enqueue("x")
        self.kit.drain()
        return str(made.id)

    def paid(self) -> int:
        return len(self.app.store.reports.jobs(JobFilter(queue="payments"), 100))


ELSEWHERE_BOUND = ("paid", "deep", "deeper", "booked")


@pytest.fixture
def till(kit: Kit) -> Till:
    return Till(kit)


@pytest.fixture
def some(web: Web) -> str:
    return token_of(web.app, "some", SENDS, ("intake",))


def resubmit(web: Web, item: str, body: Any, token: str | None = "") -> Any:
    return web("POST", f"/v1/workflows/{item}/steps/3/resubmit", body, token=token)


@pytest.mark.parametrize("name", ELSEWHERE_BOUND)
@pytest.mark.parametrize("body", BODIES, ids=["none", "a list", "an empty one", "a preview"])
def test_a_list_whose_elements_become_jobs_of_another_queue_is_not_given(
    web: Web, till: Till, some: str, name: str, body: Any
) -> None:
    item = till.item(name)
    answer = resubmit(web, item, body, some)
    assert (answer.status_code, answer.json()["type"]) == (403, "urn:lateshift:problem:queue-forbidden")
    assert "payments" not in answer.text
    till.kit.drain()
    assert (till.paid(), web("GET", f"/v1/workflows/{item}").json()["state"]) == (0, "held")


def test_a_token_for_the_queues_from_there_on_gives_it(web: Web, till: Till, some: str) -> None:
    both = token_of(web.app, "both", SENDS, ("intake", "payments"))
    for name, token in (("paid", both), ("deep", both), ("booked", both), ("counted", some)):
        answer = resubmit(web, till.item(name), {"arguments": [6, 7]}, token)
        assert (name, answer.status_code, answer.json()["after"]) == (name, 200, [6, 7])
    till.kit.drain()
    assert till.paid() == 2 + 4 + 1


def test_a_list_within_a_branch_is_judged_by_what_comes_after_it(kit: Kit, web: Web, some: str) -> None:
    app = kit.app

    @app.task(queue="intake")
    def split(number: int) -> Any:
        return "no list"

    @app.task(queue="intake")
    def keep(number: int) -> int:
        return number

    @app.task(queue="payments")
    def bill(numbers: Any) -> int:
        return 1

    last = app.pipeline(fan_out(split | fan_out(keep)) | fan_in(bill), name="last", queue="intake")
    own = app.pipeline(fan_out(split | fan_out(keep)), name="own", queue="intake")
    for pipeline, status in ((last, 403), (own, 200)):
        item = pipeline.enqueue([1, 2])
        kit.drain()
        for step in ("2.1.1.2", "2.1.2.2"):
            path = f"/v1/workflows/{item.id}/steps/{step}/resubmit"
            assert web("POST", path, {"arguments": [3]}, token=some).status_code == status
        kit.drain()
        if status == 200:
            shown = web("GET", f"/v1/workflows/{item.id}").json()
            assert (shown["state"], shown["result"]) == ("completed", [[3], [3]])


def test_an_item_that_such_a_fan_out_holds_is_not_resumed(web: Web, till: Till, some: str) -> None:
    for name, status in (("paid", 403), ("booked", 403), ("counted", 200)):
        answer = web("POST", f"/v1/workflows/{till.item(name)}/resume", {}, token=some)
        assert (name, answer.status_code) == (name, status)
        assert "payments" not in answer.text


def test_a_filter_that_code_has_moved_to_another_queue_is_judged_by_where_it_is_now(
    web: Web, till: Till, some: str
) -> None:
    item = till.item("counted")
    halve: Any = till.app.tasks["halve"]
    anything: Any = till.app.tasks["parse"]
    chain = anything | fan_out(halve.options(queue="payments")) | fan_in(till.app.tasks["total"])
    pipeline: Any = till.app.tasks["counted"]
    pipeline.chain = chain
    assert resubmit(web, item, {"arguments": [6]}, some).status_code == 403


@pytest.mark.parametrize(
    ("name", "given", "at"),
    [
        ("paid", [1, "two"], "element 2"),
        ("deeper", [[1], ["two"]], "element 2"),
        ("deeper", [1], "element 1"),
    ],
)
def test_elements_that_do_not_fit_what_they_are_for_are_refused(
    web: Web, till: Till, name: str, given: Any, at: str
) -> None:
    answer = resubmit(web, till.item(name), {"arguments": given})
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:lateshift:problem:arguments-invalid")
    assert at in answer.json()["detail"]


def test_what_held_a_fan_out_is_told_without_what_it_got(web: Web, till: Till, some: str) -> None:
    item = till.item("paid")
    whole = web("GET", f"/v1/workflows/{item}").json()
    assert whole["steps"][2]["error"]["message"] == (
        "fan_out takes a list, and got an object: the result of the step before it"
    )
    assert whole["steps"][1]["result"] == {"secret": "S3CRET"}
    own = token_of(web.app, "parts", SENDS, ("intake", "payments"))
    for path in ("", "/graph"):
        for token in (some, own):
            answer = web("GET", f"/v1/workflows/{item}{path}", token=token)
            assert (answer.status_code, "S3CRET" in answer.text) == (200, False)
    for path in (
        f"/v1/jobs/{item}/logs",
        f"/v1/jobs/{item}/explain",
        f"/v1/jobs/{item}",
        "/v1/workflows",
        "/v1/overview",
    ):
        answer = web("GET", path, token=some)
        assert (path, answer.status_code, "S3CRET" in answer.text) == (path, 200, False)


def test_a_list_for_jobs_of_another_queue_is_not_shown(web: Web, till: Till, some: str) -> None:
    item = till.item("paid")
    assert resubmit(web, item, {"arguments": [4242]}).status_code == 200
    till.kit.drain()
    assert web("GET", f"/v1/workflows/{item}").json()["steps"][2]["arguments"] == [4242]
    answer = web("GET", f"/v1/workflows/{item}", token=some)
    assert answer.json()["steps"][2]["arguments"] == ELSEWHERE
    assert "4242" not in str(answer.json()["steps"])


def test_an_item_does_not_name_the_queues_of_others(web: Web, till: Till, some: str) -> None:
    item = till.item("booked")
    answer = web("GET", f"/v1/workflows/{item}", token=some)
    assert answer.json()["steps"][0]["result"] == [
        {"task": "parse", "queue": ELSEWHERE},
        {"inner": [{"task": "halve", "queue": "intake"}]},
        {"task": "book", "queue": ELSEWHERE, "reduces": True},
    ]
    for word in ("payments", "texts"):
        assert word not in answer.text


def test_its_page_shows_as_little_and_has_no_form_for_it(browser: Browser, till: Till) -> None:
    item, own = till.item("paid"), till.item("counted")
    browser.sign_in_as(*SENDS, queues=("intake",))
    text = browser.look(f"/workflows/{item}")
    assert ("S3CRET" in text, "payments" in text, ELSEWHERE in text, "Run step 3 again" in text) == (
        False,
        False,
        True,
        False,
    )
    assert "of queues that your token is not for" in text
    assert f'/workflows/{item}/resume"' not in browser.page.text  # type: ignore[union-attr]
    typed = {"of": "3", "arguments": "[6]"}
    assert browser.send(f"/workflows/{item}/steps/3/resubmit", typed).status_code == 403
    browser.look(f"/workflows/{own}")
    assert "Run step 3 again" in browser.text
    assert browser.send(f"/workflows/{own}/steps/3/resubmit", typed).status_code == 303
    for path in ("/", "/workflows", f"/jobs/{item}"):
        assert "S3CRET" not in browser.look(path)
    browser.sign_in_as(*SENDS)
    assert "Run step 3 again" in browser.look(f"/workflows/{item}")
