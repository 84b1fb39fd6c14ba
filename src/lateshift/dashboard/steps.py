"""The steps of a run as the rows of a table, and as a drawing whose boxes lead to them."""

from datetime import datetime

from markupsafe import Markup
from msgspec import Struct

from lateshift.documents.workflows import StepDocument, in_words, state_of, step_document
from lateshift.model.ids import JobId
from lateshift.model.job import JobView, State
from lateshift.model.workflow.holding import GIVEN_UP
from lateshift.model.workflow.run import RunView
from lateshift.model.workflow.step import Kind, StepState, StepView
from lateshift.store.contract import Store
from lateshift.workflow.graph.recorded import recorded
from lateshift.workflow.graph.recorded import state_of as step_state

STEPS_SHOWN = 100  # of a run, on one page; the drawing is of the first of them
JOBS_LOOKED_AT = 20  # jobs of steps under way, of which it is told who has them
DEEPEST = 3  # how far a branch in a branch is moved in
_CALLED = {Kind.CHILD: "child {}", Kind.SLEEP: "sleep", Kind.SIGNAL: "wait for {}", Kind.NOW: "now", Kind.PATCH: "patch {}",
           Kind.EMIT: "emit {}", Kind.GATHER: "{} together"}  # fmt: skip


class StepLine(Struct, frozen=True, kw_only=True):
    """One row. `late`: its complete-by has passed, or had when it failed. `where`: of one under way, who has it or where its job stands."""

    step: StepDocument
    called: str
    depth: int
    state: str
    late: bool
    attempt: int
    attempts: int | None
    holder: str | None
    where: str | None


def lines_of(store: Store, view: RunView, job: JobView, now: datetime) -> list[StepLine]:
    under_way = [step.job for step in view.steps if step.state is StepState.RUNNING and step.job is not None]
    jobs = {id: found for id in under_way[:JOBS_LOOKED_AT] if (found := store.reports.job(id)) is not None}
    return [_line(step, view, job, jobs, now) for step in view.steps]


def _line(step: StepView, view: RunView, run: JobView, jobs: dict[JobId, JobView], now: datetime) -> StepLine:
    document = step_document(step)
    own = jobs.get(step.job) if step.job is not None else None
    state = step_state(step, view, now=now)
    holder, where = None, None
    if step.state is StepState.RUNNING and not view.state.settled:
        has = own if own is not None else run if step.kind is Kind.CALL else None
        holder = None if has is None or has.state is not State.RUNNING else str(has.holder)
        where = None if own is None or holder is not None else own.state.label
    return StepLine(
        step=document, called=_CALLED.get(step.kind, "{}").format(step.name), depth=min(DEEPEST, step.path.count(".") // 2),
        state=state, late=state == "late" or (state != GIVEN_UP and document.error is not None and document.error.reason == "complete_by"),
        attempt=_attempt(step) if own is None else own.attempt, attempts=None if own is None else own.attempts,
        holder=holder, where=where,
    )  # fmt: skip


def _attempt(step: StepView) -> int:
    """The last one: one that has failed is not tried again."""
    ended_badly = step.state in (StepState.FAILED, StepState.HELD)
    return max(1, step.failures) if ended_badly else step.failures + 1


def drawn(view: RunView, now: datetime, *, cut: bool) -> Markup:
    """Escaped where it is drawn."""
    graph = recorded(view, in_words(state_of(view)), now=now, cut=cut)
    links = {node.id: f"#step-{node.step}" for node in graph.nodes if node.step is not None}
    return Markup(graph.svg(links))
