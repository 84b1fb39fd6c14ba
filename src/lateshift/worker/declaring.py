"""The limits of a program's code, as its workers tell the store before they lease."""

from collections.abc import Mapping
from typing import Any

from lateshift.model.guard import Rule
from lateshift.store.contract import RuleBook
from lateshift.task import Task


def declare(book: RuleBook, tasks: Mapping[str, Task[..., Any]]) -> None:
    """Write what has changed; what this program had limited, and does not any more, is withdrawn."""
    senders = {id(task.sender): task.sender for task in tasks.values()}
    wanted = {(rule.scope, rule.name): rule for sender in senders.values() for rule in sender.rules()}
    for name, task in tasks.items():
        wanted.setdefault(("queue", task.limits.queue), Rule("queue", task.limits.queue))
        wanted["task", name] = (
            task.limits.limit.rule("task", name) if task.limits.limit else Rule("task", name)
        )
    known = {(rule.scope, rule.name): rule for rule in book.list()}
    news = [rule for key, rule in wanted.items() if known.get(key, Rule(*key)) != rule]
    if news:
        book.declare(news, by="code")
