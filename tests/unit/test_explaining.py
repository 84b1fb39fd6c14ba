"""From facts to reasons, as a table: each reason alone, then several at once."""

import shlex
from datetime import timedelta
from typing import Any

import pytest

from lateshift.model.explaining.facts import AHEAD_LOOKED_AT, OTHERS_LOOKED_AT, Line, Paused, Run, Session
from lateshift.model.explaining.reason import Explanation
from lateshift.model.job import Holds, JobView, Lane, Progress, State
from lateshift.model.member import Program
from lateshift.model.workflow.run import NEVER, Phase
from tests.unit.explaining import (
    AT,
    HEAD,
    ME,
    SHOP,
    after,
    before,
    codes,
    explained,
    failed,
    other,
    says,
    tenant_limit,
    view,
    worker,
)

FIRST = Line(ahead=0)
SCHEDULED, READY, BLOCKED, RUNNING = State.SCHEDULED, State.READY, State.BLOCKED, State.RUNNING
HOLDER = worker()
OLD = Program(app="shop", version="1.9", tasks={"pakc": "thread", "send": "coroutine"})
LARGE = Program(app="shop", version="3", tasks={"a": "thread"}, left_out=7)
MINUTE = timedelta(minutes=1)
BUSY = {"held": {"thread": 16}}
GUARDED = {"lane": Lane.GUARDED, "tenant": ""}

