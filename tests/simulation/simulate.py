"""Years of schedules in minutes: `python -m tests.simulation.simulate --years 10 --schedules 1000`.

Eight schedulers share a store and a clock that jumps. They die before and after a commit, are paused while others do their
work, and all of them lead. Each month every tick is compared with the oracle's: none may be missing, none decided twice.
`make simulate` calls it.
"""

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

from lateshift.clock import ManualClock, StillClock
from lateshift.model.ids import new_job_id
from lateshift.model.job import Lane, NewJob, Spec
from lateshift.model.scheduling.plan import Outcome, Plan
from lateshift.model.scheduling.schedule import NewSchedule, TickView
from lateshift.model.scheduling.timing import Timing
from lateshift.model.scheduling.zones import zone, zone_names
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from lateshift.store.postgres import schedules as on_postgres
from lateshift.store.sqlite import schedules as on_sqlite
from tests.simulation import oracle
from tests.store_contract.driving import query

SCHEDULERS = 8
EXPRESSIONS = (
    "30 2 * * *", "0 0 * * *", "15 1,13 * * *", "0 */6 * * *", "45 3 * * mon", "0 12 l * *", "10 4 * * fri#2",
    "59 23 1 1,7 *", "5 0 * * *", "0 3 1 * *",
)  # fmt: skip
HOUR = timedelta(hours=1)
ALL = 10_000_000


class Killed(Exception):
    """The scheduler died here."""


@dataclass
class Faults:
    """What happens at the named points of a commit, as chance has it."""

    chance: random.Random
    others: Callable[[], None] = lambda: None
    happened: Counter[str] = field(default_factory=Counter)
    nested: bool = False

    def point(self, name: str) -> None:
        if self.nested or self.chance.random() > 0.15:
            return
        if name == "schedule.before_fire":
            self.happened["paused while others fired"] += 1
            self.nested = True
            try:
                self.others()
            finally:
                self.nested = False
        else:
            self.happened[f"killed at {name}"] += 1
            raise Killed


