"""What the store refuses of one event is set aside and logged; what was told before and after it goes on, in order."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from lateshift.clock import ManualClock
from lateshift.errors import StoreUnavailable
from lateshift.model import reply
from lateshift.model.depth import JSON_DEPTH
from lateshift.model.events import JobEvent, Told, event_of
from lateshift.model.ids import new_job_id
from lateshift.model.job import JobFilter, Spec
from lateshift.model.outcome import Completed
from lateshift.model.reply import Target, of_queue, written
from lateshift.store import replying as replying_of_store
from lateshift.store.contract import COUNT_LIMIT, Store
from tests.forged_routes import DELIVERY, FORGED_ROUTES, HEARER
from tests.store_contract.driving import DAY, GUARDED, Worker, added
from tests.store_contract.test_replies import HEARD, TO_CHANNEL, TO_TASK, Courier, replying
from tests.store_contract.test_triggers import trigger

BAD_TEXT = "x" * 100_000


@pytest.fixture
def courier(store: Store) -> Courier:
    return Courier(store)


def to(spec: Spec) -> Target:
    return Target(to="task:heard", spec=spec)


@pytest.mark.parametrize("what", FORGED_ROUTES)
def test_a_route_that_no_call_could_have_made_is_sent_nothing_and_holds_up_no_other(
    store: Store, courier: Courier, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    hears = replace(trigger("alerts", about="alert.*", kind="event"), task=HEARER)
    store.triggers.declare([hears], app="shop")
    bad, good = replying(), replying(on=("received",))
    bad = replace(bad, spec=replace(bad.spec, reply=FORGED_ROUTES[what]))
    added(store, bad, good)

    assert [event.job_id for event in courier.read()] == [good.id]
    assert {view.id for view in store.reports.jobs(JobFilter(), 100)} == {bad.id, good.id}
    assert store.replies.waiting() == (0, None)
    assert f"{bad.id}" in caplog.text
    assert f"{good.id}" not in caplog.text


@pytest.mark.parametrize("text", [BAD_TEXT, "", "a\0b"])
@pytest.mark.parametrize("name", ["task", "queue", "exclusive"])
def test_a_route_with_text_that_cannot_be_kept_holds_up_no_other_route_of_its_job(
    store: Store, courier: Courier, caplog: pytest.LogCaptureFixture, name: str, text: str
) -> None:
    bad = replying(to(replace(HEARD, **{name: text})), TO_CHANNEL, on=("received",))
    good = replying(on=("received",))
    added(store, bad, good)

    assert [event.job_id for event in courier.read()] == [bad.id, good.id]
    assert store.reports.jobs(JobFilter(queue="replies"), 10) == []
    assert f"{bad.id}" in caplog.text


def test_lateshifts_own_tasks_are_told_where_they_deliver_and_a_queue_tells_of_its_jobs(
    store: Store, courier: Courier
) -> None:
    """Whatever a call of Lateshift makes goes where it says."""
    loud = replace(HEARD, queue="loud")
    targets = [to(DELIVERY), to(replace(loud, reply=written([of_queue("loud", "heard")])))]
    job = replying(*targets, Target(to="channel:jobs.default.noop"), on=("received",))
    added(store, job)

    assert [event.channel for event in courier.read()] == ["jobs.default.noop", "jobs.loud.heard"]
    made = store.reports.jobs(JobFilter(), 10)
    assert {view.queue for view in made} == {"default", "replies.hook", "loud"}


@pytest.mark.parametrize("given", [{"event": {"kind": "completed"}}, {"url": "http://127.0.0.1:9/", "n": 1}])
def test_a_route_gives_its_receiver_nothing_but_the_event_and_where_it_goes(
    store: Store, courier: Courier, caplog: pytest.LogCaptureFixture, given: dict[str, Any]
) -> None:
    """Else whoever may write a job has one of Lateshift's own tasks sign what never happened."""
    bad = replying(replace(to(HEARD), given=given, parameter="other"), on=("received",))
    good = replying(replace(to(HEARD), given={"url": "http://127.0.0.1:9/"}), on=("received",))
    added(store, bad, good)

    courier.read()
    [heard] = store.reports.jobs(JobFilter(queue="replies"), 10)
    assert msgspec.json.decode(heard.payload)["event"]["job_id"] == str(good.id)
    assert f"the job {bad.id} cannot be sent to 'task:heard': " in caplog.text


@pytest.mark.parametrize("place", [0, 3, 10])
def test_an_event_that_the_store_refuses_is_set_aside_and_the_others_go_on_in_order(
    store: Store,
    courier: Courier,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    place: int,
) -> None:
    """Whatever the look at routes lets through."""
    monkeypatch.setattr(reply, "fault_of", lambda *given: None)
    jobs = [replying(TO_TASK, TO_CHANNEL, on=("received",)) for _ in range(10)]
    bad = replying(to(replace(HEARD, priority=10**30, task="a\0b")), TO_CHANNEL, on=("received",))
    for job in [*jobs[:place], bad, *jobs[place:]]:
        added(store, job)

    assert [event.job_id for event in courier.read()] == [job.id for job in jobs]
    heard = store.reports.jobs(JobFilter(queue="replies"), 100)
    told = [msgspec.json.decode(job.payload)["event"]["job_id"] for job in heard]
    assert sorted(told) == sorted(str(job.id) for job in jobs)
    assert caplog.text.count("is set aside") == 1
    assert str(bad.id) in caplog.text
    assert store.replies.waiting() == (0, None)


