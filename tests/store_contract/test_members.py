"""Members: live processes, known by an id that never comes again."""

from lateshift.clock import ManualClock
from lateshift.model.ids import MemberId, new_member_id
from lateshift.model.member import MemberView, Program, Serves
from lateshift.store.contract import Store
from tests.store_contract.driving import TTL, Supervisor, Worker, added, make_job, member, query


def shown(store: Store) -> dict[MemberId, MemberView]:
    return {view.id: view for view in store.reports.members()}


def test_a_member_is_shown_as_it_joined(store: Store, clock: ManualClock) -> None:
    me = member("w1")
    store.members.join(me, TTL)

    view = shown(store)[me.id]
    assert (view.name, view.kind, view.host, view.pid, view.stats) == ("w1", "worker", "host", 1, {})
    assert view.expires_at - view.started_at >= TTL
    assert abs((view.started_at - clock.now()).total_seconds()) < 5
    assert not view.dead


def test_joining_twice_is_joining_once(store: Store) -> None:
    me = member()
    store.members.join(me, TTL)
    store.members.join(me, TTL)

    assert list(shown(store)) == [me.id]


def test_a_heartbeat_moves_the_expiry(store: Store, worker: Worker, clock: ManualClock) -> None:
    before = shown(store)[worker.id].expires_at
    clock.move(seconds=20)
    worker.beat()

    assert (shown(store)[worker.id].expires_at - before).total_seconds() >= 20


def test_beat_gives_those_that_are_still_alive(store: Store, worker: Worker, other_worker: Worker) -> None:
    worker.die()
    stranger = new_member_id()

    assert store.members.beat([worker.id, other_worker.id, stranger], TTL) == [other_worker.id]
    assert store.members.beat([], TTL) == []


