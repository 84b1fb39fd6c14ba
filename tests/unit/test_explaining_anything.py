"""Whatever the facts, there is an answer: every reason is known, says a sentence, and clears at some time or somehow."""

from datetime import UTC, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lateshift.model.explaining.facts import Line, Paused, Run, Session
from lateshift.model.job import Holds, Lane, Progress, State
from lateshift.model.member import Program
from lateshift.model.workflow.run import NEVER, Phase
from tests.unit.explaining import (
    AT,
    HEAD,
    ME,
    SHOP,
    SLOTS,
    codes,
    explained,
    failed,
    other,
    tenant_limit,
    view,
    worker,
)

WAITING = {
    "no_worker", "queue_unserved", "task_unknown", "executor_missing", "not_said", "queue_paused", "session_held",
    "session_busy", "sequence_gap", "singleton_busy", "limit_reached", "blocked", "rate_limit", "delayed", "due",
    "retry_wait", "put_off", "no_room", "in_line", "next", "no_leader", "worker_lost", "suspect",
    "workflow_waits", "workflow_held", "key_missing",
}  # fmt: skip
RUNNING = {"running", "cancel_requested", "holder_dead", "overdue", "no_leader", "worker_lost", "suspect"}
ENDED = {"completed", "cancelled", "dead_letter"}

OTHER = Program(app="farm", version="1", tasks={"sow": "process"}, left_out=0)
HIDING = Program(app="farm", version="2", tasks={}, left_out=3)

moments = st.integers(-4000, 4000).map(lambda seconds: AT + timedelta(seconds=seconds))
maybe = st.one_of(st.none(), moments)
others = st.builds(
    other, id=st.sampled_from([HEAD, ME]), state=st.sampled_from([State.RUNNING, State.SCHEDULED, State.READY, State.BLOCKED]),
    due_at=moments, complete_by=maybe, holder=st.sampled_from([None, HEAD]),
)  # fmt: skip
workers = st.builds(
    worker, st.sampled_from([SHOP, OTHER, HIDING, None]), id=st.sampled_from([None, HEAD]),
    queues=st.sampled_from([(), ("orders",), ("ord*",), ("mail",)]), dead=st.booleans(), left=st.floats(-60, 30),
    slots=st.sampled_from([SLOTS, {"coroutine": 1}, {}]), keys=st.sampled_from([(), ("old",), ("new", "old")]),
    stats=st.sampled_from([{}, {"held": {"thread": 20, "solo": 1}}, {"pace": {"orders": {"thread": 0.1}}}]),
)  # fmt: skip
sessions = st.builds(
    Session, name=st.just("u"), before=st.lists(others, max_size=3), held_by=st.sampled_from([None, HEAD]),
    held_why=st.sampled_from([None, "dead", "gap"]), gap_until=maybe, expects=st.integers(1, 9),
)  # fmt: skip
runs = st.builds(
    Run, phase=st.sampled_from(Phase), why=st.sampled_from([None, "step 1 charge failed."]),
    waits_for=st.sampled_from([None, "its time", "the signal approve", ""]),
)  # fmt: skip
limits = st.builds(
    tenant_limit, concurrency=st.one_of(st.none(), st.integers(0, 3)), running=st.lists(others, max_size=4),
    rate=st.one_of(st.none(), st.integers(1, 100)), per=st.one_of(st.none(), st.just(timedelta(minutes=1))),
    burst=st.integers(1, 100), tokens=st.one_of(st.none(), st.floats(0, 100)), tokens_at=maybe, promised=maybe,
    scope=st.sampled_from(["queue", "task", "key"]), set_by=st.sampled_from(["", "ana"]),
)  # fmt: skip
guards = st.fixed_dictionaries(
    {
        "lane": st.sampled_from(Lane), "tenant": st.sampled_from([None, "", "7"]), "kept_until": maybe,
        "blocked_by": st.sampled_from([None, "session:u", "sequence:u", "task:pack", "limit:key:tenant:7", "rate:key:tenant:7"]),
        "sequence": st.one_of(st.none(), st.integers(0, 9)), "cancel_by": st.sampled_from([None, "ana"]), "holds": st.sampled_from([Holds(0), Holds.ON_GAP]),
    }
)  # fmt: skip
jobs = st.builds(
    view, st.sampled_from(State), task=st.sampled_from(["pack", "sow"]), attempt=st.integers(0, 3), fence=st.integers(0, 3),
    losses=st.integers(0, 3), due_at=st.one_of(moments, st.just(AT + NEVER)), started_at=maybe, complete_by=maybe, settled_at=maybe,
    holder=st.sampled_from([None, HEAD]), cancel_requested=st.booleans(), exclusive=st.sampled_from([None, "task:pack"]),
    reason=st.sampled_from([None, "exhausted", "cancelled by ana", "new reason"]),
    progress=st.sampled_from([None, Progress(1), Progress(1, 2, "half")]),
    payload=st.sampled_from([b"{}", b'"sealed:1:old:payload:AAAA"']),
    history=st.lists(st.builds(failed, st.integers(1, 3), st.integers(1, 3), error=st.sampled_from([None, "E"])), max_size=2),
)  # fmt: skip
surroundings = st.fixed_dictionaries(
    {
        "members": st.lists(workers, max_size=3), "led_until": maybe, "guard": guards, "limits": st.lists(limits, max_size=2),
        "session": st.one_of(st.none(), sessions), "run": st.one_of(st.none(), runs), "singleton": st.one_of(st.none(), others),
        "line": st.one_of(st.none(), st.builds(Line, ahead=st.integers(0, 10_000), of_tenant=st.one_of(st.none(), st.integers(0, 9)))),
        "paused": st.one_of(st.none(), st.builds(Paused, moments, st.just("ana"))),
        "programs": st.sampled_from([(SHOP, OTHER, HIDING), (SHOP,), ()]),
    }
)  # fmt: skip


@given(jobs, surroundings)
def test_any_facts_have_an_explanation(job: Any, around: dict[str, Any]) -> None:
    explanation = explained(job, **around)
    known = ENDED if job.state.settled else RUNNING if job.state is State.RUNNING else WAITING
    assert set(codes(explanation)) <= known
    assert all(reason.says.endswith(".") and "None" not in reason.says for reason in explanation.reasons)
    assert all(reason.clears_at or reason.clears_when for reason in explanation.holding)
    assert not (job.state.settled and explanation.holding)
    assert explanation.zone is UTC
    assert str(explanation)
    if explanation.clears_at is not None:
        assert explanation.clears_at == explanation.not_before


@given(jobs, surroundings)
def test_a_job_that_waits_and_that_no_worker_can_take_says_so(job: Any, around: dict[str, Any]) -> None:
    alive = [member for member in around["members"] if not member.dead]
    explanation = explained(job, **around)
    if not job.state.settled and job.state is not State.RUNNING and not alive:
        assert explanation.reasons[0].code == "no_worker"
