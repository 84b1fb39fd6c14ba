"""Who could run a waiting job: which workers are alive, serve its queue, know its task and have room; and when its turn
comes."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from difflib import get_close_matches

from lateshift.model.explaining.facts import AHEAD_LOOKED_AT, Facts
from lateshift.model.explaining.reason import Reason
from lateshift.model.explaining.words import Words, bounded, listed
from lateshift.model.job import Lane, State
from lateshift.model.member import MemberView, Program, Serves
from lateshift.model.words import counted, duration

PLACES = {
    Lane.COROUTINE.label: "coroutines",
    Lane.THREAD.label: "threads",
    Lane.PROCESS.label: "processes",
    Lane.SOLO.label: "places for suspects",
}
UNKNOWN = "places of a kind that this release does not know"
START = "lateshift work PROGRAM"


class Crew:
    """The live workers, narrowed step by step to those that can run this job. One that has not said what it serves,
    as in its first second, counts as able: nothing is said against it."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        workers = [member for member in facts.members if member.kind == "worker"]
        self.live = [member for member in workers if not member.dead]
        self.dead = [member for member in workers if member.dead]
        self.unsaid = [member for member in self.live if member.serves is None]
        said = [(member, member.serves) for member in self.live if member.serves is not None]
        self.serving = [pair for pair in said if pair[1].takes_from(facts.job.queue)]
        self.elsewhere = [pair for pair in said if not pair[1].takes_from(facts.job.queue)]
        self.knowing = [pair for pair in self.serving if self.knows(pair[1]) is not False]
        self.roomy = [pair for pair in self.knowing if self.lanes(pair[1]) <= pair[1].slots.keys()]
        self.able = [pair for pair in self.roomy if facts.sealed_with in (None, *pair[1].keys)]

    def program(self, serves: Serves) -> Program | None:
        return self.facts.programs.get(serves.code)

    def knows(self, serves: Serves) -> bool | None:
        program = self.program(serves)
        return None if program is None else program.knows(self.facts.job.task)

    def lanes(self, serves: Serves) -> set[str]:
        """Where the job takes room in such a worker: in the lane it is leased from, and where its body runs."""
        program = self.program(serves)
        body = None if program is None else program.tasks.get(self.facts.job.task)
        lane = self.facts.guard.lane
        room = UNKNOWN if lane is None else lane.room.label
        return {room, body or room}

    def free(self, member: MemberView, serves: Serves) -> int:
        held: dict[str, int] = member.stats.get("held", {})
        return max(0, min(serves.slots.get(lane, 0) - held.get(lane, 0) for lane in self.lanes(serves)))

    def pace(self) -> float:
        """Jobs of this line that those able began in a second, of late."""
        queue, lane = self.facts.job.queue, self.facts.guard.lane
        paces: list[dict[str, dict[str, float]]] = [member.stats.get("pace", {}) for member, _ in self.able]
        return 0.0 if lane is None else sum(pace.get(queue, {}).get(lane.label, 0.0) for pace in paces)


def nobody_can(crew: Crew, words: Words) -> Iterator[Reason]:
    """Why no worker will take it, however long it waits."""
    if not crew.live:
        yield _no_worker(crew, words)
    elif crew.able:
        return
    elif crew.unsaid:
        yield Reason(
            code="not_said",
            says=f"{_alive(len(crew.unsaid))} and {'has' if len(crew.unsaid) == 1 else 'have'} not said what it is there for.",
            clears_when="within a second of a worker's start; one of an older release never says it",
        )  # fmt: skip
    elif not crew.serving:
        yield _unserved(crew)
    elif not crew.knowing:
        yield _unknown(crew)
    elif crew.roomy:
        yield _no_key(crew)
    else:
        yield _no_executor(crew)


def _no_worker(crew: Crew, words: Words) -> Reason:
    last = max(crew.dead, key=lambda member: member.expires_at, default=None)
    seen = (
        ""
        if last is None
        else f" The last was {_name(last)}, silent since {words.gone(_silent_since(last))}."
    )
    return Reason(
        code="no_worker",
        says=f"No worker is alive on this store.{seen}",
        since=None if last is None else _silent_since(last),
        clears_when="when a worker is started",
        do=START,
    )


def _unserved(crew: Crew) -> Reason:
    queue = crew.facts.job.queue
    there = Counter(f"{serves.program} serves {_queues(serves)}" for _, serves in crew.elsewhere)
    return Reason(
        code="queue_unserved",
        says=f"{_alive(len(crew.live))}, and none serves queue {queue}: {_grouped(there)}.",
        clears_when=f"when a worker is started that serves {queue}",
        do=f"{START} --queues {queue}",
    )


def _unknown(crew: Crew) -> Reason:
    task, queue = crew.facts.job.task, crew.facts.job.queue
    there = Counter(serves.program for _, serves in crew.serving)
    names = {name for _, serves in crew.serving for name in _tasks(crew.program(serves))}
    close = get_close_matches(task, sorted(names), 3)
    knows = Counter(
        f"{serves.program}, which serves {_queues(serves)} only"
        for _, serves in crew.elsewhere
        if crew.knows(serves)
    )
    says = f"No live worker that serves queue {queue} knows the task {task}: there is {_grouped(there)}."
    says += f" Close to it: {listed(close)}." if close else ""
    says += f" It is known to {_grouped(knows)}." if knows else ""
    return Reason(
        code="task_unknown",
        says=says,
        clears_when=f"when a worker is started whose program has {task}",
        do=START,
    )