def test_a_silent_member_is_shown_as_dead_before_anybody_declared_it(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    clock.move(seconds=31)

    assert shown(store)[worker.id].dead


def test_a_buried_member_is_dead_at_once_and_for_good(store: Store, worker: Worker) -> None:
    worker.die()

    assert shown(store)[worker.id].dead
    assert not worker.beat()
    worker.die()
    assert shown(store)[worker.id].dead


def test_the_jobs_of_a_buried_member_are_taken_back_at_once(
    store: Store, worker: Worker, other_worker: Worker, supervisor: Supervisor
) -> None:
    added(store, make_job(), make_job())
    [mine] = worker.lease(1)
    other_worker.lease(1)
    worker.die()

    assert [taken.id for taken in supervisor.sweep()] == [mine.id]


def test_a_member_that_leaves_is_gone(store: Store, worker: Worker, other_worker: Worker) -> None:
    store.members.leave([worker.id])

    assert list(shown(store)) == [other_worker.id]
    assert not worker.beat()


def test_a_member_that_leaves_with_jobs_stays_known_until_they_are_taken_back(
    store: Store, worker: Worker, supervisor: Supervisor
) -> None:
    added(store, make_job())
    worker.lease_one()
    store.members.leave([worker.id])

    assert shown(store)[worker.id].dead
    assert len(supervisor.sweep()) == 1


def test_what_a_member_reports_is_shown(store: Store, worker: Worker) -> None:
    store.members.report(worker.id, {"running": 3, "jobs": ["a"]})

    assert shown(store)[worker.id].stats == {"running": 3, "jobs": ["a"]}


def test_how_old_the_loops_of_some_are_is_told_with_a_heartbeat_and_stays_until_it_is_told_again(
    store: Store, worker: Worker, other_worker: Worker
) -> None:
    both = [worker.id, other_worker.id]
    store.members.report(worker.id, {"running": 1})
    assert shown(store)[worker.id].loops == {}

    assert store.members.beat(both, TTL, {worker.id: {"Worker": (0.25, 1.0), "Ünïcödé": (3.5, 0.0)}}) == both
    store.members.beat(both, TTL)
    store.members.report(worker.id, {"running": 2})

    view = shown(store)[worker.id]
    assert view.loops == {"Worker": (0.25, 1.0), "Ünïcödé": (3.5, 0.0)}
    assert view.stats == {"running": 2}
    assert shown(store)[other_worker.id].loops == {}
    assert {it.id: it.loops for it in store.reports.members(10)}[worker.id] == view.loops


# -- what a member is there for --------------------------------------------------------------------------------------


SHOP = Program(app="shop", version="1", tasks={"pack": "thread"})


def serves(program: Program = SHOP, *queues: str) -> Serves:
    return Serves(
        app=program.app, version=program.version, code=program.digest, queues=queues, slots={"thread": 16}, heartbeat=30.0
    )  # fmt: skip


def programs(store: Store) -> dict[str, Program]:
    """As an explanation sees them."""
    [id] = added(store, make_job())
    facts = store.reports.facts(id)
    assert facts is not None
    return facts.programs


def test_a_member_says_what_it_serves_and_which_code_it_runs(store: Store, worker: Worker) -> None:
    assert shown(store)[worker.id].serves is None
    assert store.members.introduce(worker.id, serves(SHOP, "mail", "img.*"), SHOP)

    assert shown(store)[worker.id].serves == serves(SHOP, "mail", "img.*")
    assert programs(store) == {SHOP.digest: SHOP}


def test_a_member_that_has_not_joined_is_not_heard_and_may_say_it_again(store: Store) -> None:
    me = member()
    assert not store.members.introduce(me.id, serves(), SHOP)
    assert programs(store) == {}

    store.members.join(me, TTL)
    assert store.members.introduce(me.id, serves(), SHOP)
    assert store.members.introduce(me.id, serves(), SHOP)
    assert programs(store) == {SHOP.digest: SHOP}


def test_the_programs_of_living_members_are_listed_with_the_queues_that_they_declare(
    store: Store, worker: Worker, other_worker: Worker
) -> None:
    more = Program(app="farm", version="1", tasks={}, queues=("barn", "field"))
    store.members.introduce(worker.id, serves(more), more)
    store.members.introduce(other_worker.id, serves(), SHOP)
    assert sorted(program.queues for program in store.reports.programs()) == [(), ("barn", "field")]
    worker.die()
    assert store.reports.programs() == [SHOP]


def test_members_of_the_same_code_share_one_row_of_it(
    store: Store, worker: Worker, other_worker: Worker
) -> None:
    for each in (worker, other_worker):
        store.members.introduce(each.id, serves(), SHOP)
    assert query(store, "SELECT count(*) FROM {program}") == [(1,)]


def test_a_member_whose_code_has_changed_says_so(store: Store, worker: Worker) -> None:
    more = Program(app="shop", version="2", tasks={"pack": "thread", "send": "coroutine"})
    store.members.introduce(worker.id, serves(), SHOP)
    store.members.introduce(worker.id, serves(more), more)
    assert programs(store) == {more.digest: more}


def test_neither_a_heartbeat_nor_a_report_changes_what_a_member_serves(store: Store, worker: Worker) -> None:
    store.members.introduce(worker.id, serves(), SHOP)
    worker.beat()
    store.members.report(worker.id, {"running": 1})
    assert shown(store)[worker.id].serves == serves()


def test_the_code_of_dead_members_is_not_among_the_live(store: Store, worker: Worker) -> None:
    store.members.introduce(worker.id, serves(), SHOP)
    worker.die()
    assert programs(store) == {}


def test_code_that_nobody_runs_any_more_is_purged_after_its_members(
    store: Store, worker: Worker, other_worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    old = Program(app="shop", version="0", tasks={})
    store.members.introduce(worker.id, serves(old), old)
    store.members.introduce(other_worker.id, serves(), SHOP)
    worker.die()
    clock.move(minutes=11)
    supervisor.purge()
    assert query(store, "SELECT code FROM {program}") == [(SHOP.digest,)]
