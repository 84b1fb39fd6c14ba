"""A user's program, named on the command line: `shop.py`, `shop.py:app`, `shop:app`, `pkg.mod`. Imported under one
name wherever it is needed, so that a worker and its child processes see the same module."""

import importlib
import os
import re
import sys
import traceback
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from types import ModuleType
from typing import Any

from lateshift.errors import AppInvalid, OptionInvalid


def find_app(spec: str) -> Any:
    """The Lateshift app of a program: the attribute after the colon, else `app`, else the only app in it. Raises
    AppInvalid, with a message that needs no traceback."""
    program, _, attribute = spec.partition(":")
    if not program:
        raise AppInvalid(f"{spec!r} names no program. Give a file (shop.py) or a module (shop:app).")
    if program.endswith(".py") or os.sep in program:
        module = _from_file(program)
    else:
        module = _from_name(program)
    app = _named(module, program, attribute) if attribute else _only(module, program)
    for (
        task
    ) in app.tasks.values():  # all names are defined by now: what cannot be read is said before anything runs
        _ = task.arguments, task.results
    return app


def _from_file(program: str) -> ModuleType:
    path = Path(program).resolve()
    if path.is_dir():
        raise AppInvalid(
            f"{program} is a folder. Name the file in it that makes the app, such as {program}/app.py."
        )
    if not path.is_file():
        raise AppInvalid(f"There is no file {program} in {Path.cwd()}. Check the path.")
    if path.suffix != ".py" or "." in path.stem:
        raise AppInvalid(f"{program} cannot be imported: a program's file is named like shop.py.")
    if path.stem in _needed():
        raise AppInvalid(
            f"{program} cannot be imported: the name {path.stem} is that of a module which Lateshift itself imports. Rename the file."
        )
    module = _load(path.stem, program, path.parent)
    if not _is_file_of(module, path):
        taken = getattr(module, "__file__", None) or "Python itself"
        raise AppInvalid(
            f"{program} cannot be imported: the name {path.stem} is taken by {taken}. Rename the file."
        )
    return module


def _needed() -> set[str]:
    """What Lateshift imports of others: in the program's folder, which is looked at first, it would be found instead."""
    try:
        wanted = [line for line in requires("lateshift") or () if "bench" not in line]
    except PackageNotFoundError:  # a folder of sources on the path
        return set()
    return {re.split(r"[^\w.-]", line)[0].lower().replace("-", "_") for line in wanted}


def _from_name(program: str) -> ModuleType:
    return _load(program, program, Path.cwd())


def _load(name: str, program: str, folder: Path) -> ModuleType:
    if sys.path[:1] != [str(folder)]:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise AppInvalid(
                f"There is no module {error.name} in {folder}, nor installed. Check the name, or name a file: shop.py."
            ) from error
        raise _failed(program, folder, error) from error
    except OptionInvalid:  # a setting in the environment or the file: the program is not to blame
        raise
    except (Exception, SystemExit) as error:
        raise _failed(program, folder, error) from error


def _failed(program: str, folder: Path, error: BaseException) -> AppInvalid:
    """What a traceback says at its end, and the line of the user's own code that led there."""
    what = traceback.format_exception_only(error)[-1].strip()
    return AppInvalid(f"{program} could not be imported: {what} ({_where(error, folder)})")


def _where(error: BaseException, folder: Path) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")
    ]
    own = [frame for frame in frames if _is_own(Path(frame.filename), folder)]
    last = (own or frames)[-1]
    return f"{last.filename}, line {last.lineno}"


def _is_own(path: Path, folder: Path) -> bool:
    installed = "site-packages" in path.parts
    return path.is_relative_to(folder) and not installed and path != Path(__file__)


def _is_file_of(module: ModuleType, path: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve() == path


def _named(module: ModuleType, program: str, attribute: str) -> Any:
    if not hasattr(module, attribute):
        found = ", ".join(_apps(module))
        has = f"Its apps: {found}." if found else "It holds no Lateshift app."
        raise AppInvalid(f"{program} has no {attribute!r}. {has}")
    value = getattr(module, attribute)
    if not _is_app(value):
        raise AppInvalid(f"{program}:{attribute} is no Lateshift app but a {type(value).__qualname__}.")
    return value


def _only(module: ModuleType, program: str) -> Any:
    apps = _apps(module)
    if "app" in apps:
        return apps["app"]
    if not apps:
        raise AppInvalid(f'{program} holds no Lateshift app. Make one in it: app = Lateshift("shop").')
    if len(apps) > 1:
        raise AppInvalid(
            f"{program} holds several apps: {', '.join(apps)}. Name one: {program}:{next(iter(apps))}."
        )
    return next(iter(apps.values()))


def _apps(module: ModuleType) -> dict[str, Any]:
    """The apps by name. One that has two names is found under the first, unless the other is `app`."""
    values = vars(module)
    found: dict[int, str] = {id(values["app"]): "app"} if _is_app(values.get("app")) else {}
    for name, value in values.items():
        if _is_app(value):
            found.setdefault(id(value), name)
    return {name: values[name] for name in found.values()}


def _is_app(value: object) -> bool:
    """Asked of its class: looking at the `store` of an app would open it."""
    return all(hasattr(type(value), name) for name in ("task", "tasks", "store"))
