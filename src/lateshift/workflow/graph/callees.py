"""What a step runs: a function, a task on its queue, a workflow; or something that only the run knows."""

import ast
from functools import partial
from typing import Any

from msgspec import Struct

from lateshift.errors import WorkflowInvalid
from lateshift.model.workflow.graph import NodeKind
from lateshift.task import Bound, Task
from lateshift.workflow.calls import named
from lateshift.workflow.graph.names import Scope
from lateshift.workflow.graph.words import code, keyword, text_of

CHOSEN = "a function chosen at run time"
QUEUE_CHOSEN = "on a queue chosen at run time"


class Callee(Struct, frozen=True, kw_only=True):
    """`name`: as the engine will call it; None if it is not known, and then `label` is the code."""

    kind: NodeKind
    label: str
    name: str | None = None
    queue: str | None = None
    note: str | None = None


def callee(expression: ast.expr, scope: Scope) -> Callee:
    """What `flow.step(expression, …)` would run."""
    match expression:
        case ast.Lambda():
            return Callee(kind=NodeKind.STEP, label="<lambda>", name="<lambda>")
        case ast.Call(func=ast.Attribute(value=base, attr="options")) if _is_task(scope.value(base)):
            return _with_queue(_of(scope.value(base)), expression, scope)
        case ast.Call(func=function, args=[first, *_]) if scope.value(function) is partial:
            return callee(first, scope)
    inner = scope.function(expression)
    if inner is not None:
        name = getattr(inner[0], "name", "<lambda>")
        return Callee(kind=NodeKind.STEP, label=name, name=name)
    value = scope.value(expression)
    if isinstance(value, Bound):
        return _of(value.task, value.spec.queue)
    if not callable(value):
        return Callee(kind=NodeKind.UNKNOWN, label=code(expression, scope), note=CHOSEN)
    return _of(value)


def undo_of(expression: ast.expr | None, scope: Scope) -> str | None:
    """The name of what undoes a step."""
    if expression is None or scope.value(expression) is None:
        return None
    return callee(expression, scope).label


def _is_task(value: Any) -> bool:
    return isinstance(value, Task)


def _of(value: Any, queue: str | None = None) -> Callee:
    if isinstance(value, Task):
        return Callee(
            kind=NodeKind.TASK, label=value.name, name=value.name, queue=queue or value.limits.queue
        )
    try:
        name = named(value)
    except WorkflowInvalid:  # the step needs a name of its own
        return Callee(kind=NodeKind.STEP, label=type(value).__name__)
    return Callee(kind=NodeKind.STEP, label=name, name=name)


def _with_queue(found: Callee, options: ast.Call, scope: Scope) -> Callee:
    given = keyword(options, "queue")
    is_open = any(each.arg is None for each in options.keywords)
    if given is None and not is_open:
        return found
    queue = None if given is None or is_open else text_of(given, scope)
    note = QUEUE_CHOSEN if queue is None else None
    return Callee(kind=found.kind, label=found.label, name=found.name, queue=queue, note=note)
