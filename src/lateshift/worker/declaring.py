"""The limits and breakers of a program's code, as its workers tell the store before they lease."""

from collections.abc import Mapping
from typing import Any

from lateshift.model.gate import Gate
from lateshift.model.guard import Rule
from lateshift.store.contract import Store
from lateshift.task import Task


def declare(store: Store, tasks: Mapping[str, Task[..., Any]]) -> None:
    """What each app's code has now holds; what it had limited, and does not any more, is withdrawn."""
    for sender in {id(task.sender): task.sender for task in tasks.values()}.values():
        wanted = {(rule.scope, rule.name): rule for rule in sender.rules()}
        for name, task in tasks.items():
            if task.sender is sender:
                limit, queue = task.limits.limit, task.limits.queue
                wanted.setdefault(("queue", queue), Rule("queue", queue))
                wanted["task", name] = limit.rule("task", name) if limit else Rule("task", name)
        store.rules.declare(list(wanted.values()), by=sender.app)
        mine = {name: task for name, task in tasks.items() if task.sender is sender}
        breakers = {name: breaker for task in mine.values() for name, breaker in task.breakers.items()}
        gates = [Gate(name, breaker) for name, task in mine.items() for breaker in task.breakers]
        gates += [room for name in mine for room in sender.rooms(name)]
        store.breakers.declare(breakers, gates, tasks=mine, by=sender.app)
