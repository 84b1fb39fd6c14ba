"""Triggers: an event, its receipt and its job are written in one commit, once, by whoever holds the term."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from lateshift.clock import ManualClock
from lateshift.errors import KeyConflict
from lateshift.model.ids import new_job_id, new_member_id
from lateshift.model.job import JobFilter, Key, NewJob
from lateshift.model.triggering.trigger import (
    REFUSED_COUNTED,
    SILENCE,
    Arrival,
    NewTrigger,
    Refused,
    Subscription,
    TriggerView,
)
from lateshift.store.contract import Store
from lateshift.store.taking import REFUSED_KEPT, TRIGGER_KEPT
from lateshift.store.trigger_contract import Taken
from tests.store_contract.driving import Supervisor, Worker, make_job, query, serve

TTL = timedelta(seconds=10)
DAY = timedelta(days=1)


def trigger(
    name: str = "orders", *, about: str = "amqp://host queue orders", kind: str = "message",
    subscription: Subscription | None = None,
) -> NewTrigger:  # fmt: skip
    return NewTrigger(name=name, kind=kind, about=about, task="noop", subscription=subscription)


def hold(store: Store, name: str = "orders") -> int:
    """Take the term of one who reads it."""
    grip = store.locks.acquire(f"trigger {name}", new_member_id(), TTL)
    assert grip is not None
    return grip.fence


@pytest.fixture
def term(store: Store) -> int:
    store.triggers.declare([trigger()], app="shop")
    return hold(store)


def arrival(event: str, mark: str = "", job: NewJob | None = None) -> Arrival:
    return Arrival(event=event, mark=mark, job=job or make_job())


def refusal(event: str, raw: bytes = b"\xff\x00", reason: str = "no JSON") -> Arrival:
    refused = Refused(id=new_job_id(), raw=raw, rest=b'{"kind":"Message","seen":{}}', reason=reason)
    return Arrival(event=event, refused=refused)


def seen(store: Store, name: str = "orders") -> TriggerView:
    view = store.triggers.get(name)
    assert view is not None
    return view


def jobs_in(store: Store) -> int:
    return len(store.reports.jobs(JobFilter(), 100))


# -- what has arrived ---------------------------------------------------------------------------------------------


def test_each_event_makes_one_job_however_often_it_arrives(store: Store, worker: Worker, term: int) -> None:
    first = [arrival("a"), arrival("b")]
    assert store.triggers.take("orders", first, term=term, position=b'"7"') == Taken(2, 0, 0)
    again = [arrival("b"), arrival("c")]
    assert store.triggers.take("orders", again, term=term) == Taken(1, 1, 0)
    wanted = {one.job.id for one in (*first, again[1]) if one.job is not None}
    assert {lease.id for lease in worker.lease(10)} == wanted
    view = seen(store)
    assert (view.made, view.repeated, view.position) == (3, 1, "7")


def test_an_event_twice_in_one_look_makes_one_job(store: Store, term: int) -> None:
    assert store.triggers.take("orders", [arrival("a"), arrival("a")], term=term) == Taken(1, 1, 0)
    assert jobs_in(store) == 1


def test_another_version_of_an_event_makes_another_job(store: Store, term: int) -> None:
    assert store.triggers.take("orders", [arrival("file", "etag 1")], term=term) == Taken(1, 0, 0)
    assert store.triggers.take("orders", [arrival("file", "etag 1")], term=term) == Taken(0, 1, 0)
    assert store.triggers.take("orders", [arrival("file", "etag 2")], term=term) == Taken(1, 0, 0)


def test_the_same_event_of_two_triggers_makes_two_jobs(store: Store) -> None:
    store.triggers.declare([trigger("orders"), trigger("returns")], app="shop")
    for name in ("orders", "returns"):
        assert store.triggers.take(name, [arrival("a")], term=hold(store, name)) == Taken(1, 0, 0)


def test_an_event_that_the_program_passes_over_is_known_and_makes_no_job(store: Store, term: int) -> None:
    assert store.triggers.take("orders", [Arrival(event="a")], term=term) == Taken(0, 0, 0)
    assert store.triggers.take("orders", [arrival("a")], term=term) == Taken(0, 1, 0)
    assert jobs_in(store) == 0


def test_who_has_lost_the_term_writes_nothing(store: Store, clock: ManualClock, term: int) -> None:
    clock.move(seconds=11)
    newer = hold(store)
    assert store.triggers.take("orders", [arrival("a")], term=term, position=b"1") is None
    assert store.triggers.forget("orders", ["a"], term=term) == 0
    assert (jobs_in(store), seen(store).position) == (0, None)
    assert store.triggers.take("orders", [arrival("a")], term=newer) == Taken(1, 0, 0)


def test_a_trigger_that_is_not_declared_takes_nothing(store: Store) -> None:
    assert store.triggers.take("orders", [arrival("a")], term=hold(store)) is None
    assert jobs_in(store) == 0


def test_if_one_job_is_refused_none_of_them_is_written(store: Store, term: int) -> None:
    job = make_job()
    store.jobs.enqueue([NewJob(job.id, job.spec, job.payload, Key("k", b"1" * 16, DAY))])
    other = make_job()
    wrong = NewJob(other.id, other.spec, other.payload, Key("k", b"2" * 16, DAY))
    with pytest.raises(KeyConflict):
        store.triggers.take("orders", [arrival("a"), arrival("b", job=wrong)], term=term, position=b"1")
    assert (jobs_in(store), seen(store).position) == (1, None)
    assert store.triggers.unseen("orders", [("a", ""), ("b", "")]) == [True, True]


def test_receipts_go_after_their_time_and_not_before(
    store: Store, supervisor: Supervisor, clock: ManualClock, term: int
) -> None:
    store.triggers.take("orders", [arrival("a")], term=term, keep=DAY)
    store.triggers.take("orders", [arrival("for ever")], term=term)
    clock.move(hours=23)
    supervisor.purge()
    assert store.triggers.unseen("orders", [("a", "")]) == [False]
    clock.move(hours=2)
    supervisor.purge()
    assert store.triggers.unseen("orders", [("a", ""), ("for ever", "")]) == [True, False]


def test_what_has_expired_and_was_not_purged_yet_makes_a_job_again(
    store: Store, clock: ManualClock, term: int
) -> None:
    store.triggers.take("orders", [arrival("a")], term=term, keep=timedelta(seconds=5))
    clock.move(seconds=6)
    assert store.triggers.take("orders", [arrival("a")], term=term, keep=DAY) == Taken(1, 0, 0)


def test_receipts_are_listed_in_the_order_of_their_bytes_and_forgotten_by_name_or_up_to_one(
    store: Store, term: int
) -> None:
    events = ["b", "B", "a", "ä", "a/1", "z"]
    store.triggers.take("orders", [arrival(event) for event in events], term=term)
    in_order = sorted(events, key=str.encode)
    assert store.triggers.receipts("orders", "", 3) == in_order[:3]
    assert store.triggers.receipts("orders", in_order[2], 10) == in_order[3:]
    assert store.triggers.forget("orders", ["z", "not there"], term=term) == 1
    assert store.triggers.forget("orders", before="b", term=term) == 3
    assert store.triggers.receipts("orders", "", 10) == ["b", "ä"]


def test_unseen_is_told_for_each_event_and_mark(store: Store, term: int) -> None:
    store.triggers.take("orders", [arrival("a", "1")], term=term)
    asked = [("a", "1"), ("a", "2"), ("b", "1")]
    assert store.triggers.unseen("orders", asked) == [False, True, True]


# -- what was refused ---------------------------------------------------------------------------------------------


def test_what_is_refused_is_kept_as_it_came_and_the_others_flow(store: Store, term: int) -> None:
    assert store.triggers.take("orders", [refusal("bad"), arrival("good")], term=term) == Taken(1, 0, 1)
    [refused] = store.triggers.refused("orders", None, 10)
    assert (refused.raw, refused.event, refused.reason) == (b"\xff\x00", "bad", "no JSON")
    assert store.triggers.find_refused(refused.id) == refused
    assert store.triggers.take("orders", [refusal("bad")], term=term) == Taken(0, 1, 0)


def test_what_was_refused_becomes_a_job_once(store: Store, worker: Worker, term: int) -> None:
    store.triggers.take("orders", [refusal("bad")], term=term)
    [refused] = store.triggers.refused(None, None, 10)
    job = make_job()
    assert store.triggers.accept(refused.id, job, by="ana") is True
    assert store.triggers.accept(refused.id, make_job(), by="ana") is False
    assert [lease.id for lease in worker.lease(10)] == [job.id]
    assert store.triggers.refused(None, None, 10) == []


def test_what_was_refused_is_listed_by_pages_and_can_be_discarded(store: Store, term: int) -> None:
    store.triggers.take("orders", [refusal(f"bad {n}") for n in range(5)], term=term)
    first = store.triggers.refused("orders", None, 3)
    rest = store.triggers.refused("orders", first[-1].id, 3)
    assert [view.event for view in (*first, *rest)] == [f"bad {n}" for n in range(5)]
    assert store.triggers.discard([first[0].id, uuid4()], by="ana") == 1
    assert store.triggers.find_refused(first[0].id) is None
    assert len(store.triggers.refused(None, None, 10)) == 4


def test_the_ids_of_what_one_trigger_has_refused_are_given_by_pages_the_oldest_first(
    store: Store, term: int
) -> None:
    store.triggers.declare([trigger(), trigger("returns")], app="shop")
    for name in ("orders", "returns"):
        store.triggers.take(name, [refusal(f"bad {n}") for n in range(3)], term=term)
    ids = [view.id for view in store.triggers.refused("orders", None, 10)]
    assert store.triggers.which_refused("orders", None, 2) == ids[:2]
    assert store.triggers.which_refused("orders", ids[1], 2) == ids[2:]
    assert store.triggers.which_refused("nothing", None, 2) == []


def test_what_was_refused_is_found_by_its_first_or_last_digits(store: Store, term: int) -> None:
    store.triggers.take("orders", [refusal(f"bad {n}") for n in range(5)], term=term)
    ids = [view.id for view in store.triggers.refused(None, None, 10)]
    for id in ids:
        assert store.triggers.refused_ids(id.hex[-10:], 3) == [id]
        assert store.triggers.refused_ids(id.hex, 3) == [id]
    assert store.triggers.refused_ids(ids[0].hex[:4], 10) == sorted(ids, reverse=True)
    assert len(store.triggers.refused_ids(ids[0].hex[:4], 2)) == 2
    assert store.triggers.refused_ids("0000", 3) == []


def test_what_of_the_refused_is_still_there_is_counted_beside_all_that_ever_was(
    store: Store, term: int
) -> None:
    store.triggers.declare([trigger(), trigger("returns")], app="shop")
    store.triggers.take("orders", [refusal(f"bad {n}") for n in range(3)], term=term)
    gone = store.triggers.refused("orders", None, 2)
    store.triggers.discard([view.id for view in gone], by="ana")
    assert (seen(store).refused, seen(store).refused_now) == (3, 1)
    assert [(view.name, view.refused_now) for view in store.triggers.all()] == [("orders", 1), ("returns", 0)]


def test_more_of_the_refused_than_anybody_looks_at_are_not_counted_to_the_end(
    store: Store, term: int
) -> None:
    store.triggers.take("orders", [refusal(f"bad {n}") for n in range(REFUSED_COUNTED + 5)], term=term)
    assert seen(store).refused_now == REFUSED_COUNTED


def test_what_was_refused_goes_after_its_retention(
    store: Store, supervisor: Supervisor, clock: ManualClock, term: int
) -> None:
    store.triggers.take("orders", [refusal("bad")], term=term)
    clock.move(days=REFUSED_KEPT.days - 1)
    supervisor.purge()
    assert len(store.triggers.refused(None, None, 10)) == 1
    clock.move(days=2)
    supervisor.purge()
    assert store.triggers.refused(None, None, 10) == []


# -- declared, paused, shown --------------------------------------------------------------------------------------


def test_a_release_keeps_the_position_the_pause_and_the_receipts(store: Store, term: int) -> None:
    store.triggers.take("orders", [arrival("a")], term=term, position=b"5")
    store.triggers.pause("orders", by="ana")
    told = store.triggers.declare([trigger(about="elsewhere"), trigger("returns")], app="shop")
    assert (told.added, told.changed, told.removed) == (["returns"], ["orders"], [])
    view = seen(store)
    assert (view.about, view.position, view.paused_by) == ("elsewhere", 5, "ana")
    assert store.triggers.unseen("orders", [("a", "")]) == [False]


def test_what_the_code_does_not_have_any_more_goes_and_comes_again_where_it_stood(
    store: Store, supervisor: Supervisor, clock: ManualClock, term: int
) -> None:
    store.triggers.take("orders", [arrival("a"), refusal("b")], term=term, position=b"5")
    store.triggers.declare([trigger("others")], app="another app")
    assert store.triggers.declare([], app="shop").removed == ["orders"]
    assert store.triggers.declare([], app="shop").removed == []
    assert [view.name for view in store.triggers.all()] == ["others"]
    assert (store.triggers.standing("orders"), store.triggers.get("orders")) == (None, None)
    assert store.triggers.take("orders", [arrival("c")], term=term) is None
    assert len(store.triggers.refused("orders", None, 10)) == 1
    clock.move(days=TRIGGER_KEPT.days - 1)
    supervisor.purge()
    assert store.triggers.declare([trigger()], app="shop").changed == ["orders"]
    assert (seen(store).position, store.triggers.unseen("orders", [("a", "")])) == (5, [False])


def test_what_no_code_has_had_for_long_is_forgotten(
    store: Store, supervisor: Supervisor, clock: ManualClock, term: int
) -> None:
    store.triggers.take("orders", [arrival("a")], term=term, position=b"5")
    store.triggers.declare([], app="shop")
    clock.move(days=TRIGGER_KEPT.days + 1)
    for _ in range(3):
        supervisor.purge()
    assert store.triggers.declare([trigger()], app="shop").added == ["orders"]
    assert (seen(store).position, store.triggers.unseen("orders", [("a", "")])) == (None, [True])


def test_a_part_of_what_the_code_has_removes_nothing(store: Store) -> None:
    store.triggers.declare([trigger("orders"), trigger("returns")], app="shop")
    older = [trigger("returns", about="as an older release has it"), trigger("new")]
    told = store.triggers.declare(older, app="shop", whole=False)
    assert (told.added, told.changed, told.removed) == (["new"], [], [])
    assert seen(store, "returns").about == trigger().about
    assert [view.name for view in store.triggers.all()] == ["new", "orders", "returns"]


def test_declaring_the_same_again_changes_nothing(store: Store) -> None:
    store.triggers.declare([trigger()], app="shop")
    told = store.triggers.declare([trigger()], app="shop")
    assert (told.added, told.changed, told.removed) == ([], [], [])


def test_pause_and_resume_say_whether_they_changed_anything_and_are_audited(store: Store, term: int) -> None:
    assert store.triggers.pause("orders", by="ana") is True
    assert store.triggers.pause("orders", by="ben") is False
    standing = store.triggers.standing("orders")
    assert standing is not None
    assert standing.paused
    assert store.triggers.resume("orders", by="ben") is True
    assert store.triggers.resume("orders", by="ben") is False
    assert store.triggers.pause("unknown", by="ana") is False
    assert query(store, "SELECT action, subject, actor FROM {audit} ORDER BY at") == [
        ("pause", "trigger orders", "ana"), ("resume", "trigger orders", "ben"),
    ]  # fmt: skip


def test_an_error_is_shown_until_it_is_over_and_is_known_afterwards_with_when_it_was(
    store: Store, clock: ManualClock, term: int
) -> None:
    store.triggers.tell("orders", error="the broker does not answer")
    assert (seen(store).error, seen(store).last_error) == ("the broker does not answer",) * 2
    when = seen(store).error_at
    clock.move(seconds=5)
    store.triggers.tell("orders", error=None, lag=12)
    view = seen(store)
    assert (view.error, view.last_error, view.error_at) == (None, "the broker does not answer", when)
    assert view.lag == 12
    store.triggers.tell("orders", error="the broker refuses us")
    assert seen(store).error == seen(store).last_error == "the broker refuses us"


def test_it_is_told_since_when_a_trigger_cannot_read_however_often_it_tries(
    store: Store, clock: ManualClock, term: int
) -> None:
    store.triggers.tell("orders", error="the broker does not answer")
    first = seen(store).error_at
    assert seen(store).failing_since == first
    for _ in range(3):
        clock.move(seconds=60)
        store.triggers.tell("orders", error="the broker still does not answer")
    view = seen(store)
    assert first is not None
    assert view.error_at is not None
    assert (view.failing_since, view.error_at - first >= timedelta(seconds=180)) == (first, True)
    clock.move(seconds=5)
    store.triggers.tell("orders", error=None)
    assert seen(store).failing_since is None
    clock.move(seconds=5)
    store.triggers.tell("orders", error="the broker refuses us")
    assert seen(store).failing_since == seen(store).error_at
    clock.move(seconds=5)
    taken = store.triggers.take("orders", [], term=term)
    assert taken is not None
    assert seen(store).failing_since is None


def test_an_error_that_is_over_in_the_same_moment_is_over(store: Store, term: int) -> None:
    store.triggers.tell("orders", error="the broker does not answer")
    store.triggers.tell("orders", error=None)
    assert (seen(store).error, seen(store).last_error) == (None, "the broker does not answer")


def test_what_waits_is_told_only_while_somebody_looks(store: Store, clock: ManualClock, term: int) -> None:
    store.triggers.tell("orders", error=None, lag=12)
    assert seen(store).lag == 12
    store.triggers.pause("orders", by="ana")
    assert seen(store).lag is None
    store.triggers.resume("orders", by="ana")
    assert seen(store).lag == 12
    clock.move(seconds=SILENCE.total_seconds())
    assert seen(store).lag is None


def test_whether_somebody_reads_it_now_is_told(store: Store, clock: ManualClock) -> None:
    store.triggers.declare([trigger()], app="shop")
    assert not seen(store).read_now
    grip = store.locks.acquire("trigger orders", new_member_id(), TTL)
    assert grip is not None
    assert seen(store).read_now
    store.locks.release(grip)
    assert not seen(store).read_now
    hold(store)
    clock.move(seconds=TTL.total_seconds() + 1)
    assert not seen(store).read_now


def test_a_name_is_that_of_the_app_whose_workers_live(store: Store, worker: Worker) -> None:
    serve(store, worker, "shop")
    store.triggers.declare([trigger()], app="shop")
    told = store.triggers.declare([trigger(about="elsewhere"), trigger("others")], app="billing")
    assert (told.taken, told.added, told.changed) == ({"orders": "shop"}, ["others"], [])
    assert (seen(store).app, seen(store).about) == ("shop", trigger().about)
    told = store.triggers.declare([trigger(about="elsewhere")], app="billing", whole=False)
    assert told.taken == {"orders": "shop"}
    assert seen(store).app == "shop"


@pytest.mark.parametrize("whole", [True, False])
def test_the_triggers_of_an_app_that_has_no_worker_any_more_are_taken_over_where_they_stand(
    store: Store, worker: Worker, whole: bool
) -> None:
    serve(store, worker, "shop")
    store.triggers.declare([trigger()], app="shop")
    store.triggers.take("orders", [arrival("a")], term=hold(store), position=b"5")
    worker.die()
    told = store.triggers.declare([trigger()], app="shop, renamed", whole=whole)
    assert (told.inherited, told.changed, told.taken) == ({"orders": "shop"}, ["orders"], {})
    assert (seen(store).app, seen(store).position) == ("shop, renamed", 5)
    assert store.triggers.unseen("orders", [("a", "")]) == [False]


def test_what_an_app_has_given_up_is_free_for_another(store: Store, worker: Worker) -> None:
    serve(store, worker, "shop")
    store.triggers.declare([trigger()], app="shop")
    store.triggers.declare([], app="shop")
    told = store.triggers.declare([trigger()], app="billing")
    assert (told.taken, told.inherited, seen(store).app) == ({}, {}, "billing")


def test_the_rate_is_that_of_the_last_minute_or_so(store: Store, clock: ManualClock, term: int) -> None:
    store.triggers.take("orders", [arrival(f"first {n}") for n in range(20)], term=term)
    assert seen(store).rate == pytest.approx(20 / 60, rel=0.1), "nobody knows yet what a minute brings"
    for number in range(6):
        store.triggers.take("orders", [arrival(f"{number} {n}") for n in range(20)], term=term)
        clock.move(seconds=20)
    assert seen(store).rate == pytest.approx(1.0, rel=0.4)
    clock.move(hours=1)
    assert seen(store).rate == 0


def test_the_rate_after_a_pause_is_that_of_what_comes_now(
    store: Store, clock: ManualClock, term: int
) -> None:
    for number in range(4):
        store.triggers.take("orders", [arrival(f"{number} {n}") for n in range(20)], term=term)
        clock.move(seconds=30)
    clock.move(hours=1)
    later = hold(store)
    store.triggers.take("orders", [arrival(f"again {n}") for n in range(20)], term=later)
    assert seen(store).rate == pytest.approx(20 / 60, rel=0.1)
    clock.move(seconds=30)
    assert seen(store).rate == pytest.approx(20 / 60, rel=0.1)
    clock.move(seconds=31)
    assert seen(store).rate == 0


def test_subscriptions_are_told_of_all_apps(store: Store) -> None:
    told = Subscription("order.*", make_job().spec, "data", False)
    store.triggers.declare([trigger("told", kind="event", subscription=told)], app="shop")
    store.triggers.declare([trigger("mail", kind="event", subscription=told)], app="post")
    assert store.triggers.subscriptions() == [("post", "mail", told), ("shop", "told", told)]
    store.triggers.declare([], app="shop")
    assert store.triggers.subscriptions() == [("post", "mail", told)]


def test_there_is_nothing_to_find_under_an_id_that_was_never_refused(store: Store) -> None:
    nobody = UUID(int=7)
    assert store.triggers.find_refused(nobody) is None
    assert store.triggers.accept(nobody, make_job(), by="ana") is False
    assert jobs_in(store) == 0
