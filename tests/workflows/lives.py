"""Whole lives of made-up workflows, whose workers are killed at writes that chance chooses: `python -m tests.workflows.lives --minutes 10`.

What bodies did is noted outside, and compared with what the program says: none of what was recorded is done again, and exactly what
was done is undone, whatever dies. `make lives` calls it.
"""

import argparse
import logging
import tempfile
import time
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import Any

from lateshift import Flow, Job, Lateshift, Retry, StepFailed
from lateshift.errors import RunEnded
from lateshift.model.ids import JobId
from lateshift.testing.kit import Kit
from lateshift.testing.shift import ProcessDeath
from tests.workflows.dying import Killer
from tests.workflows.oracle import Oracle
from tests.workflows.programs import Node, Program

TURNS_MOST = 400  # of one life
KILLS_MOST = 12
LOSSES_BORNE = (
    1  # deaths of workers that a job has met; at the third it would be a dead letter, which is another story
)
LONG = timedelta(days=3650)  # for which what has ended can be looked at
FAR = timedelta(days=365)  # what is due after that waits for somebody


class Fate(Killer):
    """Kills once in a while."""

    def __init__(self) -> None:
        super().__init__(None, after=False)
        self.kills = 0

    def arm(self, writes: int | None, *, after: bool) -> None:
        self._number = None if writes is None else self.count + writes
        self._after = after
        self.struck = self.is_dead = False

    def _die(self) -> None:
        self.kills += 1
        super()._die()


class World:
    """An app with one workflow, whose argument says what it does; and the ledger of what was done."""

    def __init__(self, url: str) -> None:
        self.app = app = Lateshift("lives", store=url)
        self.url = url
        self.fate = Fate()
        self.done: dict[int, list[tuple[str, int]]] = {}
        self.wrong: list[str] = []
        self.taken: dict[tuple[int, int], int] = {}  # signals, by the seed and the step that took them
        self.runs: dict[tuple[int, int | None], JobId] = {}  # of seeds and their children
        self._programs: dict[int, Program] = {}
        self._job = app.task(name="do", queue="agents")(self._do)
        self._undo_job = app.task(name="undo", queue="agents")(self._undo)
        app.on("life.told")(app.task(name="heard")(self._heard))
        self.life = app.workflow(name="life", keep=LONG)(self._life)

    def program(self, seed: int) -> Program:
        return self._programs.setdefault(seed, Program(seed))

    # -- what bodies do ---------------------------------------------------------------------------------------------

    def _do(self, seed: int, number: int) -> int:
        self.done[seed].append(("do", number))
        return number * 10

    async def _do_async(self, seed: int, number: int) -> int:
        return self._do(seed, number)

    def _do_flaky(self, seed: int, number: int) -> int:
        tried = self.done[seed].count(("try", number))
        self.done[seed].append(("try", number))
        if tried < 2:
            raise ConnectionError("away")
        return self._do(seed, number)

    def _refuse(self, seed: int, number: int) -> None:
        raise ValueError(f"no {number}")

    def _undo(self, seed: int, number: int, result: int | str) -> None:
        self.done[seed].append(("undo", number))
        expected = "child" if self.program(seed).nodes[number].kind == "child" else number * 10
        self._expect(f"{seed}: undo {number} got", result, expected)

    def _heard(self, data: list[int]) -> None:
        self.done[data[0]].append(("heard", data[1]))

    def _expect(self, what: str, got: object, expected: object) -> None:
        if got != expected:
            self.wrong.append(f"{what} {got!r}, not {expected!r}")

    def _take(self, seed: int, node: Node, got: int) -> None:
        """Whichever signal it is, it is the same at every replay, and nobody else's."""
        others = [
            taken for (life, number), taken in self.taken.items() if life == seed and number != node.number
        ]
        self._expect(
            f"{seed}: signal {node.number} gave", got, self.taken.setdefault((seed, node.number), got)
        )
        if got in others:
            self.wrong.append(f"{seed}: the signal {got} was taken twice")

    # -- the workflow -----------------------------------------------------------------------------------------------

    async def _life(self, flow: Flow, seed: int, child: int | None = None) -> str:
        program = self.program(seed)
        self.runs[seed, child] = flow.id
        if child is not None:
            node = program.nodes[child]
            await self._steps(flow, seed, node.branches[0])
            if node.kind == "failing child":
                raise ValueError(f"no child {child}")
            return "child"
        await self._steps(flow, seed, program.steps)
        if program.end == "fails":
            raise ValueError("no")
        if program.end == "cancelled":
            await flow.wait_for("never")
        return program.end

    async def _steps(self, flow: Flow, seed: int, nodes: list[Node]) -> None:
        for node in nodes:
            await self._step(flow, seed, node)

    async def _step(self, flow: Flow, seed: int, node: Node) -> None:
        number = node.number
        named: dict[str, Any] = {"name": f"{node.kind} {number}"}
        if node.undo is not None:
            named["undo"] = self._undo_job if node.undo == "job" else self._undo
        bodies: dict[str, Any] = {
            "function": self._do,
            "coroutine": self._do_async,
            "job": self._job,
            "flaky": self._do_flaky,
        }
        match node.kind:
            case "function" | "coroutine" | "job" | "flaky":
                if node.kind == "flaky":
                    named["retry"] = Retry(attempts=10, base=timedelta(hours=node.hours))
                got = await flow.step(bodies[node.kind], seed, number, **named)
                self._expect(f"{seed}: step {number} gave", got, number * 10)
            case "refused":
                try:
                    await flow.step(self._refuse, seed, number, **named)
                except StepFailed as failure:
                    self._expect(f"{seed}: step {number} said", failure.message, f"no {number}")
            case "sleep":
                await flow.sleep(timedelta(hours=node.hours))
            case "signal":
                self._take(seed, node, await flow.wait_for("go", type=int))
            case "timeout":
                try:
                    await flow.wait_for(f"never {number}", timeout=timedelta(hours=node.hours))
                except TimeoutError:
                    return
                self.wrong.append(f"{seed}: a signal {number} that nobody sent")
            case "emit":
                await flow.emit("life.told", [seed, number])
            case "gather":
                await flow.gather(*(self._steps(flow, seed, branch) for branch in node.branches))
            case "child":
                await flow.child(self.life, seed, number, **named)
            case "failing child":
                try:
                    await flow.child(self.life, seed, number, **named)
                except StepFailed:
                    return
                self.wrong.append(f"{seed}: child {number} did not fail")


