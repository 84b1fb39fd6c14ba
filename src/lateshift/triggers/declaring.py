"""Tells the store what triggers the code of an app has, before they are read."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from lateshift.errors import StoreError, TriggerInvalid
from lateshift.model.triggering.trigger import NewTrigger
from lateshift.runtime.aside import aside
from lateshift.runtime.log import log
from lateshift.store.contract import Store
from lateshift.store.schedule_contract import Declared
from lateshift.telemetry.liveness import has_failed
from lateshift.triggers.trigger import Trigger

STAND_BY = timedelta(seconds=2)
LOOK_EVERY = timedelta(minutes=1)  # whether another release has removed what this one has
NOT_YET = timedelta(seconds=30)  # until what the database would not do is tried again: a table may come


class Declaring:
    """Turned by a loop."""

    def __init__(
        self, store: Store, app: str, triggers: Callable[[], Sequence[NewTrigger]],
        in_database: Callable[[], Sequence[Trigger]] = tuple,
    ) -> None:  # fmt: skip
        self._store = store
        self._app = app
        self._triggers = triggers
        self._in_database = in_database
        self._said = False
        self._taken: dict[str, str] = {}  # names that other apps have
        self._wrong: dict[str, str] = {}  # what keeps the database from writing the jobs of a trigger

    async def turn(self) -> timedelta:
        try:
            await aside(self.say)
        except StoreError as error:
            log.warning("the triggers cannot be declared yet: %s", error)
            has_failed()
            return STAND_BY
        return NOT_YET if self._wrong else LOOK_EVERY

    def say(self) -> None:
        """Blocking."""
        if self._said:
            self.again()
        else:
            self._declare()
        self._install()
        self._said = True

    def again(self) -> None:
        """What is not there any more though this code has it: an older release has declared what it has. Blocking."""
        told = self._store.triggers.declare(self._triggers(), app=self._app, whole=False)
        for name in (*told.added, *told.changed):
            if name not in told.inherited:
                log.warning(
                    "trigger %s was removed by another release of %s: it is here again", name, self._app
                )
        self._tell_of_others(told)

    def _declare(self) -> None:
        told = self._store.triggers.declare(self._triggers(), app=self._app)
        for what, names in (("new", told.added), ("changed", told.changed), ("gone", told.removed)):
            for name in names:
                log.info("trigger %s: %s", name, what)
        self._tell_of_others(told)

    def _tell_of_others(self, told: Declared) -> None:
        """Of each name once, until that changes."""
        for name, app in told.inherited.items():
            log.warning("trigger %s: taken over from the app %s, which has no worker any more", name, app)
        for name, app in told.taken.items():
            if self._taken.get(name) != app:
                log.error(
                    "trigger %s: the app %s has a trigger of this name, too, and has workers: this one makes no jobs. Give one of the two "
                    "another name=; if it is the same app, renamed, stop the old one", name, app,
                )  # fmt: skip
        self._taken = told.taken

    def _install(self) -> None:
        """Those whose jobs the database itself writes; and none any more of those that are read."""
        triggers, store = self._in_database(), self._store.triggers
        written = {trigger.name for trigger in triggers}
        otherwise = [
            trigger.name for trigger in self._triggers() if trigger.name not in written | self._taken.keys()
        ]
        triggers = [trigger for trigger in triggers if trigger.name not in self._taken]
        for name in store.uninstall(otherwise, app=self._app):
            log.info("trigger %s: gone from the database", name)
        for trigger in triggers:
            wrong = None
            try:
                if store.install(trigger.in_database, app=self._app):
                    log.info("trigger %s: the database writes its jobs", trigger.name)
            except TriggerInvalid as error:
                wrong = str(error)
            if wrong != self._wrong.get(trigger.name, ""):  # an earlier process may have told of something
                if wrong is not None:
                    log.error("trigger %s: %s", trigger.name, wrong)
                store.tell(trigger.name, error=wrong)
            self._wrong = {known: why for known, why in self._wrong.items() if known != trigger.name}
            if wrong is not None:
                self._wrong[trigger.name] = wrong
