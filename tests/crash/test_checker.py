"""The checker itself: each of its counts is 0 on an honest run, and fires on a doctored one."""

import json
import mmap
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from tests.crash.checker import COMPLETED, DEAD, READY, RUNNING, SCHEDULED, Counts, Fault, Row, judge
from tests.crash.guards import CALLBACKS
from tests.crash.ledger import WIDTH, BodyKind, BodyLine, CallKind, CallLine, Ledger

NOW = 1000.0


def called(kind: CallKind, job: str, key: str | None = None) -> CallLine:
    return CallLine(kind, job, 1, 50, 100.0, key)


def did(kind: BodyKind, fence: int, at: float, *, job: str = "a", pid: int = 1) -> BodyLine:
    return BodyLine(kind, job, 1, fence, fence, pid, PARENT, at)


def settled(job: str = "a", *, fence: int = 1, at: float = 120.0, state: int = COMPLETED) -> Row:
    return Row(job, state, fence, 0, fence, 100.0, at, "worker_lost" if state == DEAD else None)


def kill(pid: int, at: float) -> Fault:
    return Fault("kill", at, at + 0.1, frozenset({pid}))


PARENT = 40
CALLS = [called("attempted", "a"), called("ok", "a")]
ONCE = [did("start", 1, 110.0), did("effect", 1, 111.0)]
TWICE = [did("start", 1, 110.0), did("start", 2, 114.0, pid=2), did("effect", 2, 115.0, pid=2)]


def fired(counts: Counts) -> dict[str, int]:
    return {name: number for name, number in counts.zeros.items() if number}


@pytest.mark.parametrize(
    ("bodies", "rows", "faults"),
    [
        (ONCE, [settled()], []),
        (TWICE, [settled(fence=2)], [kill(1, 112.0)]),
        (TWICE, [settled(fence=2)], [kill(PARENT, 109.8)]),
        ([ONCE[0], did("failed", 1, 111.0), *TWICE[1:]], [settled(fence=2)], []),
        ([], [Row("a", SCHEDULED, 0, 0, 0, NOW + 60.0)], []),
        ([ONCE[0]], [settled(state=DEAD)], [kill(1, 112.0)]),
    ],
    ids=[
        "once",
        "a kill between",
        "its parent killed a moment before",
        "a failure between",
        "due later",
        "a dead letter",
    ],
)
def test_an_honest_run_is_clean(bodies: list[BodyLine], rows: list[Row], faults: list[Fault]) -> None:
    assert fired(judge(CALLS, bodies, rows, faults, NOW)) == {}


def test_a_parent_killed_long_before_explains_nothing() -> None:
    counts = judge(CALLS, TWICE, [settled(fence=2)], [kill(PARENT, 109.0)], NOW)
    assert fired(counts) == {"unexplained duplicates": 1}


def test_an_accepted_job_without_a_row_is_lost() -> None:
    assert fired(judge(CALLS, ONCE, [], [], NOW)) == {"lost": 1}


def test_a_dead_letter_without_a_reason_or_a_payload_is_lost() -> None:
    row = settled(state=DEAD)
    assert fired(judge(CALLS, ONCE, [replace(row, reason=None)], [], NOW)) == {"lost": 1}
    assert fired(judge(CALLS, ONCE, [replace(row, payload=b"")], [], NOW)) == {"lost": 1}


def test_an_enqueue_with_an_unknown_answer_may_be_there_or_not() -> None:
    calls = [called("attempted", "a"), called("unknown", "a")]
    assert fired(judge(calls, [], [], [], NOW)) == {}
    assert fired(judge(calls, ONCE, [settled()], [], NOW)) == {}


def test_a_job_that_nobody_enqueued_is_from_nowhere() -> None:
    stranger = did("start", 1, 110.0, job="b"), did("effect", 1, 110.0, job="b")
    assert fired(judge(CALLS, [*ONCE, *stranger], [settled()], [], NOW)) == {"from nowhere": 1}
    assert fired(judge(CALLS, ONCE, [settled(), settled("b")], [], NOW))["from nowhere"] == 1


def test_a_job_that_is_waiting_and_settled_is_in_two_tables() -> None:
    rows = [Row("a", READY, 1, 0, 1, 100.0), settled()]
    assert fired(judge(CALLS, ONCE, rows, [], NOW)) == {"in two tables": 1, "stuck": 1}


