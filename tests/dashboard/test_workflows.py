"""Runs of workflows on their pages, on both stores: found, drawn, told, mended and undone."""

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest

from lateshift import Flow, Lateshift
from lateshift.app.workflows import tell
from lateshift.dashboard.pages.workflows import HELD_SHOWN, LATE_MOST, SIGNALS_SHOWN
from lateshift.dashboard.steps import DEEPEST, JOBS_LOOKED_AT, STEPS_SHOWN
from lateshift.model.access import Scope
from lateshift.model.job import Lane, Line
from lateshift.model.outcome import DeadLettered
from lateshift.model.workflow.run import Advance
from lateshift.model.workflow.step import Kind, StepRow, StepState, path_of
from lateshift.testing import Kit, testing
from tests.api.shop import Shop
from tests.api.test_operating import NOWHERE
from tests.dashboard.browsing import Browser, browsing
from tests.store_contract.driving import Worker, added, make_job

EVIL = "<script>alert(1)</script>"


def html(browser: Browser) -> str:
    assert browser.page is not None
    return browser.page.text


def test_an_empty_list_says_how_a_run_begins(browser: Browser) -> None:
    assert "@app.workflow" in browser.look("/workflows")
    assert "No step is past its complete-by." in browser.look("/workflows?state=late")
    assert "No run fits this." in browser.look("/workflows?name=nothing&state=")


def test_runs_are_found_by_name_and_by_state_page_by_page(browser: Browser, kit: Kit, shop: Shop) -> None:
    ids = [str(shop.order.enqueue(number).id) for number in range(3)]
    held = str(shop.order.enqueue(9, "bad").id)
    kit.drain()
    browser.look("/workflows?limit=2")
    first = html(browser)
    assert held in first
    [more] = re.findall(r'rel="next" href="([^"]+)"', first)
    browser.look(more.replace("&amp;", "&"))
    assert ids[0] in html(browser)
    assert held not in html(browser)
    assert "no such card" in browser.look("/workflows?name=order&state=held")
    assert browser.ask("GET", "/workflows?state=odd").status_code == 422


def test_the_form_for_a_signal_offers_what_the_run_waits_for(browser: Browser, kit: Kit, shop: Shop) -> None:
    run = shop.order.enqueue(1)
    kit.drain()
    browser.look(f"/workflows/{run.id}")
    assert "<option >picked</option>" in html(browser)
    assert "Tell it something early" not in browser.text
    browser.send(f"/workflows/{run.id}/signal", {"name": "picked", "other": "later"})
    assert (
        "The run is told later. It waits for picked: later is kept until its code asks for that."
        in browser.text
    )
    browser.send(f"/workflows/{run.id}/signal", {"name": "picked", "other": ""})
    kit.drain()
    browser.look(f"/workflows/{run.id}")
    assert "signal-other" not in html(browser)  # it has ended


def test_a_run_that_waits_for_no_signal_keeps_the_form_folded(browser: Browser, kit: Kit, shop: Shop) -> None:
    run = shop.order.enqueue(1, "bad")
    kit.drain()
    browser.look(f"/workflows/{run.id}")
    assert "Tell it something early" in browser.text
    assert "signal-name" not in html(browser)
    browser.send(f"/workflows/{run.id}/signal", {"other": "picked"})
    assert "The run is told picked." in browser.text


def test_what_a_run_said_of_itself_is_not_told_once_it_has_ended(
    browser: Browser, kit: Kit, app: Lateshift
) -> None:
    @app.workflow
    async def pick(flow: Flow) -> None:
        flow.status("waits for the picker")
        await flow.wait_for("picked")

    run = pick.enqueue()
    kit.drain()
    for page in (f"/workflows/{run.id}", "/workflows"):
        assert "waits for the picker" in browser.look(page)
    tell(kit.app.store, run.id, "picked", None, key=None, by="ann")
    kit.drain()
    for page in (f"/workflows/{run.id}", "/workflows"):
        assert "completed" in browser.look(page)
        assert "waits for the picker" not in browser.text


def test_a_run_shows_its_graph_whose_boxes_lead_to_its_steps(browser: Browser, kit: Kit, shop: Shop) -> None:
    run = shop.order.enqueue(1)
    kit.drain()
    text = browser.look(f"/workflows/{run.id}")
    assert "wait for picked" in text
    page = html(browser)
    assert re.findall(r'<a href="#(step-\d+)">', page) == ["step-1", "step-2"]
    assert 'id="step-1"' in page
    assert 'id="step-2"' in page
    assert "<style" not in page
    assert " style=" not in page


