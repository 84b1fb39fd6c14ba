"""What the flow is asked for in an expression: each becomes a node, in the order in which the code would come to it."""

import ast
import asyncio
import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from lateshift.errors import StepFailed, WorkflowInvalid
from lateshift.model.workflow.graph import NODES_MOST, NodeKind
from lateshift.workflow.graph.builder import Builder, End, Part, too_large
from lateshift.workflow.graph.callees import callee, undo_of
from lateshift.workflow.graph.frame import Comprehension, Frame, collected, each_of
from lateshift.workflow.graph.names import UNKNOWN, Scope, given_to, object_of, outside, unwrapped, world_of
from lateshift.workflow.graph.source import Function, Sources
from lateshift.workflow.graph.trouble import Trouble
from lateshift.workflow.graph.words import argument, code, keyword, text_of, time_of

HELPERS_DEEP = 10  # functions that call one another with the flow
HELPERS_MOST = (
    2_000  # times that such functions are read for one graph, also to see whether they ask for anything
)
ASKED = ("step", "child", "sleep", "wait_for", "emit")
HANDED_ON = (*ASKED, "gather")  # methods which, handed on, are called where nobody looks
NOT_READ = "its steps are not known here"


class Steps(ABC):
    """Reads expressions. Statements are read by whoever derives from it, for the functions that take the flow along."""

    def __init__(self, name: str, sources: Sources, frame: Frame) -> None:
        self._name = name
        self.builder = Builder(name)
        self.frame = frame
        self.troubles: list[list[Trouble]] = [[]]
        self._sources = sources
        self._inside: list[Function] = [frame.scope.node]
        self._helpers = 0

    @property
    def scope(self) -> Scope:
        return self.frame.scope

    @abstractmethod
    def block(self, statements: Sequence[ast.stmt]) -> None: ...

    def expression(self, node: ast.AST | None) -> None:
        match node:
            case None | ast.Lambda() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return
            case ast.Await(value=ast.Name(id=name)) if name in self.frame.later:
                self._together(self._parts(self.frame.later[name]))
            case ast.IfExp():
                self.expression(node.test)
                ways = [("yes", partial(self.expression, node.body)), ("no", partial(self.expression, node.orelse))]  # fmt: skip
                self.builder.branch(code(node.test, self.scope), ways)
            case ast.BoolOp(values=[first, *rest]):
                self._one_by_one(first, rest, go_on="yes" if isinstance(node.op, ast.And) else "no")
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                self._comprehension(node)
            case ast.Call():
                self._call(node)
            case ast.Attribute(value=base, attr=asked) if self.scope.is_flow(base):
                if asked in HANDED_ON:  # flow.id is of no interest
                    self._unknown(f"{code(node)} handed on", NOT_READ)
            case ast.Name() if self.scope.is_flow(node):
                self._unknown(f"{code(node)} handed on", NOT_READ)
            case _:
                for child in ast.iter_child_nodes(node):
                    self.expression(child)

    def defer(self, name: str, value: ast.expr) -> bool:
        """Whether what is assigned is begun only where the name is waited for; it is drawn there."""
        if name not in self.frame.awaited or name not in self.scope.once:
            return False
        found = self._begun(value)
        if not found and not (isinstance(value, ast.List) and not value.elts):
            return False
        if isinstance(value, Comprehension):
            self._iterated(value)
        self.frame.later[name] = found
        self.frame.made_at[name] = len(self.frame.loops)
        return True

    def may_raise(
        self, ends: Sequence[End], kind: type[BaseException] | None, said: str | None = None
    ) -> None:
        self.troubles[-1].append(Trouble(list(ends), kind, said))

    # -- calls ------------------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> None:
        match node.func:
            case ast.Attribute(value=base, attr=asked) if self.scope.is_flow(base):
                self._asked(asked, node)
            case ast.Attribute(value=ast.Name(id=name), attr="append") if name in self.frame.later:
                many = "each" if len(self.frame.loops) > self.frame.made_at[name] else None
                self.frame.later[name] += [(label or many, each) for label, each in self._begun(node.args[0])]
            case function if self.scope.value(function) is asyncio.gather:
                self._gather(node, of_flow=False)
            case _:
                self._arguments(node)
                self._follow(node)

    def _arguments(self, node: ast.Call) -> None:
        """But the flow itself: whoever is given that is followed."""
        if not (isinstance(node.func, ast.Attribute) and self.scope.is_flow(node.func.value)):
            self.expression(node.func)
        for each in [*node.args, *(each.value for each in node.keywords)]:
            if not self.scope.is_flow(each):
                self.expression(each)

    def _asked(self, asked: str, node: ast.Call) -> None:
        if asked == "gather":
            self._gather(node, of_flow=True)
            return
        self._arguments(node)
        scope, add = self.scope, self.builder.add
        match asked:
            case "step" | "child":
                self._step(asked, node)
            case "sleep":
                add(NodeKind.SLEEP, f"sleep {time_of(argument(node, 0, 'time'), scope)}")
            case "emit":
                add(NodeKind.EMIT, f"emit {self._told(argument(node, 0, 'name'))}")
            case "wait_for":
                limit = keyword(node, "timeout")
                is_limited = limit is not None and scope.value(limit) is not None
                note = f"at most {time_of(limit, scope)}" if is_limited else None
                wait = add(NodeKind.WAIT, f"wait for {self._told(argument(node, 0, 'name'))}", note=note)
                if is_limited:
                    self.may_raise([End(wait)], TimeoutError)

    def _told(self, name: ast.expr | None) -> str:
        return text_of(name, self.scope) or ("…" if name is None else code(name, self.scope))

    def _step(self, asked: str, node: ast.Call) -> None:
        first = argument(node, 0, "function" if asked == "step" else "workflow")
        runs = callee(first if first is not None else node.args[0] if node.args else node, self.scope)
        name = keyword(node, "name")
        label = text_of(name, self.scope) if name is not None else None
        is_child = asked == "child" and runs.kind is NodeKind.TASK
        added = self.builder.add(
            NodeKind.CHILD if is_child else runs.kind, label or runs.label, calls=runs.name, queue=None if is_child else runs.queue,
            undo=undo_of(keyword(node, "undo"), self.scope), note=runs.note,
        )  # fmt: skip
        self.may_raise([End(added)], StepFailed)

    # -- several at once --------------------------------------------------------------------------------------------

    def _gather(self, node: ast.Call, *, of_flow: bool) -> None:
        self._together(self._branches(node.args, of_flow=of_flow))

    def _branches(self, given: Sequence[ast.expr], *, of_flow: bool) -> list[tuple[str | None, Part]]:
        found: list[tuple[str | None, Part]] = []
        for each in given:
            many = collected(each)
            match many:
                case ast.Name(id=name) if self.frame.later.get(name):
                    found += self._parts(self.frame.later[name])
                case ast.List(elts=parts) | ast.Tuple(elts=parts):
                    found += self._branches(parts, of_flow=of_flow)
                case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                    self._iterated(many)
                    found.append((each_of(many), partial(self.expression, many.elt)))
                case _ if isinstance(each, ast.Starred) and of_flow:
                    label = f"branches of {code(many, self.scope)}"
                    found.append(("each", partial(self._unknown, label, "chosen at run time")))
                case _:
                    found.append((None, partial(self.expression, many)))
        return found

    def _iterated(self, node: Comprehension) -> None:
        for each in node.generators:
            self.expression(each.iter)

    def _parts(self, known: Sequence[tuple[str | None, ast.expr]]) -> list[tuple[str | None, Part]]:
        return [(label, partial(self.expression, each)) for label, each in known]

    def _together(self, branches: Sequence[tuple[str | None, Part]]) -> None:
        """What fails in a branch is raised when all have ended."""
        self.troubles.append([])
        join = self.builder.parallel([(label, partial(self._branch, part)) for label, part in branches])
        found = self.troubles.pop()
        if join is None:
            self.troubles[-1] += found
            return
        for kind, said in dict.fromkeys((trouble.kind, trouble.said) for trouble in found):
            self.may_raise([End(join)], kind, said)

    def _branch(self, part: Part) -> None:
        """A branch that raises has ended, too."""
        before = len(self.troubles[-1])
        part()
        for trouble in self.troubles[-1][before:]:
            if trouble.said is not None:
                self.builder.ends += trouble.ends

    def _begun(self, value: ast.expr) -> list[tuple[str | None, ast.expr]]:
        """What is asked for in it. Raises WorkflowInvalid if that is more than a graph may have: lists of lists grow fast."""
        found = list(islice(self._deferred(value), NODES_MOST + 1))
        if len(found) > NODES_MOST:
            raise too_large(self._name)
        return found

    def _deferred(self, value: ast.expr) -> Iterator[tuple[str | None, ast.expr]]:
        """What is asked for in it, and is not waited for there; with "each …" where it is asked for many times."""
        match value:
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                for each in parts:
                    yield from self._deferred(each)
            case ast.Starred(value=inner):
                yield from self._deferred(inner)
            case ast.Dict(values=parts):
                for each in parts:
                    yield from self._deferred(each)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                part = value.value if isinstance(value, ast.DictComp) else value.elt
                yield from ((each_of(value), each) for _, each in self._deferred(part))
            case ast.Name(id=name) if name in self.frame.later:
                yield from self.frame.later[name]
            case ast.Call(func=ast.Attribute(value=base, attr=asked)) if self.scope.is_flow(base):
                if asked in HANDED_ON:
                    yield None, value
            case ast.Call() if self._is_helper(value):
                yield None, value

    # -- functions that take the flow along ---------------------------------------------------------------------------

    def _helper(self, node: ast.Call) -> tuple[Function, Scope] | None:
        """The function that is called, and a scope for it; if it can have to do with the flow. Raises WorkflowInvalid if it cannot be read."""
        inner = self.scope.function(node.func)
        if inner is not None:
            function, around = inner
            given = given_to(function, node, self.scope, around)
            flows = {name for name, (value, scope) in given.items() if scope.is_flow(value)}
            return function, Scope(function, {}, flows=flows, around=around, given=given)
        if not self._takes_flow(node):
            return None
        value = unwrapped(self.scope.value(node.func))
        if value is UNKNOWN or not inspect.isroutine(value):
            raise WorkflowInvalid(NOT_READ)
        function = self._sources.of(value)
        world = world_of(value)
        bound = object_of(self.scope, node.func)
        given = given_to(function, node, self.scope, outside(world), bound=bound)
        flows = {name for name, (each, scope) in given.items() if scope.is_flow(each)}
        return function, Scope(function, world, flows=flows, given=given)

    def _is_helper(self, node: ast.Call) -> bool:
        try:
            return self._helper(node) is not None
        except WorkflowInvalid:
            return False

    def _takes_flow(self, node: ast.Call) -> bool:
        given = [*node.args, *(each.value for each in node.keywords)]
        return any(self.scope.is_flow(each) for each in given)

    def _follow(self, node: ast.Call) -> None:
        called = f"{code(node.func)}(…)"
        try:
            helper = self._helper(node)
        except WorkflowInvalid:
            self._unknown(called, NOT_READ)
            return
        if helper is None:
            return
        function, scope = helper
        if function in self._inside:
            self._unknown(called, "it calls itself")
        elif len(self._inside) > HELPERS_DEEP:
            self._unknown(called, "not followed so deep")
        else:
            self._read(function, scope)

    def _read(self, function: Function, scope: Scope) -> None:
        self._helpers += 1
        if self._helpers > HELPERS_MOST:
            raise WorkflowInvalid(
                f"The graph of {self._name} cannot be drawn: its functions call one another with the flow more than {HELPERS_MOST:,} times. Let "
                "children do parts of it: flow.child(…) is one node."
            )
        outer, self.frame = self.frame, Frame(scope)
        self._inside.append(function)
        try:
            if isinstance(function, ast.Lambda):
                self.expression(function.body)
            else:
                self.block(function.body)
            self.builder.ends += self.frame.returns
        finally:
            self._inside.pop()
            self.frame = outer

    def _unknown(self, label: str, note: str) -> None:
        added = self.builder.add(NodeKind.UNKNOWN, label, note=note)
        self.may_raise([End(added)], None)

    # -- parts of expressions ---------------------------------------------------------------------------------------

    def _one_by_one(self, first: ast.expr, rest: Sequence[ast.expr], go_on: str) -> None:
        """`and` and `or`: the rest only if the first did not decide."""
        self.expression(first)
        if rest:
            others = partial(self._one_by_one, rest[0], rest[1:], go_on)
            answers = [("yes", others), ("no", None)] if go_on == "yes" else [("yes", None), ("no", others)]
            self.builder.branch(code(first, self.scope), answers)

    def _comprehension(self, node: Any) -> None:
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._for_each(list(node.generators), parts)

    def _for_each(self, generators: list[ast.comprehension], parts: Sequence[ast.expr]) -> None:
        if not generators:
            for part in parts:
                self.expression(part)
            return
        first, *others = generators
        self.expression(first.iter)
        head = f"for {code(first.target)} in {code(first.iter, self.scope)}"
        self.builder.loop(head, "each", lambda: self._filtered(first.ifs, others, parts), "done")

    def _filtered(
        self, tests: list[ast.expr], others: list[ast.comprehension], parts: Sequence[ast.expr]
    ) -> None:
        if not tests:
            self._for_each(others, parts)
            return
        self.expression(tests[0])
        rest = partial(self._filtered, tests[1:], others, parts)
        self.builder.branch(code(tests[0], self.scope), [("yes", rest), ("no", None)])
