"""What pages say of jobs: which are meant, what was done to them, and how long they ran. On both stores."""

import re
from datetime import timedelta

import pytest
from msgspec import structs

from lateshift.dashboard.telling import Row
from lateshift.model.job import AttemptRecord, JobView, State
from lateshift.store.contract import Store
from lateshift.testing import Kit
from tests.api.shop import Shop
from tests.dashboard.browsing import Browser
from tests.store_contract.driving import Worker

DEAD_ALONE = "Without a state, dead jobs alone are meant."


def taken(store: Store, queue: str) -> None:
    """By a worker that runs its first job, and does not end it."""
    [line] = store.jobs.lines([queue])
    assert Worker(store).lease(1, line)


def test_a_resubmission_by_a_filter_without_a_state_says_that_dead_jobs_alone_are_meant(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    cancelled = shop.send.enqueue("ann")
    kit.app.store.jobs.cancel([cancelled.id], by="ann")
    browser.look("/jobs?task=send")
    browser.send("/jobs/preview", {"action": "resubmit", "task": "send"})
    assert "Resubmit 0 jobs? No dead job fits that can be resubmitted" in browser.text
    assert "only dead and cancelled ones" not in browser.text
    assert DEAD_ALONE in browser.text
    shop.send.enqueue("nobody")
    kit.drain()
    browser.send("/jobs/preview", {"action": "resubmit", "task": "send"})
    assert f"Resubmit 1 job? They are ready again, with fresh attempts and the arguments that they have. Each is in the audit. {DEAD_ALONE}" in browser.text  # fmt: skip
    assert browser.page is not None
    [leads] = re.findall(r'the state <a href="([^"]*)"', browser.page.text)
    assert leads == "/jobs?task=send&amp;state=cancelled"
    assert str(cancelled.id) in browser.ask("GET", leads.replace("&amp;", "&")).text


@pytest.mark.parametrize(
    "form", [{"action": "cancel"}, {"action": "resubmit", "state": "dead"}, {"action": "resubmit", "state": "cancelled"}]
)  # fmt: skip
def test_where_the_state_is_chosen_or_does_not_matter_nothing_is_said_of_it(
    browser: Browser, shop: Shop, form: dict[str, str]
) -> None:
    shop.send.enqueue("ann")
    browser.look("/jobs?task=send")
    browser.send("/jobs/preview", form | {"task": "send"})
    assert DEAD_ALONE not in browser.text


def test_rows_that_were_ticked_are_meant_whatever_they_are_in(browser: Browser, shop: Shop, kit: Kit) -> None:
    job = shop.send.enqueue("ann")
    kit.app.store.jobs.cancel([job.id], by="ann")
    browser.look("/jobs?task=send")
    browser.send("/jobs/preview", {"action": "resubmit", "task": "send", "ids": str(job.id)})
    assert "Resubmit 1 job?" in browser.text
    assert DEAD_ALONE not in browser.text


def test_a_job_that_runs_is_said_to_be_told_to_stop_and_not_to_be_cancelled(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    job = shop.thumbnail.enqueue("cat.png")
    browser.look(f"/jobs/{job.id}")
    taken(kit.app.store, "images")
    browser.send(f"/jobs/{job.id}/cancel")
    assert f"job {job.id}: told to stop. " in browser.text
    assert "cancelled." not in browser.text
    assert job.view().state is State.RUNNING


def test_a_job_that_waits_is_said_to_be_cancelled_and_one_that_has_ended_how(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    waits, done = shop.send.options(delay=timedelta(hours=1)).enqueue("ann"), shop.send.enqueue("bob")
    kit.drain()
    browser.look(f"/jobs/{waits.id}")
    browser.send(f"/jobs/{waits.id}/cancel")
    assert f"job {waits.id}: cancelled. " in browser.text
    browser.send(f"/jobs/{done.id}/cancel")
    assert f"job {done.id}: completed already. " in browser.text


def test_a_run_whose_job_is_cancelled_is_not_said_to_have_ended(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    run = shop.order.enqueue(1)
    kit.drain()
    browser.look(f"/jobs/{run.id}")
    browser.send(f"/jobs/{run.id}/cancel")
    assert f"job {run.id}: told to stop. " in browser.text


def test_a_batch_of_which_a_job_runs_is_not_said_to_be_cancelled(
    browser: Browser, shop: Shop, kit: Kit
) -> None:
    batch = kit.app.batch([shop.thumbnail.call("cat.png"), shop.send.call("ann")])
    taken(kit.app.store, "images")
    browser.look(f"/batches/{batch.id}")
    browser.send(f"/batches/{batch.id}/cancel")
    assert f"batch {batch.id}: what waited is cancelled, what runs is told to stop." in browser.text


def test_the_list_tells_how_long_a_job_that_died_ran(browser: Browser, shop: Shop, kit: Kit) -> None:
    job = shop.send.enqueue("nobody")
    kit.drain()
    [died] = job.view().history
    assert died.ran_for is not None
    [ran] = re.findall(r'class="number ran">([^<]*)<', browser.ask("GET", "/jobs?state=dead").text)
    assert re.fullmatch("[\\d.]+\N{NO-BREAK SPACE}[µm]?s", ran)


DIED = AttemptRecord(attempt=1, fence=1, at=None, reason="exhausted", ran_for=2.5)  # type: ignore[arg-type]
AGAIN = AttemptRecord(attempt=1, fence=1, at=None, reason="resubmitted")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "history", "ran"),
    [
        (State.DEAD, [DIED], 2.5),
        (State.DEAD, [], None),
        (State.DEAD, [DIED, AGAIN], None),  # then it died of something else, without an attempt
        (State.READY, [DIED], None),
        (State.CANCELLED, [DIED], None),
    ],
)
def test_how_long_a_job_ran_is_told_of_the_attempt_that_ended_it(
    kit: Kit, shop: Shop, state: State, history: list[AttemptRecord], ran: float | None
) -> None:
    view: JobView = shop.send.enqueue("ann").view()
    assert Row.of(structs.replace(view, state=state, history=history)).ran == ran
