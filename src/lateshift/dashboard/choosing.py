"""The queue that a page is about, where a sign-in is for some; and the names that a filter offers, of those that it may see."""

from msgspec import Struct, structs

from lateshift.api.asked import Asked
from lateshift.operating.queues import queue_names

NAMES_MOST = 200  # that a field offers
_SIGNS = frozenset("*?[")  # of a pattern


class Known(Struct, frozen=True):
    """Names by which something may be found. Others may be typed."""

    tasks: list[str]
    queues: list[str]


def own_queues(asked: Asked) -> tuple[str, ...]:
    """Those that a token is for, if it is for several and has named none: it is asked which. The one queue of a token that is for no
    other is named for it, in the query."""
    if asked.token is None or asked.query.queue is not None or not asked.token.queues:
        return ()
    own = tuple(asked.token.queues)
    if len(own) == 1 and not is_pattern(own[0]):
        asked.query = structs.replace(asked.query, queue=own[0])
        return ()
    asked.checked = True  # nothing is shown but the names that it may see
    exact = [name for name in own if not is_pattern(name)]
    patterns = [name for name in own if is_pattern(name)]
    return tuple(dict.fromkeys([*exact, *(_queues(asked) if patterns else ()), *patterns]))


def is_pattern(name: str) -> bool:
    return not _SIGNS.isdisjoint(name)


def known(asked: Asked) -> Known:
    """The tasks of this program, and the queues there are. What is of a queue that the token is not for is left out."""
    tasks = [name for name, task in asked.app.tasks.items() if asked.shows(task.limits.queue)]
    return Known(sorted(tasks)[:NAMES_MOST], _queues(asked))


def _queues(asked: Asked) -> list[str]:
    names = queue_names(asked.store, asked.app.declared_queues())
    return [name for name in names if asked.shows(name)][:NAMES_MOST]
