"""Which of the names and patterns of --queues stand for nothing yet: a typo looks like an idle worker. And which of the queues are another
app's too: its workers would take jobs that they have no task for."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lateshift.store.lines import served

if TYPE_CHECKING:
    from lateshift.app.app import Lateshift


def known_queues(app: "Lateshift") -> set[str]:
    """Those that its tasks name, those it declares, and those in the store. A bounded look."""
    return app.declared_queues() | {view.name for view in app.store.queues.list()}


def shared(app: "Lateshift") -> dict[str, list[str]]:
    """By the name of each other app that has living workers: the queues of this one's tasks that they serve as well."""
    ours = {task.limits.queue for task in app.tasks.values() if not task.limits.own}
    own = [queue for queue in ours if served(queue, app.settings.queues or None)]
    found: dict[str, set[str]] = {}
    for member in app.store.reports.members():
        if not member.dead and member.serves is not None and member.serves.app != app.name:
            both = [queue for queue in own if member.serves.takes_from(queue)]
            found.setdefault(member.serves.app, set()).update(both)
    return {name: sorted(queues) for name, queues in sorted(found.items()) if queues}


def unmatched(patterns: Iterable[str], queues: Iterable[str]) -> list[str]:
    known = list(queues)
    return [pattern for pattern in patterns if not any(served(name, [pattern]) for name in known)]
