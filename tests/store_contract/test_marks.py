"""What stands beside a job: its tags, and the job whose attempt asked for it. They go with it."""

from lateshift.clock import ManualClock
from lateshift.model.ids import new_job_id
from lateshift.model.job import NewJob
from lateshift.store.contract import Store
from lateshift.store.marks import GENERATIONS, Descendant, Kin
from tests.store_contract.driving import (
    Supervisor,
    Worker,
    added,
    make_batch,
    make_job,
    query,
    see,
)


def test_a_job_keeps_its_tags_when_it_ends_and_when_it_is_resubmitted(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job(tags=("eu", "vip")))
    before = see(store, id).tags
    store.jobs.cancel([id], by="me")
    ended = see(store, id).tags
    store.jobs.resubmit([id], by="me")

    assert before == ended == see(store, id).tags == ("eu", "vip")


def test_jobs_with_guards_and_of_batches_have_tags_too(store: Store) -> None:
    [guarded] = added(store, make_job(exclusive="till", tags=("eu",)))
    batch, jobs = make_batch(store, 2, added=0)
    store.batches.add(batch.id, 0, [_tagged(job) for job in jobs])

    assert see(store, guarded).tags == see(store, jobs[0].id).tags == ("eu",)


def _tagged(job: NewJob) -> NewJob:
    return NewJob(job.id, job.spec, job.payload, None, True, tags=("eu",))


def test_a_job_that_is_sent_again_has_its_tags_once(store: Store) -> None:
    job = make_job(tags=("eu",), parent=new_job_id())
    added(store, job)
    added(store, job)

    assert see(store, job.id).tags == ("eu",)
    assert see(store, job.id).parent == job.parent


def test_a_job_knows_which_job_asked_for_it(store: Store) -> None:
    parent = make_job()
    one = NewJob(new_job_id(), parent.spec, b"[]", None, True, parent=parent.id)
    many = [make_job(parent=parent.id) for _ in range(3)]
    added(store, parent)
    added(store, one)
    added(store, *many)

    assert see(store, one.id).parent == see(store, many[2].id).parent == parent.id
    assert see(store, parent.id).parent is None
    children = [Descendant(id, parent.id, 1) for id in (one.id, *[job.id for job in many])]
    by_id = sorted(children, key=lambda child: child.id)
    assert store.reports.kin(parent.id, 100) == Kin([], by_id, False)
    assert store.reports.kin(one.id, 100) == Kin([parent.id], [], False)


def test_a_family_is_looked_at_over_generations_and_within_a_limit(store: Store) -> None:
    line = [make_job()]
    for _ in range(4):
        line.append(make_job(parent=line[-1].id))
    added(store, *line)

    kin = store.reports.kin(line[2].id, 10)
    assert kin.ancestors == [line[1].id, line[0].id]
    assert [(each.id, each.depth) for each in kin.descendants] == [(line[3].id, 1), (line[4].id, 2)]
    cut = store.reports.kin(line[0].id, 2)
    assert ([each.id for each in cut.descendants], cut.cut) == ([line[1].id, line[2].id], True)


def test_a_long_line_of_jobs_is_followed_for_so_many_generations(store: Store) -> None:
    line = [make_job()]
    for _ in range(GENERATIONS + 3):
        line.append(make_job(parent=line[-1].id))
    added(store, *line)

    assert len(store.reports.kin(line[-1].id, 100).ancestors) == GENERATIONS
    down = store.reports.kin(line[0].id, 100)
    assert (len(down.descendants), down.cut) == (GENERATIONS, True)


def test_tags_and_parents_go_with_the_job(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    added(store, make_job(tags=("eu",), parent=new_job_id()), make_job(tags=("eu",), parent=new_job_id()))
    worker.settle_all(worker.lease(1))
    [erased] = [lease.id for lease in worker.lease(1)]
    store.jobs.cancel([erased], by="me")
    clock.move(days=2)
    supervisor.purge()

    assert query(store, "SELECT count(*) FROM {job_tag}") == [(1,)]
    assert query(store, "SELECT count(*) FROM {job_parent}") == [(1,)]


def test_jobs_without_tags_and_parents_leave_nothing_beside_them(store: Store) -> None:
    added(store, make_job(), make_job(exclusive="till"))

    assert query(store, "SELECT count(*) FROM {job_tag}") == [(0,)]
    assert query(store, "SELECT count(*) FROM {job_parent}") == [(0,)]
