"""Which of the names and patterns of --queues stand for nothing yet: a typo looks like an idle worker."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lateshift.store.lines import served

if TYPE_CHECKING:
    from lateshift.app.app import Lateshift


def known_queues(app: "Lateshift") -> set[str]:
    """Those that its tasks name, those it declares, and those in the store. A bounded look."""
    return app.declared_queues() | {view.name for view in app.store.queues.list()}


def unmatched(patterns: Iterable[str], queues: Iterable[str]) -> list[str]:
    known = list(queues)
    return [pattern for pattern in patterns if not any(served(name, [pattern]) for name in known)]
