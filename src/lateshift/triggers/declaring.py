"""Tells the store what triggers the code of an app has, before they are read."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from lateshift.errors import StoreError
from lateshift.model.triggering.trigger import NewTrigger
from lateshift.runtime.aside import aside
from lateshift.runtime.log import log
from lateshift.store.contract import Store

STAND_BY = timedelta(seconds=2)
DONE = timedelta(hours=1)


class Declaring:
    """Turned by a loop, until it has been said once."""

    def __init__(self, store: Store, app: str, triggers: Callable[[], Sequence[NewTrigger]]) -> None:
        self._store = store
        self._app = app
        self._triggers = triggers
        self._said = False

    async def turn(self) -> timedelta:
        try:
            await aside(self.say)
        except StoreError as error:
            log.warning("the triggers cannot be declared yet: %s", error)
            return STAND_BY
        return DONE

    def say(self) -> None:
        """Blocking."""
        if self._said:
            return
        told = self._store.triggers.declare(self._triggers(), app=self._app)
        for what, names in (("new", told.added), ("changed", told.changed), ("gone", told.removed)):
            for name in names:
                log.info("trigger %s: %s", name, what)
        self._said = True
