"""One switch: what becomes of a job is told to whom the call names, in order, and again until it is taken."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lateshift import (
    Cancel,
    Flow,
    JobEvent,
    JobFilter,
    Lateshift,
    Permanent,
    Retry,
    State,
    current,
    progress,
)
from lateshift.errors import EventsLeftOut, JobUnknown, OptionInvalid, WebhookFailed
from lateshift.model.events import RESULT_TOLD
from lateshift.model.ids import new_job_id
from lateshift.model.job import Progress
from lateshift.model.reply import CORRELATION_LIMIT, ROUTES_MOST
from lateshift.model.retry import JITTER
from lateshift.replies import delivering
from lateshift.replies.delivering import DELAYS, DELIVERY_RETRY
from lateshift.replies.webhook import BODY_LIMIT
from lateshift.store.replying import EVENTS_KEPT
from lateshift.testing import Kit, testing
from tests.unit.receiver import Receiver, receiving

KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()
SOON = 20.0  # seconds
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


heard: list[JobEvent] = []


@pytest.fixture
def app(store_url: str) -> Lateshift:
    app = Lateshift("shop", store=store_url)
    app.queue("images", events=True)
    heard.clear()

    @app.task(retry=Retry(attempts=2, base=timedelta(0)))
    def charge(amount: int) -> str:
        if amount < 0:
            raise Permanent("no such amount")
        if amount == 0 and current().attempt == 1:
            raise ValueError("not yet")
        return f"charged {amount}"

    @app.task(queue="order-replies")
    def hear(event: JobEvent) -> None:
        heard.append(event)

    @app.task(queue="images")
    def thumbnail(path: str) -> None: ...

    return app


@pytest.fixture
def kit(app: Lateshift, store_url: str) -> Iterator[Kit]:
    with testing(app, store=store_url) as kit:
        yield kit


def charge(app: Lateshift, amount: int, **options: Any) -> Any:
    return app.find_task("charge").options(**options).enqueue(amount)


def test_a_task_on_a_reply_queue_hears_each_event_in_order(app: Lateshift, kit: Kit) -> None:
    hear = app.find_task("hear")
    job = charge(app, 0, reply_to=hear, correlation_id="order 7")
    kit.drain()
    kit.travel(seconds=1)

    assert [event.kind for event in heard] == ["received", "started", "retrying", "started", "completed"]
    assert {(event.job_id, event.correlation_id) for event in heard} == {(job.id, "order 7")}
    assert heard[2].error == "ValueError: not yet"
    assert heard[-1].result == "charged 0"
    assert {job.queue for job in kit.enqueued(hear)} == {"order-replies"}


def test_a_failure_is_told_with_its_reason(app: Lateshift, kit: Kit) -> None:
    charge(app, -1, reply_to="task:hear", reply_on=["failed", "completed"])
    kit.drain()

    [event] = heard
    assert (event.kind, event.reason, event.error) == ("failed", "permanent", "Permanent: no such amount")


def test_how_far_a_job_had_come_is_told_before_its_end_however_quick_it_was(app: Lateshift, kit: Kit) -> None:
    @app.task
    def pack() -> None:
        progress(1, 2, "half")
        progress(2, 2, "whole")

    job = pack.options(reply_to="task:hear", reply_on=["progress", "completed"]).enqueue()
    kit.drain()

    assert [event.kind for event in heard] == ["progress", "completed"]
    assert heard[0].progress == job.view().progress == Progress(2, 2, "whole")


def test_no_event_is_too_large_for_a_webhook(app: Lateshift, kit: Kit, receiver: Receiver) -> None:
    @app.task(name="t" * 200, retry=Retry(attempts=1))
    def worst(how: str) -> str:
        progress(1, 2, "\x01" * 1000)
        if how == "fail":
            raise Permanent("\x01" * 10_000)
        if how == "cancel":
            raise Cancel("\x01" * 10_000)
        return "\x01" * (RESULT_TOLD // 6 - 1)

    app.reply_webhook(receiver.url, secret=SECRET, internal=True, name="shop")
    told = worst.options(
        reply_to=f"http://127.0.0.1:{receiver.port}/", correlation_id="\u20ac" * CORRELATION_LIMIT,
        reply_on=["progress", "completed", "failed", "cancelled"],
    )  # fmt: skip
    for how in ("complete", "fail", "cancel"):
        told.enqueue(how)
    kit.drain()

    kinds = sorted(json.loads(taken.body)["data"]["kind"] for taken in receiver.taken)
    assert kinds == ["cancelled", "completed", "failed", "progress", "progress", "progress"]
    assert max(len(taken.body) for taken in receiver.taken) <= BODY_LIMIT
    assert [dead.task for dead in kit.dead_letters()] == [
        "t" * 200
    ]  # the job itself: every delivery was taken


def test_the_replies_may_go_to_another_queue_of_the_task(app: Lateshift, kit: Kit) -> None:
    hear = app.find_task("hear")
    charge(app, 1, reply_to=hear.options(queue="elsewhere"), reply_on="completed")
    kit.drain()

    assert [job.queue for job in kit.enqueued(hear)] == ["elsewhere"]


def test_a_receiver_that_is_named_twice_is_told_once(app: Lateshift, kit: Kit) -> None:
    hear = app.find_task("hear")
    named = [hear, "task:hear", hear.options(queue="elsewhere"), "channel:orders", "channel:orders"]
    job = charge(app, 1, reply_to=named, reply_on="completed")
    kit.drain()

    assert [event.job_id for event in heard] == [job.id]
    assert [job.queue for job in kit.enqueued(hear)] == ["order-replies"]


def test_calls_that_are_sent_together_reply_too(app: Lateshift, kit: Kit) -> None:
    told = app.find_task("charge").options(reply_to="task:hear", reply_on=["completed"])
    app.enqueue_many(told.call(amount) for amount in range(1, 4))
    app.batch(told.call(amount) for amount in range(4, 6))
    kit.drain()

    assert sorted(event.result for event in heard) == [f"charged {amount}" for amount in range(1, 6)]


def test_a_task_may_say_for_all_its_jobs_who_is_told(app: Lateshift, kit: Kit) -> None:
    @app.task(reply_to="task:hear", reply_on=["completed"])
    def pack(order: int) -> int:
        return order

    pack.enqueue(1)
    pack.options(correlation_id="order 2").enqueue(2)
    app.enqueue_many([pack.call(3)])
    app.batch([pack.call(4)])
    kit.drain()

    assert {event.kind for event in heard} == {"completed"}
    told = {event.result: event.correlation_id for event in heard}
    assert told == {1: None, 2: "order 2", 3: None, 4: None}


def test_what_a_call_says_of_replies_takes_the_place_of_what_its_task_says(app: Lateshift, kit: Kit) -> None:
    told: list[JobEvent] = []

    @app.task
    def other(event: JobEvent) -> None:
        told.append(event)

    @app.task(reply_to="task:hear", reply_on=["completed"])
    def pack(order: int) -> int:
        return order

    pack.options(reply_to=[]).enqueue(1)
    pack.options(reply_to=other).enqueue(2)
    pack.options(reply_on=["received"]).enqueue(3)
    kit.drain()

    assert [(event.kind, event.result) for event in told] == [("completed", 2)]
    assert [event.kind for event in heard] == ["received"]


def test_jobs_that_an_agent_a_schedule_and_an_event_make_are_told_of_as_their_task_says(
    app: Lateshift, kit: Kit
) -> None:
    remote = app.agent("remote")

    @remote.task(reply_to="task:hear", reply_on="completed")
    def call() -> str:
        return "agent"

    @app.task(reply_to="task:hear", reply_on="completed")
    def tick() -> str:
        return "schedule"

    @app.on("order.placed")
    @app.task(reply_to="task:hear", reply_on="completed")
    def placed(order: int) -> str:
        return "event"

    call.enqueue()
    app.schedule(tick, every=timedelta(hours=1))
    app.emit("order.placed", 7)
    kit.drain()
    kit.travel(hours=1)

    assert {event.result for event in heard} == {"agent", "schedule", "event"}


@pytest.mark.parametrize("said", ["where it is declared", "in the call"])
def test_a_run_of_a_workflow_tells_how_it_began_and_ended(app: Lateshift, kit: Kit, said: str) -> None:
    reply: dict[str, Any] = {"reply_to": "task:hear"}

    @app.workflow(**(reply if said == "where it is declared" else {}))
    async def fulfil(flow: Flow, order: int) -> str:
        await flow.sleep(timedelta(minutes=1))
        charged: str = await flow.step(app.find_task("charge"), order, undo=app.find_task("charge"))
        return charged

    options = {} if said == "where it is declared" else reply
    good = fulfil.options(correlation_id="good", **options).enqueue(1)
    bad = fulfil.options(correlation_id="bad", **options).enqueue(-1)
    kit.drain()
    kit.travel(minutes=2)

    told = {id: [event for event in heard if event.correlation_id == id] for id in ("good", "bad")}
    assert [event.kind for event in told["good"]] == ["received", "started", "completed"]
    assert [event.kind for event in told["bad"]] == ["received", "started", "failed"]
    assert {(event.job_id, event.queue) for event in told["good"]} == {(good.id, "default")}
    assert (told["good"][-1].result, told["bad"][-1].reason) == ("charged 1", "undone")
    assert told["bad"][-1].job_id == bad.id


def test_a_workflow_may_stand_in_a_queue_that_publishes(app: Lateshift, kit: Kit) -> None:
    @app.workflow(queue="images")
    async def album(flow: Flow) -> None: ...

    album.enqueue()
    kit.drain()

    assert len(app.store.replies.published(0, 10)) == 3


def test_a_default_reply_that_cannot_be_is_refused(app: Lateshift) -> None:
    def pack() -> None: ...

    for options, says in (
        ({"reply_to": "task:hear", "reply_on": ["landed"]}, "reply_on is some of"),
        ({"reply_on": ["completed"]}, "give reply_to too"),
        ({"replies_to": "task:hear"}, "no option replies_to="),
    ):
        with pytest.raises(OptionInvalid, match=says):
            app.task(**options)(pack)
    with pytest.raises(OptionInvalid, match="no task 'nobody'"):
        app.task(reply_to="task:nobody")(pack).enqueue()


def test_a_task_that_is_told_has_no_reply_itself_for_that_might_never_end(app: Lateshift, kit: Kit) -> None:
    @app.task(reply_to="task:itself")
    def itself(event: JobEvent) -> None: ...

    @app.task(reply_to="task:hear")
    def echo(event: JobEvent) -> None: ...

    with pytest.raises(OptionInvalid, match="might never end"):
        itself.enqueue(JobEvent(id="1", kind="started", job_id=new_job_id(), task="", queue="", at=NOW))
    with pytest.raises(OptionInvalid, match="might never end"):
        charge(app, 1, reply_to=echo)
    charge(app, 1, reply_to=echo.options(reply_to=[]), reply_on="completed")
    kit.drain()
    [view] = app.store.reports.jobs(JobFilter(task="echo"), 10)
    assert view.state is State.COMPLETED
    assert heard == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"reply_to": "task:nobody"}, "no task 'nobody'"),
        ({"reply_to": "somewhere"}, "reply_to is a task.*not 'somewhere'"),
        ({"reply_to": "slack:T024BE7LD/secret"}, "reply_to is a task.*not 'slack…'"),
        ({"reply_to": "hooks.slack.com/services/secret"}, "reply_to is a task.*not 'hooks.slack.com…'"),
        ({"reply_to": 7}, "reply_to is a task"),
        ({"reply_to": "channel:a b"}, "name for a channel"),
        ({"reply_to": "channel:"}, "name for a channel"),
        ({"reply_to": "channel:jobs.images.thumbnail"}, "reply to another"),
        ({"reply_to": "https://hooks.example.com/x"}, "app.reply_webhook"),
        ({"reply_to": "https://user:word@hooks.example.com/x"}, "no name or password"),
        ({"reply_to": "https://hooks.example.com:99999999/x"}, "cannot be read"),
        ({"reply_to": "broker:rabbit"}, "app.reply_broker"),
        ({"reply_to": "task:hear", "reply_on": ["landed"]}, "reply_on is some of"),
        ({"reply_to": "task:hear", "reply_on": []}, "reply_on is some of"),
        ({"reply_to": "task:hear", "correlation_id": "x" * (CORRELATION_LIMIT + 1)}, "correlation_id"),
        ({"reply_to": [f"channel:orders-{number}" for number in range(ROUTES_MOST + 1)]}, "over the limit"),
        ({"correlation_id": "order 7"}, "give reply_to too"),
        ({"reply_on": ["completed"]}, "give reply_to too"),
    ],
)
def test_what_cannot_be_told_anything_is_refused(app: Lateshift, options: dict[str, Any], says: str) -> None:
    with pytest.raises(OptionInvalid, match=says):
        app.find_task("charge").options(**options)


def test_a_task_that_cannot_take_an_event_is_refused(app: Lateshift) -> None:
    @app.task
    def two(event: JobEvent, other: int) -> None: ...

    @app.task
    def none() -> None: ...

    @app.task(singleton=True)
    def alone(event: JobEvent) -> None: ...

    @app.task
    def numbers(seconds: float) -> None: ...

    @app.task
    def lists(events: list[JobEvent], note: str = "") -> None: ...

    hear = app.find_task("hear")
    for wrong in (
        two,
        none,
        alone,
        numbers,
        lists,
        hear.options(session="a"),
        hear.options(reply_to="task:hear"),
    ):
        with pytest.raises(OptionInvalid, match="reply_to: "):
            app.find_task("charge").options(reply_to=wrong)


def test_what_the_courier_would_not_tell_is_refused_where_it_is_named(app: Lateshift) -> None:
    @app.on("alert.*")
    @app.task
    def page(data: Any) -> None: ...

    @app.task(queue="replies.mine")
    def mine(event: JobEvent) -> None: ...

    charge = app.find_task("charge")
    for wrong, says in (
        ("task:page", "page hears alerts"),
        (page, "page hears alerts"),
        ("task:mine", "another queue"),
        (app.find_task("hear").options(queue="replies.mine"), "another queue"),
    ):
        with pytest.raises(OptionInvalid, match=says):
            charge.options(reply_to=wrong)
    charge.options(reply_to=mine.options(queue="mine"))


def test_a_webhook_is_signed_and_comes_in_order(app: Lateshift, kit: Kit, receiver: Receiver) -> None:
    app.reply_webhook(receiver.url, secret=SECRET, internal=True, name="shop")
    job = charge(app, 1, reply_to=f"http://127.0.0.1:{receiver.port}/orders/7", correlation_id="7")
    kit.drain()

    told = [json.loads(taken.body) for taken in receiver.taken]
    assert [each["type"] for each in told] == ["job.received", "job.started", "job.completed"]
    assert {each["data"]["job_id"] for each in told} == {str(job.id)}
    assert {taken.path for taken in receiver.taken} == {"/orders/7"}
    for taken, each in zip(receiver.taken, told, strict=True):
        id = each["data"]["id"]
        signed = f"{id}.{taken.headers['webhook-timestamp']}.".encode() + taken.body
        expected = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
        assert (taken.headers["webhook-id"], taken.headers["webhook-signature"]) == (id, f"v1,{expected}")


def test_a_webhook_that_is_not_taken_is_tried_again_and_holds_up_only_its_own_job(
    app: Lateshift, kit: Kit, receiver: Receiver
) -> None:
    app.reply_webhook(receiver.url, secret=SECRET, internal=True, name="shop")
    url = f"http://127.0.0.1:{receiver.port}/"
    receiver.answers = [(500, {}, b""), (204, {}, b"")]
    first = charge(app, 1, reply_to=url, reply_on=["received", "completed"])
    kit.drain()
    charge(app, 2, reply_to=url, reply_on=["completed"])
    kit.drain()
    assert [json.loads(taken.body)["type"] for taken in receiver.taken] == ["job.received", "job.completed"]
    kit.travel(seconds=6)

    mine = [json.loads(taken.body)["data"] for taken in receiver.taken]
    kinds = [each["kind"] for each in mine if each["job_id"] == str(first.id)]
    assert kinds == ["received", "received", "completed"]
    assert len({each["id"] for each in mine}) == 3


def test_the_delays_between_tries_are_those_of_standard_webhooks() -> None:
    for attempt, delay in enumerate(DELAYS, 1):
        for why in (WebhookFailed("busy"), None):  # it failed, or ran into its complete-by
            assert delay <= DELIVERY_RETRY.delay(attempt, why) <= delay * (1 + JITTER)
    assert DELIVERY_RETRY.attempts == len(DELAYS) + 1 == 10


def test_a_receiver_that_wants_all_at_once_gets_its_tries_no_sooner(
    app: Lateshift, kit: Kit, receiver: Receiver
) -> None:
    """A small Retry-After would use up in a moment what is for three days."""
    app.reply_webhook(receiver.url, secret=SECRET, internal=True, name="shop")
    receiver.answers = [(503, {"Retry-After": "0"}, b"")]
    charge(app, 1, reply_to=f"http://127.0.0.1:{receiver.port}/", reply_on=["completed"])
    kit.drain()
    assert len(receiver.taken) == 1
    kit.travel(seconds=6)
    assert len(receiver.taken) == 2
    kit.travel(minutes=4)
    assert len(receiver.taken) == 2
    assert kit.dead_letters() == []
    kit.travel(days=5)
    assert len(receiver.taken) == DELIVERY_RETRY.attempts


def test_after_the_last_try_it_is_a_dead_letter_and_an_alert(
    app: Lateshift, kit: Kit, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    alerts: list[Any] = []

    @app.on("alert.reply_undeliverable")
    @app.task
    def told(data: dict[str, Any]) -> None:
        alerts.append(data)

    app.reply_webhook(receiver.url, secret=SECRET, internal=True, name="shop")
    receiver.answers = [(500, {}, b"")]
    charge(app, 1, reply_to=f"http://127.0.0.1:{receiver.port}/hidden", reply_on="completed")
    kit.drain()
    kit.travel(days=5)

    assert len(receiver.taken) == 10
    [dead] = kit.dead_letters()
    assert dead.queue == "replies.shop"
    [alert] = alerts
    assert "hidden" not in str(alert)
    receiver.answers = [(204, {}, b"")]
    app.client.resubmit([dead.id])
    kit.drain()
    assert len({taken.headers["webhook-id"] for taken in receiver.taken}) == 1


def test_a_url_that_is_gone_stops_its_own_deliveries_and_no_others(
    app: Lateshift, kit: Kit, receiver: Receiver
) -> None:
    app.reply_webhook(receiver.url, secret=SECRET, internal=True, name="shop")
    alerts: list[Any] = []

    @app.on("alert.reply_gone")
    @app.task
    def told(data: dict[str, Any]) -> None:
        alerts.append(data)

    at = f"http://127.0.0.1:{receiver.port}"
    receiver.answers = [(410, {}, b""), (204, {}, b"")]
    charge(app, 1, reply_to=f"{at}/gone/for-good", reply_on=["completed"])
    kit.drain()
    charge(app, 2, reply_to=f"{at}/a/secret", reply_on=["completed"])
    kit.drain()
    kit.travel(days=5)

    assert [taken.path for taken in receiver.taken] == ["/gone/for-good", "/a/secret"]  # once each
    assert not any(queue.paused_at for queue in app.store.queues.list())
    [dead] = kit.dead_letters()
    assert (dead.queue, "410" in str(dead.history[-1].message)) == ("replies.shop", True)
    [alert] = alerts
    assert "for-good" not in str(alert)

    app.client.resubmit([dead.id])  # it is there again
    kit.drain()
    assert [taken.path for taken in receiver.taken[2:]] == ["/gone/for-good"]


def test_a_webhook_is_declared_once_and_its_url_is_looked_at(app: Lateshift) -> None:
    app.reply_webhook("https://hooks.example.com", secret=SECRET)
    with pytest.raises(OptionInvalid, match="declared twice"):
        app.reply_webhook("https://HOOKS.example.com:443/other", secret=SECRET)
    with pytest.raises(OptionInvalid, match="internal=True"):
        app.reply_webhook("https://127.0.0.1/", secret=SECRET)
    with pytest.raises(OptionInvalid, match="whsec_"):
        app.reply_webhook("https://other.example.com/", secret="short")
    assert app.find_task("charge").options(reply_to="https://hooks.example.com/a?b=c").spec.reply


def test_the_secret_of_a_webhook_is_in_no_row(app: Lateshift, kit: Kit, receiver: Receiver) -> None:
    app.reply_webhook(receiver.url, secret=SECRET, internal=True)
    bound = app.find_task("charge").options(reply_to=f"http://127.0.0.1:{receiver.port}/")
    assert SECRET not in str(bound.spec.reply)


def test_a_broker_gets_each_event_as_a_message(app: Lateshift, kit: Kit) -> None:
    from kombu import Connection

    app.reply_broker("rabbit", "memory://", queue="orders.out")
    job = charge(app, 1, reply_to="broker:rabbit", correlation_id="order 7")
    kit.drain()

    with Connection("memory://") as connection:
        queue = connection.SimpleQueue("orders.out")
        messages = [queue.get(block=False) for _ in range(3)]
        for message in messages:
            message.ack()
        queue.close()
    assert [message.payload["kind"] for message in messages] == ["received", "started", "completed"]
    assert {message.properties["correlation_id"] for message in messages} == {"order 7"}
    assert {message.payload["job_id"] for message in messages} == {str(job.id)}


def test_a_broker_that_is_away_is_tried_again(
    app: Lateshift, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []

    def away(url: str, queue: str, event: dict[str, Any]) -> None:
        tries.append(event["id"])
        if len(tries) == 1:
            raise ConnectionRefusedError("amqp://guest:word@host")

    monkeypatch.setattr("lateshift.app.replying.publish", away)
    app.reply_broker("rabbit", "amqp://guest:word@host/", queue="orders.out")
    charge(app, 1, reply_to="broker:rabbit", reply_on="completed")
    kit.drain()
    [waiting] = kit.enqueued(app.find_task("lateshift.reply_broker.rabbit"))
    assert "word" not in str(app.job(waiting.id).view().history)
    kit.travel(seconds=6)

    assert len(tries) == 2
    assert len(set(tries)) == 1


@pytest.mark.anyio
async def test_subscribers_hear_every_job_of_a_queue_that_publishes(app: Lateshift, store_url: str) -> None:
    async with testing(app, store=store_url) as kit:
        early = asyncio.create_task(_take(app, 6))
        while not app.client._hub().channels._poller.runs:  # noqa: ASYNC110 - it begins at its own time
            await asyncio.sleep(0.001)
        thumbnail = app.find_task("thumbnail")
        jobs = [await thumbnail.aenqueue("a.png"), await thumbnail.aenqueue("b.png")]
        await charge_async(app)
        await kit.adrain()
        events = await early

        for job in jobs:
            mine = [event.kind for event in events if event.job_id == job.id]
            assert mine == ["received", "started", "completed"]
        assert {event.channel for event in events} == {"jobs.images.thumbnail"}
        numbers = [event.number or 0 for event in events]
        assert numbers == sorted(set(numbers))

        assert await _take(app, 5, after=events[0].number) == events[1:]  # somebody who comes back


@pytest.mark.anyio
async def test_who_subscribes_after_what_is_kept_no_more_is_told_where_to_go_on(
    app: Lateshift, store_url: str
) -> None:
    async with testing(app, store=store_url) as kit:
        await app.find_task("thumbnail").aenqueue("a.png")
        await kit.adrain()
        [last, *_] = await _take(app, 3, after=0)
        kit.clock.move(seconds=EVENTS_KEPT.total_seconds() + 1)
        await app.find_task("thumbnail").aenqueue("b.png")
        await kit.adrain()

        for after in (0, last.number):
            with pytest.raises(EventsLeftOut, match="kept for an hour") as gap:
                await _take(app, 3, after=after)
            assert f"between the numbers {after} and {gap.value.go_on_after + 1} " in str(gap.value)
            rest = await _take(app, 3, after=gap.value.go_on_after)
            assert [event.kind for event in rest] == ["received", "started", "completed"]
            assert await _take(app, 3, after=(rest[0].number or 0) - 1) == rest


@pytest.mark.anyio
async def test_who_subscribes_after_what_never_was_is_refused(app: Lateshift, store_url: str) -> None:
    """A store that was restored from a backup has told less than was heard of it."""
    async with testing(app, store=store_url) as kit:
        for newest in (0, 3):
            with pytest.raises(
                OptionInvalid, match=f"no event {newest + 1}; the newest is {newest}.*leave after= out"
            ):
                await _take(app, 1, after=newest + 1)
            await app.find_task("thumbnail").aenqueue("a.png")
            await kit.adrain()


async def charge_async(app: Lateshift) -> None:
    await app.find_task("charge").aenqueue(1)


async def _take(app: Lateshift, count: int, after: int | None = None) -> list[JobEvent]:
    found: list[JobEvent] = []
    async with asyncio.timeout(SOON):
        async for event in app.subscribe("jobs.images.*", after=after):
            found.append(event)
            if len(found) == count:
                break
    return found


def test_a_queue_that_does_not_publish_cannot_be_subscribed_to(app: Lateshift) -> None:
    with pytest.raises(OptionInvalid, match="events=True"):
        app.subscribe("jobs.order-replies.*")
    with pytest.raises(OptionInvalid, match="no pattern of channels"):
        app.subscribe("jobs images")
    app.subscribe("jobs.images.*")
    app.subscribe("orders")


def test_a_queue_is_declared_to_publish_before_its_first_job(app: Lateshift, kit: Kit) -> None:
    charge(app, 1)
    with pytest.raises(OptionInvalid, match="Declare it before"):
        app.queue("default", events=True)


@pytest.mark.anyio
async def test_the_events_of_any_job_can_be_watched_to_its_end(app: Lateshift, store_url: str) -> None:
    async with testing(app, store=store_url) as kit:
        job = await app.find_task("charge").aenqueue(0)
        watching = asyncio.create_task(_watch(job))
        await kit.adrain()
        await kit.atravel(seconds=1)
        events = await watching

        assert events[0].kind == "received"
        assert events[-1].kind == "completed"
        assert events[-1].result == "charged 0"
        later = await _watch(job)
        assert [event.kind for event in later] == ["received", "started", "retrying", "started", "completed"]
        assert {event.id for event in events} <= {event.id for event in later}
        assert job.view().state is State.COMPLETED


async def _watch(job: Any) -> list[JobEvent]:
    async with asyncio.timeout(SOON):
        return [event async for event in job.events()]


@pytest.mark.anyio
async def test_a_job_that_is_not_there_cannot_be_watched(app: Lateshift, store_url: str) -> None:
    async with testing(app, store=store_url):
        with pytest.raises(JobUnknown):
            async for _ in app.client.watch(new_job_id()):
                pass


def test_kombu_is_named_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "kombu", None)
    with pytest.raises(OptionInvalid, match=r"lateshift\[brokers\]"):
        delivering.publish("memory://", "out", {"id": "1", "kind": "started"})