def test_what_users_wrote_is_text_in_the_graph_too(store_url: str) -> None:
    app = Lateshift("evil", store=store_url)

    @app.workflow
    async def evil(flow: Flow) -> None:
        flow.status(EVIL)
        await flow.step(lambda: EVIL, name=EVIL)
        await flow.wait_for(EVIL)

    with testing(app, store=store_url) as kit, browsing(app) as browser:
        run = evil.enqueue()
        kit.drain()
        browser.sign_in()
        browser.look(f"/workflows/{run.id}")
        assert EVIL not in html(browser)
        assert "&lt;script&gt;alert(1)" in html(browser)


def test_a_run_is_told_something_and_a_wrong_form_keeps_what_was_typed(
    browser: Browser, kit: Kit, shop: Shop
) -> None:
    run = shop.order.enqueue(1)
    kit.drain()
    browser.look(f"/workflows/{run.id}")
    refused = browser.send(f"/workflows/{run.id}/signal", {"name": "picked", "data": "{by: ann}"})
    assert refused.status_code == 422
    assert "data is no JSON" in browser.text
    assert "{by: ann}" in html(browser)
    assert browser.send(f"/workflows/{run.id}/signal", {"name": "early"}).status_code == 303
    assert "It waits for picked: early is kept until its code asks for that." in browser.text
    assert "Told, and not taken yet: early" in browser.text
    deep = "[" * 65 + "]" * 65
    assert browser.send(f"/workflows/{run.id}/signal", {"name": "x", "data": deep}).status_code == 422
    browser.send(f"/workflows/{run.id}/signal", {"name": "picked", "data": '{"by": "ann"}'})
    assert "The run is told picked." in browser.text
    kit.drain()
    assert kit.result(run) == {"by": "ann"}
    assert "Tell it something" not in browser.look(f"/workflows/{run.id}")


def test_a_held_step_runs_again_with_other_arguments(browser: Browser, kit: Kit, shop: Shop) -> None:
    run = shop.order.enqueue(1, "bad")
    kit.drain()
    assert "Step 1 charge is held" in browser.look(f"/workflows/{run.id}")
    path = f"/workflows/{run.id}/steps/1/resubmit"
    wrong = browser.send(path, {"of": "1", "arguments": '["good"]'})
    assert wrong.status_code == 422
    assert "arguments by name" in browser.text
    assert "[&#34;good&#34;]" in html(browser)
    answer = browser.send(path, {"of": "1", "arguments": '{"card": "good"}'})
    assert answer.headers["location"] == f"/workflows/{run.id}"
    assert "Step 1 begins anew, and the run goes on." in browser.text
    kit.drain()
    assert "waits for you" not in browser.look(f"/workflows/{run.id}")
    assert browser.send(path, {"of": "1"}).status_code == 409


def test_the_arguments_of_a_held_task_stand_in_its_form(browser: Browser, kit: Kit, shop: Shop) -> None:
    run = shop.order.enqueue(1, "task")
    kit.drain()
    browser.look(f"/workflows/{run.id}")
    assert re.search(r"<textarea[^>]*>{\s*&#34;to&#34;: &#34;nobody&#34;", html(browser))
    browser.send(f"/workflows/{run.id}/steps/2/resubmit", {"of": "2", "arguments": '{"to": "ann"}'})
    kit.drain()
    assert "the signal picked" in browser.look(f"/workflows/{run.id}")


def test_runs_are_resumed_undone_and_cancelled(browser: Browser, kit: Kit, shop: Shop) -> None:
    held, run, other = shop.order.enqueue(1, "bad"), shop.order.enqueue(2), shop.order.enqueue(3)
    kit.drain()
    browser.look(f"/workflows/{held.id}")
    browser.send(f"/workflows/{held.id}/resume")
    assert "The run goes on." in browser.text
    browser.look(f"/workflows/{run.id}")
    assert browser.send(f"/workflows/{run.id}/undo", {"why": ""}).status_code == 422
    browser.send(f"/workflows/{run.id}/undo", {"why": "the customer has gone"})
    assert "is being undone" in browser.text
    browser.look(f"/workflows/{other.id}")
    browser.send(f"/workflows/{other.id}/cancel")
    assert "undone first" in browser.text
    kit.drain()
    text = browser.look(f"/workflows/{run.id}")
    assert "undone by refund" in text
    assert "the customer has gone" in text
    assert "cancelled" in browser.look(f"/workflows/{other.id}")
    assert browser.send(f"/workflows/{other.id}/resume").status_code == 409


@pytest.fixture
def loop(store_url: str) -> Iterator[tuple[Kit, Browser, object]]:
    app = Lateshift("loop", store=store_url)

    @app.workflow
    async def many(flow: Flow, count: int) -> int:
        for number in range(count):
            await flow.step(abs, number)
        return count

    with testing(app, store=store_url) as kit, browsing(app) as browser:
        browser.sign_in()
        yield kit, browser, many


