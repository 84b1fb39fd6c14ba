"""The graph of a run, from what it has recorded: the steps as they were, and what became of each. It needs no code."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby, islice

from lateshift.model.workflow.graph import NODES_MOST, NodeKind
from lateshift.model.workflow.holding import GIVEN_UP, holds, is_given_up
from lateshift.model.workflow.run import RunView
from lateshift.model.workflow.step import Kind, StepOutline, StepState, is_refused, shown_path
from lateshift.workflow.graph.builder import Builder, Part
from lateshift.workflow.graph.graph import Graph

KINDS = {
    Kind.CALL: NodeKind.STEP, Kind.JOB: NodeKind.TASK, Kind.CHILD: NodeKind.CHILD, Kind.SLEEP: NodeKind.SLEEP, Kind.SIGNAL: NodeKind.WAIT,
    Kind.EMIT: NodeKind.EMIT,
}  # fmt: skip
LABELS = {NodeKind.SLEEP: "sleep", NodeKind.WAIT: "wait for {}", NodeKind.EMIT: "emit {}"}
BRANCH = 2  # numbers in a path from a gather to one of its branches; the next one is that of a step


def recorded(
    view: RunView, state: str, *, now: datetime | None = None, cut: bool = False, steps: Iterable[StepOutline] | None = None
) -> Graph:  # fmt: skip
    """`state`: what the whole run is at, or how it ended, in words. `now`: to tell what is late. `cut`: it has more steps than these. `steps`:
    in their order, if they are not read with the run; of no more than are drawn anything is kept."""
    run = _Recorded(view, now)
    drawn = filter(_is_drawn, sorted(view.steps, key=lambda step: step.path) if steps is None else steps)
    shown = list(islice(drawn, NODES_MOST // 2))
    left = sum(1 for _ in drawn)
    run.line(shown, 1)
    if left:
        run.builder.add(
            NodeKind.UNKNOWN, f"and {left:,} steps more", note="lateshift workflows show lists them"
        )
    elif cut:
        run.builder.add(NodeKind.UNKNOWN, "and more steps")
    if view.state.settled:
        kind = NodeKind.END if state == "completed" else NodeKind.FAIL
        run.builder.add(kind, state)
    return run.builder.made()


class _Recorded:
    """A step has its number from when it was asked for, which may be before the gather that waits for it: the number of branches, and the
    order in which steps have completed, tell which they are. Steps without a gather were at once if one began before another had ended."""

    def __init__(self, view: RunView, now: datetime | None) -> None:
        self.builder = Builder(view.run.name)
        self._view = view
        self._now = now

    def line(self, steps: Sequence[StepOutline], depth: int) -> None:
        """The steps of one line of code; those of a branch have longer paths than the gather that they follow."""
        groups: list[list[tuple[StepOutline | None, Part]]] = []
        for _, same in groupby(steps, key=lambda step: _beginning(step, depth)):
            first, *inside = same
            if first.kind is Kind.GATHER and not is_refused(first):
                branches = groupby(inside, key=lambda step: _beginning(step, depth + BRANCH))
                parts = [partial(self.line, list(branch), depth + BRANCH + 1) for _, branch in branches]
                asked = _asked_before(first, groups, int(first.name) - len(parts))
                groups.append([*asked, *((None, part) for part in parts)])
            elif groups and _overlap(groups[-1], first):
                groups[-1].append((first, partial(self._add, first)))
            else:
                groups.append([(first, partial(self._add, first))])
        for group in groups:
            self.builder.parallel([(None, part) for _, part in group])

    def _add(self, step: StepOutline) -> None:
        kind = KINDS.get(step.kind, NodeKind.STEP)
        state = state_of(step, self._view, now=self._now)
        due = step.complete_by if self._now is not None and state in ("running", "late") else None
        self.builder.add(
            kind, LABELS.get(kind, "{}").format(step.name), undo=step.undo, state=state, step=shown_path(step.path),
            note=None if due is None else f"complete by {due.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC",
        )  # fmt: skip


def _is_drawn(step: StepOutline) -> bool:
    return step.kind in KINDS or step.kind is Kind.GATHER or is_refused(step)


def state_of(step: StepOutline, view: RunView, *, now: datetime | None = None) -> str:
    """With a run ends what it had begun, and what held it. `now`: to tell what is late."""
    if step.undo_state:
        return step.undo_state.label
    if is_given_up(step, view):
        return GIVEN_UP
    if holds(view.run, step):
        return StepState.HELD.label
    if (
        step.state is StepState.RUNNING
        and now is not None
        and step.complete_by is not None
        and step.complete_by <= now
    ):
        return "late"
    waits = step.state is StepState.RUNNING and step.kind in (Kind.SLEEP, Kind.SIGNAL)
    return "waiting" if waits else step.state.label


def _beginning(step: StepOutline, depth: int) -> str:
    return ".".join(step.path.split(".")[:depth])


def _asked_before(
    gather: StepOutline, groups: list[list[tuple[StepOutline | None, Part]]], most: int
) -> list[tuple[StepOutline | None, Part]]:
    """Steps that a gather waits for, taken away from what comes before it."""
    found: list[tuple[StepOutline | None, Part]] = []
    while groups and len(found) < most:
        last = groups[-1][-1:]
        if last and (last[0][0] is None or not _is_later(last[0][0], gather)):
            break
        found = last + found
        del groups[-1][-1:]
        if not groups[-1]:
            groups.pop()
    return found


def _is_later(step: StepOutline, gather: StepOutline) -> bool:
    """Whether it was still to be done when the code came to the gather."""
    if step.state is StepState.COMPLETED and step.place is not None and gather.place is not None:
        return step.place > gather.place
    return step.started_at >= gather.started_at


def _overlap(group: Sequence[tuple[StepOutline | None, Part]], step: StepOutline) -> bool:
    return all(
        other is not None and (other.ended_at is None or other.ended_at > step.started_at)
        for other, _ in group
    )
