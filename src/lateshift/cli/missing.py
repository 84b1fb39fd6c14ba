"""A filter that finds nothing: most often a misspelt name, so that what there is is said."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import NoReturn

from lateshift.clock import SYSTEM
from lateshift.dead_letters import DeadLetters
from lateshift.errors import JobUnknown
from lateshift.store.contract import Store

NAMED = 5


def nothing_found(store: Store, filters: Mapping[str, str | None]) -> NoReturn:
    """Raises JobUnknown."""
    given = {name: value for name, value in filters.items() if value is not None}
    asked = ", ".join(f"{name} {value}" for name, value in given.items())
    groups = DeadLetters(store, {}, SYSTEM).groups().largest_first
    there = {
        "task": [group.task for group in groups],
        "reason": [group.reason for group in groups],
        "like": [group.fingerprint for group in groups],
        "queue": [queue.name for queue in store.queues.list() if queue.dead],
    }
    hints = [
        f"There are some with {name} {_likeliest(value, list(dict.fromkeys(there[name])))}."
        for name, value in given.items()
        if there[name] and value not in there[name]
    ]
    raise JobUnknown(" ".join([f"No dead letters with {asked}; nothing was resubmitted.", *hints]))


def unseen(store: Store, queue: str) -> str:
    """What to say of a queue that no job is in: nothing if there is one. It may be misspelt."""
    counts = {
        view.name: view.ready + view.scheduled + view.running + view.blocked for view in store.queues.list()
    }
    there = [name for name, count in counts.items() if count]
    if queue in there or not there:
        return ""
    return f" No job is in queue {queue}; there are some in {_likeliest(queue, there)}."


def _likeliest(value: str, there: list[str]) -> str:
    return ", ".join(get_close_matches(value, there, NAMED) or there[:NAMED])