# What is so, the reasons that follow, and what must be said of the first of them.
WAITING: dict[str, tuple[JobView, dict[str, Any], list[str], str]] = {
    "next in line": (
        view(), {"line": FIRST}, ["next"], "the first of its line; 1 worker can take it, with 16 free places",
    ),
    "delayed": (
        view(SCHEDULED, due_at=after(minutes=3)), {}, ["delayed"], "It was enqueued at 11:55:00 UTC (5m 0s ago) for later",
    ),
    "due, not yet seen": (view(SCHEDULED, due_at=before(seconds=2)), {}, ["due"], "the next look of a worker makes it ready"),
    "retry": (
        view(
            SCHEDULED, attempt=2, fence=2, due_at=after(seconds=40),
            history=[failed(1, 1), failed(2, 2, error="ValueError", message="no order 7\nat all")],
        ),
        {}, ["retry_wait"], "Attempt 2 of 5 failed at 11:59:00 UTC (1m 0s ago), and the next one waits. It said ValueError: no order 7 at all.",
    ),
    "retry after the complete-by": (
        view(SCHEDULED, attempt=1, fence=1, due_at=after(seconds=40), history=[failed(1, 1, reason="complete_by")]),
        {}, ["retry_wait"], "ran past its complete-by",
    ),
    "resubmitted at a rate": (
        view(SCHEDULED, attempt=0, fence=2, due_at=after(seconds=40), history=[failed(1, 1), failed(2, 2)]),
        {}, ["retry_wait"], "and the next one waits: it was resubmitted for later, or that attempt did not count.",
    ),
    "snoozed after a failure": (
        view(SCHEDULED, attempt=1, fence=2, due_at=after(seconds=40), history=[failed(1, 1)]),
        {}, ["put_off"], "its task asked for that (Snooze), or that worker had no such task, or not the key",
    ),
    "a workflow that waits for somebody": (
        view(SCHEDULED, fence=3, due_at=AT + NEVER), {"run": Run(waits_for="the signal approve")}, ["workflow_waits"],
        "Its workflow waits for the signal approve.",
    ),
    "a workflow that sleeps": (
        view(SCHEDULED, fence=3, due_at=after(days=2)), {"run": Run(waits_for="its time")}, ["workflow_waits"],
        "Its workflow waits for its time.",
    ),
    "a workflow that is undone": (
        view(SCHEDULED, fence=3, due_at=AT + NEVER), {"run": Run(phase=Phase.UNDOING, waits_for="the end of charge")},
        ["workflow_waits"], "Its workflow is being undone, and waits for the end of charge.",
    ),
    "a workflow that is held": (
        view(SCHEDULED, fence=3, due_at=AT + NEVER),
        {"run": Run(phase=Phase.HELD, why="step 2 charge failed: Permanent: no", waits_for="an operator")}, ["workflow_held"],
        "Its workflow is held: step 2 charge failed: Permanent: no.",
    ),
    "paused": (
        view(), {"paused": Paused(before(minutes=20), "ana"), "line": FIRST}, ["queue_paused"],
        "Queue orders was paused by ana at 11:40:00 UTC (20m 0s ago).",
    ),
    "no worker": (view(), {"members": []}, ["no_worker"], "No worker is alive on this store."),
    "no worker any more": (
        view(), {"members": [worker(dead=True, left=-10)]}, ["no_worker"],
        "The last was worker 1 on web-3 (pid 7), silent since 11:59:20 UTC (40s ago).",
    ),
    "queue unserved": (
        view(), {"members": [worker(queues=("mail", "img.*")), worker(queues=("mail", "img.*"))]}, ["queue_unserved"],
        "2 workers are alive, and none serves queue orders: shop 2.0 serves mail, img.* (2 workers).",
    ),
    "served by a pattern": (view(), {"members": [worker(queues=("ord*",))], "line": FIRST}, ["next"], "can take it"),
    "task unknown": (
        view(), {"members": [worker(OLD), worker(OLD)], "programs": (OLD,)}, ["task_unknown"],
        "No live worker that serves queue orders knows the task pack: there is shop 1.9 (2 workers). Close to it: pakc.",
    ),
    "task known elsewhere": (
        view(), {"members": [worker(OLD), worker(queues=("mail",))], "programs": (OLD, SHOP)}, ["task_unknown"],
        "It is known to shop 2.0, which serves mail only.",
    ),
    "a program that does not tell all": (
        view(), {"members": [worker(LARGE)], "programs": (LARGE,), "line": FIRST}, ["next"], "1 worker can take it",
    ),
    "a program whose row is not there": (
        view(), {"members": [worker()], "programs": (), "line": FIRST}, ["next"], "1 worker can take it",
    ),
    "no executor": (
        view(task="resize"),
        {"guard": {"lane": Lane.PROCESS}, "members": [worker(slots={"coroutine": 5, "thread": 5})]}, ["executor_missing"],
        ("Its task needs processes, which no live worker that knows it has: shop 2.0 in worker 1 on web-3 (pid 7) runs "
        "coroutines and threads."),
    ),
    "no room": (
        view(), {"members": [worker(stats=BUSY), worker(stats=BUSY)], "line": FIRST}, ["no_room"],
        "2 workers could run it, and all are full: 32 of 32 threads are taken.",
    ),
    "no room where a guarded body runs": (
        view(), {"guard": {"lane": Lane.GUARDED_THREAD, "tenant": ""}, "members": [worker(stats=BUSY)], "line": FIRST}, ["no_room"],
        "16 of 16 threads are taken",
    ),
    "in line": (
        view(), {"line": Line(ahead=30), "members": [worker(stats={"pace": {"orders": {"thread": 1.5}}})]}, ["in_line"],
        "30 ready jobs of queue orders stand before it; 1.5 start in a second, which makes 20s.",
    ),
    "in a line that does not move": (view(), {"line": Line(ahead=1)}, ["in_line"], "1 ready job of queue orders stands before it."),
    "in a very long line": (
        view(), {"line": Line(ahead=AHEAD_LOOKED_AT), "members": [worker(stats={"pace": {"orders": {"thread": 9.0}}})]},
        ["in_line"], "10,000 ready jobs or more of queue orders stand before it; 9 start in a second.",
    ),
    "in line among tenants": (
        view(), {"guard": GUARDED, "line": Line(ahead=30, of_tenant=2)}, ["in_line"],
        "30 ready jobs of queue orders stand before it, 2 of them of its own tenant; tenants take turns.",
    ),
    "session": (
        view(BLOCKED), {"guard": GUARDED | {"blocked_by": "session:user:7"}, "members": [HOLDER],
                        "session": Session(name="user:7", before=[other(holder=HOLDER.id)])},
        ["session_busy"],
        (f"The jobs of session user:7 run one at a time, in order. It is the turn of pack {HEAD}, which runs since 11:58:00 "
        "UTC (2m 0s ago)."),
    ),
    "session behind a retry": (
        view(BLOCKED), {"guard": GUARDED, "session": Session(name="u", before=[other(state=SCHEDULED, due_at=after(minutes=1)), other(ME)])},
        ["session_busy"], "which is due at 12:01:00 UTC (in 1m 0s). 1 more job of it stands before this one.",
    ),
    "session held": (
        view(BLOCKED), {"guard": GUARDED, "session": Session(name="user:7", held_by=HEAD, held_why="dead")},
        ["session_held"], f"Session user:7 is held by dead letter {HEAD}: nothing else of it runs.",
    ),
    "session held for a number": (
        view(BLOCKED), {"guard": GUARDED | {"blocked_by": "sequence:user:7", "sequence": 6},
                        "session": Session(name="user:7", held_why="gap", expects=4)},
        ["session_held"], "Session user:7 is held: its number 4 has not come in time.",
    ),
    "sequence gap": (
        view(BLOCKED), {"guard": GUARDED | {"blocked_by": "sequence:user:7", "sequence": 6},
                        "session": Session(name="user:7", gap_until=after(minutes=2), expects=4)},
        ["sequence_gap"], "It is number 6 of session user:7, and number 4 has not come.",
    ),
    "behind a sequence gap": (
        view(BLOCKED), {"guard": GUARDED | {"blocked_by": "session:user:7", "sequence": 7},
                        "session": Session(name="user:7", gap_until=after(minutes=2), expects=4, before=[other(state=BLOCKED)])},
        ["session_busy", "sequence_gap"], f"It is the turn of pack {HEAD}, which is blocked.",
    ),
    "singleton": (
        view(BLOCKED, exclusive="task:pack"), {"guard": GUARDED, "members": [HOLDER], "singleton": other(holder=HOLDER.id)},
        ["singleton_busy"],
        f"One job of pack runs at a time over all machines, and that is pack {HEAD}, which runs since 11:58:00 UTC (2m 0s ago).",
    ),
    "concurrency limit": (
        view(BLOCKED), {"guard": GUARDED | {"blocked_by": "limit:key:tenant:7"},
                        "limits": [tenant_limit(concurrency=2, set_by="shop", running=[other(ME), other(HEAD)])]},
        ["limit_reached"], "Limit tenant:7, set by the code of shop, is at 2 of 2 jobs at once: …000001 and …00aaaa.",
    ),
    "concurrency limit of a queue that has room again": (
        view(BLOCKED), {"guard": GUARDED | {"blocked_by": "limit:queue:orders"},
                        "limits": [tenant_limit(scope="queue", key="orders", concurrency=2, running=[other()])]},
        ["limit_reached"], "The limit of queue orders was full, and is at 1 of 2 now.",
    ),
    "concurrency limit of more than are looked at": (
        view(BLOCKED), {"guard": GUARDED | {"blocked_by": "limit:key:tenant:7"},
                        "limits": [tenant_limit(concurrency=5000, running=[other()] * OTHERS_LOOKED_AT)]},
        ["limit_reached"], "Limit tenant:7 is at 1,000 or more of 5,000 jobs at once: …00aaaa, …00aaaa",
    ),
    "concurrency limit with room": (
        view(), {"guard": GUARDED, "line": FIRST, "limits": [tenant_limit(concurrency=2, running=[other()])]}, ["next"], "",
    ),
    "rate limit": (
        view(SCHEDULED, due_at=after(seconds=30)),
        {"guard": GUARDED | {"blocked_by": "rate:key:tenant:7"}, "limits": [tenant_limit(rate=1, per=MINUTE, set_by="shop")]},
        ["rate_limit"],
        "Limit tenant:7, set by the code of shop, lets 1 start in 1m 0s, and its tokens are used up or promised to others.",
    ),
    "rate limit whose moment has come": (
        view(SCHEDULED, due_at=before(seconds=1)),
        {"guard": GUARDED | {"blocked_by": "rate:key:tenant:7"}, "limits": [tenant_limit(rate=1, per=MINUTE)]},
        ["due"], "It was due at 11:59:59 UTC (1.0s ago)",
    ),
    "rate limit that was withdrawn": (
        view(SCHEDULED, due_at=after(seconds=30)), {"guard": GUARDED | {"blocked_by": "rate:key:tenant:7"}}, ["rate_limit"],
        "It waits for a token of the limit key:tenant:7, which was withdrawn since.",
    ),
    "a time of its own, whatever the rate": (
        view(SCHEDULED, due_at=after(hours=3)),
        {"guard": GUARDED, "limits": [tenant_limit(rate=1, per=MINUTE, tokens=0.0, tokens_at=AT, promised=AT)]},
        ["delayed"], "for later",
    ),
    "rate limit of a ready job": (
        view(), {"guard": GUARDED, "line": FIRST,
                 "limits": [tenant_limit(rate=1, per=MINUTE, tokens=0.0, tokens_at=AT, promised=AT)]},
        ["rate_limit", "next"], "its tokens are used up",
    ),
    "rate limit with tokens": (
        view(), {"guard": GUARDED, "line": FIRST,
                 "limits": [tenant_limit(rate=1, per=MINUTE, tokens=0.0, tokens_at=before(minutes=1), promised=AT)]},
        ["next"], "",
    ),
    "let go": (
        view(BLOCKED, exclusive="task:pack"), {"guard": GUARDED | {"blocked_by": "task:pack"}}, ["blocked"],
        "It waits for task:pack, which nothing holds any more.",
    ),
    "nobody leads": (
        view(BLOCKED), {"guard": GUARDED | {"blocked_by": "session:u"}, "led_until": before(minutes=1)}, ["blocked", "no_leader"],
        "It waits for session:u",
    ),
    "behind a job of a dead worker, and nobody leads": (
        view(exclusive="task:pack"), {"singleton": other(holder=HOLDER.id), "led_until": None, "line": FIRST, "guard": GUARDED},
        ["singleton_busy", "no_leader", "next"], "on a worker that is dead",
    ),
    "lost a worker": (view(losses=1), {"line": FIRST}, ["next", "worker_lost"], ""),
    "suspect": (view(losses=2), {"line": FIRST, "guard": {"lane": Lane.SOLO}}, ["next", "suspect"], "with 1 free place"),
    "a worker that has not said what it serves": (view(), {"members": [worker(None)], "line": FIRST}, ["not_said"],
                                                  "1 worker is alive and has not said what it is there for."),
}  # fmt: skip


