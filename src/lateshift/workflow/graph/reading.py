"""The graph of a workflow, read from its code: what the flow is asked for, and the ways that lead there. Nothing of it is run."""

import ast
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any

from lateshift.errors import WorkflowInvalid
from lateshift.model.workflow.graph import NodeKind
from lateshift.workflow.graph.builder import Builder, End
from lateshift.workflow.graph.frame import Frame, Loop
from lateshift.workflow.graph.graph import Graph
from lateshift.workflow.graph.names import Scope, world_of
from lateshift.workflow.graph.source import Sources
from lateshift.workflow.graph.steps import Steps
from lateshift.workflow.graph.tidying import OTHERWISE
from lateshift.workflow.graph.trouble import Trouble, failing, raised, split, suppressed, told
from lateshift.workflow.graph.words import answers, code


def read(name: str, function: Callable[..., Any]) -> Graph:
    """The graph of the workflow that this function is. Raises WorkflowInvalid if its source is not to be had, or too much
    to read."""
    sources = Sources()
    try:
        node = sources.of(function)
    except WorkflowInvalid as error:
        raise WorkflowInvalid(f"The graph of {name} cannot be read from its code. {error}") from error
    flow = next(iter(inspect.signature(function).parameters))
    return _Reader(name, sources, Frame(Scope(node, world_of(function), flows={flow}))).read()


