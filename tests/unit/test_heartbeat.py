"""Nothing that goes wrong with one member, or with one beat, ends the heartbeat of the others."""

import threading
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

import psutil
import pytest

from lateshift.model.ids import MemberId, new_member_id
from lateshift.model.member import Loops
from lateshift.runtime import host
from lateshift.runtime.heartbeat import Heartbeat
from lateshift.store.contract import Members


class FakeMembers:
    def __init__(self, failures: int = 0, *, dead: bool = False) -> None:
        self.beaten: list[list[MemberId]] = []
        self.failures = failures
        self.dead = dead
        self.answered = threading.Event()

    def beat(
        self, ids: Sequence[MemberId], ttl: timedelta, loops: Mapping[MemberId, Loops]
    ) -> list[MemberId]:
        self.beaten.append(list(ids))
        if len(self.beaten) <= self.failures:
            raise RuntimeError("not a StoreError")
        self.answered.set()
        return [] if self.dead else list(ids)


def heartbeat_of(members: FakeMembers, ttl: timedelta = timedelta(seconds=30)) -> Heartbeat:
    return Heartbeat(cast(Members, members), ttl)


def unseen() -> bool:
    raise OSError("too many open files")


def test_a_member_that_cannot_be_looked_at_is_held_for_alive() -> None:
    members = FakeMembers()
    heartbeat = heartbeat_of(members)
    first, second = new_member_id(), new_member_id()
    heartbeat.add(first, alive=unseen, lost=lambda: None)
    heartbeat.add(second, alive=lambda: True, lost=lambda: None)
    heartbeat.beat()
    assert members.beaten == [[first, second]]


def test_one_that_cannot_be_told_does_not_keep_the_others_from_being_told() -> None:
    heartbeat = heartbeat_of(FakeMembers(dead=True))
    told: list[str] = []

    def lost() -> None:
        told.append("first")
        raise RuntimeError("the loop is closed")

    heartbeat.add(new_member_id(), alive=lambda: True, lost=lost)
    heartbeat.add(new_member_id(), alive=lambda: True, lost=lambda: told.append("second"))
    heartbeat.beat()
    assert told == ["first", "second"]


def test_the_thread_goes_on_after_a_beat_that_raised() -> None:
    members = FakeMembers(failures=2)
    heartbeat = heartbeat_of(members, timedelta(seconds=1))
    heartbeat.add(new_member_id(), alive=lambda: True, lost=lambda: None)
    heartbeat.beat()
    heartbeat.ttl = timedelta(milliseconds=30)
    heartbeat.start()
    try:
        assert members.answered.wait(10)
    finally:
        heartbeat.stop()


@pytest.mark.parametrize("error", [psutil.AccessDenied(1), OSError("too many open files")])
def test_a_worker_process_that_cannot_be_looked_at_is_going(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(_: int) -> Any:
        raise error

    monkeypatch.setattr(psutil, "Process", refuse)
    assert host._is_going(1)


@pytest.mark.parametrize(("one_machine", "given_up"), [(True, False), (False, True)])
def test_who_cannot_reach_the_store_gives_its_members_up_only_where_others_could_have_declared_them_dead(
    one_machine: bool, given_up: bool
) -> None:
    members = FakeMembers(failures=2)
    heartbeat = Heartbeat(cast(Members, members), timedelta(0), one_machine=one_machine)
    told: list[str] = []
    heartbeat.add(new_member_id(), alive=lambda: True, lost=lambda: told.append("lost"))
    heartbeat.beat()
    heartbeat.beat()
    assert bool(told) is given_up
    heartbeat.beat()
    assert bool(told) is given_up


def test_a_beat_that_failed_is_tried_again_soon() -> None:
    members = FakeMembers(failures=1)
    heartbeat = heartbeat_of(members, timedelta(seconds=1.5))
    heartbeat.add(new_member_id(), alive=lambda: True, lost=lambda: None)
    heartbeat.beat()
    assert heartbeat.pause < 0.1
    heartbeat.beat()
    assert heartbeat.pause == 0.5
