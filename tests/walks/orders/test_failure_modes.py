"""Every failure that the Scheduler Agent Supervisor pattern names, and what becomes of the order. What needs a process to be killed is in
test_processes.py."""

from contextlib import suppress
from datetime import timedelta

import msgspec
import pytest

from examples.orders import agents, app
from examples.orders.application import COMPLETE_BY, PATIENCE
from examples.orders.database import Order, query, transaction
from examples.orders.remote import Mode, Service
from examples.orders.replies import reply
from examples.orders.submission import receive, submit
from examples.orders.table import Row
from lateshift import JobFilter, State
from tests.walks.orders.desk import Desk

# -- the submission ----------------------------------------------------------------------------------------------------


def test_an_order_that_is_posted_is_pending_then_processed_and_the_shop_hears_of_it(desk: Desk) -> None:
    with transaction() as connection:
        submit(connection, Order(7))
    assert desk.row(7).state == "Pending"
    desk.kit.drain()
    assert desk.row(7).state == "Processed"
    assert desk.remote.log == ["charge 7", "ship 7"]
    assert desk.heard(7) == ["Pending", "Processing", "Processed"]


def test_the_row_and_the_workflow_are_written_together_or_not_at_all(desk: Desk) -> None:
    with suppress(ZeroDivisionError), transaction() as connection:
        submit(connection, Order(7))
        raise ZeroDivisionError
    assert query("SELECT id FROM orders") == []
    assert app.store.reports.jobs(JobFilter(task="fulfil"), 10) == []
    desk.kit.drain()
    assert desk.remote.log == []


def test_an_order_that_is_delivered_twice_is_one_order(desk: Desk) -> None:
    for _ in range(2):
        receive.options(unique=False).enqueue(Order(7))
    desk.kit.drain()
    assert desk.remote.log == ["charge 7", "ship 7"]
    assert len(app.store.reports.jobs(JobFilter(task="fulfil"), 10)) == 1


def test_the_reply_has_the_orders_id_and_its_status_and_comes_on_the_reply_queue(desk: Desk) -> None:
    desk.post(7)
    told = query("SELECT order_id, status, detail FROM replies ORDER BY place")
    assert told == [(7, "Pending", ""), (7, "Processing", ""), (7, "Processed", "ship-7-2")]
    replies = app.store.reports.jobs(JobFilter(task="reply"), 10)
    assert {view.queue for view in replies} == {"orders.replies"}
    events = [msgspec.json.decode(view.payload)["event"] for view in replies]
    assert {event["correlation_id"] for event in events} == {"7"}
    assert {event["job_id"] for event in events} == {str(desk.row(7).run)}


def test_a_reply_that_is_delivered_twice_is_kept_once(desk: Desk) -> None:
    desk.post(7)
    for view in app.store.reports.jobs(JobFilter(task="reply"), 10):
        args, _ = reply.arguments.decode(view.payload)
        reply(*args)
    assert desk.heard(7) == ["Pending", "Processing", "Processed"]


# -- the remote service ------------------------------------------------------------------------------------------------


def test_a_transient_failure_is_tried_again_by_the_agent_inside_the_complete_by(desk: Desk) -> None:
    desk.post(7, "transient")
    desk.wait(3)
    assert (desk.row(7).state, desk.row(7).failures) == ("Processed", 0)  # the supervisor had nothing to do
    assert desk.remote.calls["charge", 7] == 3


def test_while_the_service_is_away_calls_are_parked_and_when_it_is_back_all_orders_are_processed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as away:
        away.setenv("ORDERS_REMOTE", "http://127.0.0.1:1")  # where nobody listens
        for order in range(100, 140):
            receive.enqueue(Order(order))
        desk.kit.drain()
        [breaker] = [view for view in app.store.breakers.list() if view.name == "payments"]
        assert breaker.state == "open"
        asked = app.store.reports.jobs(JobFilter(task="charge"), 100)
        assert sum(view.attempt for view in asked) <= 40  # what it takes, and what was under way by then
        assert app.store.reports.jobs(JobFilter(task="charge", state=State.BLOCKED), 100)
    desk.wait(3)
    assert {desk.row(order).state for order in range(100, 140)} == {"Processed"}
    assert len(desk.remote.log) == 80


