"""A task, as the code of the program that is asked has it: what it is called, where it runs, and what it takes."""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from lateshift.task import Task

# Bytes of a schema that stands in a listing; a larger one is shown with its task alone.
SCHEMA_LISTED = 8 * 1024


class TaskDocument(Struct, frozen=True, kw_only=True):
    """`attempts`: in all, None of a workflow, whose steps have their own. `arguments`: their JSON Schema; None in a listing where it is over
    8 KiB."""

    name: str
    kind: Literal["task", "workflow"]
    queue: str
    priority: int
    attempts: int | None
    time_limit_seconds: float | None
    arguments: dict[str, Any] | None


def task_document(task: Task[..., Any], most: int | None = None) -> TaskDocument:
    """`most`: bytes of its schema."""
    limits, workflow = task.limits, task.is_workflow
    schema: dict[str, Any] | None = task.arguments.schema()
    if most is not None and len(msgspec.json.encode(schema)) > most:
        schema = None
    return TaskDocument(
        name=task.name, kind="workflow" if workflow else "task", queue=limits.queue, priority=limits.priority,
        attempts=None if workflow else limits.retry.attempts,
        time_limit_seconds=None if limits.time_limit is None else limits.time_limit.total_seconds(), arguments=schema,
    )  # fmt: skip