def test_a_run_of_many_steps_is_shown_page_by_page(loop: tuple[Kit, Browser, object]) -> None:
    kit, browser, many = loop
    run = many.enqueue(2 * STEPS_SHOWN + 3)  # type: ignore[attr-defined]
    kit.drain()
    text = browser.look(f"/workflows/{run.id}")
    assert "and more steps" in text
    assert html(browser).count('<tr id="step-') == STEPS_SHOWN
    seen = 0
    while True:
        seen += html(browser).count('<tr id="step-')
        found = re.findall(r'rel="next" href="([^"]+)"', html(browser))
        if not found:
            break
        browser.look(found[0])
        assert "<svg xmlns" not in html(browser)
    assert seen == 2 * STEPS_SHOWN + 3
    assert browser.ask("GET", f"/workflows/{run.id}?cursor=AAAA").status_code == 400


def test_late_steps_are_marked_and_their_runs_found(browser: Browser, kit: Kit) -> None:
    store = kit.app.store
    [id] = added(store, make_job(task="ghost"))
    job = make_job(task="ghost")
    step = StepRow(path=path_of("", 1), kind=Kind.JOB, name="send", state=StepState.RUNNING, job=job.id,
                   limit=timedelta(minutes=1))  # fmt: skip
    lease = Worker(store).lease_one()
    store.workflows.advance([Advance(lease=lease, steps=[step], jobs=[job], begin=("order", "1"))])
    assert str(id) not in browser.look("/workflows?state=late")
    kit.clock.move(minutes=2)
    browser.look("/workflows?state=late&name=order")
    assert str(id) in html(browser)
    text = browser.look(f"/workflows/{id}")
    assert "late" in text
    assert "complete by 2" in text
    browser.look("/workflows?state=late&name=other")
    assert str(id) not in html(browser)


def test_what_is_no_run_is_said_to_be_none(browser: Browser, shop: Shop) -> None:
    job = shop.send.enqueue("ann")
    assert "is no workflow" in browser.ask("GET", f"/workflows/{job.id}").text
    gone = browser.ask("GET", f"/workflows/{NOWHERE}")
    assert (gone.status_code, f"There is no run {NOWHERE} in the store" in gone.text) == (404, True)


@pytest.mark.parametrize("told", ["undo", "cancel"])
def test_a_run_that_ends_already_has_no_button_that_would_be_refused(
    browser: Browser, kit: Kit, shop: Shop, told: str
) -> None:
    run = shop.order.enqueue(1, "bad")
    kit.drain()
    browser.look(f"/workflows/{run.id}")
    assert (
        browser.send(f"/workflows/{run.id}/{told}", {"why": "no"} if told == "undo" else {}).status_code
        == 303
    )
    browser.look(f"/workflows/{run.id}")
    for verb in ("resume", "undo", "steps/1/resubmit"):
        assert f'action="/workflows/{run.id}/{verb}"' not in html(browser)
    assert "It waits for you" not in browser.text
    assert browser.send(f"/workflows/{run.id}/resume").status_code == 409


def test_a_dead_run_that_was_not_undone_goes_on_where_it_stood(
    browser: Browser, kit: Kit, shop: Shop
) -> None:
    run = shop.order.enqueue(1)
    kit.drain()
    tell(kit.app.store, run.id, "picked", 7, key=None, by="ann")
    worker = Worker(kit.app.store)
    lease = worker.lease_one(Line("orders", Lane.COROUTINE))
    assert worker.settle(lease, DeadLettered("undecodable", b"[]", timedelta(days=1)))
    assert "Resume lets it go on where it stood." in browser.look(f"/workflows/{run.id}")
    assert f'action="/workflows/{run.id}/resume"' in html(browser)
    assert browser.send(f"/workflows/{run.id}/resume").status_code == 303
    kit.drain()
    assert kit.result(run) == 7


def test_who_may_look_has_no_buttons_and_sees_the_queues_of_the_token(
    stranger: Browser, kit: Kit, shop: Shop
) -> None:
    run = shop.order.enqueue(1, "bad")
    kit.drain()
    stranger.sign_in_as(Scope.READ, queues=("orders",))
    text = stranger.look(f"/workflows/{run.id}")
    assert "Step 1 charge is held" in text
    assert not re.search(r"<button[^>]*>(Resume|Cancel|Run step)", html(stranger))
    assert stranger.send(f"/workflows/{run.id}/cancel").status_code == 403
    stranger.sign_in_as(Scope.READ, queues=("mail",))
    assert stranger.ask("GET", f"/workflows/{run.id}").status_code == 403
    stranger.look("/workflows")
    assert str(run.id) not in html(stranger)


def test_what_a_page_of_a_run_reads_is_bounded() -> None:
    assert (STEPS_SHOWN, HELD_SHOWN, SIGNALS_SHOWN, JOBS_LOOKED_AT, LATE_MOST, DEEPEST) == (100, 20, 20, 20, 100, 3)  # fmt: skip