@pytest.mark.parametrize("case", WAITING, ids=str)
def test_a_waiting_job_has_the_reasons_that_its_facts_give(case: str) -> None:
    job, around, expected, said = WAITING[case]
    explanation = explained(job, **around)
    assert codes(explanation) == expected
    if said:
        assert said in explanation.reasons[0].says


@pytest.mark.parametrize("case", WAITING, ids=str)
def test_what_holds_a_job_says_when_it_clears(case: str) -> None:
    job, around, _, _ = WAITING[case]
    for reason in explained(job, **around).holding:
        assert reason.clears_at is not None or reason.clears_when, reason.code


def everything() -> Explanation:
    return explained(
        view(SCHEDULED, due_at=after(hours=1), losses=1),
        members=[worker(OLD)],
        programs=(OLD,),
        paused=Paused(before(minutes=1), "ana"),
        guard={**GUARDED, "limit_key": "tenant:7"},
        session=Session(name="u", held_by=HEAD, held_why="dead", before=[other(state=READY)]),
        limits=[tenant_limit(concurrency=1, running=[other()])],
    )


def test_all_reasons_are_told_at_once_those_first_that_somebody_must_see_to() -> None:
    assert codes(everything()) == [
        "task_unknown", "queue_paused", "session_held", "session_busy", "limit_reached", "delayed", "worker_lost",
    ]  # fmt: skip


