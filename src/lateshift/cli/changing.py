"""--set NAME=JSON and --unset NAME: what is to change in the arguments of many jobs."""

from collections.abc import Callable, Sequence
from typing import Any

import click
import msgspec

from lateshift.dead_letters.resubmission import Plan
from lateshift.operating.changing import change_of


def read_change(
    sets: Sequence[str], unsets: Sequence[str]
) -> Callable[[dict[str, Any]], dict[str, Any]] | None:
    """A function from old arguments to new ones; None if nothing is to change."""
    new = dict(_pair(text) for text in sets)
    return change_of(new, unsets)


def refuse_unused(unsets: Sequence[str], plan: Plan) -> None:
    """A misspelt name would change nothing, in silence."""
    for name in unsets:
        if name not in plan.changed:
            raise click.UsageError(
                f"None of the jobs has an argument {name!r} to unset; nothing was written."
            )


def _pair(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise click.UsageError(f"--set {text!r} is not NAME=JSON, such as --set width=300.")
    try:
        return name, msgspec.json.decode(value)
    except msgspec.DecodeError:
        quoted = msgspec.json.encode(value).decode()
        raise click.UsageError(
            f"--set {name}: {value!r} is no JSON. Text stands in double quotes: --set '{name}={quoted}'."
        ) from None
