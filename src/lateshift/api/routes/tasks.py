"""The tasks that can be started, by the server's code. Those of Lateshift itself are nobody's to start, and are left out."""

from typing import Any

from msgspec import Struct

from lateshift.api.asked import Asked
from lateshift.api.paging import Paging, paged
from lateshift.api.route import Reach, Route
from lateshift.documents.tasks import SCHEMA_LISTED, TaskDocument, task_document
from lateshift.errors import TaskUnknown
from lateshift.model.access import Scope
from lateshift.task import Task


class TasksPage(Struct, frozen=True, kw_only=True):
    """By name. `next`: the cursor of the next page, if there may be one."""

    tasks: list[TaskDocument]
    next: str | None


def list_tasks(asked: Asked) -> TasksPage:
    """Tasks and workflows by name, where each runs and what it takes."""

    def read(after: str | None, limit: int) -> list[Task[..., Any]]:
        names = sorted(
            name
            for name, task in asked.app.tasks.items()
            if (after is None or name > after) and not task.limits.own and asked.shows(task.limits.queue)
        )
        return [asked.app.tasks[name] for name in names[:limit]]

    found, more = paged(asked, str, read, lambda task: task.name)
    return TasksPage(tasks=[task_document(task, SCHEMA_LISTED) for task in found], next=more)


def show_task(asked: Asked) -> TaskDocument:
    """One task: where it runs, how often it is tried, and the JSON Schema of its arguments."""
    task = asked.task
    asked.allow(task.limits.queue)
    if task.limits.own:
        raise TaskUnknown(f"{task.name} is of Lateshift itself: it is started by nobody else.")
    return task_document(task)


ROUTES = (
    Route(method="GET", path="/v1/tasks", handler=list_tasks, asks=Paging, gives=TasksPage, scope=Scope.READ, reach=Reach.OWN,
          links={"show_task": "tasks/0/name"}),
    Route(method="GET", path="/v1/tasks/{name}", handler=show_task, gives=TaskDocument, scope=Scope.READ, reach=Reach.ONE),
)  # fmt: skip
