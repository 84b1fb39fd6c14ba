"""What the shift looks like now: read from the store a few times a second, and told in log lines. The live view draws
the same (view.py)."""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from lateshift.cli.output import amount, counted, duration
from lateshift.documents.hiding import shown_runs
from lateshift.errors import StoreError
from lateshift.model.breaker import CircuitView
from lateshift.model.ids import MemberId
from lateshift.model.job import JobFilter, JobView, State
from lateshift.model.sealed import masked_view
from lateshift.model.workflow.run import Phase, RunView
from lateshift.operating.queues import with_empty
from lateshift.runtime.aside import aside
from lateshift.runtime.log import log
from lateshift.store.contract import MemberView, QueueView

if TYPE_CHECKING:
    from lateshift.app.app import Lateshift

MINUTE = 60
SMOOTHED_OVER = 3  # seconds that a rate is the mean of
TELL_EVERY = 10.0
RUNNING_READ = 100
DEAD_READ = 10
DEAD_LOOKED_AT = 50  # the newest, of which those are shown that died last
DEAD_JUDGED = 1_000  # the newest, of which it is told how many need somebody
HELD_READ = 10
PATIENCE = 2.0  # seconds until a look that is not answered is trouble


class Pace:
    """Jobs per second, from a counter that is read now and then."""

    def __init__(self, begun: float) -> None:
        self.total = 0
        self._begun = int(begun)
        self._gained: deque[tuple[int, int]] = deque()  # (second, jobs), oldest first

    def gain(self, jobs: int, now: float) -> None:
        self.total += jobs
        second = int(now)
        if self._gained and self._gained[-1][0] == second:
            self._gained[-1] = (second, self._gained[-1][1] + jobs)
        else:
            self._gained.append((second, jobs))
        while self._gained[0][0] < second - MINUTE:
            self._gained.popleft()

    def last_minute(self, now: float) -> list[int]:
        """Jobs in each of the last 60 whole seconds, the newest last."""
        gained = dict(self._gained)
        return [gained.get(second, 0) for second in range(int(now) - MINUTE, int(now))]

    def rate(self, now: float) -> float:
        seconds = min(SMOOTHED_OVER, max(1, int(now) - self._begun))
        return sum(self.last_minute(now)[-seconds:]) / seconds


@dataclass(slots=True)
class Sight:
    """One look at the store."""

    queues: list[QueueView] = field(default_factory=list)
    workers: list[MemberView] = field(default_factory=list)
    running: list[JobView] = field(default_factory=list)
    dead: list[JobView] = field(default_factory=list)
    needing: tuple[int, bool] = (0, False)  # dead letters that need somebody; whether there may be more
    broken: list[CircuitView] = field(default_factory=list)  # breakers that are open
    held: list[RunView] = field(default_factory=list)  # runs of workflows that wait for an operator

    @property
    def running_count(self) -> int:
        return sum(queue.running for queue in self.queues)

    @property
    def waiting_count(self) -> int:
        return sum(queue.ready + queue.scheduled + queue.blocked for queue in self.queues)

    @property
    def dead_count(self) -> int:
        return sum(queue.dead for queue in self.queues)

    @property
    def dead_needing(self) -> str | None:
        """How many of them need somebody, as a run that was undone does not, nor a step of one that has ended; None if all do, which goes without saying."""
        count, more = self.needing
        if count >= self.dead_count:
            return None
        if not count and not more:
            return "none needs anybody"
        return f"{amount(count)}{'+' if more else ''} need{'s' if count == 1 and not more else ''} somebody"

    @property
    def dead_told(self) -> str:
        said = counted(self.dead_count, "dead letter")
        return said if self.dead_needing is None else f"{said}, of which {self.dead_needing}"