@pytest.mark.usefixtures("impatient")
def test_an_answer_that_does_not_come_in_time_is_asked_for_again(desk: Desk) -> None:
    desk.post(7, "timeout")
    desk.wait(3)
    assert (desk.row(7).state, desk.row(7).failures) == ("Processed", 0)
    assert desk.remote.log == ["charge 7", "ship 7"]


def test_work_that_was_done_though_its_answer_was_lost_is_not_done_again(desk: Desk) -> None:
    desk.post(7, "lost")
    desk.wait(3)
    assert desk.row(7).state == "Processed"
    assert desk.remote.calls["charge", 7] == 2
    assert desk.remote.log == ["charge 7", "ship 7"]


def test_a_fault_that_is_not_transient_is_told_at_once_and_an_operator_resubmits_the_step(desk: Desk) -> None:
    desk.post(7, "permanent")
    row = desk.row(7)
    assert (row.state, row.failures, desk.remote.calls["charge", 7]) == ("Error", 1, 1)
    assert (
        desk.alerts(7)
        == [row.says]
        == ["step 1 charge failed: Permanent: 422: we will not charge for order 7"]
    )
    desk.wait(1)
    assert desk.heard(7) == ["Pending", "Processing", "Error"]
    desk.remote.tell(7, "work")
    desk.resubmit(7)
    assert desk.row(7).state == "Processed"
    assert desk.heard(7) == ["Pending", "Processing", "Error", "Processed"]


def test_what_was_done_is_undone_in_reverse_when_the_order_cannot_be_fulfilled(desk: Desk) -> None:
    desk.post(7, "permanent", "ship")
    assert desk.remote.log == ["charge 7", "refund 7"]
    assert desk.row(7).state == "Error"
    assert desk.row(7).says.startswith("undone: StepFailed: ship")
    assert desk.heard(7) == ["Pending", "Processing", "Undone"]


def test_a_compensation_that_fails_alerts_an_operator_who_resumes_it(desk: Desk) -> None:
    desk.remote.tell(7, "permanent", "ship")
    desk.post(7, "permanent", "refund")
    assert desk.row(7).state == "Error"
    assert desk.row(7).says.startswith("compensation failed")
    assert ["not undone: charge" in why for why in desk.alerts(7)] == [True]
    desk.remote.tell(7, "work", "refund")
    assert desk.heard(7) == ["Pending", "Processing", "Error"]
    desk.operate("workflows", "resume", str(desk.row(7).run))
    assert desk.heard(7)[-1] == "Undone"
    assert desk.remote.log == ["charge 7", "refund 7"]
    assert desk.row(7).says.startswith("undone")


def test_a_compensation_is_tried_again_while_its_service_is_away(desk: Desk) -> None:
    desk.remote.tell(7, "permanent", "ship")
    desk.post(7, "transient", "refund")
    assert desk.row(7).says.startswith(
        "undone"
    )  # by refund, unless chance has drawn no wait between its tries
    desk.wait(3)
    assert desk.remote.log == ["charge 7", "refund 7"]
    assert desk.heard(7) == ["Pending", "Processing", "Undone"]


# -- the agent ---------------------------------------------------------------------------------------------------------


def test_while_an_agent_works_the_order_is_locked_by_it_and_has_a_complete_by(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Row] = []
    given: list[timedelta] = []
    call = agents.call

    def looking(service: Service, order: Order) -> str:
        seen.append(desk.row(order.id))
        given.append(desk.given(order.id))
        return call(service, order)

    monkeypatch.setattr(agents, "call", looking)
    desk.post(7)
    assert [row.state for row in seen] == ["Processing", "Processing"]
    assert [row.locked_by.split()[0] for row in seen] == ["payments", "delivery"]
    assert given == [COMPLETE_BY, COMPLETE_BY]
    assert None not in [row.complete_by for row in seen]
    assert desk.row(7).locked_by == ""


