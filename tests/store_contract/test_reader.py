"""The reader of a trigger: one at a time, nothing lost, nothing twice, whatever it is that fails."""

import asyncio
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lateshift import Lateshift, Limit
from lateshift.clock import ManualClock
from lateshift.errors import StoreUnavailable, TriggerInvalid
from lateshift.model.ids import new_member_id
from lateshift.model.job import JobFilter
from lateshift.model.triggering.events import Message, RowChange
from lateshift.model.triggering.trigger import TriggerView
from lateshift.runtime.aside import THREADS, aside
from lateshift.runtime.leadership import TTL
from lateshift.store.contract import Store
from lateshift.triggers.reader import FIRST_PAUSE, LAST_PAUSE, LONGEST_PAUSE, STAND_BY, TELL_EVERY, Reader
from lateshift.triggers.source import Incoming, Read, Receipts, SourceAway
from lateshift.triggers.trigger import Trigger
from tests.store_contract.driving import Worker, serve


class Broker:
    """Messages that wait, and those that were given out and not acknowledged. A source of it that closes gives them back."""

    def __init__(self) -> None:
        self.waiting: list[tuple[str, bytes]] = []
        self.away: str | None = None
        self.fails_at: str | None = None

    def put(self, *messages: tuple[str, bytes]) -> None:
        self.waiting += messages


class FromBroker:
    keep: timedelta | None = timedelta(days=1)

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._given: list[tuple[str, bytes]] = []
        self.opened = False

    def open(self, position: bytes | None, receipts: Receipts) -> None:
        if self._broker.away:
            raise SourceAway(self._broker.away)
        self.opened = True

    def read(self, limit: int, wait: float) -> Read:
        assert self.opened
        if self._broker.away:
            raise SourceAway(self._broker.away)
        taken, self._broker.waiting = self._broker.waiting[:limit], self._broker.waiting[limit:]
        self._given += taken
        events = [Incoming(id, Message(body=body, id=id), receipt=(id, body)) for id, body in taken]
        return Read(events, position=b'"read"' if events else None, lag=len(self._broker.waiting))

    def done(self, events: list[Incoming]) -> None:
        if self._broker.fails_at == "done":
            raise SourceAway("the connection broke while acknowledging")
        for incoming in events:
            self._given.remove(incoming.receipt)

    def close(self) -> None:
        self._broker.waiting = self._given + self._broker.waiting
        self._given = []


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def app(store: Store, broker: Broker) -> Any:
    app = Lateshift("shop", store="memory://unused")
    with app.using(store):

        @app.on_message("amqp://host", "orders")
        @app.task(queue="orders")
        def place(order: dict[str, int]) -> None: ...

        trigger = app.triggers["place"]
        trigger.open = lambda: FromBroker(broker)
        app.readers()[0].say()  # type: ignore[attr-defined]
        yield app


def reader(app: Lateshift, name: str = "place") -> Reader:
    trigger: Trigger = app.triggers[name]
    return Reader(app.store, trigger, new_member_id(), app.clock)


def payloads(store: Store) -> list[bytes]:
    return sorted(view.payload for view in store.reports.jobs(JobFilter(), 1000))


def seen(store: Store, name: str = "place") -> TriggerView:
    view = store.triggers.get(name)
    assert view is not None
    return view


def test_each_message_is_a_job_with_the_body_as_its_argument(
    app: Lateshift, store: Store, broker: Broker
) -> None:
    broker.put(("1", b'{"n":1}'), ("2", b'{"n":2}'))
    reader(app).round()
    assert payloads(store) == [b'{"order":{"n":1}}', b'{"order":{"n":2}}']
    assert broker.waiting == []
    assert (seen(store).made, seen(store).position) == (2, "read")


