"""Which dead letters a command means: by their ids, by a filter, or all of them."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from lateshift.cli.numbers import Whole
from lateshift.cli.short_ids import digits

C = TypeVar("C", bound=Callable[..., Any])


def which_letters(command: C) -> C:
    """[ID]… as `named`, the filters, --all as `every`, and --limit."""
    for option in (
        click.option("--limit", type=Whole(min=1), metavar="N", default=1000, show_default=True,
                     help="How many at most."),
        click.option("--all", "every", is_flag=True, help="Every dead letter."),
        click.option("--like", metavar="FINGERPRINT", help="Dead letters that died of this: `lateshift jobs dead` shows it."),
        click.option("--reason", metavar="REASON", help="Dead letters with this reason, such as worker_lost."),
        click.option("--task", metavar="NAME", help="Dead letters of this task."),
        click.option("--queue", metavar="NAME", help="Dead letters of this queue."),
        click.argument("named", type=digits, metavar="[ID]...", nargs=-1),
    ):  # fmt: skip
        command = option(command)
    return command


def refuse_unless_named(named: tuple[str, ...], every: bool, filters: Mapping[str, str | None]) -> None:
    """Raises UsageError unless it is said in one way."""
    if bool(named) + every + is_narrowed(filters) != 1:
        raise click.UsageError("Give job ids, or a filter (--task, --queue, --reason, --like), or --all.")


def is_narrowed(filters: Mapping[str, str | None]) -> bool:
    return any(value is not None for value in filters.values())
