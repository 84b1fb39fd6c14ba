"""Runs of workflows that sleep, by the hundred thousand: begun and put to sleep by the store's own verbs, as workers do it, many in a
commit. Half of them wait for their time, half for a signal."""

from datetime import timedelta

from bench.program import app, waiting
from lateshift.clock import SYSTEM
from lateshift.model.ids import new_member_id
from lateshift.model.job import Lease, Line
from lateshift.model.workflow.run import ITS_TIME, NEVER, Advance, Asleep
from lateshift.model.workflow.step import Kind, StepRow, StepState, path_of
from lateshift.store.contract import Want
from lateshift.worker.service import introduce

TOGETHER = 500
TTL = timedelta(minutes=10)
DAY = timedelta(days=1)


def put_to_sleep(runs: int) -> None:
    store = app.store
    me = introduce(new_member_id(), "worker", "bench", SYSTEM)
    store.members.join(me, TTL)
    line = Line(waiting.spec.queue, waiting.spec.lane)
    for first in range(0, runs, TOGETHER):
        count = min(TOGETHER, runs - first)
        app.enqueue_many(waiting.call(first + number) for number in range(count))
        store.members.beat([me.id], TTL)
        leases = store.jobs.exchange(me.id, [], [Want(line, count, False)]).leases
        answers = store.workflows.advance([_asleep(lease, number) for number, lease in enumerate(leases)])
        if [answer.asleep for answer in answers] != [True] * count:
            raise SystemExit(f"of {count} runs not all sleep")
    store.members.leave([me.id])


def _asleep(lease: Lease, number: int) -> Advance:
    """As the code of `waiting` would have it."""
    by_time = number % 2 == 0
    row = StepRow(
        path=path_of("", 1), kind=Kind.SLEEP if by_time else Kind.SIGNAL, name="" if by_time else "go",
        state=StepState.RUNNING, wait=DAY if by_time else None,
    )  # fmt: skip
    sleep = Asleep(DAY if by_time else NEVER, None, 0, ITS_TIME if by_time else "the signal go")
    return Advance(lease=lease, begin=(waiting.name, "bench"), steps=[row], sleep=sleep)
