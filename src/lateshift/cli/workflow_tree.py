"""The steps of a run as a tree: the branches of a gather hang below it, and each step says how it went and how it is undone."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lateshift.cli.workflow_view import MARKS, STEP_STYLES, UNDO_STYLES, called, step_state, undone, went
from lateshift.model.explaining.explain import explain
from lateshift.model.explaining.words import one_line
from lateshift.model.ids import JobId
from lateshift.model.job import State
from lateshift.model.workflow.holding import GIVEN_UP, holds, is_given_up
from lateshift.model.workflow.run import RunView
from lateshift.model.workflow.step import Kind, StepState, StepView, error_of, is_refused, shown_path
from lateshift.store.contract import Store

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

QUIET = "bright_black"
WAITS_LOOKED_AT = 20  # jobs of steps of which it is told what they wait for
OF_ALL = ("no_worker", "not_said", "no_room", "in_line", "next")  # reasons that are not of this job
BRANCH = 3  # numbers more in the path of a step in a gather: the gather, the branch, the step


class Waits(Struct, frozen=True):
    """Where the job of a step is, and what keeps it there."""

    state: str
    why: str | None


NOBODY: Mapping[JobId, Waits] = {}


def waits_of(store: Store, view: RunView) -> dict[JobId, Waits]:
    """Of the jobs that steps wait for and that do not run."""
    jobs = [step for step in view.steps if step.kind is Kind.JOB and step.state is StepState.RUNNING]
    running = [step.job for step in jobs if step.job is not None]
    found: dict[JobId, Waits] = {}
    for id in running[:WAITS_LOOKED_AT]:
        facts = store.reports.facts(id)
        if facts is not None and facts.job.state in (State.READY, State.SCHEDULED, State.BLOCKED):
            told = [reason.says for reason in explain(facts).holding if reason.code not in OF_ALL]
            found[id] = Waits(facts.job.state.label, told[0] if told else None)
    return found


class StepTree:
    """Draws the steps of one run. `tracebacks`: whole, not the last line of each. `waits`: what keeps the jobs of steps that wait."""

    def __init__(self, view: RunView, *, tracebacks: bool, waits: Mapping[JobId, Waits] = NOBODY) -> None:
        self._waits = waits
        self._steps = sorted(view.steps, key=lambda step: step.path)
        self._began = view.run.started_at
        self._view = view
        self._tracebacks = tracebacks

    def drawn(self) -> "Tree":
        from rich.text import Text
        from rich.tree import Tree

        top = Tree(Text("steps", style="bold"), guide_style=QUIET)
        self._add_line(top, self._steps, 1)
        return top

    def _add_line(self, node: Any, steps: Sequence[StepView], depth: int) -> None:
        """The steps of one line of code, each with the gathers that followed it."""
        for _, same in groupby(steps, key=lambda step: _beginning(step, depth)):
            below = list(same)
            if _depth(below[0]) == depth:
                first = below.pop(0)
                if first.kind is not Kind.GATHER or is_refused(first):  # of others the branches are drawn
                    node.add(self._label(first))
            for gather, inside in groupby(below, key=lambda step: _beginning(step, depth + 1)):
                self._add_gather(node, gather, list(inside), depth)

    def _add_gather(self, node: Any, path: str, steps: Sequence[StepView], depth: int) -> None:
        """A branch of one step has no line of its own: the path of the step names it."""
        from rich.text import Text

        together = node.add(Text(f"together {shown_path(path)}", style=QUIET))
        for branch, inside in groupby(steps, key=lambda step: _beginning(step, depth + 2)):
            line = list(inside)
            single = len(line) == 1 and _depth(line[0]) == depth + BRANCH
            under = together if single else together.add(Text(f"branch {shown_path(branch)}", style=QUIET))
            self._add_line(under, line, depth + BRANCH)

    def _label(self, step: StepView) -> "Text":
        from rich.text import Text

        given_up, stands = (
            is_given_up(step, self._view),
            StepState.HELD if holds(self._view.run, step) else step.state,
        )
        mark, style = ("–", QUIET) if given_up else (MARKS[stands], STEP_STYLES[stands])
        text = Text.assemble((mark, style), f" {shown_path(step.path)} ", (called(step), "bold"))
        if step.state is not StepState.COMPLETED:
            waits = self._waits.get(step.job) if step.job is not None and not given_up else None
            text.append(
                f" {GIVEN_UP if given_up else waits.state if waits else step_state(step, self._view.run)}",
                style,
            )
        else:
            waits = None
        text.append(f"  {went(step, self._began, over=self._view.state.settled)}", QUIET)
        if waits is not None and waits.why:
            text.append(f"\n  {one_line(waits.why)}", "yellow")
        self._add_error(text, step.error)
        if step.undo_state:
            text.append("\n  ↶ ", UNDO_STYLES[step.undo_state])
            text.append(undone(step, self._began))
            self._add_error(text, step.undo_error)
        return text

    def _add_error(self, text: "Text", kept: bytes | None) -> None:
        error = error_of(kept)
        if error is None:
            return
        if self._tracebacks and error.traceback:
            text.append("".join(f"\n  {line}" for line in error.traceback.rstrip().splitlines()), "red")
        else:
            text.append(f"\n  {one_line(str(error))}", "red")


def _beginning(step: StepView, depth: int) -> str:
    return ".".join(step.path.split(".")[:depth])


def _depth(step: StepView) -> int:
    return step.path.count(".") + 1