def test_when_all_clears_is_known_only_if_each_has_its_time() -> None:
    assert everything().clears_at is None
    assert everything().not_before == after(hours=1)
    limit = tenant_limit(rate=1, per=MINUTE, tokens=0.0, tokens_at=AT, promised=AT)
    pace = {"pace": {"orders": {"guarded": 1.0}}}
    timed = explained(guard=GUARDED, limits=[limit], line=Line(ahead=90), members=[worker(stats=pace)])
    assert codes(timed) == ["rate_limit", "in_line"]
    assert timed.clears_at == timed.not_before == after(seconds=90)
    assert explained(line=FIRST).clears_at is None


@pytest.mark.parametrize(
    ("tokens", "promised", "expected"),
    [
        (0.25, AT, after(seconds=3)),  # half a token is there by now, and one comes in six seconds
        (0.25, after(seconds=20), after(seconds=26)),  # behind those who were promised theirs
        (0.75, AT, None),
    ],
)
def test_a_ready_job_gets_its_token_after_those_who_were_promised_one(
    tokens: float, promised: Any, expected: Any
) -> None:
    limit = tenant_limit(
        rate=10, per=MINUTE, tokens=tokens, tokens_at=before(seconds=1.5), promised=promised, burst=5
    )
    told = {
        reason.code: reason.clears_at
        for reason in explained(guard=GUARDED, limits=[limit], line=FIRST).reasons
    }
    assert told.get("rate_limit") == expected


def test_a_missing_number_is_told_before_any_worker_has_looked() -> None:
    session = Session(name="u", gap_until=None, expects=1, before=[])
    assert "sequence_gap" in codes(explained(view(), guard=GUARDED | {"sequence": 5}, session=session))


