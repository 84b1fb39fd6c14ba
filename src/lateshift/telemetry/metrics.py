"""Which metrics there are: of the store, whoever looks at it, and of this process. Each is documented in docs/telemetry.md."""

from collections.abc import Iterator, Sequence

from lateshift.model.draining import drain
from lateshift.model.figures import WAITS
from lateshift.store.contract import COUNT_LIMIT, MemberView, Store
from lateshift.telemetry.exposition import Family, Sample, render
from lateshift.telemetry.liveness import Age, ages
from lateshift.telemetry.looking import (
    BATCHES_LOOKED_AT,
    RUNS_LOOKED_AT,
    SCHEDULES_LOOKED_AT,
    SEALED_LOOKED_AT,
    SEEN_MOST,
    Look,
    look,
)
from lateshift.telemetry.measures import PROCESS, RUNS, RUNS_TOLD, STARTS_TOLD, Histogram, Measures
from lateshift.telemetry.of_members import of_exchanges, of_loops, parts_of, told_by

STATES = ("ready", "scheduled", "running", "blocked", "dead")
CIRCUITS = ("closed", "open", "probing")

ByQueue = dict[str, dict[str, dict[str, int]]]  # how many attempts, by queue, task and outcome


def exposition(store: Store, *, openmetrics: bool = False) -> str:
    """What an endpoint for Prometheus answers: one look at the store, and what this process has counted. Blocks as the store does;
    raises as it does too, so that a scraper sees that the store is away."""
    return text_of(look(store), PROCESS.total(), ages(), openmetrics=openmetrics)


def text_of(seen: Look, counted: Measures, loops: Sequence[Age], *, openmetrics: bool = False) -> str:
    """The same of what was seen before; pure."""
    return render([*_of_store(seen), *_of_process(counted, loops)], openmetrics=openmetrics)


def _of_store(seen: Look) -> Iterator[Family]:
    jobs = [
        Sample(getattr(queue, state), {"queue": queue.name, "state": state})
        for queue in seen.queues
        for state in STATES
    ]
    yield Family(
        "lateshift_jobs", "gauge", f"Jobs in a queue by state, each count up to {COUNT_LIMIT:,}.", jobs
    )
    oldest = [
        Sample(queue.oldest_ready.total_seconds(), {"queue": queue.name})
        for queue in seen.queues
        if queue.oldest_ready is not None
    ]
    yield Family(
        "lateshift_oldest_ready_seconds",
        "gauge",
        "How long the oldest ready job of a queue has waited.",
        oldest,
    )
    paused = [Sample(queue.paused_at is not None, {"queue": queue.name}) for queue in seen.queues]
    yield Family("lateshift_queue_paused", "gauge", "1 while an operator has paused the queue.", paused)
    yield Family(
        "lateshift_drain_seconds", "gauge", "Until a queue is empty, at the pace at which its jobs end now.", list(_drains(seen))
    )  # fmt: skip
    cut = [Sample(name in seen.cut, {"of": name}) for name in ("queues", "members", "breakers", "triggers")]
    yield Family(
        "lateshift_cut",
        "gauge",
        f"1 where there are more than {SEEN_MOST:,}: the others are not told of.",
        cut,
    )
    yield from _of_members(seen.members)
    yield from _of_breakers(seen)
    yield from _of_triggers(seen)
    for name, value, said in (
        ("lateshift_schedules", seen.schedules, f"Schedules, up to {SCHEDULES_LOOKED_AT:,}."),
        ("lateshift_schedules_paused", seen.schedules_paused, "Schedules that are paused."),
        ("lateshift_schedules_late", seen.schedules_late, "Schedules with a tick due for a minute that nobody has decided."),
        ("lateshift_schedule_lateness_seconds", seen.latest_tick.total_seconds(), "How long the tick that is most overdue is due."),
        ("lateshift_workflows_held", seen.runs_held, f"Runs of workflows that wait for an operator, up to {RUNS_LOOKED_AT:,}."),
        ("lateshift_workflows_undoing", seen.runs_undoing, f"Runs of workflows that are being undone, up to {RUNS_LOOKED_AT:,}."),
        ("lateshift_batches_open", seen.batches_open, f"Batches that have not finished, among the newest {BATCHES_LOOKED_AT:,}."),
        ("lateshift_batch_jobs_left", seen.batch_jobs_left, "Jobs of those batches that have not ended."),
        ("lateshift_replies_waiting", seen.replies_waiting, f"Events of jobs that no courier has sent on, up to {COUNT_LIMIT:,}."),
        ("lateshift_jobs_without_key", seen.without_key, f"Sealed jobs whose key no worker has, up to {SEALED_LOOKED_AT:,} of each queue."),
        ("lateshift_oldest_reply_seconds", seen.oldest_reply.total_seconds(), "How long the oldest of these events has waited."),
    ):  # fmt: skip
        yield Family(name, "gauge", said, [Sample(value)])