def test_a_key_with_two_jobs_is_counted() -> None:
    calls = [
        called("attempted", "a", "k"),
        called("ok", "a", "k"),
        called("attempted", "b", "k"),
        called("ok", "b", "k"),
    ]
    bodies = [*ONCE, did("start", 1, 110.0, job="b"), did("effect", 1, 110.0, job="b")]
    assert fired(judge(calls, bodies, [settled(), settled("b")], [], NOW)) == {"two jobs for one key": 1}
    answered_with_the_first = [*calls[:3], called("ok", "a", "k")]
    assert fired(judge(answered_with_the_first, ONCE, [settled()], [], NOW)) == {}


def test_a_start_after_the_settlement_is_settled_and_run_again() -> None:
    late = [*ONCE, did("start", 2, 130.0, pid=2), did("effect", 2, 131.0, pid=2)]
    assert fired(judge(CALLS, late, [settled()], [kill(1, 112.0)], NOW))["settled and run again"] == 1
    same_lease = [did("start", 1, 130.0), did("effect", 1, 131.0)]
    assert fired(judge(CALLS, same_lease, [settled()], [], NOW)) == {"settled and run again": 1}


def test_a_process_that_was_paused_may_begin_late_what_it_has_lost() -> None:
    woken = [did("start", 2, 114.0, pid=2), did("effect", 2, 115.0, pid=2), did("start", 1, 130.0)]
    pause = Fault("pause", 109.0, 129.0, frozenset({1}), pauses=True)
    counts = judge(CALLS, woken, [settled(fence=2)], [pause], NOW)
    assert (fired(counts), counts.told["starts of woken processes"]) == ({}, 1)
    assert fired(judge(CALLS, woken, [settled(fence=2)], [kill(1, 112.0)], NOW)) == {
        "settled and run again": 1,
        "unexplained duplicates": 1,
        "fence order violations": 1,
    }


def test_a_process_that_was_paused_may_begin_late_what_became_a_dead_letter() -> None:
    pause = Fault("pause", 109.0, 129.0, frozenset({1}), pauses=True)
    assert fired(judge(CALLS, [did("start", 1, 130.0)], [settled(state=DEAD)], [pause], NOW)) == {}


def test_a_second_start_without_a_fault_is_an_unexplained_duplicate() -> None:
    assert fired(judge(CALLS, TWICE, [settled(fence=2)], [kill(9, 112.0)], NOW)) == {
        "unexplained duplicates": 1
    }
    before, after = kill(1, 90.0), kill(1, 119.0)
    assert fired(judge(CALLS, TWICE, [settled(fence=2)], [before, after], NOW)) == {
        "unexplained duplicates": 1
    }


def test_one_kill_explains_one_start_and_not_two() -> None:
    third = [did("start", 3, 116.0, pid=3), did("effect", 3, 117.0, pid=3)]
    counts = judge(CALLS, TWICE[:2] + third, [settled(fence=3)], [kill(1, 112.0)], NOW)
    assert fired(counts) == {"unexplained duplicates": 1}


def test_without_faults_a_job_has_run_as_often_as_it_has_attempts() -> None:
    assert fired(judge(CALLS, ONCE, [replace(settled(), attempt=2)], [], NOW)) == {
        "unexplained duplicates": 1
    }


def test_a_lease_that_is_begun_twice_breaks_the_order_of_fences() -> None:
    bodies = [did("start", 1, 110.0), did("start", 1, 110.5, pid=2), did("effect", 1, 111.0)]
    assert fired(judge(CALLS, bodies, [settled()], [kill(2, 110.6), kill(1, 110.4)], NOW)) == {
        "fence order violations": 1
    }


def test_an_older_lease_that_acts_after_a_newer_breaks_the_order_of_fences() -> None:
    bodies = [*TWICE, did("effect", 1, 116.0)]
    assert fired(judge(CALLS, bodies, [settled(fence=2)], [kill(1, 112.0)], NOW)) == {
        "fence order violations": 1
    }
    pause = Fault("pause", 112.0, 115.5, frozenset({1}), pauses=True)
    assert fired(judge(CALLS, bodies, [settled(fence=2)], [pause], NOW)) == {}


def test_a_job_completed_by_a_lease_that_did_nothing_breaks_the_order_of_fences() -> None:
    assert fired(judge(CALLS, TWICE[:2], [settled(fence=2)], [kill(1, 112.0)], NOW)) == {
        "fence order violations": 1
    }
    assert fired(judge(CALLS, TWICE, [settled(fence=1)], [kill(1, 112.0)], NOW)) == {
        "fence order violations": 2,
        "settled and run again": 1,
    }