@dataclass
class Simulation:
    """`run` gives what must be 0, by name."""

    stores: list[Store]
    clock: ManualClock
    seed: int
    schedules: int
    begin: datetime
    found: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.faults = Faults(self.chance, lambda: self._fire(self.chance.choice(self.stores)))
        names = sorted(zone_names())
        self.plans = {
            f"schedule {number:04}": (
                self.chance.choice(EXPRESSIONS),
                names[number % len(names)],
                number % 4 != 3,
            )
            for number in range(self.schedules)
        }

    def run(self, until: datetime, told: Callable[[datetime], None] = lambda at: None) -> Counter[str]:
        with self._faulty():
            for name, (expression, where, exact) in self.plans.items():
                timing = Timing(cron=expression, timezone=where)
                plan = Plan(timing=timing, overlap="allow", catch_up="all") if exact else Plan(timing=timing)
                self.stores[0].schedules.add(
                    NewSchedule(name=name, plan=plan, job=_job()), by="the simulation"
                )
            checked = self.begin
            while checked < until:
                month = min(until, checked + timedelta(days=30))
                while self.clock.now() < month:
                    self._step(month)
                checked = self._compare(checked)
                told(checked)
        return self.found

    def _step(self, month: datetime) -> None:
        """Some time passes, now and then the wrong way, and some of the schedulers look."""
        dice = self.chance.random()
        if dice < 0.05:
            self.clock.move(hours=-1)
            self.faults.happened["the clock went back an hour"] += 1
        else:
            hours = 1 if dice < 0.1 else self.chance.uniform(0, 30)
            room = (month - self.clock.now()) / HOUR
            self.clock.move(hours=min(hours, room + 0.001))
        for store in self.chance.sample(self.stores, self.chance.randint(0, 3)):
            self._fire(store)

    def _fire(self, store: Store) -> None:
        """As a scheduler's loop does; one that dies is started again when it is its turn."""
        try:
            while store.schedules.fire(self.chance.choice((3, 50, 1000))).count:
                pass
        except Killed:
            pass

    def _compare(self, after: datetime) -> datetime:
        """All that is due by now is decided, and no more than that: tick by tick."""
        with patch.object(self.faults, "nested", True):
            self._fire(self.stores[0])
            now = self.clock.now()
            rows = self.stores[0].schedules.ticks(self.begin - timedelta(days=400), ALL)
        made = {_uuid(id) for (id,) in query(self.stores[0], "SELECT id FROM {job}")}
        fired = [row.job for row in rows if row.job is not None]
        self.found["ticks decided"] += sum(row.count for row in rows)
        self.found["jobs made"] += len(made)
        self.found["jobs without a tick, or ticks without a job"] += len(made ^ {str(id) for id in fired})
        self.found["two ticks of one job"] += len(fired) - len(set(fired))
        decided: dict[str, list[TickView]] = {name: [] for name in self.plans}
        for row in rows:
            decided[row.schedule].append(row)
        for name, (expression, where, exact) in self.plans.items():
            told = oracle.ticks(expression, zone(where), after, now)
            self._judge(decided[name], told, exact)
        for table in ("tick", "job"):
            query(self.stores[0], f"DELETE FROM {{{table}}}")
        return now

    def _judge(self, rows: list[TickView], told: list[datetime], exact: bool) -> None:
        if exact:
            fired = Counter(row.at for row in rows if row.outcome is Outcome.FIRED)
            self.found["missing"] += sum((Counter(told) - fired).values())
            self.found["too many"] += sum((fired - Counter(told)).values())
            return
        covered = [tick for row in rows for tick in told if row.at <= tick <= row.until]
        self.found["missing"] += len(set(told) - set(covered))
        self.found["too many"] += (
            len(covered) - len(set(covered)) + abs(sum(row.count for row in rows) - len(told))
        )

    @contextmanager
    def _faulty(self) -> Iterator[None]:
        with (
            patch.object(on_sqlite, "crashpoint", self.faults.point),
            patch.object(on_postgres, "crashpoint", self.faults.point),
        ):
            yield


COUNTS = ("ticks decided", "jobs made")


def wrong(found: Counter[str]) -> dict[str, int]:
    """What must be 0 and is not."""
    return {name: count for name, count in found.items() if name not in COUNTS and count}


def _job() -> NewJob:
    return NewJob(new_job_id(), Spec(task="noop", queue="default", lane=Lane.COROUTINE), b"{}")


def _uuid(id: object) -> str:
    from uuid import UUID

    return str(UUID(bytes=bytes(id)) if isinstance(id, bytes | memoryview) else id)


def start_of(clock: ManualClock, year: int) -> datetime:
    begin = datetime(year, 1, 1, tzinfo=UTC)
    clock.offset += begin - clock.now()
    return clock.now()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.simulate", description=__doc__)
    parser.add_argument("--years", type=float, default=10)
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", default=None, help="a URL; else a SQLite file of its own")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        clock = ManualClock() if given.store and given.store.startswith("postgresql") else StillClock()
        begin = start_of(clock, 2026)
        url = given.store or f"sqlite:///{Path(folder) / 'jobs.db'}"
        stores = [open_store(url, clock) for _ in range(SCHEDULERS)]
        for store in stores:
            stack.callback(store.close)
            store.ready()
        simulation = Simulation(stores, clock, given.seed, given.schedules, begin)
        print(
            f"{given.years:g} years, {given.schedules:,} schedules, {SCHEDULERS} schedulers, seed {given.seed}",
            flush=True,
        )
        until = begin + timedelta(days=365.25 * given.years)
        found = simulation.run(until, lambda at: print(f"\r{at:%Y-%m}", end="", flush=True))
    print()
    for name, count in {**found, **simulation.faults.happened}.items():
        print(f"  {name:45} {count:>12,}")
    return 1 if wrong(found) else 0


if __name__ == "__main__":
    sys.exit(main())
