"""The steps of a run as a tree: the branches of a gather hang below it, and each step says how it went and how it is undone."""

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

from lateshift.cli.workflow_view import MARKS, STEP_STYLES, UNDO_STYLES, called, step_state, undone, went
from lateshift.model.explaining.words import one_line
from lateshift.model.workflow.step import StepState, StepView, error_of, shown_path

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

QUIET = "bright_black"
BRANCH = 3  # numbers more in the path of a step in a gather: the gather, the branch, the step


def step_tree(steps: Sequence[StepView], began: datetime, *, tracebacks: bool) -> "Tree":
    from rich.text import Text
    from rich.tree import Tree

    top = Tree(Text("steps", style="bold"), guide_style=QUIET)
    _line(top, sorted(steps, key=lambda step: step.path), 1, began, tracebacks)
    return top


def _line(node: Any, steps: Sequence[StepView], depth: int, began: datetime, tracebacks: bool) -> None:
    """The steps of one line of code, each with the gathers that followed it."""
    for _, same in groupby(steps, key=lambda step: _beginning(step, depth)):
        below = list(same)
        if _depth(below[0]) == depth:
            node.add(_label(below.pop(0), began, tracebacks))
        for gather, inside in groupby(below, key=lambda step: _beginning(step, depth + 1)):
            _gather(node, gather, list(inside), depth, began, tracebacks)


def _gather(
    node: Any, path: str, steps: Sequence[StepView], depth: int, began: datetime, tracebacks: bool
) -> None:
    """A branch of one step has no line of its own: the path of the step names it."""
    from rich.text import Text

    together = node.add(Text(f"together {shown_path(path)}", style=QUIET))
    for branch, inside in groupby(steps, key=lambda step: _beginning(step, depth + 2)):
        line = list(inside)
        single = len(line) == 1 and _depth(line[0]) == depth + BRANCH
        under = together if single else together.add(Text(f"branch {shown_path(branch)}", style=QUIET))
        _line(under, line, depth + BRANCH, began, tracebacks)


def _beginning(step: StepView, depth: int) -> str:
    return ".".join(step.path.split(".")[:depth])


def _depth(step: StepView) -> int:
    return step.path.count(".") + 1


def _label(step: StepView, began: datetime, tracebacks: bool) -> "Text":
    from rich.text import Text

    style = STEP_STYLES[step.state]
    text = Text.assemble((MARKS[step.state], style), f" {shown_path(step.path)} ", (called(step), "bold"))
    if step.state is not StepState.COMPLETED:
        text.append(f" {step_state(step)}", style)
    text.append(f"  {went(step, began)}", QUIET)
    _add_error(text, step.error, tracebacks)
    if step.undo_state:
        text.append("\n  ↶ ", UNDO_STYLES[step.undo_state])
        text.append(undone(step, began))
        _add_error(text, step.undo_error, tracebacks)
    return text


def _add_error(text: "Text", kept: bytes | None, tracebacks: bool) -> None:
    error = error_of(kept)
    if error is None:
        return
    if tracebacks and error.traceback:
        text.append("".join(f"\n  {line}" for line in error.traceback.rstrip().splitlines()), "red")
    else:
        text.append(f"\n  {one_line(str(error))}", "red")
