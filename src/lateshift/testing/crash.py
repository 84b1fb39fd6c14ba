"""Stands between a task and the store, counts the steps by name, and at one of them lets the process die, another worker
take the job, or an answer get lost."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

from lateshift.errors import StoreUnavailable
from lateshift.model.ids import JobId, MemberId
from lateshift.model.job import NewJob, Note
from lateshift.model.outcome import Settlement
from lateshift.model.workflow.run import Advance
from lateshift.store.contract import Exchanged, Want
from lateshift.testing.effects import Effects
from lateshift.testing.ledger import how
from lateshift.testing.report import Point
from lateshift.testing.shift import ProcessDeath

BEFORE, AFTER, UNANSWERED, TWICE = "killed before", "killed after", "no answer to", "delivered twice at"

OTHER_WRITES = {
    "jobs.cancel": "cancel",
    "jobs.resubmit": "resubmit",
    "jobs.discard": "discard",
    "batches.open": "opening of a batch",
    "batches.cancel": "cancel of a batch",
    "batches.cancel_jobs": "cancel of a batch's jobs",
    "batches.seal": "sealing of a batch",
    "queues.pause": "pause of a queue",
    "queues.resume": "resume of a queue",
    "upkeep.erase": "erase",
}
OWN_LOCKS = ("supervisor", "courier")  # their terms are locks too, and no steps of a task


class Crash:
    """See interposed.Around. Idle until it is armed, and again when it has struck; with no point, it only lists steps."""

    def __init__(self, point: Point | None, effects: Effects, redeliver: Callable[[], None]) -> None:
        self.points: list[Point] = []  # what could be done to this run, in order
        self.struck = False
        self.lock_time = 0.0  # seconds of the longest lock that was taken
        self._point = point
        self._effects = effects
        self._redeliver = redeliver
        self._tasks: Collection[str] = ()
        self._armed = False
        self._dead = False
        self._counts: Counter[str] = Counter()
        self._held: set[tuple[MemberId, JobId]] = set()

    def arm(self, tasks: Collection[str]) -> None:
        """From now on, what jobs of these tasks do are steps."""
        self._tasks = tasks
        self._armed = True

    def bury(self) -> None:
        """All that the dead process ran has unwound: another may begin."""
        self._dead = self._effects.dead = False

    def dead(self) -> bool:
        return self._dead

    def __call__(self, verb: str, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        if self._dead:
            raise ProcessDeath
        if not self._tasks:
            return call(*args, **kwargs)
        if verb == "jobs.exchange":
            args = self._one_at_a_time(*args)
            if not self._settling(args[1]):
                return self._lease(call, args)
        step = self._step(verb, args)
        if step is None:
            return call(*args, **kwargs)
        return self._take(step, verb, lambda: call(*args, **kwargs))

    def _take(self, kind: str, verb: str, call: Callable[[], Any]) -> Any:
        step = self._numbered(kind)
        if self._strikes(BEFORE, step):
            self._die()
        if self._strikes(TWICE, step):
            self._redeliver()
        answer = call()
        if self._strikes(AFTER, step):
            self._die()
        if verb == "jobs.exchange" and self._strikes(UNANSWERED, step):
            raise StoreUnavailable("The answer to the settlement was lost, as the test wants.")
        return answer

    def _one_at_a_time(
        self, holder: MemberId, settlements: Sequence[Settlement], wants: Sequence[Want]
    ) -> tuple[MemberId, Sequence[Settlement], Sequence[Want]]:
        """One job runs at a time, and is leased by itself, so that every run takes the same steps in the same order."""
        for settlement in settlements:
            self._held.discard((holder, settlement.lease.id))
        if settlements or any(who == holder for who, _ in self._held):
            return holder, settlements, []
        first = sorted(wants, key=lambda want: (want.line.queue, want.line.lane))[:1]
        return holder, settlements, [Want(want.line, min(want.count, 1)) for want in first]

    def _lease(self, call: Callable[..., Any], args: Sequence[Any]) -> Any:
        """Only its answer tells whether it is a step; before it there is nothing to lose."""
        answer: Exchanged = call(*args)
        self._held |= {(args[0], lease.id) for lease in answer.leases}
        tasks = sorted({lease.task for lease in answer.leases if lease.task in self._tasks})
        if tasks:
            step = self._numbered(f"lease of {', '.join(tasks)}")
            if self._strikes(AFTER, step):
                self._die()
            if self._strikes(TWICE, step):
                self._redeliver()
        return answer

    def _strikes(self, how: str, step: str) -> bool:
        point = Point(how, step)
        if self._point is None:
            self.points.append(point)
        elif self._armed and point == self._point:
            self.struck = True
            self._armed = False
            return True
        return False

    def _die(self) -> None:
        self._dead = self._effects.dead = True
        raise ProcessDeath

    def _numbered(self, kind: str) -> str:
        self._counts[kind] += 1
        what, of, whose = kind.partition(" of ")
        return f"{what} {self._counts[kind]}{of}{whose}"

    def _step(self, verb: str, args: Sequence[Any]) -> str | None:
        match verb:
            case "jobs.exchange":
                return f"settlement of {self._settling(args[1])}"
            case "jobs.save":
                notes: Sequence[Note] = args[0]
                return f"checkpoint of {', '.join(sorted({note.lease.task for note in notes}))}"
            case "jobs.enqueue":
                jobs: Sequence[NewJob] = args[0]
                return f"enqueue of {', '.join(sorted({job.spec.task for job in jobs}))}"
            case "batches.add":
                of_batch: Sequence[NewJob] = args[2]
                return f"enqueue of a batch of {', '.join(sorted({job.spec.task for job in of_batch}))}"
            case "workflows.advance":
                advances: Sequence[Advance] = args[0]
                return f"steps of {', '.join(sorted({one.lease.task for one in advances}))}"
            case "locks.acquire" if args[0] not in OWN_LOCKS:
                self.lock_time = max(self.lock_time, args[2].total_seconds())
                return f"lock of {args[0]}"
            case "locks.release" if args[0].name not in OWN_LOCKS:
                return f"unlock of {args[0].name}"
            case _:
                return OTHER_WRITES.get(verb)

    def _settling(self, settlements: Sequence[Settlement]) -> str:
        return ", ".join(
            f"{settlement.lease.task} ({how(settlement.outcome)})"
            for settlement in settlements
            if settlement.lease.task in self._tasks
        )
