"""A function of a workflow while it is read: where its ways lead, and what it has asked for and not waited for yet."""

import ast
from typing import TypeAlias

from lateshift.workflow.graph.builder import End
from lateshift.workflow.graph.names import Scope
from lateshift.workflow.graph.source import Function
from lateshift.workflow.graph.words import code

Comprehension: TypeAlias = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


class Loop:
    """What breaks out of a loop, and what goes on with its next turn."""

    def __init__(self) -> None:
        self.breaks: list[End] = []
        self.continues: list[End] = []


class Frame:
    """One function, while it is read. `later`: names of what was asked for and is waited for elsewhere, with what stands at each of its branches."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.returns: list[End] = []
        self.loops: list[Loop] = []
        self.later: dict[str, list[tuple[str | None, ast.expr]]] = {}
        self.made_at: dict[str, int] = {}  # how many loops there were around a list
        self.awaited = _awaited(scope.node)
        self.again: list[type[BaseException] | None] = []  # what a `raise` alone may raise

    def ways_out(self) -> dict[str, list[End]]:
        """What leaves a block without coming to its end, by what is told of it."""
        found = {"to return": self.returns}
        if self.loops:
            found |= {"to break": self.loops[-1].breaks, "to go on": self.loops[-1].continues}
        return found


def collected(given: ast.expr) -> ast.expr:
    """What a star unpacks; of a dictionary its values."""
    match given:
        case ast.Starred(
            value=ast.Call(func=ast.Attribute(value=inner, attr="values"), args=[], keywords=[])
        ):
            return inner
        case ast.Starred(value=inner):
            return inner
    return given


def each_of(node: Comprehension) -> str:
    return f"each {', '.join(code(each.target) for each in node.generators)}"


def _awaited(function: Function) -> set[str]:
    """Names that it waits for, alone or together with others."""
    found: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.Await(value=ast.Name(id=name)):
                found.add(name)
            case (
                ast.Call(func=ast.Attribute(attr="gather"), args=args)
                | ast.Call(func=ast.Name(id="gather"), args=args)
            ):
                values = [collected(each) for each in args]
                found |= {each.id for each in values if isinstance(each, ast.Name)}
    return found