def test_an_agent_that_answers_after_its_complete_by_is_not_heard(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    receipts: list[str] = []
    late: list[str] = []
    call = agents.call

    def slow_at_first(service: Service, order: Order) -> str:
        receipts.append(call(service, order))
        if len(receipts) == 1:
            late.extend(desk.supervise())
        return f"{receipts[-1]} at call {len(receipts)}"

    monkeypatch.setattr(agents, "call", slow_at_first)
    desk.post(7)
    assert late == ["charge"]
    desk.wait(1)
    row = desk.row(7)
    assert (row.state, row.failures) == ("Processed", 1)
    view = app.store.workflows.view(row.run)
    assert view is not None
    assert view.steps[0].result == b'"charge-7-1 at call 2"'  # of the agent that was in time
    assert desk.remote.log == ["charge 7", "ship 7"]  # the card was charged once all the same


def test_an_agent_that_comes_to_its_job_after_the_complete_by_does_not_begin(desk: Desk) -> None:
    app.store.queues.pause("payments", by="the test")
    desk.post(7)
    assert desk.row(7).state == "Pending"
    desk.until_failed(7, times=3)
    app.store.queues.resume("payments", by="the test")
    desk.wait(60)
    assert desk.remote.calls["charge", 7] == 0
    assert desk.row(7).state == "Error"


# -- the supervisor ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("impatient")
def test_a_service_that_hangs_is_asked_again_then_waited_for_longer_then_left_to_an_operator(
    desk: Desk,
) -> None:
    desk.post(7, "hang")
    assert (desk.row(7).state, desk.row(7).failures, desk.given(7)) == ("Processing", 0, COMPLETE_BY)
    desk.until_failed(7, times=1)
    assert desk.given(7) == COMPLETE_BY  # asked for again at once, with a complete-by of its own
    desk.until_failed(7, times=2)
    assert desk.given(7) == PATIENCE + COMPLETE_BY
    assert desk.alerts(7) == []
    desk.until_failed(7, times=3)
    assert desk.row(7).state == "Error"
    assert desk.alerts(7) == [desk.row(7).says]
    assert "not done by its complete-by" in desk.row(7).says
    assert desk.heard(7) == ["Pending", "Processing", "Error"]
    assert desk.remote.log == []

    desk.remote.tell(7, "work")
    desk.resubmit(7)
    desk.wait(3)  # after that many failures, which is chance, the breaker is open, and asks each second
    assert (desk.row(7).state, desk.row(7).failures) == ("Processed", 0)


@pytest.mark.usefixtures("impatient")
def test_a_service_that_comes_back_after_the_complete_by_is_reached_by_the_repeat(desk: Desk) -> None:
    desk.post(7, "hang")
    desk.until_failed(7, times=1)
    desk.remote.tell(7, "work")
    desk.wait(3)
    assert (desk.row(7).state, desk.row(7).failures) == ("Processed", 1)
    assert desk.alerts(7) == []


@pytest.mark.usefixtures("impatient")
def test_a_service_that_hangs_for_one_order_holds_up_no_other(desk: Desk) -> None:
    desk.post(1, "hang")
    desk.post(2)
    assert (desk.row(1).state, desk.row(2).state) == ("Processing", "Processed")


def test_a_service_that_is_not_there_at_all_is_tried_until_the_complete_by(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as away:
        away.setenv("ORDERS_REMOTE", "http://127.0.0.1:9")  # nobody listens there
        desk.post(7)
        desk.until_failed(7, times=1)
    assert desk.row(7).state != "Error"
    desk.wait(3)
    assert desk.row(7).state == "Processed"


def test_an_operator_may_have_a_failed_order_undone_instead(desk: Desk) -> None:
    desk.post(7, "permanent")
    desk.wait(1)
    desk.operate("workflows", "undo", str(desk.row(7).run), "--why", "the customer has paid in the shop")
    assert desk.heard(7) == ["Pending", "Processing", "Error", "Undone"]
    assert desk.row(7).says.startswith("undone")
    assert app.job(desk.row(7).run).state is State.DEAD


def test_an_order_that_is_called_off_before_anybody_took_it_is_an_error_and_costs_nothing(desk: Desk) -> None:
    with transaction() as connection:
        run = submit(connection, Order(7))
    app.job(run).cancel()
    desk.kit.drain()
    assert (desk.row(7).state, desk.remote.log) == ("Error", [])
    assert desk.row(7).says.startswith("cancelled")
    assert desk.heard(7) == ["Pending", "Error"]


@pytest.mark.parametrize(("mode", "state"), [("work", "Processed"), ("permanent", "Error")])
def test_an_order_that_lateshift_has_forgotten_is_what_the_shop_heard_last(
    desk: Desk, mode: Mode, state: str
) -> None:
    desk.post(7, mode, "ship")
    desk.kit.clock.move(days=100)
    desk.kit.drain()  # the supervisor deletes what has passed its retention
    assert (desk.row(7).state, desk.row(7).says) == (state, "long ago")
