"""Settings: defaults < lateshift.toml < environment < arguments, and where each value came from."""

import os
import re
import tomllib
from collections.abc import Collection
from dataclasses import dataclass, field, fields
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from lateshift.errors import OptionInvalid

FILE = "lateshift.toml"
QUEUE_PATTERN = re.compile(r"[A-Za-z0-9_.:\-*?\[\]]+")
LOG_FORMATS = ("plain", "json")
NO_JOB_LOG = "off"
JOB_LOGS = ("DEBUG", "INFO", "WARNING", "ERROR", NO_JOB_LOG)
NEARLY = 0.92  # how alike two names are, of 1, when one is taken for a misspelling of the other


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting, with its default. In the environment LATESHIFT_NAME, in lateshift.toml name; durations in
    seconds there."""

    store: str = "sqlite:///lateshift.db"
    queues: tuple[str, ...] = ()  # which queues a worker serves, patterns allowed; empty is all
    concurrency: int = 500  # async tasks at once in a worker process
    threads: int = 16  # sync tasks at once in a worker process
    process_slots: int = max(1, os.cpu_count() or 1)  # process tasks at once in a worker process
    stop_time: timedelta = timedelta(seconds=25)  # how long running jobs get when a worker stops
    heartbeat: timedelta = timedelta(seconds=30)  # silence after which a member is dead
    unknown_delay: timedelta = timedelta(seconds=5)  # how long a job waits that this worker has no task for
    key_window: timedelta = timedelta(hours=24)  # how long an idempotency key counts
    log_format: str = "plain"  # of the lines that Lateshift's own commands log: plain, or json
    job_log: str = "INFO"  # from which level up what a body logs is kept with its job; off keeps nothing
    keys: tuple[str, ...] = field(default=(), repr=False)  # the key ring for sensitive queues, ID:BASE64 each
    keys_file: str = ""  # a file with the key ring instead, a key on each line
    sources: dict[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for name in ("concurrency", "threads", "process_slots"):
            if getattr(self, name) < 1:
                raise OptionInvalid(f"{name} must be at least 1, not {getattr(self, name)}.")
        for name in ("stop_time", "heartbeat", "key_window"):
            if getattr(self, name) < timedelta(0):
                raise OptionInvalid(f"{name} must not be negative.")
        for name, known in (("log_format", LOG_FORMATS), ("job_log", JOB_LOGS)):
            if getattr(self, name) not in known:
                raise OptionInvalid(
                    f"{name} cannot be {getattr(self, name)!r}: it is one of {', '.join(known)}."
                )
        for pattern in self.queues:
            if not QUEUE_PATTERN.fullmatch(pattern):
                raise OptionInvalid(
                    f"queues: {pattern!r} can be no queue. A pattern looks like images.* or mail-?."
                )
        if self.heartbeat < timedelta(seconds=1):
            raise OptionInvalid("heartbeat must be at least 1 second.")


def load(folder: Path | None = None, **arguments: Any) -> Settings:
    """The settings for a program started in `folder`; an argument that is None was not given."""
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    path = (folder or Path.cwd()) / FILE
    if path.is_file():
        try:
            table = tomllib.loads(path.read_text())
        except tomllib.TOMLDecodeError as error:
            raise OptionInvalid(f"{path} is no TOML: {error}.") from error
        known = {setting.name for setting in fields(Settings)} - {"sources"}
        if unknown := sorted(set(table) - known):
            raise OptionInvalid(
                f"{path}: there is no setting {unknown[0]!r}. Settings: {', '.join(sorted(known))}."
            )
        for name, value in table.items():
            values[name], sources[name] = _read(name, value, str(path)), str(path)
    variables = {
        _variable(setting.name): setting.name for setting in fields(Settings) if setting.name != "sources"
    }
    _refuse_misspelt(variables)
    for variable, name in variables.items():
        if os.environ.get(variable):
            values[name], sources[name] = (
                _read(name, os.environ[variable], variable),
                f"the environment ({variable})",
            )
    for name, value in arguments.items():
        if value is not None:
            values[name], sources[name] = value, "an argument"
    return Settings(**values, sources=sources)


def _variable(name: str) -> str:
    return f"LATESHIFT_{name.upper()}"


def _refuse_misspelt(variables: Collection[str]) -> None:
    """A variable that is nearly a setting's would be ignored in silence. Others, and longer ones, may be anybody's."""
    for given in os.environ:
        if given.startswith("LATESHIFT_") and not given.startswith(tuple(variables)):
            for meant in get_close_matches(given, variables, 1, NEARLY):
                raise OptionInvalid(f"There is no setting {given}. Did you mean {meant}?")


def _read(name: str, value: Any, source: str) -> Any:
    default = next(setting.default for setting in fields(Settings) if setting.name == name)
    try:
        match default:
            case timedelta():
                return timedelta(seconds=float(value))
            case tuple():
                parts = value.split(",") if isinstance(value, str) else value
                return tuple(str(part).strip() for part in parts if str(part).strip())
            case int():
                return int(value)
            case _:
                return str(value)
    except (TypeError, ValueError) as error:
        kind = {timedelta: "a number of seconds", tuple: "names with commas between", int: "a whole number"}
        wanted = kind.get(type(default), "text")
        raise OptionInvalid(f"{source}: {name} cannot be {value!r}; it is {wanted}.") from error
