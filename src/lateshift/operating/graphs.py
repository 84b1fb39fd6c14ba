"""What a workflow does, as the code has it, and what a run of it did."""

from datetime import datetime
from itertools import chain
from typing import Any

from lateshift.documents.workflows import in_words, state_of
from lateshift.errors import TaskUnknown, WorkflowInvalid
from lateshift.model.workflow.run import RunView
from lateshift.operating.names import others
from lateshift.store.contract import Store
from lateshift.store.outlines import outlines
from lateshift.workflow.graph.graph import Graph
from lateshift.workflow.graph.recorded import recorded

FORMATS = ("mermaid", "svg", "json")


def graph_of_run(store: Store, view: RunView, now: datetime) -> Graph:
    steps = chain.from_iterable(outlines(store.workflows, view.run.id))
    return recorded(view, in_words(state_of(view)), now=now, steps=steps)


def graph_of_code(app: Any, name: str) -> Graph:
    """Raises WorkflowInvalid if it is no workflow, TaskUnknown with close names."""
    task = app.tasks.get(name)
    if task is not None and hasattr(task, "graph"):
        graph: Graph = task.graph()
        return graph
    if task is not None:
        raise WorkflowInvalid(
            f"{name} is a task, not a workflow: it is one function, and there is nothing to draw."
        )
    known = sorted(each for each, task in app.tasks.items() if hasattr(task, "graph"))
    raise TaskUnknown(f"{app.name} has no workflow {name}.{others(name, known)}")
