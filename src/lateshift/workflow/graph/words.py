"""Code, as it is told in a node or at an edge."""

import ast
import copy
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from lateshift.model.words import counted, duration
from lateshift.workflow.graph.names import UNKNOWN, Scope

CODE_SHOWN = 60  # characters of a condition
_UNITS = (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1))


def code(node: ast.AST, scope: Scope | None = None) -> str:
    """As it is written, in one line, as far as there is room; a step that it waits for is told by its name."""
    if scope is not None:
        node = _Told(scope).visit(copy.deepcopy(node))
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= CODE_SHOWN else f"{text[: CODE_SHOWN - 1]}…"


def text_of(expression: ast.expr | None, scope: Scope) -> str | None:
    """A text that is written there, with its gaps as {…}; None if it is made in another way."""
    if isinstance(expression, ast.JoinedStr):
        return "".join(_part(each) for each in expression.values)
    value = UNKNOWN if expression is None else scope.value(expression)
    return value if isinstance(value, str) else None


def time_of(expression: ast.expr | None, scope: Scope) -> str:
    """A length of time: in words where it is known, else the code that gives it."""
    if expression is None:
        return ""
    value = scope.value(expression)
    match expression:
        case ast.Call(func=function) if scope.value(function) is timedelta:
            value = _timedelta(expression, scope)
    return in_words(value) if isinstance(value, timedelta) else code(expression, scope)


def in_words(time: timedelta) -> str:
    """30 days, 90 minutes; 1d 6h where no unit fits."""
    seconds = time.total_seconds()
    for unit, size in _UNITS:
        if seconds and seconds % size == 0:
            number = int(seconds // size)
            return counted(number, unit) if number < 100 else duration(time)
    return duration(time)


def answers(test: ast.expr, scope: Scope) -> tuple[str, str, str]:
    """The question that an `if` asks, and what stands at its two ways."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        question, yes, no = answers(test.operand, scope)
        return question, no, yes
    match test:
        case ast.Call(func=ast.Attribute(value=base, attr="patched"), args=[name]) if scope.is_flow(base):
            return f"patch {text_of(name, scope) or code(name)}", "new runs", "old runs"
    return code(test, scope), "yes", "no"


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((each.value for each in call.keywords if each.arg == name), None)


def argument(call: ast.Call, place: int, name: str) -> ast.expr | None:
    """By its place, or by its name."""
    if len(call.args) > place and not any(isinstance(each, ast.Starred) for each in call.args[: place + 1]):
        return call.args[place]
    return keyword(call, name)


def _timedelta(call: ast.Call, scope: Scope) -> Any:
    places = [scope.value(each) for each in call.args]
    names = {each.arg or "": scope.value(each.value) for each in call.keywords}
    values: Sequence[Any] = [*places, *names.values()]
    if "" in names or not all(isinstance(value, int | float) for value in values):
        return UNKNOWN
    try:
        return timedelta(*places, **names)
    except (TypeError, ValueError, OverflowError):
        return UNKNOWN


def _part(piece: ast.expr) -> str:
    match piece:
        case ast.Constant(value=str(text)):
            return text
        case ast.FormattedValue(value=inner):
            return f"{{{code(inner)}}}"
    return "{…}"


class _Told(ast.NodeTransformer):
    """Puts the name of a step where the code waits for it."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def visit_Await(self, node: ast.Await) -> ast.AST:
        found: ast.AST = self.visit(node.value)
        return found

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(
                func=ast.Attribute(value=base, attr="step" | "child" | "wait_for"), args=[first, *_]
            ):
                if self._scope.is_flow(base):
                    named = text_of(keyword(node, "name"), self._scope) or text_of(first, self._scope)
                    return ast.Name(id=named or code(first))
        return self.generic_visit(node)
