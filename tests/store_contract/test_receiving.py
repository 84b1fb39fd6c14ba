"""Events that are brought to us: each makes one job, whoever takes it, and who brings it again is told which."""

import threading
from datetime import timedelta
from uuid import UUID

import pytest

from lateshift.clock import ManualClock
from lateshift.errors import KeyConflict
from lateshift.model.ids import new_job_id
from lateshift.model.job import JobFilter, NewJob
from lateshift.model.triggering.trigger import Arrival, NewTrigger, Refused
from lateshift.store.contract import Store
from lateshift.store.trigger_contract import Received
from tests.store_contract.driving import Supervisor, added, keyed, make_job, only, query

DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def declared(store: Store) -> None:
    hook = NewTrigger(name="stripe", kind="webhook", about="POST /hooks/stripe", task="noop")
    store.triggers.declare([hook], app="shop", whole=False)


def brought(event: str, job: NewJob | None = None) -> Arrival:
    return Arrival(event=event, job=job or make_job())


def refusal(event: str) -> Arrival:
    rest = b'{"kind":"Message","seen":{}}'
    return Arrival(event=event, refused=Refused(id=new_job_id(), raw=b"x", rest=rest, reason="no JSON"))


def receive(store: Store, *arrivals: Arrival) -> list[Received]:
    answers = store.triggers.receive("stripe", arrivals, keep=DAY)
    assert answers is not None
    return answers


def jobs_in(store: Store) -> set[UUID]:
    return {view.id for view in store.reports.jobs(JobFilter(), 100)}


def test_a_delivery_makes_one_job_and_who_brings_it_again_is_told_which(store: Store) -> None:
    first = make_job()
    assert receive(store, brought("evt_1", first)) == [Received(True, job=first.id)]
    assert receive(store, brought("evt_1")) == [Received(False, job=first.id)]
    assert jobs_in(store) == {first.id}
    view = store.triggers.get("stripe")
    assert view is not None
    assert (view.made, view.repeated, view.refused) == (1, 1, 0)


def test_several_deliveries_are_answered_in_their_order(store: Store) -> None:
    a, b = make_job(), make_job()
    receive(store, brought("m", a))
    refused = refusal("z")
    assert refused.refused is not None
    assert receive(store, refused, brought("b", b), brought("m"), Arrival(event="a")) == [
        Received(True, refused=refused.refused.id), Received(True, job=b.id), Received(False, job=a.id), Received(True),
    ]  # fmt: skip


def test_what_was_refused_is_kept_once_and_what_was_passed_over_stays_passed_over(store: Store) -> None:
    [first] = receive(store, refusal("evt_1"))
    [again] = receive(store, refusal("evt_1"))
    assert first.refused is not None
    assert again == Received(False, refused=first.refused)
    assert [view.id for view in store.triggers.refused("stripe", None, 10)] == [first.refused]
    receive(store, Arrival(event="evt_2"))
    assert receive(store, brought("evt_2")) == [Received(False)]
    assert jobs_in(store) == set()


def test_a_delivery_is_known_for_its_window_and_then_swept(
    store: Store, clock: ManualClock, supervisor: Supervisor
) -> None:
    first, second = make_job(), make_job()
    receive(store, brought("evt_1", first))
    clock.move(days=1, seconds=-1)
    assert not receive(store, brought("evt_1"))[0].new
    clock.move(seconds=1)
    assert receive(store, brought("evt_1", second)) == [Received(True, job=second.id)]
    clock.move(days=1)
    supervisor.purge()
    assert query(store, "SELECT count(*) FROM {receipt}") == [(0,)]


def test_a_delivery_whose_job_is_a_duplicate_names_the_job_that_is_there(store: Store) -> None:
    there = make_job(unique=only("same"))
    added(store, there)
    assert receive(store, brought("evt_1", make_job(unique=only("same")))) == [Received(True, job=there.id)]
    assert receive(store, brought("evt_1")) == [Received(False, job=there.id)]


def test_a_delivery_of_which_no_job_can_be_made_leaves_nothing(store: Store) -> None:
    added(store, keyed("k", b"[1]"))
    with pytest.raises(KeyConflict):
        receive(store, brought("evt_1", keyed("k", b"[2]")))
    assert receive(store, brought("evt_1"))[0].new


def test_nothing_is_taken_for_a_trigger_that_is_paused_or_not_there(store: Store) -> None:
    store.triggers.pause("stripe", by="ann")
    assert store.triggers.receive("stripe", [brought("evt_1")], keep=DAY) is None
    assert store.triggers.receive("nobody", [brought("evt_1")], keep=DAY) is None
    store.triggers.resume("stripe", by="ann")
    assert receive(store, brought("evt_1"))[0].new


def test_of_many_who_bring_the_same_at_once_one_makes_the_job(store: Store) -> None:
    answers: list[Received] = []
    start = threading.Barrier(8)

    def bring() -> None:
        start.wait()
        answers.extend(receive(store, brought("evt_1")))

    threads = [threading.Thread(target=bring) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({answer.job for answer in answers}) == 1
    assert [answer.new for answer in answers].count(True) == 1
    assert len(jobs_in(store)) == 1
