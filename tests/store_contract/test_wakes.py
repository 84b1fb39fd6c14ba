"""Wake-ups: hints that reach whoever listens, in this process and in others."""

import os
import warnings
from collections.abc import Iterator
from queue import Empty, Queue

import pytest

from lateshift.clock import ManualClock
from lateshift.model.job import Lane, Line
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from tests.store_contract.driving import HOUR, LINE, Supervisor, Worker, added, file_of, make_job, query

SOON = 10.0  # seconds within which a hint must have come; it takes milliseconds


class Ear:
    """A listener that keeps what it hears."""

    def __init__(self, store: Store) -> None:
        self.heard: Queue[Line] = Queue()
        self.stop = store.wakes.listen(self.heard.put)

    def hears(self, line: Line) -> bool:
        try:
            while self.heard.get(timeout=SOON) != line:
                pass
        except Empty:
            return False
        return True


def hint_until_heard(store: Store, ear: Ear) -> None:
    """Listening begins a moment after `listen` returns: hint until the first is heard, and end with a known one."""
    for number in range(1000):
        line = Line(f"ready? {number}", Lane.COROUTINE)
        store.wakes.hint([line])
        try:
            while ear.heard.get(timeout=0.1) != line:
                pass
        except Empty:
            continue
        return


@pytest.fixture
def ear(store: Store, clock: ManualClock) -> Iterator[Ear]:
    """Listens on a store of its own, as another process would; ready once it has heard the first hint."""
    other = open_store(store.url, clock)
    ear = Ear(other)
    hint_until_heard(store, ear)
    yield ear
    ear.stop()
    other.close()


def test_an_enqueue_wakes_its_line(store: Store, ear: Ear) -> None:
    line = Line("naïve queue", Lane.THREAD)
    added(store, make_job(queue=line.queue, lane=line.lane))

    assert ear.hears(line)


def test_a_batch_wakes_each_of_its_lines(store: Store, ear: Ear) -> None:
    added(store, make_job(queue="a"), make_job(queue="b"), make_job(queue="a"))

    heard = {ear.heard.get(timeout=SOON) for _ in range(2)}
    assert heard == {Line("a", Lane.COROUTINE), Line("b", Lane.COROUTINE)}


def test_resubmitting_wakes_the_jobs_line(store: Store, ear: Ear, clock: ManualClock) -> None:
    [id] = added(store, make_job(delay=HOUR))
    store.jobs.cancel([id], by="ana")
    assert ear.hears(LINE)
    clock.move(seconds=1)
    store.jobs.resubmit([id], by="ana")

    assert ear.hears(LINE)


def test_resubmitting_for_later_wakes_the_line_so_that_a_worker_knows_the_time(
    store: Store, ear: Ear, clock: ManualClock
) -> None:
    [id] = added(store, make_job(delay=HOUR))
    store.jobs.cancel([id], by="ana")
    assert ear.hears(LINE)
    clock.move(seconds=1)
    store.jobs.resubmit([id], by="ana", delays={id: HOUR})

    assert ear.hears(LINE)


def test_resuming_a_queue_wakes_its_lines(store: Store, ear: Ear) -> None:
    store.queues.resume("default", by="me")

    assert {ear.heard.get(timeout=SOON) for _ in Lane} == {Line("default", lane) for lane in Lane}


def test_taking_a_job_back_wakes_its_line(store: Store, ear: Ear, clock: ManualClock) -> None:
    worker, supervisor = Worker(store), Supervisor(store)
    added(store, make_job())
    worker.lease_one()
    worker.die()
    assert ear.hears(LINE)
    clock.move(seconds=1)
    supervisor.sweep()

    assert ear.hears(LINE)


def test_every_listener_hears_a_hint(store: Store, ear: Ear) -> None:
    second = Ear(store)
    hint_until_heard(store, second)
    store.wakes.hint([LINE])

    assert ear.hears(LINE)
    assert second.hears(LINE)
    second.stop()


def test_hints_in_quick_succession_are_one(
    store: Store, ear: Ear, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "monotonic", lambda: 1e6)
    for _ in range(50):
        store.wakes.hint([LINE])
    first = ear.heard.get(timeout=SOON)
    last = Line("last", Lane.COROUTINE)
    store.wakes.hint([last])

    assert [first, ear.heard.get(timeout=SOON)] == [LINE, last]


def test_a_line_is_hinted_again_after_a_while(
    store: Store, ear: Ear, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seconds in (1e6, 1e6 + 1):
        monkeypatch.setattr(clock, "monotonic", lambda seconds=seconds: seconds)
        store.wakes.hint([LINE])
        assert ear.hears(LINE)


def test_a_listener_that_stopped_hears_nothing_and_leaves_nothing_behind(
    store: Store, ear: Ear, clock: ManualClock
) -> None:
    ear.stop()
    ear.stop()
    clock.move(seconds=1)
    store.wakes.hint([LINE])

    assert ear.heard.empty()
    if store.url.startswith("sqlite"):
        folder = file_of(store.url).with_name("jobs.db-wake")
        assert list(folder.iterdir()) == []


def test_a_garbled_hint_does_not_end_the_listening(store: Store, ear: Ear, clock: ManualClock) -> None:
    garbled = ["", "nonsense", "99 queue", "x y", "-7 a"]
    if store.url.startswith("sqlite"):
        [pipe] = file_of(store.url).with_name("jobs.db-wake").iterdir()
        pipe.write_bytes("".join(f"{text}\n" for text in garbled).encode() + b"\xff\xfe\n")
    elif store.url.startswith("postgresql"):  # in memory a hint is a plain call: there is no text to garble
        for text in garbled:
            query(store, "SELECT pg_notify('lateshift', {})", text)
    store.wakes.hint([LINE])

    assert ear.hears(LINE)


def test_a_hint_for_a_listener_that_was_killed_is_cleared_away(sqlite_url: str, clock: ManualClock) -> None:
    store = open_store(sqlite_url, clock)
    store.ready()
    folder = file_of(sqlite_url).with_name("jobs.db-wake")
    folder.mkdir()
    os.mkfifo(folder / "dead.fifo")

    store.wakes.hint([LINE])

    assert list(folder.iterdir()) == []
    store.close()


def test_a_forked_child_that_closes_leaves_the_parents_listener_alone(
    store: Store, clock: ManualClock
) -> None:
    other = open_store(store.url, clock)
    ear = Ear(other)
    hint_until_heard(store, ear)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads is what this is about
        child = os.fork()
    if child == 0:
        try:
            ear.stop()
            other.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    clock.move(seconds=1)
    store.wakes.hint([LINE])

    assert ear.hears(LINE)
    ear.stop()
    other.close()