@pytest.mark.parametrize(
    ("guard", "ahead", "clears_at", "clears_when"),
    [
        ({}, [], after(minutes=2), "when the session goes on without that number, if it does not come"),
        ({}, [other()], None, "when number 4 is enqueued and has run"),
        ({"holds": Holds.ON_GAP}, [], None,
         "when number 4 is enqueued and has run; at 12:02:00 UTC (in 2m 0s) the session is held"),
    ],
)  # fmt: skip
def test_a_missing_number_is_waited_for_as_long_as_the_job_says(
    guard: Any, ahead: Any, clears_at: Any, clears_when: str
) -> None:
    session = Session(name="u", gap_until=after(minutes=2), expects=4, before=ahead)
    explanation = explained(view(BLOCKED), guard=GUARDED | {"sequence": 6} | guard, session=session)
    [gap] = [reason for reason in explanation.reasons if reason.code == "sequence_gap"]
    assert (gap.clears_at, gap.clears_when) == (clears_at, clears_when)


def test_a_turn_that_can_be_guessed_is_marked_as_a_guess() -> None:
    pace = {"pace": {"orders": {"thread": 2.0}, "mail": {"thread": 90.0}}}
    explanation = explained(line=Line(ahead=30), members=[worker(stats=pace), worker(stats=pace)])
    [reason] = explanation.reasons
    assert (reason.clears_at, reason.estimated, explanation.estimated) == (after(seconds=7.5), True, True)


def test_reasons_name_the_jobs_and_the_people_involved() -> None:
    told = {reason.code: reason for reason in everything().reasons}
    assert told["session_held"].jobs == told["limit_reached"].jobs == [HEAD]
    assert told["queue_paused"].by == "ana"
    assert told["queue_paused"].do == "lateshift queues resume orders"
    assert told["session_held"].do == f"lateshift jobs resubmit {HEAD}"


def test_a_command_that_helps_can_be_copied_whatever_the_name_of_a_session() -> None:
    session = Session(name="user's 7", held_why="gap", expects=4)
    [reason] = explained(view(BLOCKED), guard=GUARDED, session=session).reasons
    assert reason.do is not None
    assert shlex.split(reason.do) == ["lateshift", "sessions", "release", "user's 7", "--queue", "orders"]


# -- what runs and what has ended ----------------------------------------------------------------------------------


def running(**changes: Any) -> JobView:
    fields = {
        "attempt": 2,
        "fence": 2,
        "started_at": before(minutes=2),
        "complete_by": after(minutes=58),
        "holder": HOLDER.id,
    }
    return view(RUNNING, **fields | changes)


def test_a_running_job_says_who_holds_it_since_when_and_until_when() -> None:
    explanation = explained(running(progress=Progress(40, 100, "boxes")), members=[HOLDER])
    assert codes(explanation) == ["running"]
    assert explanation.holding == []
    assert explanation.reasons[0].says == (
        "Attempt 2 of 5 runs since 11:58:00 UTC (2m 0s ago) in worker 1 on web-3 (pid 7, shop 2.0). It is at 40 of 100, boxes. "
        "Its worker's last heartbeat was 5.0s ago. It must complete by 12:58:00 UTC (in 58m 0s)."
    )  # fmt: skip


def test_a_heartbeat_that_is_late_is_told_with_when_it_is_a_death() -> None:
    quiet = worker(id=HOLDER.id, left=4)
    assert "was 26s ago, and is dead after 30s." in says(explained(running(), members=[quiet]))["running"]


