"""What a made-up workflow must have done, whatever was killed: each step in its turn, and no more once it is recorded; and undone exactly
what was done, the last first."""

from typing import TYPE_CHECKING

from lateshift import State
from lateshift.model.ids import JobId
from lateshift.model.workflow.step import Kind, StepState
from tests.workflows.programs import Program

if TYPE_CHECKING:
    from tests.workflows.lives import World


class Oracle:
    """Compares a ledger with the program, and with what the store has recorded of the run."""

    def __init__(self, program: Program, run: JobId, kills: int, world: "World") -> None:
        self._program = program
        self._run = run
        self._kills = kills
        self._store = world.app.store
        self._at: dict[tuple[str, int], list[int]] = {}
        for place, what in enumerate(world.done[program.seed]):
            self._at.setdefault(what, []).append(place)

    def faults(self) -> list[str]:
        found = [*self._of_the_end(), *self._of_repeats(), *self._of_the_order(), *self._of_the_record()]
        if self._program.end != "cancelled":
            found += self._of_the_whole()
        return found

    def _of_the_end(self) -> list[str]:
        view = self._store.reports.job(self._run)
        assert view is not None
        own = list(self._program.within(self._program.steps, children=False))
        undoable = any(node.undo is not None for node in own)
        expected = {
            "well": (State.COMPLETED, None),
            "fails": (State.DEAD, "undone" if undoable else "failed"),
            "cancelled": (State.CANCELLED, "cancelled by ann"),
        }[self._program.end]
        return (
            [] if (view.state, view.reason) == expected else [f"it ended as {view.state.label} {view.reason}"]
        )

    def _of_repeats(self) -> list[str]:
        return [
            f"{what} {number}: {len(places)} times, with {self._kills} kills"
            for (what, number), places in self._at.items()
            if what != "try" and len(places) > 1 + self._kills
        ]

    def _of_the_order(self) -> list[str]:
        """Once a later step has begun, an earlier one is recorded: it is done no more. Undone it is after the later one."""
        found = []
        for before, after in self._program.orders():
            done, then = self._at.get(("do", before.number)), self._at.get(("do", after.number))
            if then and before.has_effect and (not done or done[-1] > then[0]):
                found.append(f"do {before.number} came after do {after.number}, or not at all")
            undone, first = self._at.get(("undo", before.number)), self._at.get(("undo", after.number))
            long_ago = self._program.failing(before) - self._program.failing(
                after
            )  # it was undone with its child
            if long_ago and undone and then and undone[-1] > then[0]:
                found.append(f"undo {before.number} came after do {after.number}")
            if not long_ago and undone and first and undone[0] < first[-1]:
                found.append(f"undo {before.number} came before undo {after.number}")
        return found

    def _of_the_record(self) -> list[str]:
        """Of each run that did not complete, exactly the steps that have completed are undone."""
        completed, undone = self._recorded(self._run)
        found = [f"undo {number} was not wanted" for number in self._numbers("undo") - undone]
        found += [f"{number} is done, and not undone" for number in undone - self._numbers("undo")]
        effects = {number for number in completed if self._program.nodes[number].has_effect}
        return found + [f"{number} is recorded, and was not done" for number in effects - self._numbers("do")]

    def _recorded(self, id: JobId) -> tuple[set[int], set[int]]:
        run = self._store.workflows.view(id)
        completed: set[int] = set()
        undone: set[int] = set()
        for step in run.steps if run is not None else []:
            number = int(step.name.rpartition(" ")[2]) if " " in step.name else None
            if number is None or step.kind not in (Kind.CALL, Kind.JOB, Kind.CHILD):
                continue
            if step.state is StepState.COMPLETED:
                completed.add(number)
                if step.undo is not None and run is not None and run.state is not State.COMPLETED:
                    undone.add(number)
            if step.kind is Kind.CHILD and step.job is not None:
                inner, inner_undone = self._recorded(step.job)
                completed |= inner
                undone |= inner_undone
        return completed, undone

    def _of_the_whole(self) -> list[str]:
        """A run that nobody cancels does all of it."""
        everything = list(self._program.within(self._program.steps, children=True))
        wanted = {
            "do": {node.number for node in everything if node.has_effect},
            "heard": {node.number for node in everything if node.kind == "emit"},
        }
        return [
            f"{what}: {sorted(self._numbers(what) ^ numbers)} are missing, or too many"
            for what, numbers in wanted.items()
            if self._numbers(what) != numbers
        ]

    def _numbers(self, what: str) -> set[int]:
        return {number for did, number in self._at if did == what}
