"""Jobs that are looked at together: no more is read of each than tells what it is."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from lateshift.clock import ManualClock
from lateshift.model import history
from lateshift.model.fingerprint import fingerprint, last_failure
from lateshift.model.history import append
from lateshift.model.ids import JobId
from lateshift.model.job import RESUBMITTED, AttemptRecord, JobFilter, JobView, Note, Place, Progress, State
from lateshift.model.outcome import MESSAGE_LIMIT, TRACEBACK_LIMIT, Completed, DeadLettered
from lateshift.model.sealed import LEFT, MASK, WEBHOOK, masked_view, slim
from lateshift.model.watching import bare, events
from lateshift.store.contract import Store
from tests.store_contract.driving import DAY, GUARDED, HOUR, Worker, added, make_job, see

LARGE = msgspec.json.encode({"text": "é" * 100_000})
FRAME = 'Traceback:\n  File "/srv/shop.py", line 7, in {name}\n    {text}\n'
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
        if name not in ("payload", "result", "checkpoint", "history")
    }


def story_of(*records: AttemptRecord) -> bytes:
    story = b""
    for record in records:
        story = append(story, record)
    return story


def failed(clock: ManualClock, fence: int, letter: str = "x") -> AttemptRecord:
    """An attempt with as much as may be in its line."""
    frames = "".join(FRAME.format(name=f"deep{depth}", text=letter * 200) for depth in range(500))
    return AttemptRecord(
        attempt=fence, fence=fence, at=clock.now(), reason="failed", ran_for=0.5, error="ValueError", member="m",
        message=(letter * MESSAGE_LIMIT)[:MESSAGE_LIMIT], traceback=frames[-TRACEBACK_LIMIT:],
    )  # fmt: skip


def again(clock: ManualClock, was: Any) -> AttemptRecord:
    said = "by ana, with other arguments: path a → b"
    return AttemptRecord(
        attempt=0, fence=9, at=clock.now(), reason=RESUBMITTED, message=said if was else "by ana", was=was
    )


def buried(store: Store, worker: Worker, stories: Sequence[bytes]) -> list[JobView]:
    """Dead letters with these histories, the newest first."""
    ids = added(store, *[make_job() for _ in stories])
    for lease, story in zip(worker.lease(len(ids)), stories, strict=True):
        worker.settle(lease, DeadLettered("exhausted", story, DAY))
    return [see(store, id) for id in reversed(ids)]


def stories(clock: ManualClock) -> list[bytes]:
    """Long ones, each with its last attempt elsewhere."""
    tried = [failed(clock, fence) for fence in range(1, 10)]
    line = '{"attempt":1,"fence":1,"at":"2026-01-01T00:00:00Z","reason":"failed"}'
    lines = {"rows": [msgspec.json.decode(line)] * 200}
    deep = {"tree": "deep"}
    whole = story_of(*tried, again(clock, deep))
    return [
        story_of(*tried),
        story_of(*tried[:2]),
        story_of(*tried, failed(clock, 10, "é")),
        story_of(*tried, failed(clock, 10, "\x01")),  # more in JSON than is read
        story_of(*tried, again(clock, None)),
        story_of(*tried, again(clock, {"path": "a" * 40_000})),
        story_of(*tried, again(clock, lines)),
        whole.replace(b'"deep"', b"[" * 5_000 + b"]" * 5_000),
        story_of(*[again(clock, {"path": "a" * 9_000}) for _ in range(3)]),
        story_of(failed(clock, 1)),
        b"[]",
    ]


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


def test_slim_jobs_died_of_the_same_as_whole_ones(store: Store, worker: Worker, clock: ManualClock) -> None:
    whole = buried(store, worker, stories(clock))
    for found in (
        store.reports.search(JobFilter(state=State.DEAD), 100, whole=False).jobs,
        [view for view in store.reports.named([view.id for view in whole], whole=False) if view is not None],
    ):
        assert found == [
            slim(replace(view, payload=each.payload)) for view, each in zip(whole, found, strict=True)
        ]
        for view, slimmed in zip(whole, found, strict=True):
            assert fingerprint(slimmed) == fingerprint(view)
            for change in (
                {},
                {"sensitive": True},
                {"task": f"{WEBHOOK}x", "payload": b'{"url":"https://a/b"}'},
            ):
                last, full = last_failure(masked_view(replace(slimmed, **change))), last_failure(masked_view(replace(view, **change)))  # fmt: skip
                assert (last is None) == (full is None)
                assert (
                    last is None
                    or full is None
                    or replace(last, traceback=None) == replace(full, traceback=None)
                )


def test_of_a_slim_job_the_latest_of_its_history_is_left(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    buried(store, worker, stories(clock))
    for view in store.reports.search(JobFilter(), 100, whole=False).jobs:
        reasons = [record.reason for record in view.history]
        assert reasons in ([], ["failed"], ["failed", RESUBMITTED], [RESUBMITTED])
        assert len(msgspec.json.encode(view.history)) < 8 * MESSAGE_LIMIT
        assert all(record.was is None for record in view.history)
        assert "path" not in str(view.history)


def test_no_more_of_a_history_is_read_than_its_end(
    store: Store, worker: Worker, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [view.id for view in buried(store, worker, [stories(clock)[0]] * 3)]
    read: list[int] = []

    def at_end(end: bytes | None) -> list[AttemptRecord] | None:
        read.append(len(end or b""))
        return latest(end)

    latest = history.at_end
    monkeypatch.setattr(history, "at_end", at_end)
    monkeypatch.setattr(history, "read", lambda kept: pytest.fail("it is read whole"))
    store.reports.search(JobFilter(), 100, whole=False)
    store.reports.named(ids, whole=False)
    assert read == [history.LEFT + 1] * 6


def test_a_sealed_error_is_masked_the_same_slim_or_whole(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    text = "sealed:1:key:message:" + "A" * 9_000
    record = replace(failed(clock, 1), message=text, traceback=text)
    [view] = buried(store, worker, [story_of(*[record] * 3)])
    [slimmed] = store.reports.search(JobFilter(), 100, whole=False).jobs
    assert len(msgspec.json.encode(slimmed.history)) < LEFT
    sealed = [replace(each, payload=SEALED) for each in (view, slimmed)]
    assert fingerprint(sealed[0]) == fingerprint(sealed[1])
    assert masked_view(sealed[0]).history[-1:] == masked_view(sealed[1]).history


def test_those_that_are_watched_are_told_of_with_all_their_attempts(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    whole = buried(store, worker, stories(clock))
    ids: list[JobId] = [view.id for view in whole]
    found = store.reports.watched([*ids, make_job().id])
    assert found == [*map(bare, whole), None]
    assert [events(view) for view in found if view is not None] == [events(view) for view in whole]
    assert (
        len(msgspec.json.encode([view and view.history for view in found]))
        < len(ids) * 10 * 8 * MESSAGE_LIMIT
    )


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
            assert masked_view(slim(cut)).history == masked_view(slim(each)).history
            assert shown(slim(cut)) == shown(each)
            assert masked_view(slim(cut)).payload == masked_view(each).payload


def test_a_session_is_told_without_what_it_keeps(store: Store, worker: Worker) -> None:
    added(store, make_job(place=Place("s"), time_limit=None))
    worker.settle(worker.lease_one(GUARDED), Completed(None, DAY, b'{"n":1}'))
    [whole] = store.sessions.list(held=False, limit=10)
    [bare] = store.sessions.list(held=False, limit=10, whole=False)
    assert whole.state == b'{"n":1}'
    assert bare == replace(whole, state=None)