class Life:
    """One run from its beginning to its end, with what operators and the clock do to it."""

    def __init__(self, world: World, kit: Kit, seed: int) -> None:
        self._world = world
        self._kit = kit
        self._seed = seed
        self._chance = Random(f"{seed} fate")
        self.program = world.program(seed)
        world.done[seed] = []
        world.fate.arm(None, after=False)
        self._before = world.fate.kills
        nodes = self.program.within(self.program.steps, children=True)
        self._signals = [node for node in nodes if node.kind == "signal"]
        self._cancel_at = self._chance.randint(0, 30) if self.program.end == "cancelled" else TURNS_MOST
        self._cancelled = False
        self.job: Job[str] = world.life.enqueue(seed)
        world.runs[seed, None] = self.job.id

    @property
    def kills(self) -> int:
        return self._world.fate.kills - self._before

    def live(self) -> None:
        while self._chance.random() < 0.3 and self._tell():
            pass
        for turn in range(TURNS_MOST):
            if self.job.state.settled and self._is_quiet():
                return
            if turn >= self._cancel_at:
                self._cancel()
            self._arm()
            try:
                self._kit.drain_here(dead=lambda: self._world.fate.is_dead)
            except ProcessDeath:
                self._world.fate.arm(None, after=False)
                self._kit.clock.move(minutes=2)  # the dead are seen to be dead
                continue
            self._world.fate.arm(None, after=False)
            self._go_on()
        view = self._world.app.store.workflows.view(self.job.id)
        raise AssertionError(
            f"seed {self._seed}, {self.kills} kills: it does not end: {self._world.app.job(self.job.id).explain()}\n{view}"
        )

    def _is_quiet(self) -> bool:
        return not self._world.app.store.reports.unsettled(None, 1)

    def _arm(self) -> None:
        """Not while a job has met so many deaths that one more would end it, or would change how it runs."""
        losses = max((view.losses for view in self._world.app.store.reports.unsettled(None, 100)), default=0)
        if self.kills < KILLS_MOST and losses < LOSSES_BORNE and self._chance.random() < 0.6:
            self._world.fate.arm(self._chance.randint(1, 12), after=self._chance.random() < 0.5)

    def _go_on(self) -> None:
        """Nothing is ready: somebody tells it something, or time passes."""
        if self.job.state.settled:
            return
        due = self._kit.next_due()
        soon = due is not None and due < FAR
        if (not soon or self._chance.random() < 0.5) and self._tell():
            return
        if soon and due is not None:
            self._kit.clock.offset += max(due, timedelta(0))
        else:
            self._cancel()

    def _tell(self) -> bool:
        """Whether there was something to tell a run that is there."""
        runs = self._world.runs
        open_ = [node for node in self._signals if (self._seed, node.owner) in runs]
        if not open_:
            return False
        node = self._chance.choice(open_)
        self._signals.remove(node)
        with suppress(RunEnded):  # cancelled meanwhile
            for _ in range(self._chance.randint(1, 2)):  # with its key, twice is once
                self._world.app.signal(runs[self._seed, node.owner], "go", node.number, key=str(node.number))
        return True

    def _cancel(self) -> None:
        if not self._cancelled and self.program.end == "cancelled":
            self._cancelled = True
            self._world.app.store.jobs.cancel([self.job.id], by="ann")


def live(world: World, kit: Kit, seed: int) -> Life:
    """Raises AssertionError, with the seed."""
    life = Life(world, kit, seed)
    life.live()
    found = [*world.wrong, *Oracle(life.program, life.job.id, life.kills, world).faults()]
    assert not found, (
        f"seed {seed}, {life.program.end}, {life.kills} kills: {'; '.join(found)}: {world.done[seed]}"
    )
    return life


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.workflows.lives", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, help="of the first life; without it, another one each time")
    parser.add_argument(
        "--store", metavar="URL", help="an empty store of its own; without it, a SQLite file in /tmp"
    )
    given = parser.parse_args()
    logging.getLogger("lateshift").setLevel(logging.CRITICAL)  # workers die all the time
    seed = time.time_ns() // 1000 % 10**9 if given.seed is None else given.seed
    end, counts = time.monotonic() + given.minutes * 60, Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        url = given.store or f"sqlite:///{folder}/lives.db"
        world = World(url)
        with Kit(world.app, store=url, around=world.fate) as kit:
            while time.monotonic() < end:
                life = live(world, kit, seed)
                counts.update(
                    {"lives": 1, "kills": life.kills, "steps": len(life.program.nodes), life.program.end: 1}
                )
                seed += 1
    print(", ".join(f"{count:,} {what}" for what, count in counts.items()), "- the ledger is the oracle's")


if __name__ == "__main__":
    main()
