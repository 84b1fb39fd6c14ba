"""The worker: leases as many jobs as it has room for, hands them to executors, and settles what has ended. One
exchange with the store does both, while the jobs of the one before are running."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from lateshift.clock import Clock
from lateshift.config import Settings
from lateshift.errors import StoreError
from lateshift.model.ids import MemberId
from lateshift.model.job import Lane, Lease, Line
from lateshift.model.outcome import (
    HANDED_BACK,
    Completed,
    DeadLettered,
    Decided,
    Ended,
    Failed,
    Killed,
    Later,
    Outcome,
    ResultNotKept,
    Settlement,
    fault_of,
    outcome_of,
)
from lateshift.runtime.aside import aside
from lateshift.runtime.log import log
from lateshift.sealing.jobs import sealed_outcome
from lateshift.sealing.ring import Seal
from lateshift.store.contract import Promoted, Store, Want
from lateshift.store.crashpoints import crashpoint
from lateshift.store.lines import served
from lateshift.task import Task
from lateshift.telemetry.keeping import keep_from
from lateshift.telemetry.liveness import has_failed
from lateshift.telemetry.measures import PROCESS
from lateshift.telemetry.tracing import spans
from lateshift.worker.attempt import Attempt
from lateshift.worker.counting import Counting
from lateshift.worker.declaring import declare
from lateshift.worker.desk import SealedDesk, StoreDesk
from lateshift.worker.exchanges import Exchanges, Key
from lateshift.worker.executors.contract import Executor
from lateshift.worker.executors.coroutines import Coroutines
from lateshift.worker.executors.threads import Threads
from lateshift.worker.gatekeeper import Gatekeeper, concerns
from lateshift.worker.lines import Lines
from lateshift.worker.room import Room, rooms, rooms_of
from lateshift.worker.settler import Settler
from lateshift.worker.starts import Starts
from lateshift.worker.tally import Tally
from lateshift.worker.telling import Missing, tell

BY_AGE_EVERY = 8  # one lease in so many goes to the priority whose head waits longest
AFTER_A_FAULT = timedelta(seconds=1)
TOGETHER_FROM = 100  # jobs in a lot while whose start the next exchange is under way; fewer start at once
PROMOTED = 1000  # scheduled jobs made ready in one look


class Worker:
    """Turned by a loop. Everything here runs on that loop but the store's calls."""

    def __init__(
        self, store: Store, tasks: Mapping[str, Task[..., Any]], member: MemberId, settings: Settings, clock: Clock
    ) -> None:  # fmt: skip
        self.member = member
        self.held: set[Attempt] = set()
        self.tally = Tally()
        self.measures = PROCESS.begin()
        self.counting = Counting(clock.monotonic)
        self.starts = Starts(clock.monotonic)
        self.stopping = False
        self._store = store
        self._tasks = tasks
        self._settings = settings
        self._clock = clock
        self._wake = asyncio.Event()
        self._settler = Settler(self._wake.set)
        self._rooms = rooms(settings.concurrency, settings.threads, settings.process_slots)
        self._desk = StoreDesk(store, clock)
        self._lines = Lines(store.poll)
        keep_from(settings.job_log)
        self._turns = 0
        self._declared = False
        self._careful = False  # whether jobs of such lanes were ever leased
        self._exchanges = Exchanges(store.jobs, member, self._settler, clock.monotonic)
        self._missing = Missing(clock.monotonic)
        self._gatekeeper = Gatekeeper(settings, str(member), clock)
        self._executors: dict[Lane, Executor] = {
            Lane.COROUTINE: Coroutines(settings.concurrency, self, clock.monotonic),
            Lane.THREAD: Threads(settings.threads, self, clock.monotonic),
        }

    def use(self, lane: Lane, executor: Executor) -> None:
        """Where the bodies of this lane run. Without one for processes, their jobs go back for a worker that has it."""
        self._executors[lane] = executor

    @property
    def slots(self) -> dict[str, int]:
        """How many jobs at once, for each lane that it can run."""
        usable = {*self._executors, Lane.SOLO}
        return {lane.label: room.slots for lane, room in self._rooms.items() if lane in usable}

    @property
    def filled(self) -> dict[str, int]:
        """How many it has of each lane; a lane without any is left out."""
        return {lane.label: room.held for lane, room in self._rooms.items() if room.held}

    @property
    def numbers(self) -> dict[str, int]:
        """How its attempts ended. What returned is counted by task alone: one count for each job."""
        numbers = self.tally.numbers()
        numbers["completed"] += sum(self.measures.completed.values())
        return numbers

    @property
    def quiet(self) -> bool:
        """Nothing is held, and the store knows how everything ended."""
        return not (self.held or len(self._settler)) and self._exchanges.quiet

    # -- the loop ---------------------------------------------------------------------------------------------

    def wake(self) -> None:
        self._wake.set()

    def heard(self, line: Line) -> None:
        """A hint that this line has a job. Called on the loop."""
        wanted = served(line.queue, self._settings.queues or None)
        if wanted and self._lines.warm(line, self._clock.monotonic()):
            self._wake.set()

    async def wait(self, pause: timedelta) -> None:
        """Until woken, at most `pause`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(pause.total_seconds()):
                await self._wake.wait()

    async def turn(self) -> timedelta:
        """One exchange with the store. Gives how long to pause; waking is a hint, the pause is the truth."""
        self._wake.clear()
        try:
            if not self._declared:
                await aside(self._declare)
            if self._exchanges.under_way:  # its leases wait for nobody
                pause = await self._exchange()
                await self._look_for_lines()
                return pause
            if self._exchanges.unsure:
                await self._find_unknown_leases()
            await self._look_for_lines()
            return await self._exchange()
        except StoreError as error:
            log.warning("the store is away: %s", error)
            has_failed()
            return AFTER_A_FAULT

    def _declare(self) -> None:
        """The limits and breakers that this program's code has now are those that hold."""
        declare(self._store, self._tasks)
        self._declared = True

    async def _look_for_lines(self) -> None:
        if not self.stopping and self._lines.look_due(self._clock.monotonic()):
            promoted, found = await aside(self._look)
            self._lines.looked(found, promoted.next_in, self._clock.monotonic())

    def _look(self) -> tuple[Promoted, list[Line]]:
        """Make ready what is due, and see which lines have something. Any worker may: nobody needs to lead for that."""
        jobs = self._store.jobs
        return jobs.promote(PROMOTED), jobs.lines(self._settings.queues or None)

    async def _exchange(self) -> timedelta:
        if not self._exchanges.under_way:
            self._exchanges.send(self._wants())
        exchanged = await self._exchanges.answered()
        if exchanged is None:
            return self._lines.pause(self._clock.monotonic())
        said, answer = exchanged
        if answer.leases:
            self.measures.lease.observe(self._exchanges.took)
        if said.settlements:
            self.measures.settle.observe(self._exchanges.took)
        if answer.lost:
            log.warning("%d settlements came too late: the leases were lost", len(answer.lost))
            self.tally.lost += len(answer.lost)
            for lease in answer.lost:
                self.measures.others[(lease.queue, lease.task), "lost"] += 1
        self.starts.add(self._lines.answered(said.wants, answer.leases, said.asked, self._clock.monotonic()))
        if answer.leases:
            crashpoint("worker.after_claim")
            self._careful = self._careful or any(want.line.lane.careful for want in said.wants)
        if len(answer.leases) >= TOGETHER_FROM and not self._exchanges.unsure:
            self._exchanges.send(self._wants(answer.leases))
        self._start(answer.leases, said.asked)
        # More may be waiting: when a line gave all it was asked for, or jobs ended meanwhile.
        if answer.leases or not self._exchanges.quiet or len(self._settler):
            return timedelta(0)
        return self._lines.pause(self._clock.monotonic())

    def _wants(self, arrived: Sequence[Lease] = ()) -> list[Want]:
        """What to ask for, when these have come and are not yet begun."""
        if self.stopping:
            return []
        self._turns += 1
        coming = self._places(arrived)
        by_age = self._turns % BY_AGE_EVERY == 0
        wants: list[Want] = []
        lines = self._lines.hot()
        if self._careful:  # whose settlement may ready the next one, to be leased in the same exchange
            lines += self._settler.lines_given_on() - {*lines}
        for lane in {line.lane.room for line in lines}:
            room = self._rooms[lane].wanted(coming[lane])
            served_lines = [line for line in lines if line.lane.room is lane]
            # Each line of a lane gets a share; the rest of the room goes round, so that none is always last.
            for number, line in enumerate(served_lines):
                share = (room + (number + self._turns) % len(served_lines)) // len(served_lines)
                if share > 0:
                    wants.append(Want(line, share, by_age=by_age and lane is not Lane.SOLO))
        return wants

    def _places(self, leases: Sequence[Lease]) -> Counter[Lane]:
        """How many places they take in each room."""
        places: Counter[Lane] = Counter()
        for (name, lane), count in Counter([(lease.task, lease.lane) for lease in leases]).items():
            task = self._tasks.get(name)
            for room in rooms_of(lane, lane.room if task is None else task.lane):
                places[room] += count
        return places

    async def _find_unknown_leases(self) -> None:
        asked = self._clock.monotonic()
        self._start(await self._exchanges.find_unknown(self._known), asked)

    async def return_strays(self) -> None:
        await self._exchanges.return_strays(self._known)

    def _known(self) -> set[Key]:
        """The leases that this worker runs, or has still to settle."""
        mine: list[Attempt | Settlement] = [*self.held, *self._settler.waiting, *self._exchanges.settling]
        return {(each.lease.id, each.lease.fence) for each in mine}

    def _start(self, leases: Sequence[Lease], asked: float) -> None:
        if self.stopping:  # asked for before we were told to stop: nobody will wait for them
            for lease in leases:
                self._settler.put(Settlement(lease, HANDED_BACK))
            return
        traced = spans()
        received = (
            traced.leased(leases, self._exchanges.took, str(self.member)) if traced and leases else None
        )
        lots: dict[Lane, list[Attempt]] = {}
        taken: dict[tuple[Lane, Lane], list[Room]] = {}
        for lease in leases:
            task = self._tasks.get(lease.task)
            if task is None or task.lane not in self._executors:
                self._missing.tell(lease)
                self._settler.put(Settlement(lease, Later(self._settings.unknown_delay, counts=False)))
                continue
            seal = None
            if concerns(lease, task):
                admitted = self._gatekeeper.admit(lease, task.limits.keep_dead)
                if not isinstance(admitted, tuple):
                    self._settler.put(Settlement(lease, admitted))
                    continue
                lease, seal = admitted
            if (lease.lane, task.lane) not in taken:
                taken[lease.lane, task.lane] = [self._rooms[it] for it in rooms_of(lease.lane, task.lane)]
            try:
                desk = self._desk if seal is None else SealedDesk(self._desk, seal)
                attempt = Attempt(lease, task, asked, desk, taken[lease.lane, task.lane], seal)
            except Exception as error:  # reading arguments runs user code, which may raise anything
                self._settle_unreadable(lease, task, error, seal)
                continue
            if received is not None:
                attempt.span = received.attempt(lease)
            for room in attempt.rooms:
                room.held += 1
            self.held.add(attempt)
            self.counting.start(lease)
            lots.setdefault(task.lane, []).append(attempt)
        if lots:
            self.counting.hold()
        for lane, attempts in lots.items():
            self._executors[lane].submit(attempts)

    def _settle_unreadable(self, lease: Lease, task: Task[..., Any], error: Exception, seal: Seal | None) -> None:  # fmt: skip
        history = getattr(self._outcome(lease, task, Failed(error), 0.0, seal), "history", None) or b"[]"
        outcome = DeadLettered("undecodable", history, task.limits.keep_dead)
        self.counting.end(lease.queue, "dead")
        self._settler.put(Settlement(lease, outcome))
        tell(lease, Failed(error), outcome, sealed=seal is not None)

    # -- what executors report --------------------------------------------------------------------------------

    def returned(self, attempt: Attempt, result: Any) -> None:
        try:
            encoded = attempt.task.results.encode(result)
        except Exception as error:
            self.ended(attempt, Failed(ResultNotKept(f"the result cannot be kept: {error}")))
            return
        self.returned_encoded(attempt, encoded)

    def returned_encoded(self, attempt: Attempt, result: bytes | None) -> None:
        if not attempt.ended:
            lease, ran = attempt.lease, self._close(attempt)
            self.measures.completed[lease.queue, lease.task] += 1
            self.counting.complete(lease.queue)
            outcome = Completed(result, attempt.task.limits.keep, attempt.session_state, ran)
            if attempt.seal is not None:
                outcome = self._gatekeeper.sealed(outcome, lease, attempt.seal)
            self._settler.put(attempt.settled(outcome))
            if attempt.span is not None:
                attempt.span.end("completed")

    def ended(self, attempt: Attempt, how: Ended) -> None:
        if attempt.ended:
            return
        seal, seconds = attempt.seal, self._close(attempt)
        outcome = self._outcome(attempt.lease, attempt.task, how, seconds, seal, attempt.cancelled_by)
        word = self.tally.count(outcome)
        self._count(attempt.lease, word)
        if attempt.span is not None:
            attempt.span.end(word, fault_of(how))
        if not attempt.lost:
            self._settler.put(attempt.settled(outcome))
            tell(attempt.lease, how, outcome, sealed=seal is not None)
            if isinstance(outcome, Later):
                self._lines.due_in(outcome.delay, self._clock.monotonic())

    def decided(self, attempt: Attempt, how: Decided) -> None:
        if attempt.ended:
            return
        self._close(attempt)
        word = "snoozed" if how.outcome is None else self.tally.count(how.outcome)
        if attempt.span is not None:
            attempt.span.end(word, how.outcome.reason if isinstance(how.outcome, DeadLettered) else None)
        if how.outcome is not None and not attempt.lost:
            self._count(attempt.lease, word)
            self._settler.put(attempt.settled(how.outcome))
            tell(attempt.lease, how, how.outcome)

    def _count(self, lease: Lease, word: str) -> None:
        self.measures.others[(lease.queue, lease.task), word] += 1
        self.counting.end(lease.queue, word)

    def _outcome(
        self, lease: Lease, task: Task[..., Any], how: Ended, seconds: float, seal: Seal | None, by: str | None = None
    ) -> Outcome:  # fmt: skip
        def follows(how: Ended) -> Outcome:
            retry, keep, member = task.limits.retry, task.limits.keep_dead, str(self.member)
            outcome = outcome_of(
                how, lease, retry, at=self._clock.now(), ran_for=seconds, keep=keep, member=member
            )
            return outcome if seal is None else sealed_outcome(outcome, seal, by)

        try:
            return follows(how)
        except Exception:  # the error is user code too: what it says of itself may raise
            log.error("the error of %s %s cannot be read", lease.task, lease.id, exc_info=seal is None)
            return follows(Killed("failed", "it raised an error that cannot be read"))

    def _close(self, attempt: Attempt) -> float:
        """Gives for how many seconds its body ran; in its room it has been until now."""
        attempt.ended = True
        self.held.discard(attempt)
        if attempt.log is not None:
            self._settler.put_log(attempt.kept_log(attempt.log))
        now = self._clock.monotonic()
        self.counting.close(attempt, now, last=not self.held)
        begun = attempt.started or attempt.received
        for room in attempt.rooms:
            room.end(now - begun)
        return (now if attempt.finished is None else attempt.finished) - begun

    # -- what control does ------------------------------------------------------------------------------------

    def cancel(self, attempt: Attempt) -> None:
        self._executors[attempt.task.lane].cancel(attempt)

    def overdue(self, attempt: Attempt) -> None:
        self._executors[attempt.task.lane].overdue(attempt)

    def hand_back_waiting(self, older_than: float | None = None) -> None:
        """What has not begun goes back, uncounted: a slower job than expected stands before it, or we are stopping."""
        for executor in self._executors.values():
            for attempt in executor.give_back(older_than):
                self._close(attempt)
                self._settler.put(Settlement(attempt.lease, HANDED_BACK))

    async def close(self) -> None:
        PROCESS.retire(self.measures)
        for executor in self._executors.values():
            await executor.close()
