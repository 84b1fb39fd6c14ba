"""Which servers take the deliveries of a webhook: each says so of itself, again and again. So what one of them misses is not taken for what
all do, and is forgotten with it."""

import platform
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta

from lateshift.errors import StoreError
from lateshift.model.ids import new_member_id
from lateshift.model.triggering.sources import WebhookSource
from lateshift.model.triggering.trigger import SILENCE
from lateshift.runtime.aside import aside
from lateshift.store.contract import Grip, Store
from lateshift.triggers.trigger import Trigger
from lateshift.webhooks import missing_secrets

EVERY = SILENCE / 3  # so that two that are late, or lost, take nothing from what is told
TAKEN_OF_LATE = timedelta(minutes=10)  # a delivery that came since tells that somebody takes them


class Hearing:
    """Of one server, at this address: turned by a loop beside it. Who has a secret holds the webhook's lock, one of them at a time; who
    has none says what is missing, and where."""

    def __init__(self, store: Store, app: str, triggers: Mapping[str, Trigger], url: str) -> None:
        self._store = store
        self._app = app
        self._where = f"the server at {url} on {platform.node()}"
        self._hooks = {
            name: trigger.where
            for name, trigger in triggers.items()
            if isinstance(trigger.where, WebhookSource)
        }
        self._me = new_member_id()
        self._grips: dict[str, Grip] = {}
        self._began = store.clock.now()
        self._said: dict[str, str] = {}

    async def turn(self) -> timedelta:
        with suppress(StoreError):  # others tell of that
            await aside(self.round)
        return EVERY

    def missing(self) -> dict[str, list[str]]:
        """Of each webhook the variables that are not set here, if there are some."""
        found = {name: missing_secrets(where.verify) for name, where in self._hooks.items()}
        return {name: missing for name, missing in found.items() if missing}

    def round(self) -> None:
        """Blocking."""
        missing = self.missing()
        for name, where in self._hooks.items():
            standing = self._store.triggers.standing(name)
            if standing is None or standing.app != self._app:
                continue
            names = missing.get(name, [])
            if names and len(names) == len(getattr(where.verify, "names", ())):
                self._miss(name, f"{self._where} misses {' or '.join(names)} in the environment")
            else:
                self._hear(name)

    def resign(self) -> None:
        """What it said goes with it. Blocking."""
        with suppress(StoreError):
            for grip in self._grips.values():
                self._store.locks.release(grip)
            for name in list(self._said):
                self._take_back(name)

    def _hear(self, name: str) -> None:
        grip = self._grips.get(name)
        if grip is None or not self._store.locks.renew(grip, SILENCE):
            grip = self._store.locks.acquire(f"trigger {name}", self._me, SILENCE)
            self._grips.pop(name, None)
            if grip is not None:
                self._grips[name] = grip
        if name in self._said:
            self._take_back(name)

    def _miss(self, name: str, what: str) -> None:
        if (grip := self._grips.pop(name, None)) is not None:
            self._store.locks.release(grip)
        view, now = self._store.triggers.get(name), self._store.clock.now()
        last = None if view is None else view.last_at
        if last is None or last < self._began or now - last >= TAKEN_OF_LATE:
            self._store.triggers.tell(name, error=what)
            self._said[name] = what

    def _take_back(self, name: str) -> None:
        view, said = self._store.triggers.get(name), self._said.pop(name)
        if view is not None and view.error == said:
            self._store.triggers.tell(name, error=None)
