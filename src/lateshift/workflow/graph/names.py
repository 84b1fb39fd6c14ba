"""What a name in a workflow's code stands for: looked up where the function itself would find it, without running anything."""

import ast
import builtins
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from lateshift.workflow.graph.source import Function


class Unknown:
    """What is known only at run time."""


UNKNOWN = Unknown()
_NO_ARGUMENTS = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class Scope:
    """The names of one function. `flows`: those that are the flow. `given`: parameters, and what the caller gave for them. `around`: of a
    function inside another, that one."""

    def __init__(
        self, node: Function, world: Mapping[str, Any], *, flows: set[str], around: "Scope | None" = None,
        given: Mapping[str, tuple[ast.expr, "Scope"]] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        self.node = node
        self._world = world
        self._around = around
        self._given = given
        self.inner: dict[str, Function] = {}
        self.once: set[str] = set()  # names that are bound in one place
        bound = _bound(node, self.inner, self.once)
        parameters = {each.arg for each in parameters_of(node)}
        self._own = bound | parameters
        self.flows = flows - bound
        self._unchanged = parameters - bound
        if around is not None:
            self.flows |= around.flows - self._own

    def value(self, expression: ast.expr) -> Any:
        """The object that an expression names, or UNKNOWN."""
        match expression:
            case ast.Name(id=name):
                return self._named(name)
            case ast.Attribute(value=base, attr=name):
                return _attribute(self.value(base), name)
            case ast.Constant(value=value):
                return value
        return UNKNOWN

    def function(self, expression: ast.expr) -> "tuple[Function, Scope] | None":
        """A function inside this one, or around it, and the scope in which it was written."""
        if not isinstance(expression, ast.Name):
            return None
        name = expression.id
        if name in self.inner:
            return self.inner[name], self
        if name in self._given and name in self._unchanged:
            given, scope = self._given[name]
            return scope.function(given)
        if name in self._own or self._around is None:
            return None
        return self._around.function(expression)

    def is_flow(self, expression: ast.expr) -> bool:
        return isinstance(expression, ast.Name) and expression.id in self.flows

    def _named(self, name: str) -> Any:
        if name in self._given and name in self._unchanged:
            given, scope = self._given[name]
            return scope.value(given)
        if name in self._own:
            return UNKNOWN
        if self._around is not None:
            return self._around._named(name)
        return self._world.get(name, UNKNOWN)


def world_of(function: Callable[..., Any]) -> dict[str, Any]:
    """All that its code can name from outside."""
    inner = inspect.unwrap(function)
    cells = zip(inner.__code__.co_freevars, inner.__closure__ or (), strict=False)
    around: dict[str, Any] = {}
    for name, cell in cells:
        try:
            around[name] = cell.cell_contents
        except ValueError:  # not filled yet
            around[name] = UNKNOWN
    return {**vars(builtins), **inner.__globals__, **around}


def parameters_of(node: Function) -> list[ast.arg]:
    """Those that are given by place first."""
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def given_to(
    node: Function, call: ast.Call, scope: Scope, written: Scope, *, bound: ast.expr | None = None
) -> dict[str, tuple[ast.expr, Scope]]:
    """Which argument each parameter gets, as far as that is written there, or its default, which was written in the other scope.
    `bound`: the object of a method."""
    by_place, by_name = [*node.args.posonlyargs, *node.args.args], node.args.kwonlyargs
    arguments = [*([] if bound is None else [bound]), *call.args]
    found: dict[str, tuple[ast.expr, Scope]] = {}
    if not any(isinstance(each, ast.Starred) for each in arguments) and all(
        each.arg for each in call.keywords
    ):
        defaults = zip(reversed(by_place), reversed(node.args.defaults), strict=False)
        found = {each.arg: (default, written) for each, default in defaults}
        kept = zip(by_name, node.args.kw_defaults, strict=True)
        found |= {each.arg: (default, written) for each, default in kept if default is not None}
    for parameter, argument in zip(by_place, arguments, strict=False):
        if isinstance(argument, ast.Starred):
            break
        found[parameter.arg] = (argument, scope)
    return found | {each.arg: (each.value, scope) for each in call.keywords if each.arg is not None}


def outside(world: Mapping[str, Any]) -> Scope:
    """Where functions stand that are in no other."""
    return Scope(ast.Lambda(args=_NO_ARGUMENTS, body=ast.Constant(value=None)), world, flows=set())


def _bound(node: Function, inner: dict[str, Function], once: set[str]) -> set[str]:
    """The names that its body binds; those that are bound once also into `once`, and the functions among these into `inner`."""
    counted: dict[str, int] = {}
    functions: dict[str, Function] = {}
    waiting: list[ast.AST] = list(node.body) if isinstance(node.body, list) else [node.body]
    outer: set[str] = set()
    while waiting:
        here = waiting.pop()
        names: list[str] = []
        match here:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names = [here.name]
                if not isinstance(here, ast.ClassDef) and not here.decorator_list:
                    functions[here.name] = here
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as made):
                names, functions[name] = [name], made
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names = [name]
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names = [(each.asname or each.name).partition(".")[0] for each in aliases]
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                names = [name]
            case ast.MatchMapping(rest=str(name)):
                names = [name]
            case ast.Global(names=declared) | ast.Nonlocal(names=declared):
                outer |= set(declared)
        for name in names:
            counted[name] = counted.get(name, 0) + 1
        if not isinstance(here, _SCOPES) and not _is_lambda(here):
            waiting += ast.iter_child_nodes(here)
    once |= {name for name, number in counted.items() if number == 1}
    inner |= {name: made for name, made in functions.items() if name in once}
    return set(counted) - outer


def _is_lambda(node: ast.AST) -> bool:
    """Whether an assignment was told as a function already."""
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and len(node.targets) == 1


def _attribute(base: Any, name: str) -> Any:
    """Without running a property, or whatever else an object does when it is asked."""
    if base is UNKNOWN:
        return UNKNOWN
    try:
        found = inspect.getattr_static(base, name)
    except (AttributeError, TypeError):
        return UNKNOWN
    if isinstance(found, staticmethod | classmethod):
        return found.__func__
    is_plain = callable(found) or not hasattr(type(found), "__get__")
    return found if is_plain else UNKNOWN


def object_of(scope: Scope, expression: ast.expr) -> ast.expr | None:
    """What a method that is called so gets as its first argument; None if it is no method."""
    if not isinstance(expression, ast.Attribute):
        return None
    base = scope.value(expression.value)
    if base is UNKNOWN or inspect.ismodule(base):
        return None
    try:
        found = inspect.getattr_static(base, expression.attr)
    except (AttributeError, TypeError):
        return None
    on_itself = expression.attr in getattr(base, "__dict__", {})
    is_bound = inspect.isfunction(found) and not on_itself and not inspect.isclass(base)
    return expression.value if is_bound or isinstance(found, classmethod) else None


def unwrapped(function: Any) -> Any:
    """What a partial calls in the end."""
    while isinstance(function, partial):
        function = function.func
    return function
