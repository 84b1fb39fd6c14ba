"""Runs of workflows among jobs that are cancelled or resubmitted, on both stores: it is said before what becomes of what they did."""

from datetime import timedelta

from lateshift.model.workflow.run import Phase
from lateshift.testing import Kit
from tests.api.asking import Web
from tests.api.conftest import web
from tests.api.shop import Shop
from tests.dashboard.browsing import Browser

__all__ = ["web"]


def test_whoever_cancels_jobs_is_told_before_which_of_them_are_runs_and_that_what_they_did_is_undone(
    browser: Browser, kit: Kit, shop: Shop
) -> None:
    waits = shop.order.enqueue(1)
    shop.order.enqueue(9, "bad")
    kit.drain()
    later = shop.send.options(delay=timedelta(hours=1)).enqueue("ann")
    browser.look("/jobs?state=scheduled")
    browser.send("/jobs/preview", {"action": "cancel", "state": "scheduled"})
    assert "Cancel 3 jobs?" in browser.text
    said = "2 of these are runs of workflows. They have begun: what they did is undone first, the last step first."
    assert said in browser.text
    browser.look("/jobs")
    browser.send("/jobs/preview", {"action": "cancel", "ids": f"{waits.id},{later.id}"})
    assert "1 of these is a run of a workflow. It has begun: what it did is undone first" in browser.text
    browser.look("/jobs")
    browser.send("/jobs/preview", {"action": "cancel", "ids": str(later.id)})
    assert "run of a workflow" not in browser.text


def test_of_a_run_that_has_not_begun_nothing_is_undone(web: Web, shop: Shop) -> None:
    run = shop.order.enqueue(1)
    seen = web("POST", "/v1/bulk/preview", {"action": "cancel", "ids": [str(run.id)]}).json()
    assert seen["runs"] == {"count": 1, "undone": 0, "anew": 0, "says": "1 of these is a run of a workflow."}


def test_whoever_resubmits_jobs_is_told_before_which_of_them_are_runs_that_begin_from_nothing(
    web: Web, browser: Browser, kit: Kit, shop: Shop
) -> None:
    run = shop.order.enqueue(1)
    dead = shop.send.enqueue("nobody")
    kit.drain()
    kit.app.store.workflows.direct(run.id, Phase.UNDOING, why="no", by="ann")
    kit.drain()
    ids = [str(run.id), str(dead.id)]
    begins = "1 of these is a run of a workflow. It begins from nothing: all of its steps run again."
    seen = web("POST", "/v1/bulk/preview", {"action": "resubmit", "ids": ids}).json()
    assert seen["runs"] == {"count": 1, "undone": 0, "anew": 1, "says": begins}
    letters = web("POST", "/v1/dead-letters/preview", {"task": "order"}).json()
    assert letters["runs"] == seen["runs"]
    browser.look("/jobs")
    browser.send("/jobs/preview", {"action": "resubmit", "ids": ",".join(ids)})
    assert begins in browser.text
    browser.look("/dead-letters")
    browser.send("/dead-letters/preview", {"task": "order"})
    assert begins in browser.text


def test_the_list_of_jobs_says_what_runs_are_at(browser: Browser, kit: Kit, shop: Shop) -> None:
    shop.order.enqueue(1)
    shop.order.enqueue(9, "bad")
    kit.drain()
    shop.order.enqueue(2)
    listed = browser.look("/jobs")
    assert "run, waits for the signal picked" in listed
    assert "run, held" in listed
    assert "run, not begun" in listed
