"""Alerts go to a URL: each as a job, signed, tried again until it is taken; and the secret stays where it is."""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from datetime import timedelta

import pytest

from lateshift import Flow, Lateshift, Permanent, State
from lateshift.app.alerting import ALERT_RETRY, ALERT_WEBHOOK
from lateshift.errors import OptionInvalid, TaskInvalid
from lateshift.testing import Kit, testing
from tests.unit.receiver import Receiver, receiving
from tests.walks.commands import Cli

KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def app(store_url: str, receiver: Receiver) -> Lateshift:
    app = Lateshift("shop", store=store_url)
    app.alert_webhook(receiver.url, secret=SECRET, internal=True)

    def charge(card: str) -> None:
        raise Permanent("the card has expired")

    @app.workflow(on_failure="hold")
    async def paying(flow: Flow) -> None:
        await flow.step(charge, "blue")

    return app


@pytest.fixture
def kit(app: Lateshift, store_url: str) -> Iterator[Kit]:
    with testing(app, store=store_url) as kit:
        yield kit


def test_an_alert_is_posted_and_signed(app: Lateshift, kit: Kit, receiver: Receiver) -> None:
    run = app.find_task("paying").enqueue()
    kit.drain()
    [taken] = receiver.taken
    told = json.loads(taken.body)
    [job] = kit.enqueued(app.find_task(ALERT_WEBHOOK))
    assert told["id"] == taken.headers["webhook-id"] == str(job.id)
    assert told["type"] == "alert.workflow_held"
    assert told["data"] == {
        "run": str(run.id), "workflow": "paying", "what": "workflow_held",
        "why": "step 1 charge failed: Permanent: the card has expired",
    }  # fmt: skip
    assert told["timestamp"].endswith(("Z", "+00:00"))
    signed = f"{told['id']}.{taken.headers['webhook-timestamp']}.".encode() + taken.body
    expected = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    assert taken.headers["webhook-signature"] == f"v1,{expected}"


def test_one_that_is_not_taken_is_tried_again_as_the_same_message(
    app: Lateshift, kit: Kit, receiver: Receiver
) -> None:
    receiver.answers = [(500, {}, b"no"), (503, {"Retry-After": "3600"}, b""), (204, {}, b"")]
    app.find_task("paying").enqueue()
    kit.drain()
    kit.travel(minutes=59)
    assert len(receiver.taken) == 2
    kit.travel(hours=2)
    assert len({taken.headers["webhook-id"] for taken in receiver.taken}) == 1
    assert [len(receiver.taken), len({taken.body for taken in receiver.taken})] == [3, 1]
    assert kit.dead_letters() == []


def test_one_that_is_never_taken_is_a_dead_letter_after_days(
    app: Lateshift, kit: Kit, receiver: Receiver
) -> None:
    receiver.answers = [(500, {}, b"no")]
    app.find_task("paying").enqueue()
    kit.drain()
    kit.travel(days=20)
    [letter] = kit.dead_letters()
    assert (letter.task, letter.attempt) == (ALERT_WEBHOOK, ALERT_RETRY.attempts)
    assert "answered 500" in (letter.history[-1].message or "")


def test_it_is_tried_again_over_two_days_whatever_its_receiver_wishes(
    app: Lateshift, kit: Kit, receiver: Receiver
) -> None:
    waits = [ALERT_RETRY.delay(attempt) for attempt in range(1, ALERT_RETRY.attempts)]
    assert waits == sorted(waits)
    assert timedelta(hours=44) < sum(waits, timedelta(0)) < timedelta(hours=52)

    receiver.answers = [(503, {"Retry-After": "0"}, b"")]
    app.find_task("paying").enqueue()
    kit.drain()
    assert len(receiver.taken) == 1
    kit.travel(hours=40)
    assert kit.dead_letters() == []
    kit.travel(hours=12)
    assert len(kit.dead_letters()) == 1
    assert len(receiver.taken) == ALERT_RETRY.attempts


def test_the_secret_is_in_no_job_no_history_and_no_log(
    app: Lateshift, kit: Kit, receiver: Receiver, cli: Cli, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers = [(410, {}, b"")]
    app.find_task("paying").enqueue()
    kit.drain()
    [letter] = kit.dead_letters()
    shown = (
        cli("jobs", "show", str(letter.id), "--json").out
        + cli("triggers", "list", "--json").out
        + caplog.text
    )
    assert "lateshift.alert_webhook" in shown
    for hidden in (SECRET, SECRET.removeprefix("whsec_"), "token", "hidden"):
        assert hidden not in shown


def test_each_url_is_a_task_of_its_own_and_may_want_some_alerts_only(
    app: Lateshift, kit: Kit, receiver: Receiver
) -> None:
    with pytest.raises(TaskInvalid, match="another name="):
        app.alert_webhook(receiver.url, secret=SECRET, internal=True)
    app.alert_webhook(
        receiver.url,
        secret=SECRET,
        internal=True,
        name="undo alerts",
        queue="urgent",
        pattern="alert.compensation_failed",
    )
    app.find_task("paying").enqueue()
    kit.drain()
    assert len(receiver.taken) == 1
    app.emit("alert.compensation_failed", {"why": "the bank says no"})
    kit.drain()
    assert len(receiver.taken) == 3
    assert {sent.queue for sent in kit.enqueued(app.find_task("undo alerts"))} == {"urgent"}


def test_what_is_no_alert_is_refused(app: Lateshift, receiver: Receiver) -> None:
    with pytest.raises(OptionInvalid, match=r"begins with alert\."):
        app.alert_webhook(receiver.url, secret=SECRET, internal=True, name="orders", pattern="order.*")


def test_a_run_goes_on_though_nobody_takes_its_alert(app: Lateshift, kit: Kit, receiver: Receiver) -> None:
    receiver.answers = [(500, {}, b"")]
    run = app.find_task("paying").enqueue()
    kit.drain()
    assert run.cancel()
    kit.drain()
    assert run.state is State.CANCELLED
