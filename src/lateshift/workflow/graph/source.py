"""The source of functions: found in the file that they came from, by the line where each begins."""

import ast
import inspect
import linecache
from collections.abc import Callable
from typing import Any, TypeAlias

from lateshift.errors import WorkflowInvalid

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

NESTED_MOST = 100  # expressions and blocks in one another; each takes several frames to read, of the 1,000 that Python has


class Sources:
    """Reads each file once."""

    def __init__(self) -> None:
        self._files: dict[str, dict[tuple[int, str], list[Function]]] = {}

    def of(self, function: Callable[..., Any]) -> Function:
        """Raises WorkflowInvalid, with a message that says why it is not to be had."""
        inner = inspect.unwrap(function)
        code = getattr(inner, "__code__", None)
        if code is None:
            raise WorkflowInvalid(f"{function!r} is not written in Python, so that its code cannot be read.")
        found = self._functions(code.co_filename, inner.__globals__).get(
            (code.co_firstlineno, code.co_name), []
        )
        if len(found) != 1:  # two lambdas in a line, say
            raise WorkflowInvalid(
                f"The code of {code.co_qualname} is not at line {code.co_firstlineno} of {code.co_filename} any more: the file has changed since it "
                "was imported. Start anew, and ask again."
            )
        if _is_deep(found[0]):
            raise WorkflowInvalid(
                f"An expression or a block of {code.co_qualname} is nested more than {NESTED_MOST} deep. Break it into several."
            )
        return found[0]

    def _functions(self, file: str, names: dict[str, Any]) -> dict[tuple[int, str], list[Function]]:
        if file not in self._files:
            linecache.checkcache(file)
            lines = linecache.getlines(file, names)  # the names know the loader, as of a module in an archive
            if not lines:
                raise WorkflowInvalid(
                    f"The source {file} is not there: a graph is read from the code as it was written, and typed or generated code has no "
                    "file. Draw a run of it instead: lateshift workflows graph --run ID."
                )
            self._files[file] = _functions_in(file, "".join(lines))
        return self._files[file]


def _functions_in(file: str, text: str) -> dict[tuple[int, str], list[Function]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise WorkflowInvalid(f"The source {file} cannot be read: {error}") from error
    found: dict[tuple[int, str], list[Function]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            found.setdefault((node.lineno, "<lambda>"), []).append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            line = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            found.setdefault((line, node.name), []).append(node)
    return found


def _is_deep(function: Function) -> bool:
    """Level by level, so that looking is not deep itself."""
    level: list[ast.AST] = [function]
    for _ in range(NESTED_MOST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return bool(level)
