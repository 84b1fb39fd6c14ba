"""What operators do under an Idempotency-Key is done while its request is held, or not at all."""

import inspect
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from lateshift.clock import ManualClock
from lateshift.errors import BegunLate
from lateshift.store.answer_contract import ANSWER_WITHIN, Begun
from lateshift.store.contract import Store
from lateshift.store.holding import Hold, under
from lateshift.store.postgres import PostgresStore
from lateshift.store.postgres.deeds import Lines
from lateshift.store.sqlite import deeds
from tests.store_contract.deeds import DEEDS, NO_DEEDS, Make, all_of, done_by_ana, each
from tests.store_contract.driving import query
from tests.store_contract.test_replies_locks import WAITS


def test_every_verb_that_is_told_who_does_it_is_one_of_these(store: Store) -> None:
    parts = [name for name in dir(Store) if not name.startswith("_")]
    found = {
        f"{part}.{verb}"
        for part in parts
        for verb, method in inspect.getmembers(getattr(store, part), inspect.ismethod)
        if not verb.startswith("_") and {"by", "deed", "token"} & set(inspect.signature(method).parameters)
    }
    assert found == {*DEEDS, *NO_DEEDS}


@each
def test_who_was_held_up_for_longer_than_he_holds_his_request_does_nothing(
    store: Store, clock: ManualClock, make: Make
) -> None:
    deed = make(store)
    assert store.answers.begin(b"a", b"x", turn=1).first
    clock.move(seconds=ANSWER_WITHIN.total_seconds())
    assert store.answers.begin(b"a", b"x", turn=2) == Begun(unknown=True)
    before, hold = all_of(store), Hold(b"a", turn=1)

    with under(hold), pytest.raises(BegunLate, match="nothing was done"):
        deed.do()

    assert (all_of(store), hold.deeds) == (before, 0)


@each
def test_who_holds_his_request_does_what_he_is_to_do(store: Store, make: Make) -> None:
    deed, hold = make(store), Hold(b"a", turn=1)
    assert store.answers.begin(b"a", b"x", turn=1).first

    with under(hold):
        answer = deed.do()

    assert deed.gives in (None, answer)
    assert hold.deeds == 1
    assert done_by_ana(store)


def test_of_another_turn_that_has_the_key_now_nothing_is_done_by_the_first(
    store: Store, clock: ManualClock
) -> None:
    assert store.answers.begin(b"a", b"x", turn=1).first
    assert store.answers.give_up(b"a", turn=1)
    assert store.answers.begin(b"a", b"x", turn=2).first

    with under(Hold(b"a", turn=1)), pytest.raises(BegunLate):
        store.queues.pause("images", by="ana")


def test_who_was_told_that_nobody_knows_is_told_the_truth_though_the_clock_goes_back(
    store: Store, clock: ManualClock
) -> None:
    assert store.answers.begin(b"a", b"x", turn=1).first
    clock.move(seconds=ANSWER_WITHIN.total_seconds())
    assert store.answers.begin(b"a", b"x", turn=2) == Begun(unknown=True)
    clock.move(seconds=-ANSWER_WITHIN.total_seconds())

    with under(Hold(b"a", turn=1)), pytest.raises(BegunLate):
        store.queues.pause("images", by="ana")
    assert store.answers.begin(b"a", b"x", turn=2) == Begun(unknown=True)


def test_nobody_is_told_that_nobody_knows_between_the_look_of_a_deed_and_its_commit(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks then waits, and is told when what was done can be seen."""
    looked, go_on = Event(), Event()
    where: Any = Lines if isinstance(store, PostgresStore) else deeds
    write = where.write

    def slowly(*given: Any) -> None:
        write(*given)
        looked.set()
        assert go_on.wait(timeout=30)

    def pause() -> bool:
        with under(Hold(b"a", turn=1)):
            return store.queues.pause("images", by="ana")

    def ask() -> tuple[Begun, bool]:
        return store.answers.begin(b"a", b"x", turn=2), go_on.is_set()

    monkeypatch.setattr(where, "write", slowly)
    assert store.answers.begin(b"a", b"x", turn=1).first
    with ThreadPoolExecutor(2) as threads:
        pausing = threads.submit(pause)
        assert looked.wait(timeout=30)
        clock.move(seconds=ANSWER_WITHIN.total_seconds())
        asking = threads.submit(ask)
        while isinstance(store, PostgresStore) and not query(store, WAITS):
            assert not asking.done()
        go_on.set()
        assert (pausing.result(timeout=30), asking.result(timeout=30)) == (True, (Begun(unknown=True), True))
    assert len(done_by_ana(store)) == 1