def _no_executor(crew: Crew) -> Reason:
    there = Counter(
        f"{serves.program} in {_name(member)} runs {listed([PLACES.get(lane, lane) for lane in serves.slots])}"
        for member, serves in crew.knowing
    )
    wanted = {lane for _, serves in crew.knowing for lane in crew.lanes(serves) - serves.slots.keys()}
    kinds = listed([PLACES.get(lane, lane) for lane in sorted(wanted)])
    return Reason(
        code="executor_missing",
        says=f"Its task needs {kinds}, which no live worker that knows it has: {_grouped(there)}.",
        clears_when="when a worker process is started; one inside another program runs coroutines and threads only",
        do=START,
    )


def _no_key(crew: Crew) -> Reason:
    key = crew.facts.sealed_with
    there = Counter(
        f"{serves.program} in {_name(member)} has {listed(serves.keys) or 'none'}"
        for member, serves in crew.roomy
    )
    return Reason(
        code="key_missing",
        says=f"It is sealed with the key {key}, which no live worker that could run it has: {_grouped(there)}. It waits, and loses no "
        "attempt by that.",
        clears_when=f"when a worker is started whose key ring has {key}",
        do=START,
    )


def in_line(crew: Crew, words: Words) -> Iterator[Reason]:
    """Of a ready job: room, who stands before it, and when its turn comes."""
    facts = crew.facts
    if facts.job.state is not State.READY or facts.line is None or not crew.able:
        return
    free = sum(crew.free(member, serves) for member, serves in crew.able)
    if not free:
        yield _no_room(crew)
    ahead = facts.line.ahead
    if ahead:
        yield _behind(crew, ahead, words)
    elif free and facts.paused is None:
        yield Reason(
            code="next",
            says=f"It is ready since {words.gone(facts.job.due_at)} and the first of its line; {counted(len(crew.able), 'worker')} "
            f"can take it, with {counted(free, 'free place')}.",
            holds=False,
            since=facts.job.due_at,
            clears_when="within a second or two",
        )  # fmt: skip


def _no_room(crew: Crew) -> Reason:
    lanes = sorted({lane for _, serves in crew.able for lane in crew.lanes(serves)})
    taken = listed([f"{_sum(crew, lane)} {PLACES.get(lane, lane)}" for lane in lanes])
    return Reason(
        code="no_room",
        says=f"{counted(len(crew.able), 'worker')} could run it, and {'it is' if len(crew.able) == 1 else 'all are'} full: "
        f"{taken} are taken.",
        clears_when="when a job of theirs ends, or one more worker is started",
    )  # fmt: skip


def _sum(crew: Crew, lane: str) -> str:
    slots = sum(serves.slots.get(lane, 0) for _, serves in crew.able)
    held = sum(member.stats.get("held", {}).get(lane, 0) for member, _ in crew.able)
    return f"{min(held, slots):,} of {slots:,}"


def _behind(crew: Crew, ahead: int, words: Words) -> Reason:
    facts = crew.facts
    assert facts.line is not None
    says = f"{bounded(ahead, AHEAD_LOOKED_AT, 'ready job')} of queue {facts.job.queue} {'stands' if ahead == 1 else 'stand'} "
    says += "before it"
    if facts.line.of_tenant is not None and facts.line.of_tenant < ahead:
        says += f", {facts.line.of_tenant:,} of them of its own tenant; tenants take turns"
    pace = crew.pace()
    if not pace:
        return Reason(code="in_line", says=f"{says}.", clears_when="when its turn comes")
    if ahead >= AHEAD_LOOKED_AT:
        return Reason(
            code="in_line", says=f"{says}; {pace:g} start in a second.", clears_when="when its turn comes"
        )
    wait = timedelta(seconds=ahead / pace)
    return Reason(
        code="in_line",
        says=f"{says}; {pace:g} start in a second, which makes {duration(wait)}.",
        clears_at=words.at + wait,
        estimated=True,
    )


# -- words -----------------------------------------------------------------------------------------------------------


def _name(member: MemberView) -> str:
    """One that has no name is not to be named."""
    return f"{member.name} on {member.host} (pid {member.pid})" if member.name else "a worker"


def _silent_since(member: MemberView) -> datetime:
    ttl = member.serves.heartbeat if member.serves is not None else 0.0
    return member.expires_at - timedelta(seconds=ttl)


def _queues(serves: Serves) -> str:
    return ", ".join(serves.queues) or "all queues"


def _tasks(program: Program | None) -> Sequence[str]:
    return () if program is None else list(program.tasks)


def _alive(count: int) -> str:
    return "1 worker is alive" if count == 1 else f"{counted(count, 'worker')} are alive"


def _grouped(there: Counter[str]) -> str:
    """The same thing said by several workers is said once."""
    return listed(
        [
            what if count == 1 else f"{what} ({counted(count, 'worker')})"
            for what, count in there.most_common()
        ]
    )
