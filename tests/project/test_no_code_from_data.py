"""Nothing that comes as data is ever run: no module of the package can do it, but for those that are named here, and while jobs, pages and
replies go their ways nothing does."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "lateshift"
MODULES = {
    "pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle", "joblib", "dbm", "code", "codeop", "runpy",
    "imp", "pty", "commands", "multiprocessing", "yaml",
}  # fmt: skip
BUILTINS = {"eval", "exec", "compile", "__import__", "execfile"}
CALLS = {
    "os.system", "os.popen", "os.execv", "os.execve", "os.execvp", "os.execvpe", "os.execl", "os.execlp", "os.spawnv", "os.spawnl",
    "os.posix_spawn", "importlib.import_module", "importlib.__import__", "importlib.util.spec_from_file_location",
    "importlib.util.module_from_spec", "importlib.machinery.SourceFileLoader", "pkgutil.resolve_name", "pydoc.locate",
    "subprocess.getoutput", "subprocess.getstatusoutput", "asyncio.create_subprocess_shell", "types.FunctionType", "types.CodeType",
}  # fmt: skip
ALLOWED = {
    (
        "worker/program.py",
        "importlib.import_module",
    ): "the program that somebody names on the command line, or its process host",
}


def dotted(node: ast.expr, aliases: dict[str, str]) -> str:
    """As it is called in full, whatever it was imported as."""
    match node:
        case ast.Name(id=name):
            return aliases.get(name, name)
        case ast.Attribute(value=value, attr=name):
            return f"{dotted(value, aliases)}.{name}"
    return "?"


def dangers(source: str) -> Iterator[str]:
    tree = ast.parse(source)
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases |= {each.asname: each.name for each in node.names if each.asname}
            yield from (each.name for each in node.names if each.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            aliases |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
            if (node.module or "").split(".")[0] in MODULES:
                yield node.module or ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in BUILTINS and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute | ast.Name) and (name := dotted(node, aliases)) in CALLS:
            yield name
        elif (
            isinstance(node, ast.Attribute)
            and dotted(node, aliases).startswith("builtins.")
            and node.attr in BUILTINS
        ):
            yield node.attr
        elif isinstance(node, ast.Call):
            for each in node.keywords:
                if each.arg == "shell" and not (
                    isinstance(each.value, ast.Constant) and not each.value.value
                ):
                    yield "shell="


def test_no_module_of_the_package_can_run_what_comes_as_data() -> None:
    found = {
        (str(path.relative_to(PACKAGE)), what)
        for path in PACKAGE.rglob("*.py")
        for what in dangers(path.read_text())
    }
    assert found == set(ALLOWED)


@pytest.mark.parametrize(
    "source",
    [
        "import pickle", "from pickle import loads as read", "import yaml\nyaml.load(x)", "import marshal as m", "import shelve",
        "eval(x)", "run = exec", "compile(x, y, z)", "__import__(x)", "import builtins\nbuiltins.eval(x)", "import os\nos.system(x)",
        "from os import system as run\nrun(x)", "import subprocess as s\ns.run(x, shell=True)", "run(x, shell=on)",
        "from importlib import import_module\nimport_module(x)", "import importlib.util\nimportlib.util.spec_from_file_location(x, y)",
        "import asyncio\nasyncio.create_subprocess_shell(x)", "def f():\n    import pickle",
    ],
)  # fmt: skip
def test_the_look_finds_it(source: str) -> None:
    assert list(dangers(source))


@pytest.mark.parametrize(
    "source", ["import re\nre.compile(x)", "run(x, shell=False)", "self.eval(x)", "'eval(x)'"]
)
def test_the_look_takes_nothing_else_for_it(source: str) -> None:
    assert not list(dangers(source))


def events(url: str, *more: str) -> list[str]:
    """What the interpreter was told of, in a process of its own: a hook cannot be taken away again."""
    command = [sys.executable, "-m", "tests.programs.audited_walk", url, *more]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    seen: list[str] = json.loads(done.stdout.splitlines()[-1])
    return seen


def test_while_jobs_pages_and_replies_go_their_ways_nothing_is_run_that_was_not_there(store_url: str) -> None:
    assert events(store_url) == []


def test_the_hook_would_see_it(store_url: str) -> None:
    told = " ".join(events(store_url, "--eval"))
    for event in ("compile", "exec", "pickle.find_class", "os.system"):
        assert event in told