@pytest.mark.parametrize("depth", [JSON_DEPTH + 1, 950, 985, 5_000])
def test_a_result_that_is_deeper_than_any_that_is_kept_today_is_left_out_of_its_event(
    store: Store, courier: Courier, depth: int
) -> None:
    """An older release may have kept one."""
    jobs = [replying(TO_TASK, TO_CHANNEL, on=("completed",)) for _ in range(3)]
    added(store, *jobs)
    worker = Worker(store)
    for lease in worker.lease(3, GUARDED):
        deep = lease.id == jobs[1].id
        worker.settle(lease, Completed(b"[" * depth + b"]" * depth if deep else b"1", DAY))

    events = courier.read()

    assert {(event.job_id, event.result_left_out) for event in events} == {
        (jobs[0].id, False), (jobs[1].id, True), (jobs[2].id, False),
    }  # fmt: skip
    assert len(store.reports.jobs(JobFilter(queue="replies"), 100)) == 3


@pytest.mark.parametrize("error", [RecursionError, KeyError, AssertionError, AttributeError, RuntimeError])
@pytest.mark.parametrize("place", [0, 3, 10])
def test_an_event_of_which_nothing_can_be_made_is_set_aside_whatever_its_making_raises(
    store: Store, courier: Courier, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch,
    error: type[Exception], place: int,
) -> None:  # fmt: skip
    jobs = [replying(TO_TASK, TO_CHANNEL, on=("received",)) for _ in range(10)]
    bad = replying(TO_TASK, TO_CHANNEL, on=("received",))
    for job in [*jobs[:place], bad, *jobs[place:]]:
        added(store, job)

    def made(told: Told, *rest: Any, **more: Any) -> JobEvent:
        if told.job == bad.id:
            raise error("no event")
        return event_of(told, *rest, **more)

    monkeypatch.setattr(replying_of_store, "event_of", made)

    assert [event.job_id for event in courier.read()] == [job.id for job in jobs]
    assert len(store.reports.jobs(JobFilter(queue="replies"), 100)) == 10
    assert caplog.text.count("is set aside") == 1
    assert f"{error.__name__}" in caplog.text
    assert store.replies.waiting() == (0, None)


@pytest.mark.parametrize("error", [StoreUnavailable, MemoryError])
def test_no_event_is_set_aside_for_what_is_not_its_fault(
    store: Store, courier: Courier, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    added(store, replying(on=("received",)))
    with monkeypatch.context() as away:

        def nothing(*_: Any, **__: Any) -> JobEvent:
            raise error("not now")

        away.setattr(replying_of_store, "event_of", nothing)
        with pytest.raises(error):
            courier.forward()
    assert store.replies.waiting()[0] == 1
    assert courier.forward() == 1


def test_what_is_refused_is_set_aside_by_the_courier_of_the_present_term_alone(
    store: Store, courier: Courier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply, "fault_of", lambda *given: None)
    added(store, replying(to(replace(HEARD, priority=10**30)), on=("received",)))

    assert store.replies.forward(term=courier.term + 1, limit=1) == 0
    assert store.replies.waiting()[0] == 1
    assert courier.forward() == 1
    assert courier.forward() == 0


def test_what_waits_to_be_sent_on_is_counted_with_the_time_of_the_oldest(
    store: Store, courier: Courier, clock: ManualClock
) -> None:
    assert store.replies.waiting() == (0, None)
    before = clock.now()
    added(store, replying())
    clock.move(minutes=5)
    added(store, replying())

    count, oldest = store.replies.waiting()

    assert count == 2
    assert oldest is not None
    assert abs((oldest - before).total_seconds()) < 60
    courier.read()
    assert store.replies.waiting() == (0, None)


def test_the_count_of_what_waits_stops_at_a_limit(store: Store) -> None:
    job = replying()
    store.jobs.enqueue([replace(job, id=new_job_id()) for _ in range(COUNT_LIMIT + 1)])

    assert store.replies.waiting()[0] == COUNT_LIMIT


def test_a_task_that_hears_alerts_no_more_is_told_of_jobs_again(store: Store, courier: Courier) -> None:
    hears = replace(trigger("alerts", about="alert.*", kind="event"), task=HEARD.task)
    store.triggers.declare([hears], app="shop")
    store.triggers.declare([], app="shop", whole=True)

    added(store, replying(to(HEARD), on=("received",)))
    courier.read()

    assert [view.task for view in store.reports.jobs(JobFilter(task=HEARD.task), 10)] == [HEARD.task]
