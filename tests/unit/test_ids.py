"""Ids: made by the client, unique over processes, in the order they were made."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lateshift.model import ids
from lateshift.model.ids import job_id_of, new_job_id, new_job_ids, new_member_id


def test_a_job_id_is_a_uuid_of_version_seven_with_the_time_in_it() -> None:
    before = time.time_ns() // 1_000_000
    id = new_job_id()
    after = time.time_ns() // 1_000_000

    assert id.version == 7
    assert id.variant == "specified in RFC 4122"
    assert before <= id.int >> 80 <= max(after, ids._here.last >> 12)


def test_ids_of_one_process_stand_in_the_order_they_were_made() -> None:
    made = [new_job_id() for _ in range(10_000)]

    assert made == sorted(made)
    assert [id.bytes for id in made] == sorted(id.bytes for id in made)
    assert len(set(made)) == len(made)


def test_ids_that_are_made_at_once_stand_between_those_before_and_after() -> None:
    before = new_job_id()
    made = new_job_ids(5_000)
    after = new_job_id()

    assert [before.bytes, *made, after.bytes] == sorted({before.bytes, *made, after.bytes})
    assert len(made) == 5_000
    assert {job_id_of(id).version for id in made} == {7}
    assert new_job_ids(0) == []


def test_threads_never_make_the_same_id() -> None:
    with ThreadPoolExecutor(4) as threads:
        made = [
            id
            for batch in threads.map(lambda _: [new_job_id() for _ in range(2000)], range(4))
            for id in batch
        ]

    assert len(set(made)) == 8000


def test_order_holds_when_the_clock_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    first = new_job_id()
    monkeypatch.setattr(ids, "time_ns", lambda: 0)

    assert new_job_id() > first


def test_a_forked_child_makes_other_ids_than_its_parent() -> None:
    program = """
import os, sys
from lateshift.model.ids import new_job_id
new_job_id()
reader, writer = os.pipe()
child = os.fork()
mine = [new_job_id().hex[-12:] for _ in range(100)]
if child == 0:
    os.write(writer, " ".join(mine).encode())
    os._exit(0)
os.waitpid(child, 0)
theirs = os.read(reader, 65536).decode().split()
sys.exit(len(theirs) != 100 or bool(set(mine) & set(theirs)))
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_member_id_is_random_at_each_start() -> None:
    made = {new_member_id() for _ in range(100)}

    assert len(made) == 100
    assert {id.version for id in made} == {4}
