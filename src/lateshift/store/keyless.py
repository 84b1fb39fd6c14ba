"""Sealed jobs that wait for a key which no worker has: they go back and forth, and look like jobs that wait for their time."""

from collections.abc import Callable

from lateshift.store.contract import Store
from lateshift.store.seal_contract import SealedWaiting

QUEUES_LOOKED_AT = 100  # sensitive ones
WORKERS_LOOKED_AT = 1_000


def without_key(
    store: Store, most: int, shows: Callable[[str], bool] = lambda queue: True
) -> list[SealedWaiting]:
    """Of queues that may be looked at, by queue and key; `most` jobs of a queue are looked at. Nothing while no worker is there at all,
    which is told otherwise, nor while one has not said yet what it has."""
    queues = sorted(name for name in store.queues.concealed() if shows(name))[:QUEUES_LOOKED_AT]
    waiting = store.seals.waiting(queues, most) if queues else []
    if not waiting:
        return []
    members = store.reports.members(WORKERS_LOOKED_AT)
    workers = [member.serves for member in members if member.kind == "worker" and not member.dead]
    if not workers or None in workers:
        return []
    return [
        it
        for it in waiting
        if not any(who and who.takes_from(it.queue) and it.key in who.keys for who in workers)
    ]
