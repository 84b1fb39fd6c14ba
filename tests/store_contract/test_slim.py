"""Jobs that are looked at together: no more is read of each than tells what it is."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from lateshift.model.job import JobFilter, JobView, Note, Place, Progress, State
from lateshift.model.outcome import Completed, DeadLettered
from lateshift.model.sealed import LEFT, MASK, WEBHOOK, masked_view, slim
from lateshift.store.contract import Store
from tests.store_contract.driving import DAY, GUARDED, HOUR, Worker, added, make_job, see

LARGE = msgspec.json.encode({"text": "é" * 100_000})
SEALED = b'"sealed:1:key:payload:' + b"A" * 100_000 + b'"'


def stocked(store: Store, worker: Worker) -> list[JobView]:
    """One of each state, each with as much as may be in it; the newest first."""
    payloads = (LARGE, b'{"text":"small"}', SEALED)
    ids = added(store, *[make_job(payload=payload, tags=("t",)) for payload in payloads for _ in range(3)])
    ids += added(store, make_job(payload=LARGE, delay=HOUR), make_job(payload=LARGE, task=f"{WEBHOOK}x"))
    for number, lease in enumerate(worker.lease(6)):
        store.jobs.save([Note(lease, Progress(1, 2, "half"), LARGE)])
        if number % 3 == 0:
            worker.settle(lease, Completed(LARGE, DAY))
        elif number % 3 == 1:
            worker.settle(lease, DeadLettered("exhausted", b"[]", DAY))
    return [see(store, id) for id in reversed(ids)]


def shown(view: JobView) -> dict[str, Any]:
    """All that everybody may see of it, but what it holds."""
    masked = masked_view(view)
    return {
        name: getattr(masked, name)
        for name in view.__struct_fields__
        if name not in ("payload", "result", "checkpoint")
    }


@pytest.mark.parametrize(
    "wanted", [JobFilter(), JobFilter(tag="t"), JobFilter(state=State.DEAD), JobFilter(state=State.RUNNING), JobFilter(task="noop")]
)  # fmt: skip
def test_a_slim_job_is_the_whole_one_without_what_it_holds(
    store: Store, worker: Worker, wanted: JobFilter
) -> None:
    stocked(store, worker)
    whole = store.reports.jobs(wanted, 100)
    found = store.reports.search(wanted, 100, whole=False).jobs
    assert whole
    assert [shown(view) for view in found] == [shown(view) for view in whole]
    assert store.reports.jobs(wanted, 100, whole=False) == found
    assert store.reports.named([view.id for view in whole], whole=False) == found
    for view in found:
        assert (view.result, view.checkpoint) == (None, None)


def test_of_large_arguments_the_beginning_is_left_and_of_sealed_ones_that_they_are(
    store: Store, worker: Worker
) -> None:
    whole = stocked(store, worker)
    found = store.reports.search(JobFilter(), 100, whole=False).jobs
    for view, slimmed in zip(whole, found, strict=True):
        if view.task.startswith(WEBHOOK):
            assert slimmed.payload == view.payload  # where it leads is told of the whole alone
        elif view.payload == SEALED:
            assert len(slimmed.payload) < LEFT
            assert msgspec.json.decode(masked_view(slimmed).payload) == MASK
        elif len(view.payload) > LEFT:
            said = msgspec.json.decode(slimmed.payload, type=str)
            assert said.endswith("…")
            assert view.payload.decode().startswith(said[:-1])
        else:
            assert slimmed.payload == view.payload


def test_jobs_to_come_are_slim(store: Store, worker: Worker) -> None:
    [view] = [view for view in stocked(store, worker) if view.state is State.SCHEDULED]
    [slimmed] = store.reports.upcoming(10)
    assert shown(slimmed) == shown(view)
    assert len(slimmed.payload) < 2 * LEFT


def test_a_sensitive_job_is_shown_the_same_slim_or_whole(store: Store, worker: Worker) -> None:
    for view in stocked(store, worker):
        for each in (replace(view, sensitive=True), replace(view, sensitive=True, state=State.CANCELLED, reason="no more")):  # fmt: skip
            cut = replace(each, payload=each.payload[: LEFT + 1], result=None, checkpoint=None)
            assert shown(slim(cut)) == shown(each)
            assert masked_view(slim(cut)).payload == masked_view(each).payload


def test_a_session_is_told_without_what_it_keeps(store: Store, worker: Worker) -> None:
    added(store, make_job(place=Place("s"), time_limit=None))
    worker.settle(worker.lease_one(GUARDED), Completed(None, DAY, b'{"n":1}'))
    [whole] = store.sessions.list(held=False, limit=10)
    [bare] = store.sessions.list(held=False, limit=10, whole=False)
    assert whole.state == b'{"n":1}'
    assert bare == replace(whole, state=None)
