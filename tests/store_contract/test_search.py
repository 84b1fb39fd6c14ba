"""Searching: by whatever a job has, at a bounded cost, going on where it ended."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from lateshift.model import history
from lateshift.model.ids import JobId, first_id_at, new_job_id
from lateshift.model.job import AttemptRecord, JobFilter, NewJob, State
from lateshift.model.outcome import DeadLettered, Later
from lateshift.model.search import argument_parts
from lateshift.store import searching
from lateshift.store.contract import Store
from tests.store_contract.driving import DAY, Worker, added, keyed, make_batch, make_job

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def found(store: Store, **wanted: Any) -> list[JobId]:
    return [view.id for view in store.reports.search(JobFilter(**wanted), 100).jobs]


def failed(error: str, message: str) -> bytes:
    return history.append(
        None, AttemptRecord(attempt=1, fence=1, at=NOW, reason="raised", error=error, message=message)
    )


def made_at(second: int) -> NewJob:
    """A job whose id is of so many seconds after NOW."""
    at = first_id_at(NOW + timedelta(seconds=second)).int | new_job_id().int & ((1 << 80) - 1)
    return replace(make_job(), id=JobId(int=at))


def test_jobs_are_found_by_a_tag_wherever_they_stand(store: Store, worker: Worker) -> None:
    eu, vip, both, _ = added(
        store, make_job(tags=("eu",)), make_job(tags=("vip",)), make_job(tags=("eu", "vip")), make_job()
    )
    worker.settle(worker.lease_one())

    assert found(store, tag="eu") == [both, eu]
    assert found(store, tag="eu", state=State.COMPLETED) == [eu]
    assert found(store, tag="vip", state=State.READY) == [both, vip]
    assert found(store, tag="us") == []


def test_jobs_are_found_by_a_text_in_their_arguments(store: Store) -> None:
    cat, dog = added(
        store,
        make_job(payload=b'{"path":"cat.png","width":100}'),
        make_job(payload='{"path":"say \\"wöff\\"","width":1000}'.encode()),
    )

    assert found(store, argument="cat.png") == [cat]
    assert found(store, argument='say "wöff"') == [dog]
    assert found(store, argument="width=100") == [cat]
    assert found(store, argument="width=1000") == [dog]
    assert found(store, argument="path=cat.png") == [cat]
    assert found(store, argument='path="cat.png"') == [cat]
    assert found(store, argument="path=cat") == []
    assert found(store, argument="100") == [dog, cat]
    assert found(store, argument="%") == []


def test_jobs_are_found_by_what_went_wrong_whether_they_are_dead_or_try_again(
    store: Store, worker: Worker
) -> None:
    dead, later, _ = added(store, make_job(), make_job(), make_job())
    worker.settle(worker.lease_one(), DeadLettered("exhausted", failed("KeyError", "no card 7"), DAY))
    worker.settle(worker.lease_one(), Later(DAY, counts=True, history=failed("Timeout", "the card was slow")))

    assert found(store, error="card") == [later, dead]
    assert found(store, error="KeyError") == [dead]
    assert found(store, error="exhaust") == [dead]
    assert found(store, error="nothing") == []


def test_jobs_are_found_by_the_time_in_their_ids(store: Store) -> None:
    first, second, third = added(store, made_at(0), made_at(10), made_at(20))

    assert found(store, since=NOW + timedelta(seconds=10)) == [third, second]
    assert found(store, until=NOW + timedelta(seconds=10)) == [first]
    assert found(store, since=NOW + timedelta(seconds=1), until=NOW + timedelta(seconds=20)) == [second]
    assert found(store, since=NOW + timedelta(seconds=21)) == []


def test_jobs_are_found_by_their_key_of_whatever_task(store: Store, worker: Worker) -> None:
    cat, other = added(store, keyed("cat-1"), keyed("cat-1", task="other"))
    added(store, make_job(), keyed("dog-1"))
    worker.settle(worker.lease_one())

    assert found(store, key="cat-1") == [other, cat]
    assert found(store, key="cat-1", task="other") == [other]
    assert found(store, key="cat-1", state=State.COMPLETED) == [cat]
    assert found(store, key="none") == []


def test_filters_narrow_together(store: Store) -> None:
    batch, jobs = make_batch(store, 3)
    id, _ = added(store, make_job(tags=("eu",), payload=b'["a"]'), make_job(tags=("eu",), payload=b'["b"]'))

    assert found(store, tag="eu", argument="a") == [id]
    assert found(store, tag="eu", task="none") == []
    assert found(store, batch=batch.id) == [job.id for job in reversed(jobs)]
    assert found(store, batch=batch.id, error="no") == []


@pytest.mark.parametrize(
    "wanted",
    [
        {"task": "wanted"},
        {"queue": "wanted"},
        {"argument": "wanted"},
        {"state": State.SCHEDULED},
        {"tag": "wanted"},
    ],
)
def test_a_search_looks_at_so_many_jobs_and_says_where_to_go_on(
    store: Store, worker: Worker, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, Any]
) -> None:
    monkeypatch.setattr(searching, "STRIDE", 2)
    monkeypatch.setattr(searching, "LOOKED_AT", 6)
    one = make_job(task="wanted", queue="wanted", payload=b'["wanted"]', delay=DAY, tags=("wanted",))
    two = replace(one, id=new_job_id())
    ids = added(store, one, *[make_job() for _ in range(30)], two, *[make_job() for _ in range(9)])
    worker.settle_all(worker.lease(25))

    seen: list[JobId] = []
    looks = 0
    wants = JobFilter(**wanted)
    while True:
        page = store.reports.search(wants, 5)
        seen += [view.id for view in page.jobs]
        looks += 1
        if page.before is None:
            break
        assert page.cut or len(page.jobs) == 5
        wants = replace(wants, before=page.before)

    assert seen == [two.id, one.id]
    assert looks <= 12
    assert looks > 1 or "tag" in wanted
    assert store.reports.jobs(JobFilter(**wanted), 5) == [store.reports.job(id) for id in (two.id, one.id)]
    assert len(ids) == 41


def test_a_page_that_is_full_goes_on_after_its_last_job(store: Store, worker: Worker) -> None:
    ids = added(store, *[make_job() for _ in range(7)])
    worker.settle_all(worker.lease(3))

    first = store.reports.search(JobFilter(), 4)
    rest = store.reports.search(JobFilter(before=first.before), 4)

    assert [view.id for view in first.jobs + rest.jobs] == ids[::-1]
    assert (first.cut, rest.before, rest.cut) == (False, None, False)


def test_what_is_looked_for_in_the_arguments_is_json() -> None:
    assert argument_parts(None) == (None, None)
    assert argument_parts("a b") == (b"a b", None)
    assert argument_parts("n=[1, 2]") == (b'"n":[1,2],', b'"n":[1,2]}')
    assert argument_parts("n=x=y") == (b'"n":"x=y",', b'"n":"x=y"}')
    assert argument_parts("1=2") == (b"1=2", None)