@pytest.mark.parametrize("state", [READY, RUNNING, SCHEDULED])
def test_a_job_that_waits_or_runs_after_the_drain_is_stuck(state: int) -> None:
    assert fired(judge(CALLS, [], [Row("a", state, 0, 0, 0, NOW - 1.0)], [], NOW)) == {"stuck": 1}


def test_the_ledger_gives_back_what_was_written(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.call("attempted", "a", 7, "order-7")
    ledger.call("ok", "a", 7)
    ledger.body("start", "a", 7, 2, 3)
    assert [(line.kind, line.job, line.number, line.key) for line in ledger.calls()] == [
        ("attempted", "a", 7, "order-7"),
        ("ok", "a", 7, None),
    ]
    [line] = ledger.bodies()
    assert (line.kind, line.job, line.number, line.attempt, line.fence) == ("start", "a", 7, 2, 3)


def test_a_torn_ledger_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "bodies").write_text("start a 7")
    with pytest.raises(ValueError, match="torn"):
        Ledger(tmp_path).bodies()


def test_lines_fill_pages_to_their_end_so_that_none_is_ever_seen_half_written(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    for number in range(20):
        ledger.body("start", uuid4(), number, 1000, 1000)
        assert (tmp_path / "bodies").stat().st_size == (number + 1) * WIDTH
    assert mmap.PAGESIZE % WIDTH == 0
    assert [line.number for line in ledger.bodies()] == list(range(20))
    with pytest.raises(ValueError, match="room for 255 bytes"):
        ledger.call("ok", "a", 7, key="k" * 300)


# Guards


def row_of(job: str, said: dict[str, object], *, fence: int = 1) -> Row:
    return Row(job, COMPLETED, fence, 0, fence, 100.0, 200.0, None, json.dumps(said).encode())


def both_sent() -> list[CallLine]:
    return [called(kind, job) for job in ("a", "b") for kind in ("attempted", "ok")]


IN_SESSION = [row_of(job, {"number": 1, "session": "s"}) for job in ("a", "b")]
UNDER_LIMIT = [row_of(job, {"number": 1, "key": "k"}) for job in ("a", "b", "c")]


def ran(job: str, start: float, end: float, pid: int = 1) -> list[BodyLine]:
    return [did("start", 1, start, job=job, pid=pid), did("effect", 1, end, job=job, pid=pid)]


def test_jobs_of_a_session_in_their_order_are_clean() -> None:
    assert fired(judge(both_sent(), ran("a", 110, 111) + ran("b", 111, 112), IN_SESSION, [], NOW)) == {}


@pytest.mark.parametrize("second", [(109.0, 109.5), (110.5, 112.0)], ids=["before", "beside"])
def test_a_job_that_begins_before_the_one_in_front_of_it_has_ended_is_out_of_turn(
    second: tuple[float, float],
) -> None:
    counts = judge(both_sent(), ran("a", 110, 111) + ran("b", *second), IN_SESSION, [], NOW)
    assert fired(counts) == {"out of their session's turn": 1}


def test_a_woken_process_is_out_of_nobodys_turn() -> None:
    pause = Fault("pause", 109.0, 111.5, frozenset({1}), pauses=True)
    bodies = [did("start", 1, 110.0), *ran("b", 110.5, 110.8, pid=2), did("effect", 1, 111.6)]
    assert "out of their session's turn" not in fired(judge(both_sent(), bodies, IN_SESSION, [pause], NOW))


def test_more_of_a_key_at_once_than_it_allows_are_found() -> None:
    calls = [*both_sent(), called("attempted", "c"), called("ok", "c")]
    two = ran("a", 110, 112) + ran("b", 111, 113)
    assert fired(judge(calls, two + ran("c", 112, 114), UNDER_LIMIT, [], NOW)) == {}
    assert fired(judge(calls, two + ran("c", 111.5, 114), UNDER_LIMIT, [], NOW)) == {
        "keys with too many at once": 1
    }


@pytest.mark.parametrize(("times", "wrong"), [(0, 1), (1, 0), (2, 1)])
def test_a_batch_has_one_callback(times: int, wrong: int) -> None:
    rows = [row_of(f"then {n}", {"number": CALLBACKS + 7}) for n in range(times)]
    counts = judge([], [], rows, [], NOW, batches=[7])
    assert counts.zeros["batches without one callback"] == wrong
    assert counts.zeros["from nowhere"] == 0