def _of_members(members: Sequence[MemberView]) -> Iterator[Family]:
    states = {"alive": 0, "dead": 0}
    for member in members:
        states["dead" if member.dead else "alive"] += 1
    yield Family(
        "lateshift_members", "gauge", "Processes that work on the store, and those that died in the last ten minutes.",
        [Sample(count, {"state": state}) for state, count in states.items()],
    )  # fmt: skip
    alive = [member for member in members if not member.dead]
    info = [
        Sample(
            1,
            {"member": str(member.id), "name": member.name, "host": member.host, "kind": member.kind}
            | _serves(member),
        )
        for member in alive
    ]
    yield Family("lateshift_member_info", "gauge", "Who a member is.", info)
    running = [Sample(member.stats.get("running", 0), {"member": str(member.id)}) for member in alive]
    yield Family("lateshift_member_running", "gauge", "Jobs that a member holds.", running)
    attempts = [
        Sample(count, {"member": str(member.id)} | labels)
        for member in alive
        for labels, count in _attempts(member.stats.get("attempts") or {})
    ]
    yield Family(
        "lateshift_attempts_total",
        "counter",
        "Attempts that have ended, as members tell of them twice a second.",
        attempts,
    )
    yield _spread(
        "lateshift_start_seconds", "How long jobs were due until they were leased.", alive, STARTS_TOLD, WAITS
    )
    yield _spread(
        "lateshift_attempt_seconds", "How long attempts ran that have ended.", alive, RUNS_TOLD, RUNS
    )
    late = [
        Sample(age, {"member": str(member.id), "loop": loop})
        for member in alive
        for loop, age in sorted(member.stats.get("late_loops", {}).items())
    ]
    yield Family(
        "lateshift_member_loop_late_seconds",
        "gauge",
        "Loops of a member that have not turned for too long.",
        late,
    )
    yield from of_loops(alive)
    yield from of_exchanges(alive)


def _drains(seen: Look) -> Iterator[Sample]:
    """None of a queue in which nothing moves, or of which nobody knows."""
    told = told_by(seen.members)
    for queue in seen.queues:
        ends = told.of(queue.name)
        takes = drain(
            queue.ready + queue.blocked, ends.per_second if ends.by_all else None, limit=seen.limits.get(queue.name),
            rationed=queue.rationed > 0, parked=queue.parked, held=queue.held,
            paused=queue.paused_at is not None, served=ends.served,
        ).takes  # fmt: skip
        if takes is not None:
            yield Sample(takes.total_seconds(), {"queue": queue.name})


def _spread(
    name: str, help: str, members: Sequence[MemberView], told: str, bounds: Sequence[float]
) -> Family:
    """A histogram that members report of each queue."""
    samples = [
        part
        for member in members
        for queue, it in sorted(member.stats.get(told, {}).items())
        if (histogram := Histogram.read(it, bounds)) is not None
        for part in parts_of(histogram, {"member": str(member.id), "queue": queue})
    ]
    return Family(name, "histogram", help, samples)


def _attempts(told: ByQueue) -> Iterator[tuple[dict[str, str], int]]:
    for queue, tasks in sorted(told.items()):
        for task, outcomes in sorted(tasks.items()):
            for outcome, count in sorted(outcomes.items()):
                yield {"queue": queue, "task": task, "outcome": outcome}, count


def _serves(member: MemberView) -> dict[str, str]:
    return {} if member.serves is None else {"app": member.serves.app, "version": member.serves.version}


def _of_breakers(seen: Look) -> Iterator[Family]:
    states = [
        Sample(breaker.state == state, {"breaker": breaker.name, "state": state})
        for breaker in seen.breakers
        for state in CIRCUITS
    ]
    yield Family("lateshift_breaker_state", "gauge", "1 at the state in which a breaker is.", states)
    parked = [Sample(breaker.parked, {"breaker": breaker.name}) for breaker in seen.breakers]
    yield Family(
        "lateshift_breaker_parked", "gauge", f"Jobs that wait for a breaker, up to {COUNT_LIMIT:,}.", parked
    )


def _of_triggers(seen: Look) -> Iterator[Family]:
    lag = [Sample(it.lag, {"trigger": it.name}) for it in seen.triggers if it.lag is not None]
    yield Family(
        "lateshift_trigger_lag", "gauge", "Events that wait at a trigger's source, where it can tell.", lag
    )
    failing = [Sample(it.error is not None, {"trigger": it.name}) for it in seen.triggers]
    yield Family(
        "lateshift_trigger_failing", "gauge", "1 while something keeps a trigger from reading.", failing
    )
    events = [
        Sample(count, {"trigger": it.name, "outcome": outcome})
        for it in seen.triggers
        for outcome, count in (("made", it.made), ("repeated", it.repeated), ("refused", it.refused))
    ]
    yield Family("lateshift_trigger_events_total", "counter", "Events by what became of them.", events)


def _of_process(counted: Measures, loops: Sequence[Age]) -> Iterator[Family]:
    attempts = [Sample(count, labels) for labels, count in _attempts(counted.by_queue())]
    yield Family(
        "lateshift_process_attempts_total", "counter", "Attempts that ended in this process.", attempts
    )
    yield Family(
        "lateshift_lease_seconds",
        "histogram",
        "Exchanges with the store that leased jobs.",
        parts_of(counted.lease, {}),
    )
    yield Family(
        "lateshift_settle_seconds",
        "histogram",
        "Exchanges with the store that settled jobs.",
        parts_of(counted.settle, {}),
    )
    age = [Sample(round(it.age, 3), {"loop": it.loop}) for it in loops]
    yield Family(
        "lateshift_loop_age_seconds", "gauge", "Since the last turn of each loop of this process.", age
    )
    interval = [Sample(round(it.interval, 3), {"loop": it.loop}) for it in loops]
    yield Family(
        "lateshift_loop_interval_seconds",
        "gauge",
        "How long each loop means to pause between two turns.",
        interval,
    )
    late = [Sample(it.is_late, {"loop": it.loop}) for it in loops]
    yield Family(
        "lateshift_loop_late",
        "gauge",
        "1 for a loop that has not turned for more than three intervals.",
        late,
    )