class _Reader(Steps):
    """Reads statements."""

    def read(self) -> Graph:
        node = self.scope.node
        assert not isinstance(node, ast.Lambda)
        self.block(node.body)
        self.builder.ends += self.frame.returns
        self.builder.finish()
        raised_so: dict[tuple[End, ...], str] = {}
        for trouble in self.troubles[0]:
            if trouble.said is not None:  # that a step may fail is no news
                raised_so.setdefault(tuple(trouble.ends), trouble.said)
        for ends, said in raised_so.items():
            self.builder.ends = list(ends)
            self.builder.add(NodeKind.FAIL, said)
        return self.builder.made()

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if not self.builder.ends:  # nothing comes here
                return
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.If():
                self._if(node)
            case ast.For() | ast.AsyncFor():
                self._for(node)
            case ast.While():
                self._while(node)
            case ast.Try() | ast.TryStar():
                self._try(node)
            case ast.With() | ast.AsyncWith():
                self._with(node)
            case ast.Match():
                self._match(node)
            case ast.Assert():
                self._assert(node)
            case ast.Return():
                self.expression(node.value)
                self._leave(self.frame.returns)
            case ast.Raise():
                self._raise(node)
            case ast.Break() if self.frame.loops:
                self._leave(self.frame.loops[-1].breaks)
            case ast.Continue() if self.frame.loops:
                self._leave(self.frame.loops[-1].continues)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if self.defer(name, value):
                pass
            case ast.Assign(targets=[ast.Tuple(elts=many)], value=ast.Tuple(elts=values)) if len(many) == len(
                values
            ):
                for target, value in zip(many, values, strict=True):
                    self._statement(ast.Assign(targets=[target], value=value))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if self.defer(
                name, value
            ):
                pass
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                pass  # it is read where it is called
            case _:
                for child in ast.iter_child_nodes(node):
                    self.expression(child)

    def _leave(self, others: list[End]) -> None:
        others += self.builder.ends
        self.builder.ends = []

    # -- branches ---------------------------------------------------------------------------------------------------

    def _if(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Constant):
            self.block(node.body if node.test.value else node.orelse)
            return
        self.expression(node.test)
        question, yes, no = answers(node.test, self.scope)
        self.builder.branch(
            question, [(yes, partial(self.block, node.body)), (no, partial(self.block, node.orelse))]
        )

    def _match(self, node: ast.Match) -> None:
        self.expression(node.subject)
        ways: list[tuple[str | None, Callable[[], None] | None]] = []
        is_whole = False
        for case in node.cases:
            is_rest = isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None
            is_whole = is_whole or (is_rest and case.guard is None)
            guard = "" if case.guard is None else f" if {code(case.guard, self.scope)}"
            label = OTHERWISE if is_rest and not guard else code(case.pattern) + guard
            ways.append((label, partial(self._case, case)))
        if not is_whole:
            ways.append((OTHERWISE, None))
        self.builder.branch(f"match {code(node.subject, self.scope)}", ways)

    def _case(self, case: ast.match_case) -> None:
        self.expression(case.guard)
        self.block(case.body)

    def _assert(self, node: ast.Assert) -> None:
        self.expression(node.test)
        question, yes, no = answers(node.test, self.scope)
        self.builder.branch(question, [(yes, None), (no, partial(self._fail, node))])

    def _fail(self, node: ast.Assert) -> None:
        self.may_raise(self.builder.ends, AssertionError, f"assert {code(node.test, self.scope)}")
        self.builder.ends = []

    # -- loops ------------------------------------------------------------------------------------------------------

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        self.expression(node.iter)
        head = f"for {code(node.target)} in {code(node.iter, self.scope)}"
        self._loop(node, NodeKind.LOOP, head, ("each", "done"))

    def _while(self, node: ast.While) -> None:
        if isinstance(node.test, ast.Constant) and node.test.value:
            self._loop(node, NodeKind.LOOP, "for ever", (None, None))
            return
        question, yes, no = answers(node.test, self.scope)
        if not self._draws([ast.Expr(node.test)]):
            self._loop(node, NodeKind.LOOP, f"while {question}", (yes, no))
            return
        again = self.builder.add(NodeKind.LOOP, "again")  # what the test asks for is asked for each time
        self.expression(node.test)
        self._loop(node, NodeKind.BRANCH, question, (yes, no), again)

    def _loop(
        self, node: ast.For | ast.AsyncFor | ast.While, kind: NodeKind, head: str, ways: tuple[str | None, str | None],
        back: str | None = None,
    ) -> None:  # fmt: skip
        into, out = ways
        turn = self.builder.fork(kind, head, ways)
        self.builder.ends = [End(turn, into)]
        self.frame.loops.append(Loop())
        self.block(node.body)
        loop = self.frame.loops.pop()
        self.builder.ends += loop.continues
        self.builder.back_to(back or turn)
        self.builder.ends = [End(turn, out)] if out is not None else []
        self.block(node.orelse)
        self.builder.ends += loop.breaks

    # -- failures ---------------------------------------------------------------------------------------------------

    def _raise(self, node: ast.Raise) -> None:
        self.expression(node.exc)
        if node.exc is not None:
            self.may_raise(self.builder.ends, *raised(node.exc, self.scope))
        for kind in (self.frame.again or [None]) if node.exc is None else []:
            self.may_raise(self.builder.ends, kind, "raise")
        self.builder.ends = []

    def _try(self, node: ast.Try | ast.TryStar) -> None:
        if not _leaves(node.finalbody) and not self._draws(node.finalbody):
            self._caught(node)
            self.block(node.finalbody)
            return
        self.troubles.append([])
        before = {told_as: list(ways) for told_as, ways in self.frame.ways_out().items()}
        for ways in self.frame.ways_out().values():
            ways.clear()
        self._caught(node)
        left, normal = self.troubles.pop(), self.builder.ends
        leaving = {told_as: list(ways) for told_as, ways in self.frame.ways_out().items()}
        for told_as, ways in self.frame.ways_out().items():
            ways[:] = before[told_as]
        into = [*normal, *chain(*leaving.values()), *failing(left, "on failure")]
        self.builder.ends = list(dict.fromkeys(into))
        self.block(node.finalbody)
        after = self.builder.ends
        for told_as, ways in self.frame.ways_out().items():
            if leaving[told_as]:
                ways += [End(end.source, end.label or told_as) for end in after]
        failed = [End(end.source, end.label or "after a failure") for end in after]
        for kind in dict.fromkeys(trouble.kind for trouble in left):
            self.may_raise(failed, kind, "raise")
        self.builder.ends = after if normal else []

    def _caught(self, node: ast.Try | ast.TryStar) -> None:
        before = len(self.builder)
        self.troubles.append([])
        fork = None
        if node.handlers and not self._draws(node.body):  # whatever else may be raised there
            fork = self.builder.add(NodeKind.BRANCH, f"try {code(node.body[0], self.scope)}")
        self.block(node.body)
        left = self.troubles.pop()
        places = [End(fork)] if fork is not None else self.builder.since(before)
        self.block(node.orelse)
        after = self.builder.ends
        for handler in node.handlers:
            mine, left = split(left, handler.type, self.scope)
            label = told(handler.type, self.scope)
            self.builder.ends = failing(mine or [Trouble(places, None)], label)
            outer, self.frame.again = self.frame.again, list(dict.fromkeys(each.kind for each in mine))
            self.block(handler.body)
            self.frame.again = outer
            after = [*after, *self.builder.ends]
        self.troubles[-1] += left
        self.builder.ends = after

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        self.troubles.append([])
        for item in node.items:
            self.expression(item.context_expr)
        self.block(node.body)
        left = self.troubles.pop()
        after = self.builder.ends
        for item in node.items:
            caught = suppressed(item, self.scope)
            if caught is not None:
                mine, left = split(left, caught, self.scope)
                after = [*after, *failing(mine, told(caught, self.scope))]
        self.troubles[-1] += left
        self.builder.ends = after

    def _draws(self, statements: Sequence[ast.stmt]) -> bool:
        """Whether the flow is asked for anything there. Tried out beside the graph."""
        kept = self.builder, self.troubles, self.frame
        self.builder, self.troubles = Builder("tried"), [[]]
        self.frame = Frame(self.scope)
        self.frame.later = {name: list(parts) for name, parts in kept[2].later.items()}
        self.frame.made_at = dict(kept[2].made_at)
        self.frame.loops = [Loop() for _ in kept[2].loops]
        try:
            self.block(statements)
            return bool(self.builder.since(1))
        finally:
            self.builder, self.troubles, self.frame = kept


def _leaves(statements: Sequence[ast.stmt]) -> bool:
    """Whether there is a way out of them but to their end."""
    leaving = (ast.Return, ast.Raise, ast.Break, ast.Continue)
    return any(isinstance(each, leaving) for statement in statements for each in ast.walk(statement))