def test_only_one_reads_and_the_other_takes_over_when_it_resigns(
    app: Lateshift, store: Store, broker: Broker
) -> None:
    first, second = reader(app), reader(app)
    broker.put(("1", b'{"n":1}'))
    first.round()
    broker.put(("2", b'{"n":2}'))
    assert second.round() == STAND_BY
    assert len(payloads(store)) == 1
    first.resign()
    second.round()
    assert len(payloads(store)) == 2


def test_one_that_dies_is_followed_when_its_term_is_over(
    app: Lateshift, store: Store, broker: Broker, clock: ManualClock
) -> None:
    first, second = reader(app), reader(app)
    first.round()
    assert second.round() == STAND_BY
    clock.move(seconds=11)
    broker.put(("1", b'{"n":1}'))
    second.round()
    assert len(payloads(store)) == 1


def test_what_was_stored_and_not_acknowledged_comes_again_and_makes_nothing(
    app: Lateshift, store: Store, broker: Broker
) -> None:
    broker.put(("1", b'{"n":1}'))
    broker.fails_at = "done"
    mine = reader(app)
    mine.round()
    assert broker.waiting == [("1", b'{"n":1}')]
    broker.fails_at = None
    mine.round()
    assert (len(payloads(store)), broker.waiting) == (1, [])
    assert (seen(store).made, seen(store).repeated) == (1, 1)


def test_a_message_that_cannot_be_read_is_refused_and_the_next_ones_flow(
    app: Lateshift, store: Store, broker: Broker
) -> None:
    broker.put(("1", b"\xff no JSON"), ("2", b'["not", "a", "dict"]'), ("3", b'{"n":3}'))
    reader(app).round()
    assert payloads(store) == [b'{"order":{"n":3}}']
    refused = store.triggers.refused("place", None, 10)
    assert [view.raw for view in refused] == [b"\xff no JSON", b'["not", "a", "dict"]']
    assert "no JSON" in refused[0].reason
    assert "'order'" in refused[1].reason
    assert broker.waiting == []


def test_what_was_refused_is_made_a_job_once_the_code_is_mended(
    app: Lateshift, store: Store, broker: Broker
) -> None:
    broker.put(("1", b"7"))
    reader(app).round()
    [refused] = store.triggers.refused("place", None, 10)
    with pytest.raises(Exception, match="expected `object`, got `int`"):
        app.retry_refused(refused.id)
    app.triggers["place"]._decode = lambda message: {"n": int(message.body)}
    assert app.retry_refused(refused.id) is not None
    assert payloads(store) == [b'{"order":{"n":7}}']
    assert store.triggers.refused(None, None, 10) == []


def test_a_job_that_the_store_refuses_does_not_keep_the_others(
    app: Lateshift, store: Store, broker: Broker
) -> None:
    task = app.tasks["place"]
    task.options(key="k").enqueue({"n": 0})
    app.triggers["place"]._decode = lambda message: (
        task.options(key="k").call({"n": 1}) if message.id == "2" else {"n": 9}
    )
    broker.put(("1", b"1"), ("2", b"2"), ("3", b"3"))
    reader(app).round()
    assert len(payloads(store)) == 3
    [refused] = store.triggers.refused("place", None, 10)
    assert (refused.raw, "was used for place with other arguments" in refused.reason) == (b"2", True)
    assert (broker.waiting, seen(store).position) == ([], "read")


def test_what_the_program_passes_over_is_acknowledged(app: Lateshift, store: Store, broker: Broker) -> None:
    app.triggers["place"]._decode = lambda message: None
    broker.put(("1", b"1"))
    reader(app).round()
    assert (payloads(store), broker.waiting) == ([], [])


def test_a_source_that_is_away_is_shown_and_tried_again_after_longer_and_longer(
    app: Lateshift, store: Store, broker: Broker
) -> None:
    broker.away = "amqp://host does not answer"
    mine = reader(app)
    pauses = [mine.round().total_seconds() for _ in range(9)]
    assert pauses[:3] == [FIRST_PAUSE, FIRST_PAUSE * 2, FIRST_PAUSE * 4]
    assert pauses[-1] == LAST_PAUSE
    assert seen(store).error == "amqp://host does not answer"
    broker.away = None
    broker.put(("1", b'{"n":1}'))
    mine.round()
    assert (seen(store).error, len(payloads(store))) == (None, 1)