@pytest.mark.parametrize(
    ("job", "around", "expected"),
    [
        (running(), {"members": []}, ["running", "holder_dead"]),
        (running(), {"members": [worker(id=HOLDER.id, dead=True)]}, ["running", "holder_dead"]),
        (running(), {"members": [], "led_until": None}, ["running", "holder_dead", "no_leader"]),
        (running(complete_by=before(seconds=3)), {"members": [HOLDER]}, ["running", "overdue"]),
        (running(complete_by=None), {"members": [HOLDER], "led_until": None}, ["running"]),
        (running(cancel_requested=True), {"members": [HOLDER], "guard": {"cancel_by": "ana"}}, ["running", "cancel_requested"]),
        (running(losses=1), {"members": [HOLDER]}, ["running", "worker_lost"]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_running_job_is_told(job: JobView, around: Any, expected: list[str]) -> None:
    assert codes(explained(job, **around)) == expected


def test_who_asked_for_the_end_of_a_running_job_is_told() -> None:
    explanation = explained(running(cancel_requested=True), members=[HOLDER], guard={"cancel_by": "ana"})
    assert explanation.reasons[1].by == "ana"


def ended(state: State, **changes: Any) -> dict[str, str]:
    fields = {"attempt": 5, "started_at": before(minutes=2), "settled_at": before(minutes=1)}
    explanation = explained(view(state, **fields | changes), guard={"kept_until": after(days=2)})
    assert explanation.holding == []
    return says(explanation)


def test_a_job_that_has_ended_says_how_and_how_long_it_is_kept() -> None:
    kept = "It is kept until 2026-03-03 12:00:00 UTC (in 2d 0h)."
    assert ended(State.COMPLETED, attempt=1) == {
        "completed": f"Attempt 1 of 5 completed at 11:59:00 UTC (1m 0s ago), 1m 0s after its start. {kept}"
    }
    assert ended(State.CANCELLED, reason="cancelled by ana") == {
        "cancelled": f"It ended at 11:59:00 UTC (1m 0s ago): cancelled by ana. {kept}"
    }
    assert ended(State.DEAD, reason="exhausted", history=[failed(5, 5, error="KeyError", message="7")]) == {
        "dead_letter": "It died at 11:59:00 UTC (1m 0s ago), at attempt 5 of 5: its last attempt failed (exhausted). "
        f"It said KeyError: 7. {kept}"
    }


@pytest.mark.parametrize("state", [State.CANCELLED, State.DEAD])
def test_a_job_that_can_be_resubmitted_says_how(state: State) -> None:
    [reason] = explained(view(state, settled_at=AT, reason="cancelled by ana")).reasons
    assert reason.do == f"lateshift jobs resubmit {ME}"
    assert reason.by == ("ana" if state is State.CANCELLED else None)


# -- as text ---------------------------------------------------------------------------------------------------------


def test_an_explanation_is_a_text_that_can_be_read() -> None:
    explanation = explained(
        view(SCHEDULED, due_at=after(minutes=3), losses=1), paused=Paused(before(minutes=20), "ana")
    )
    assert (
        str(explanation)
        == f"""\
pack ({ME}) is scheduled. 2 things hold it back.

- Queue orders was paused by ana at 11:40:00 UTC (20m 0s ago).
  clears: when somebody resumes the queue
  do: lateshift queues resume orders

- It was enqueued at 11:55:00 UTC (5m 0s ago) for later.
  clears: at 12:03:00 UTC (in 3m 0s)

i Its worker died 1 time while it ran; at 3 it becomes a dead letter.

It can start when all of this has cleared, not before 12:03:00 UTC (in 3m 0s)."""
    )


def test_nothing_is_said_to_hold_a_job_that_nothing_holds() -> None:
    assert str(explained(line=FIRST)).startswith(f"pack ({ME}) is ready. Nothing holds it back.")


def test_an_explanation_is_a_document_for_programs() -> None:
    document = explained(paused=Paused(before(minutes=20), "ana")).document()
    [reason] = document.pop("reasons")
    assert document == {
        "id": str(ME), "task": "pack", "queue": "orders", "state": "ready", "at": AT, "clears_at": None,
        "not_before": None, "estimated": False,
    }  # fmt: skip
    assert reason == {
        "code": "queue_paused", "says": "Queue orders was paused by ana at 11:40:00 UTC (20m 0s ago).", "holds": True,
        "jobs": [], "by": "ana", "since": before(minutes=20), "clears_at": None,
        "clears_when": "when somebody resumes the queue", "estimated": False, "do": "lateshift queues resume orders",
    }  # fmt: skip


def test_ten_years_are_no_time_to_tell_of_a_workflow_that_waits_for_somebody() -> None:
    for run in (Run(waits_for="the signal approve"), Run(phase=Phase.HELD, waits_for="an operator")):
        explanation = explained(view(SCHEDULED, due_at=AT + NEVER), run=run)
        assert (explanation.clears_at, explanation.not_before) == (None, None)
        assert explanation.reasons[0].do == f"lateshift workflows show {ME}"
    asleep = explained(view(SCHEDULED, due_at=after(days=2)), run=Run(waits_for="the signal approve"))
    assert asleep.clears_at is None  # it may come at any time
    assert (
        asleep.reasons[0].clears_when
        == "when that comes, at 2026-03-03 12:00:00 UTC (in 2d 0h) at the latest"
    )
    timed = explained(view(SCHEDULED, due_at=after(days=2)), run=Run(waits_for="its time"))
    assert (timed.clears_at, timed.reasons[0].clears_when) == (after(days=2), None)
