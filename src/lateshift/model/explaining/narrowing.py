"""What surrounds a job, to a reader who may see some queues only: that something holds it stays, and what that is of other queues goes."""

from collections.abc import Callable

from msgspec import structs

from lateshift.model.breaker import CircuitView
from lateshift.model.explaining.facts import Facts, Limit, Other, Room
from lateshift.model.member import MemberView, Program, Serves

Shows = Callable[[str], bool]

OTHERS = "other queues"  # no name of a queue, and no pattern
ITS_RUN_SAYS = "its run says why"


def narrowed(facts: Facts, shows: Shows) -> Facts:
    """`shows`: whether the reader may see what is of this queue. Members are of none. A breaker is of all that it stands before; what was
    raised behind it may be of any. A run is held by what may be a step in another queue."""
    run, singleton, task = facts.run, facts.singleton, facts.job.task
    return structs.replace(
        facts,
        run=None if run is None else structs.replace(run, why=run.why and ITS_RUN_SAYS),
        singleton=None if singleton is None else _other(singleton, shows),
        limits=[_limit(limit, shows) for limit in facts.limits],
        breakers=[_breaker(breaker) for breaker in facts.breakers],
        rooms=[room if shows(room.queue) else Room("", 0, 0) for room in facts.rooms],
        members=[_member(member, facts.job.queue, shows) for member in facts.members],
        programs={code: _program(program, task) for code, program in facts.programs.items()},
    )


def _other(other: Other, shows: Shows) -> Other:
    if shows(other.queue):
        return other
    return structs.replace(other, elsewhere=True, task="", queue="", started_at=None, complete_by=None)


def _limit(limit: Limit, shows: Shows) -> Limit:
    return structs.replace(limit, running=[_other(other, shows) for other in limit.running])


def _breaker(breaker: CircuitView) -> CircuitView:
    return structs.replace(breaker, tasks=[], reason=None, probe=None)


def _member(member: MemberView, queue: str, shows: Shows) -> MemberView:
    serves = member.serves
    if serves is not None and not serves.takes_from(queue):
        serves = _elsewhere(serves, shows)
    return structs.replace(member, name="", host="", pid=0, serves=serves)


def _elsewhere(serves: Serves, shows: Shows) -> Serves:
    """Of one that does not serve the job's queue: which of the reader's it serves."""
    own = tuple(queue for queue in serves.queues if shows(queue))
    if own:
        return structs.replace(serves, queues=own if own == serves.queues else (*own, OTHERS))
    return structs.replace(serves, app="another", version="program", queues=(OTHERS,))


def _program(program: Program, task: str) -> Program:
    tasks = {name: lane for name, lane in program.tasks.items() if name == task}
    return structs.replace(program, tasks=tasks, queues=())
