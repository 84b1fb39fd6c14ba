"""The steps of a run as a tree: the branches of a gather hang below it, and each step says how it went and how it is undone."""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from lateshift.cli.workflow_view import MARKS, STEP_STYLES, UNDO_STYLES, called, step_state, undone, went
from lateshift.model.explaining.words import one_line
from lateshift.model.workflow.run import RunView
from lateshift.model.workflow.step import Kind, StepState, StepView, error_of, shown_path

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

QUIET = "bright_black"
BRANCH = 3  # numbers more in the path of a step in a gather: the gather, the branch, the step


class StepTree:
    """Draws the steps of one run. `tracebacks`: whole, not the last line of each."""

    def __init__(self, view: RunView, *, tracebacks: bool) -> None:
        self._steps = sorted(view.steps, key=lambda step: step.path)
        self._began = view.run.started_at
        self._over = view.state.settled
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
                if first.kind is not Kind.GATHER:  # its branches are drawn
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

        given_up = self._over and step.state is StepState.RUNNING
        mark, style = ("–", QUIET) if given_up else (MARKS[step.state], STEP_STYLES[step.state])
        text = Text.assemble((mark, style), f" {shown_path(step.path)} ", (called(step), "bold"))
        if step.state is not StepState.COMPLETED:
            text.append(f" {'given up' if given_up else step_state(step)}", style)
        text.append(f"  {went(step, self._began, over=self._over)}", QUIET)
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
