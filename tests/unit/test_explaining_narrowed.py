"""What an explanation tells a reader who may see the queue orders alone: why the job waits, and nothing of other queues."""

from datetime import UTC
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lateshift.model.breaker import CircuitView
from lateshift.model.explaining.explain import explain
from lateshift.model.explaining.facts import Room, Run
from lateshift.model.explaining.narrowing import narrowed
from lateshift.model.explaining.reason import Explanation
from lateshift.model.job import State
from lateshift.model.member import Program
from lateshift.model.workflow.run import Phase
from tests.unit.explaining import (
    HEAD,
    SHOP,
    after,
    before,
    codes,
    explained,
    facts,
    other,
    says,
    tenant_limit,
    view,
    worker,
)
from tests.unit.test_explaining_anything import jobs, surroundings

OTHER = "0195500a-0000-7000-8000-00000000bbbb"
WAGES = Program(app="wages", version="7", tasks={"pay": "thread", "packs": "thread"})


def told(job: Any = None, **around: Any) -> Explanation:
    return explain(narrowed(facts(job, **around), lambda queue: queue == "orders"), UTC)


def breaker(**changes: Any) -> CircuitView:
    fields: dict[str, Any] = {
        "name": "bank", "breaker": "bank", "version": None, "tasks": ["pack", "pay"], "state": "open", "failed": 2, "passed": 0,
        "opened_at": before(minutes=1), "opened_by": None, "reason": "BankDown: pay 4242", "next_probe_at": None, "probe": HEAD,
        "parked": 3,
    }  # fmt: skip
    return CircuitView(**fields | changes)


def test_that_no_worker_serves_the_queue_is_told_without_what_they_serve() -> None:
    crew = [worker(WAGES, queues=("payroll", "mail"), name="w-wages") for _ in range(2)]
    explanation = told(members=crew, programs=(WAGES,))
    assert says(explanation)["queue_unserved"] == (
        "2 workers are alive, and none serves queue orders: another program serves other queues (2 workers)."
    )
    assert explanation.reasons[0].do == "lateshift work PROGRAM --queues orders"


def test_what_a_worker_serves_of_the_readers_own_queues_is_told() -> None:
    crew = [worker(WAGES, queues=("payroll", "images"), name="w-wages")]
    seen = narrowed(facts(members=crew, programs=(WAGES,)), lambda queue: queue in ("orders", "images"))
    assert "wages 7 serves images, other queues." in says(explain(seen, UTC))["queue_unserved"]


def test_that_no_worker_knows_the_task_is_told_without_the_names_of_other_tasks() -> None:
    crew = [worker(WAGES, queues=("orders",)), worker(SHOP, queues=("payroll",))]
    assert "Close to it: packs" in says(explained(members=crew, programs=(WAGES, SHOP)))["task_unknown"]
    assert says(told(members=crew, programs=(WAGES, SHOP)))["task_unknown"] == (
        "No live worker that serves queue orders knows the task pack: there is wages 7. It is known to another program, which serves other "
        "queues only."
    )


def test_a_worker_has_no_name_no_host_and_no_pid() -> None:
    gone = says(told(members=[worker(name="w-gone", dead=True, left=-9)]))["no_worker"]
    assert gone.startswith("No worker is alive on this store. The last was a worker, silent since ")
    runs = says(
        told(view(State.RUNNING, holder=HEAD, started_at=before(minutes=1)), members=[worker(id=HEAD)])
    )
    assert " in a worker of shop 2.0." in runs["running"]
    lost = says(told(view(State.RUNNING, holder=HEAD, started_at=before(minutes=1)), members=[]))
    assert lost["holder_dead"].startswith("Its worker is dead")


def test_a_limit_that_other_queues_fill_is_told_by_how_many_do() -> None:
    hidden = other(HEAD, queue="payroll", task="pay", complete_by=after(minutes=9))
    limit = tenant_limit(concurrency=1, running=[hidden])
    [reason] = [each for each in told(limits=[limit]).reasons if each.code == "limit_reached"]
    assert reason.says == "Limit tenant:7 is at 1 of 1 job at once: 1 job of other queues."
    assert (reason.jobs, reason.do, reason.clears_when) == ([], None, "when that job has ended")


def test_a_limit_that_the_readers_own_jobs_fill_too_names_those() -> None:
    own = other(queue="orders", complete_by=after(minutes=3))
    hidden = other(view().id, queue="payroll", complete_by=after(minutes=1))
    limit = tenant_limit(concurrency=2, running=[hidden, own])
    [reason] = [each for each in told(limits=[limit]).reasons if each.code == "limit_reached"]
    assert reason.says.endswith("is at 2 of 2 jobs at once: …00aaaa and 1 job of other queues.")
    assert (reason.jobs, reason.do) == ([HEAD], None)
    assert reason.clears_when == "when one of them has ended, at the latest 12:03:00 UTC (in 3m 0s)"


def test_a_task_of_which_one_runs_at_a_time_is_held_by_a_job_of_another_queue() -> None:
    held = told(view(State.BLOCKED, exclusive="task:pack"), singleton=other(HEAD, queue="payroll"))
    [reason] = [each for each in held.reasons if each.code == "singleton_busy"]
    assert reason.says.endswith("and that is a job of another queue, which is running.")
    assert (reason.jobs, reason.do, reason.since) == ([], None, None)


def test_a_breaker_is_open_without_what_was_raised_behind_it() -> None:
    explanation = told(breakers=[breaker()])
    [reason] = [each for each in explanation.reasons if each.code == "breaker_open"]
    assert reason.says.startswith("The breaker bank is open since")
    assert "4242" not in reason.says
    assert reason.jobs == []
    by_hand = told(breakers=[breaker(opened_by="ann", probe=None)])
    assert "opened by ann" in says(by_hand)["breaker_open"]


def test_a_full_queue_behind_the_task_has_no_name() -> None:
    assert says(told(rooms=[Room("payroll", 9, 9)]))["queue_behind_full"] == (
        "What pack returns goes to another queue, which is full."
    )
    assert (
        "goes to queue orders, where 9 of at most 9 wait."
        in says(told(rooms=[Room("orders", 9, 9)]))["queue_behind_full"]
    )


def test_a_run_is_held_by_what_its_own_page_says() -> None:
    why = Run(phase=Phase.HELD, why="step 2 pay failed: 4242")
    held = told(view(State.SCHEDULED, due_at=after(hours=9)), run=why)
    assert says(held)["workflow_held"] == "Its workflow is held: its run says why."


@given(jobs, surroundings, st.lists(st.sampled_from(["payroll", "mail"]), max_size=2))
def test_whatever_the_facts_the_reasons_stay_and_nothing_of_other_queues_is_named(
    job: Any, around: dict[str, Any], rooms: list[str]
) -> None:
    around = around | {"rooms": [Room(name, 3, 3) for name in rooms], "breakers": [breaker()]}
    explanation = told(job, **around)
    assert codes(explanation) == codes(explained(job, **around))
    said = str(explanation)
    for word in ("payroll", "mail", "worker 1", "web-3", "pid ", "BankDown", "4242", "charge", "None", "  ."):
        assert word not in said
    foreign = {str(HEAD)} if not around["session"] else set()
    named = {str(id) for reason in explanation.reasons for id in reason.jobs}
    assert not foreign & named
