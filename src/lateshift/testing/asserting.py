"""Was it enqueued? The arguments that are named must be equal; those left out may be anything."""

import inspect
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lateshift.errors import ArgumentsInvalid
from lateshift.task import Task
from lateshift.testing.ledger import Sent, called
from lateshift.testing.report import times

SHOWN = 20  # jobs in the message of a failed assertion


class Wanted:
    """What an assertion asks for. An option such as `queue` is the task's own argument where the task has one of that name."""

    def __init__(self, task: Task[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self.task = task
        names = task.arguments.names
        given = dict(kwargs)
        self.queue: str | None = None if "queue" in names else given.pop("queue", None)
        self.times: int | None = None if "times" in names else given.pop("times", None)
        try:
            self.arguments = dict(inspect.signature(task.function).bind_partial(*args, **given).arguments)
        except TypeError as error:
            raise ArgumentsInvalid(
                f"{task.name}: {error}. It takes ({', '.join(names)}); name the arguments that matter."
            ) from None

    def __str__(self) -> str:
        where = "" if self.queue is None else f" on {self.queue}"
        return f"{called(self.task.name, self.arguments)}{where}"

    def matches(self, sent: Sent) -> bool:
        return (
            sent.task == self.task.name
            and self.queue in (None, sent.queue)
            and all(self._same(name, wanted, sent) for name, wanted in self.arguments.items())
        )

    def _same(self, name: str, wanted: Any, sent: Sent) -> bool:
        if name not in sent.arguments:  # left to its default
            return bool(wanted == inspect.signature(self.task.function).parameters[name].default)
        return _equal(wanted, sent.arguments[name])

    def refuse(self, all_sent: Sequence[Sent], found: int) -> str:
        """Why an assertion fails: what was enqueued instead."""
        count = "not enqueued" if found == 0 else f"enqueued {times(found)}"
        wanted = f", not {times(self.times)}" if self.times and found else ""
        return "\n".join([f"{self} was {count}{wanted}.", *_instead(self.task.name, all_sent)])


def _instead(task: str, all_sent: Sequence[Sent]) -> list[str]:
    mine = [sent for sent in all_sent if sent.task == task]
    others = Counter(sent.task for sent in all_sent if sent.task != task)
    lines = [f"Enqueued of {task}:" if mine else f"No job of {task} was enqueued."]
    lines += [f"  {sent}" for sent in mine[:SHOWN]]
    if len(mine) > SHOWN:
        lines.append(f"  and {len(mine) - SHOWN} more")
    if others:
        lines.append("Of other tasks: " + ", ".join(f"{name} ({count})" for name, count in others.items()))
    return lines


def _equal(wanted: Any, found: Any) -> bool:
    """Also where JSON has made a list of a tuple."""
    if wanted == found:
        return True
    try:
        return _written(wanted) == _written(found)
    except (TypeError, ValueError):  # no JSON, and so no argument of a job
        return False


_written = msgspec.json.Encoder(order="deterministic").encode
