"""What may be raised in a workflow's code, and which `except` would catch it."""

import ast
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from lateshift.errors import StepFailed
from lateshift.workflow.graph.builder import End
from lateshift.workflow.graph.names import UNKNOWN, Scope
from lateshift.workflow.graph.words import code


class Trouble(Struct, frozen=True):
    """Something may be raised after these. `kind`: its class; None if that is not known. `said`: of a `raise` that stands in the code;
    a failure of a step that nobody catches is not drawn."""

    ends: list[End]
    kind: type[BaseException] | None
    said: str | None = None


def split(
    troubles: Sequence[Trouble], caught: ast.expr | None, scope: Scope
) -> tuple[list[Trouble], list[Trouble]]:
    """Those that it catches, and those that go on; both, where one of the classes is not known. None catches all."""
    kinds = [BaseException] if caught is None else _kinds(scope, caught)
    answers = [(trouble, _is_caught(trouble, kinds)) for trouble in troubles]
    mine = [trouble for trouble, is_caught in answers if is_caught is not False]
    return mine, [trouble for trouble, is_caught in answers if is_caught is not True]


def failing(troubles: Sequence[Trouble], label: str) -> list[End]:
    """The ways from them to whoever catches them. One that comes of a question keeps the answer."""
    return list(
        dict.fromkeys(
            End(end.source, end.label or label, True) for trouble in troubles for end in trouble.ends
        )
    )


def told(caught: ast.expr | None, scope: Scope) -> str:
    """What stands at the way to a handler."""
    kinds = None if caught is None else _kinds(scope, caught)
    if caught is None or (kinds is not None and any(_covers(kind, StepFailed) for kind in kinds)):
        return "on failure"
    return f"on {code(caught).strip('()')}"


def raised(error: ast.expr, scope: Scope) -> tuple[type[BaseException] | None, str]:
    """The class, and how it is told."""
    error = error.func if isinstance(error, ast.Call) else error
    kind = scope.value(error)
    is_class = isinstance(kind, type) and issubclass(kind, BaseException)
    return (kind if is_class else None), f"raise {code(error, scope)}"


def suppressed(item: ast.withitem, scope: Scope) -> ast.expr | None:
    """What a `with suppress(…)` catches; None of any other."""
    match item.context_expr:
        case ast.Call(func=function, args=args, keywords=[]) if scope.value(function) is suppress:
            return ast.Tuple(elts=args, ctx=ast.Load())
    return None


def _kinds(scope: Scope, caught: ast.expr) -> list[Any] | None:
    """None if one of them is not known."""
    found: list[Any] = []
    for each in caught.elts if isinstance(caught, ast.Tuple) else [caught]:
        value = scope.value(each)
        found += value if isinstance(value, tuple) else [value]
    return None if any(value is UNKNOWN or not isinstance(value, type) for value in found) else found


def _is_caught(trouble: Trouble, kinds: Sequence[Any] | None) -> bool | None:
    """None if nobody can say."""
    if kinds is None:
        return None
    if trouble.kind is None:
        return any(_covers(kind, Exception) for kind in kinds) or None
    return any(_covers(kind, trouble.kind) for kind in kinds)


def _covers(kind: Any, raised: type[BaseException]) -> bool:
    return issubclass(raised, kind)
