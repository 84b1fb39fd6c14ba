"""Answers to requests with a key: one does it, the others hear what it was; what nobody knows of is not done again."""

import threading

import pytest

from lateshift.clock import ManualClock
from lateshift.store.answer_contract import ANSWER_KEPT, ANSWER_WITHIN, Answered, Begun
from lateshift.store.contract import Store
from tests.store_contract.driving import Supervisor, query

DONE = Answered(status=202, headers={"location": "/v1/jobs/1"}, body=b'{"changed":true}\xff')


def test_a_request_is_done_once_and_answered_as_it_was(store: Store) -> None:
    assert store.answers.begin(b"a", b"x", turn=1).first
    assert store.answers.begin(b"a", b"x", turn=2) == Begun(under_way=True)
    assert store.answers.keep(b"a", DONE, turn=1)
    assert store.answers.begin(b"a", b"x", turn=3) == Begun(answer=DONE)
    assert store.answers.begin(b"a", b"y", turn=4) == Begun(another=True)
    assert store.answers.begin(b"b", b"x", turn=5).first


def test_a_request_that_did_nothing_gives_its_key_back(store: Store) -> None:
    assert store.answers.begin(b"a", b"x", turn=1).first
    assert store.answers.give_up(b"a", turn=1)
    assert store.answers.begin(b"a", b"y", turn=2).first


def test_a_request_whose_process_died_is_unknown_after_a_while_and_is_never_begun_again(
    store: Store, clock: ManualClock
) -> None:
    assert store.answers.begin(b"a", b"x", turn=1).first
    clock.move(seconds=ANSWER_WITHIN.total_seconds() - 1)
    assert store.answers.begin(b"a", b"x", turn=2) == Begun(under_way=True)
    clock.move(seconds=1)
    assert store.answers.begin(b"a", b"y", turn=3) == Begun(another=True)
    assert store.answers.begin(b"a", b"x", turn=4) == Begun(unknown=True)
    assert not store.answers.hold(b"a", turn=1)
    assert not store.answers.keep(b"a", DONE, turn=4)
    assert not store.answers.give_up(b"a", turn=4)
    clock.move(seconds=ANSWER_KEPT.total_seconds())
    assert store.answers.begin(b"a", b"x", turn=5).first


def test_a_request_that_is_held_is_under_way_however_long_it_takes_and_its_answer_is_kept(
    store: Store, clock: ManualClock
) -> None:
    assert store.answers.begin(b"a", b"x", turn=1).first
    for _ in range(3):
        clock.move(seconds=ANSWER_WITHIN.total_seconds() - 1)
        assert not store.answers.hold(b"a", turn=2)
        assert store.answers.hold(b"a", turn=1)
        assert store.answers.begin(b"a", b"x", turn=3) == Begun(under_way=True)
    clock.move(seconds=ANSWER_WITHIN.total_seconds())
    assert store.answers.begin(b"a", b"x", turn=4) == Begun(unknown=True)
    assert store.answers.keep(b"a", DONE, turn=1)  # it took long, and was done all the same
    assert not store.answers.hold(b"a", turn=1)
    assert store.answers.begin(b"a", b"x", turn=5) == Begun(answer=DONE)


def test_an_answer_is_kept_for_its_time_and_then_swept(
    store: Store, clock: ManualClock, supervisor: Supervisor
) -> None:
    store.answers.begin(b"a", b"x", turn=1)
    store.answers.keep(b"a", DONE, turn=1)
    clock.move(seconds=ANSWER_KEPT.total_seconds() - 1)
    supervisor.purge()
    assert store.answers.begin(b"a", b"x", turn=2) == Begun(answer=DONE)
    clock.move(seconds=1)
    assert store.answers.begin(b"a", b"y", turn=3).first
    clock.move(seconds=ANSWER_KEPT.total_seconds())
    supervisor.purge()
    assert query(store, "SELECT count(*) FROM {answer}") == [(0,)]


@pytest.mark.parametrize("_", range(3))
def test_of_many_at_once_one_is_the_first(store: Store, _: int) -> None:
    begun: list[Begun] = []
    start = threading.Barrier(8)

    def begin(turn: int) -> None:
        start.wait()
        begun.append(store.answers.begin(b"a", b"x", turn=turn))

    threads = [threading.Thread(target=begin, args=(turn,)) for turn in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(each.first for each in begun) == [False] * 7 + [True]
    assert all(each.first or each.under_way for each in begun)