class Watch:
    """Turned by a loop, beside the host. This one tells in log lines."""

    every = timedelta(seconds=1)
    detailed = False  # whether running jobs and dead letters are wanted one by one

    def __init__(self, app: "Lateshift") -> None:
        self.stopping = asyncio.Event()
        self.sight = Sight()
        self.trouble: str | None = None
        self.begun = app.clock.monotonic()
        self.pace = Pace(self.begun)
        self.paces: dict[MemberId, Pace] = {}
        self._app = app
        self._counted: dict[MemberId, int] = {}
        self._looked = False
        self._looking: asyncio.Task[Sight] | None = None
        self._asked = self.begun
        self._tell_at = self.begun + TELL_EVERY
        self._due = False  # whether the last look was for a line
        self._told = -1
        self._line_at, self._line_total = self.begun, 0  # what the next line is about begins here

    async def turn(self) -> timedelta:
        """Look, and show. A store that keeps us waiting does not stop the showing."""
        now = self._app.clock.monotonic()
        if self._looking is None:
            self._due = now >= self._tell_at
            self._looking, self._asked = asyncio.create_task(aside(self.look)), now
        await asyncio.wait({self._looking}, timeout=self.every.total_seconds())
        if self._looking.done():
            looked, self._looking = self._looking, None
            try:
                self.sight, self.trouble = looked.result(), None
            except StoreError as error:
                self.trouble = str(error)
        elif now - self._asked > PATIENCE:
            self.trouble = self.trouble or "the store does not answer"
        await self.show()
        return self.every

    async def show(self) -> None:
        """A line every ten seconds, if anything has moved."""
        if self._due and self._looking is None:
            now = self._app.clock.monotonic()
            self._tell_at = now + TELL_EVERY
            if self.pace.total != self._told:
                log.info("%s", self.line(now))
            self._told = self._line_total = self.pace.total
            self._line_at = now

    def look(self) -> Sight:
        """Blocking: a few reads, each bounded whatever the backlog."""
        store = self._app.store
        members = store.reports.members()
        self.count(
            {view.id: int(view.stats.get("completed", 0)) for view in members}, self._app.clock.monotonic()
        )
        queues, needing = self.sight.queues, self.sight.needing
        if self._wants_queues:
            queues = self._with_the_empty(store.queues.list())
            some = any(queue.dead for queue in queues)
            needing = store.reports.count_dead(DEAD_JUDGED) if some else (0, False)
        return Sight(
            queues=queues,
            needing=needing,
            workers=[view for view in members if view.kind == "worker" and not view.dead],
            running=[*map(masked_view, store.reports.running(RUNNING_READ))] if self.detailed else [],
            dead=self._read_dead() if self.detailed else [],
            broken=[view for view in store.breakers.list() if view.opened_at] if self.detailed else [],
            held=self._read_held() if self.detailed else [],
        )

    def _read_dead(self) -> list[JobView]:
        """Those that died last, of the newest."""
        found = self._app.store.reports.jobs(JobFilter(state=State.DEAD), DEAD_LOOKED_AT, whole=False)
        found.sort(key=lambda view: view.settled_at or view.created_at, reverse=True)
        return [masked_view(view) for view in found[:DEAD_READ]]

    def _read_held(self) -> list[RunView]:
        """The newest of those that are held, whether they go forward or are undone."""
        newest = self._app.store.workflows.newest
        found = [
            view for phase in (Phase.HELD, Phase.UNDO_HELD) for view in newest(None, HELD_READ, phase=phase)
        ]
        found.sort(key=lambda view: view.run.id, reverse=True)
        return shown_runs(self._app.store, found[:HELD_READ])

    @property
    def _wants_queues(self) -> bool:
        """Counting what waits costs some milliseconds: only for a line that is due, and if anything has moved."""
        return self.detailed or self.stopping.is_set() or (self._due and self.pace.total != self._told)

    def _with_the_empty(self, queues: list[QueueView]) -> list[QueueView]:
        """The store lists queues that have something in them; the app's own are shown all the time."""
        return with_empty(queues, self._app.declared_queues())

    def count(self, completed: Mapping[MemberId, int], now: float) -> None:
        """What members had done before our first look is not of this shift; one that comes later begins at nothing."""
        for member, count in completed.items():
            before = self._counted.get(member, 0 if self._looked else count)
            self.pace.gain(count - before, now)
            self.paces.setdefault(member, Pace(now)).gain(count - before, now)
            self._counted[member] = count
        self._looked = True

    def line(self, now: float) -> str:
        """The rate is of the whole time since the line before was due: what a moment of it was like would pass over the rest."""
        sight = self.sight
        over = max(1.0, now - self._line_at)
        rate = (self.pace.total - self._line_total) / over
        shown = amount(rate) if rate >= 10 else f"{rate:.1f}".removesuffix(".0")
        return (
            f"{amount(self.pace.total)} completed, {shown} a second over the last {duration(over)}; {sight.running_count} running,"
            f" {amount(sight.waiting_count)} waiting, {sight.dead_told}"
        )

    def close(self) -> None:
        """Nothing more will be shown."""

    def summary(self) -> str:
        """The last word. Workers report now and then, so what they did in their last moments is not counted."""
        sight = self.sight
        ran = duration(self._app.clock.monotonic() - self.begun)
        done = (
            f"at least {counted(self.pace.total, 'job')} completed on this store, " if self.pace.total else ""
        )
        return (
            f"stopped after {ran}: {done}{amount(sight.waiting_count)} left for the next shift,"
            f" {sight.dead_told}" + (", as last seen: the store does not answer." if self.trouble else ".")
        )
