"""A filter or a name that finds nothing: most often a misspelt one, so that what there is is said."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import NoReturn

from lateshift.clock import SYSTEM
from lateshift.dead_letters.dead_letters import DeadLetters
from lateshift.errors import JobUnknown
from lateshift.model.explaining.standing import DIED_OF
from lateshift.store.contract import Store
from lateshift.store.taking import SHED

NAMED = 5
HELD_LOOKED_AT = 10_000  # held sessions among which one of the same name is looked for
REASONS = (*DIED_OF, SHED)
CANCELLED_BY = "cancelled by "


def nothing_found(store: Store, filters: Mapping[str, str | None], done: str) -> NoReturn:
    """Raises JobUnknown. `done`: what was to be done to them."""
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
    raise JobUnknown(" ".join([f"No dead letters with {asked}; nothing was {done}.", *hints]))


def unseen(store: Store, queue: str) -> str:
    """What to say of a queue that no job is in: nothing if there is one. It may be misspelt."""
    counts = {
        view.name: view.ready + view.scheduled + view.running + view.blocked for view in store.queues.list()
    }
    there = [name for name, count in counts.items() if count]
    if queue in there or not there:
        return ""
    return f" No job is in queue {queue}; there are some in {_likeliest(queue, there)}."


def unheard_of(reason: str) -> str:
    """What to say of a reason that found nothing: nothing if Lateshift gives it."""
    if reason in REASONS or reason.startswith(CANCELLED_BY):
        return ""
    close = get_close_matches(reason, REASONS, 1)
    meant = f" Did you mean {close[0]}?" if close else ""
    return (
        f"{reason} is no reason that Lateshift gives.{meant} It gives {', '.join(REASONS)} and `{CANCELLED_BY}NAME`; a task "
        "may give others with Cancel(…)."
    )


def held_elsewhere(store: Store, session: str) -> str:
    """What to say of a session that is not held in this queue: in which others one of that name is."""
    held = store.sessions.list(held=True, limit=HELD_LOOKED_AT)
    queues = [view.queue for view in held if view.name == session]
    if not queues:
        return ""
    return f" One of that name is held in queue {', '.join(queues[:NAMED])}: add --queue {queues[0]}."


def _likeliest(value: str, there: list[str]) -> str:
    return ", ".join(get_close_matches(value, there, NAMED) or there[:NAMED])