def test_a_source_with_a_fault_of_its_own_does_not_end_the_reader(
    app: Lateshift, store: Store, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = reader(app)
    monkeypatch.setattr(FromBroker, "read", lambda *_: 1 / 0)
    assert mine.round() == timedelta(seconds=FIRST_PAUSE)
    assert seen(store).error == "ZeroDivisionError: division by zero"


def test_a_paused_trigger_leaves_what_comes_where_it_is(app: Lateshift, store: Store, broker: Broker) -> None:
    mine = reader(app)
    mine.round()
    store.triggers.pause("place", by="ana")
    broker.put(("1", b'{"n":1}'))
    mine.round()
    assert (payloads(store), len(broker.waiting)) == ([], 1)
    store.triggers.resume("place", by="ana")
    mine.round()
    assert len(payloads(store)) == 1


def test_a_full_queue_leaves_what_comes_where_it_is_until_there_is_room(
    app: Lateshift, store: Store, broker: Broker
) -> None:
    app.queue("orders", max_ready=1)
    broker.put(("1", b'{"n":1}'))
    mine = reader(app)
    mine.round()
    broker.put(("2", b'{"n":2}'))
    mine.round()
    assert (len(payloads(store)), len(broker.waiting)) == (1, 1)
    assert seen(store).error == "the queue orders is full: 1 jobs wait"


def test_when_the_store_is_away_what_was_read_goes_back(
    app: Lateshift, store: Store, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.put(("1", b'{"n":1}'))
    mine = reader(app)

    def away(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("gone")

    with monkeypatch.context() as patch:
        patch.setattr(type(store.triggers), "take", away)
        with pytest.raises(StoreUnavailable):
            mine.round()
    mine._close()  # as turn() does
    assert len(broker.waiting) == 1
    mine.round()
    assert len(payloads(store)) == 1


def test_a_task_with_a_session_or_a_limit_gets_its_jobs_through_the_same_door(
    app: Lateshift, store: Store, broker: Broker
) -> None:
    app.limit("vendor", Limit(concurrency=1))

    @app.task
    def ship(order: dict[str, int]) -> None: ...

    app.on_message("amqp://host", "shipping", name="shipping")(ship.options(session="one", tenant="acme"))
    app.triggers["shipping"].open = lambda: FromBroker(broker)
    app.readers()[0].say()  # type: ignore[attr-defined]
    broker.put(("1", b'{"n":1}'))
    reader(app, "shipping").round()
    [view] = store.reports.jobs(JobFilter(), 10)
    assert (view.session, view.tenant) == ("one", "acme")


def test_a_source_that_wants_a_long_pause_is_looked_at_while_the_term_lasts(
    app: Lateshift, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FromBroker, "read", lambda *_: Read([], pause=timedelta(hours=1)))
    assert reader(app).round() == LONGEST_PAUSE < TTL


def test_that_somebody_looks_is_told_now_and_then_though_nothing_comes(
    app: Lateshift, store: Store, clock: ManualClock
) -> None:
    mine = reader(app)
    mine.round()
    first = seen(store).looked_at
    mine.round()
    assert seen(store).looked_at == first
    clock.move(seconds=TELL_EVERY)
    mine.round()
    later = seen(store).looked_at
    assert first is not None
    assert later is not None
    assert later - first >= timedelta(seconds=TELL_EVERY)


def test_what_is_wrong_is_logged_once_until_it_is_another_or_over(
    app: Lateshift, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    mine = reader(app)
    for away in ("host 1 does not answer", "host 1 does not answer", "it refuses us", None, "it refuses us"):
        broker.away = away
        mine.round()
    told = [record.message.removeprefix("trigger place").partition(";")[0] for record in caplog.records]
    assert told == [": host 1 does not answer", ": it refuses us", " reads again", ": it refuses us"]


def test_a_fault_of_the_source_is_logged_with_its_traceback_once(
    app: Lateshift, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = reader(app)
    monkeypatch.setattr(FromBroker, "read", lambda *_: 1 / 0)
    for _ in range(3):
        mine.round()
    [record] = caplog.records
    assert record.exc_info is not None


def test_a_source_that_can_never_be_opened_is_told_in_one_line(
    app: Lateshift, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    def impossible() -> FromBroker:
        raise TriggerInvalid("kombu is not installed")

    app.triggers["place"].open = impossible
    mine = reader(app)
    assert [mine.round().total_seconds() for _ in range(9)][-1] == LAST_PAUSE
    assert seen(store).error == "kombu is not installed"
    [record] = caplog.records
    assert record.exc_info is None


def test_a_folder_that_is_not_there_is_what_keeps_its_trigger_from_reading(
    app: Lateshift, store: Store, clock: ManualClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    @app.on_file(f"{tmp_path}/inbox/*.csv", renamed=True)
    def load(path: str) -> None: ...

    declaring, *_, mine = app.readers()
    declaring.say()  # type: ignore[attr-defined]
    for _ in range(3):
        mine.round()  # type: ignore[attr-defined]
    missing = f"the folder {tmp_path}/inbox does not exist yet; it is waited for"
    assert seen(store, "load").error == missing
    assert [record.message for record in caplog.records] == [missing]
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "a.csv").write_text("")
    for _ in range(3):
        mine.round()  # type: ignore[attr-defined]
    assert (seen(store, "load").error, seen(store, "load").made) == (None, 1)
    mine.resign()  # type: ignore[attr-defined]


def another(store: Store, name: str = "billing") -> Lateshift:
    """An app with a trigger of the same name."""
    other = Lateshift(name, store="memory://unused")
    other._store, other.clock = store, store.clock

    @other.on_message("amqp://host", "orders")
    def place(order: dict[str, int]) -> None: ...

    @other.on("order.*")
    def tell(order: dict[str, int]) -> None: ...

    return other


def test_a_trigger_whose_name_another_app_has_reads_nothing_and_says_so_once(
    app: Lateshift, store: Store, broker: Broker, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    serve(store, worker, "shop")
    app.on("order.*", name="tell")(app.tasks["place"])
    app.readers()[0].say()  # type: ignore[attr-defined]
    other = another(store)
    declaring, theirs = other.readers()
    broker.put(("1", b'{"n":1}'))
    caplog.clear()
    for _ in range(3):
        declaring.say()  # type: ignore[attr-defined]
        theirs.round()  # type: ignore[attr-defined]
    assert payloads(store) == []
    assert [record.message.partition(",")[0] for record in caplog.records] == [
        "trigger place: the app shop has a trigger of this name", "trigger tell: the app shop has a trigger of this name",
    ]  # fmt: skip
    Reader(store, app.triggers["place"], new_member_id(), app.clock, "shop").round()
    assert len(payloads(store)) == 1  # the other has given way at once


def test_an_app_that_was_renamed_reads_on_where_it_stood_once_the_old_one_is_gone(
    app: Lateshift, store: Store, broker: Broker, worker: Worker, clock: ManualClock
) -> None:
    serve(store, worker, "shop")
    old = Reader(store, app.triggers["place"], new_member_id(), app.clock, "shop")
    broker.put(("1", b'{"n":1}'))
    old.round()
    new = another(store, "shop, renamed")
    new.triggers["place"].open = lambda: FromBroker(broker)
    declaring, mine = new.readers()
    declaring.say()  # type: ignore[attr-defined]
    broker.put(("1", b'{"n":1}'), ("2", b'{"n":2}'))
    mine.round()  # type: ignore[attr-defined]
    assert len(payloads(store)) == 1
    old.resign()
    worker.die()
    mine.round()  # type: ignore[attr-defined]
    assert (len(payloads(store)), seen(store).app) == (2, "shop, renamed")


@pytest.mark.parametrize("options", [{"key": "k"}, {"session": "s", "sequence": 1}], ids=["key", "number"])
def test_a_task_whose_options_make_one_job_of_all_events_is_refused(
    app: Lateshift, options: dict[str, Any]
) -> None:
    with pytest.raises(TriggerInvalid, match="Leave key= and sequence= out"):
        app.on_message("amqp://host", "more", name="more")(app.tasks["place"].options(**options))


@pytest.mark.anyio
async def test_many_sources_that_keep_us_waiting_keep_nobody_else_waiting(
    app: Lateshift, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()
    monkeypatch.setattr(FromBroker, "read", lambda *_: let_go.wait(20) and Read([]))
    readers = []
    for number in range(THREADS + 2):
        app.on_message("amqp://host", "more", name=f"more {number}")(app.tasks["place"])
        app.triggers[f"more {number}"].open = lambda: FromBroker(Broker())
        readers.append(reader(app, f"more {number}"))
    await aside(app.readers()[0].say)  # type: ignore[attr-defined]
    looks = [asyncio.create_task(each.turn()) for each in readers]
    async with asyncio.timeout(10):
        assert await aside(lambda: 7) == 7  # a thread for the store is free
        let_go.set()
        await asyncio.gather(*looks)
    for each in readers:
        await aside(each.resign)


def test_an_older_release_that_starts_for_a_moment_neither_stops_nor_doubles_anything(
    app: Lateshift, store: Store, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    declaring, mine = app.readers()
    declaring.say()  # type: ignore[attr-defined]
    broker.put(("1", b'{"n":1}'))
    mine.round()  # type: ignore[attr-defined]
    store.triggers.declare([], app="shop")  # the release before had no triggers
    broker.put(("1", b'{"n":1}'), ("2", b'{"n":2}'))
    for _ in range(2):
        mine.round()  # type: ignore[attr-defined]
    assert len(payloads(store)) == 2
    assert "was removed by another release of shop" in caplog.text


def test_what_cannot_even_be_written_down_does_not_keep_the_next_ones(
    app: Lateshift, store: Store, broker: Broker
) -> None:
    hostile = Message(body=b"nonsense", id="\ud800", headers={"x": "\ud800"})
    arrival = app.triggers["place"].arrive(Incoming("1", hostile))
    assert arrival.refused is not None
    row = RowChange(table="t", row={"a": "\ud800"})
    assert (
        b"cannot be written"
        in (app.triggers["place"].refuse(Incoming("2", row), "no").refused or arrival.refused).raw
    )


def test_what_is_refused_is_told_in_the_log(
    app: Lateshift, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.put(("1", b"nonsense"), ("2", b"more"))
    reader(app).round()
    assert "trigger place refused 2 of what came, such as: the body is no JSON" in caplog.text


def test_a_task_that_needs_more_than_what_was_seen_is_refused(app: Lateshift) -> None:
    with pytest.raises(TriggerInvalid, match="needs width too"):

        @app.on_message("amqp://host", "more", name="more")
        def paint(path: str, width: int) -> None: ...

    with pytest.raises(TriggerInvalid, match="less than nothing"):
        app.on_row("sqlite:///x.db", table="t", cursor="id", every=timedelta(seconds=-1))


def test_a_reader_that_looks_before_its_trigger_is_declared_waits_without_a_word(
    app: Lateshift, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    app.on_message("amqp://host", "more", name="more")(app.tasks["place"])
    *_, mine = app.readers()
    mine.round()  # type: ignore[attr-defined]
    assert (store.triggers.get("more"), caplog.text) == (None, "")
