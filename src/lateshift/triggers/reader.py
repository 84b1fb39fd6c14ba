"""Reads one trigger's source: one reader at a time over all machines, under a term; the others stand by."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta

from lateshift.clock import Clock
from lateshift.errors import LateshiftError, StoreError, TriggerInvalid
from lateshift.model.fingerprint import blanked
from lateshift.model.ids import MemberId
from lateshift.model.outcome import clip
from lateshift.model.triggering.trigger import ERROR_LIMIT, Arrival, Refused
from lateshift.runtime.leadership import Leadership
from lateshift.runtime.log import log
from lateshift.runtime.own_thread import OwnThread
from lateshift.store.contract import Store
from lateshift.store.crashpoints import crashpoint
from lateshift.store.trigger_contract import Standing
from lateshift.telemetry.liveness import has_failed
from lateshift.triggers.source import Incoming, Read, Source, SourceAway
from lateshift.triggers.trigger import Trigger

AT_ONCE = 500  # events in one commit
WAIT = 0.5  # seconds that a look at a quiet source may take; the term outlasts it
STAND_BY = timedelta(seconds=2)
PAUSED = timedelta(seconds=1)
FIRST_PAUSE = 0.5  # seconds after a source did not answer; doubled each time
LAST_PAUSE = 30.0
# Between two looks, however long the source would: the term is kept meanwhile.
LONGEST_PAUSE = timedelta(seconds=2)
TELL_EVERY = 10.0  # seconds after which it is told again that somebody looks
FULL = timedelta(milliseconds=500)  # until it is looked again whether the queue has room
ANOTHERS = timedelta(seconds=10)  # until it is looked again whether another app still has the trigger


class Reader:
    """Turned by a loop."""

    def __init__(
        self, store: Store, trigger: Trigger, member: MemberId, clock: Clock, app: str | None = None,
        declare: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self._store = store
        self._trigger = trigger
        self._name = trigger.name
        self._leadership = Leadership(store.locks, f"trigger {trigger.name}", member, clock)
        self._thread = OwnThread(f"lateshift-trigger {trigger.name}")
        self._source: Source | None = None
        self._term: int | None = None
        self._away = 0  # how often in a row the source did not answer
        self._app = app
        self._declare = declare
        self._stood = False  # whether it was there
        self._clock = clock
        self._told: tuple[str | None, int | None] | None = None
        self._told_at = 0.0
        self._complained: str | None = None  # what the log says keeps it from reading
        self._store_away = False

    async def turn(self) -> timedelta:
        try:
            pause = await self._thread.run(self.round)
        except StoreError as error:
            await self._thread.run(self._close)
            if not self._store_away:
                log.warning("trigger %s cannot reach the store: %s", self._name, error)
            self._store_away = True
            has_failed()
            return STAND_BY
        self._store_away = False
        return pause

    def round(self) -> timedelta:
        """One look, and what came of it is stored and acknowledged. Gives how long to pause. Blocking."""
        term = self._leadership.term()
        if term is None or term != self._term:  # whatever we hold of the source was read in another's time
            self._close()
            self._term = term
        if term is None:
            return STAND_BY
        standing = self._store.triggers.standing(self._name)
        if standing is None:
            self._close()
            if self._stood:  # an older release was started, which does not have it
                self._declare()
            return PAUSED
        self._stood = True
        if not self._is_ours(standing):
            self._declare()  # it becomes ours if the other app has no worker any more
            standing = self._store.triggers.standing(self._name)
        if standing is None or not self._is_ours(standing):
            self._give_way()
            return ANOTHERS
        if standing.paused:
            self._close()
            return PAUSED
        if self._no_room():
            return FULL
        try:
            if self._source is None:
                source = self._trigger.open()
                source.open(standing.position, Receipts(self._store, self._name, term))
                self._source = source
            read = self._source.read(AT_ONCE, WAIT)
            crashpoint("trigger.after_read")
            return self._store_all(self._source, read, term)
        except (SourceAway, TriggerInvalid) as error:
            return self._back_off(str(error))
        except StoreError:
            raise
        except Exception as error:  # a driver's own, or the program's
            return self._back_off(f"{type(error).__name__}: {error}", error)

    def resign(self) -> None:
        """Let another take over at once. Blocking."""
        self._close()
        self._thread.end()
        with suppress(StoreError):
            self._leadership.resign()

    def _store_all(self, source: Source, read: Read, term: int) -> timedelta:
        if read.events or read.position is not None:
            arrivals = [self._trigger.arrive(incoming) for incoming in read.events]
            if not self._take(source, read, arrivals, term):
                self._close()
                return STAND_BY
            crashpoint("trigger.after_commit")
            source.done(read.events)
            self._warn([arrival.refused for arrival in arrivals if arrival.refused is not None])
        self._tell(read.waits, read.lag)
        self._away = 0
        if self._complained is not None:
            self._complained = None
            log.info("trigger %s reads again", self._name)
        return timedelta(0) if read.more else min(read.pause, LONGEST_PAUSE)

    def _take(self, source: Source, read: Read, arrivals: Sequence[Arrival], term: int) -> bool:
        """All in one commit; one by one if something is wrong with one of them. False if the term is over."""
        take = self._store.triggers.take
        try:
            return (
                take(self._name, arrivals, term=term, position=read.position, keep=source.keep, lag=read.lag)
                is not None
            )
        except StoreError:
            raise
        except LateshiftError:
            for incoming, arrival in zip(read.events, arrivals, strict=True):
                if not self._take_one(source, incoming, arrival, term):
                    return False
            return take(self._name, [], term=term, position=read.position, lag=read.lag) is not None

    def _take_one(self, source: Source, incoming: Incoming, arrival: Arrival, term: int) -> bool:
        take = self._store.triggers.take
        try:
            return take(self._name, [arrival], term=term, keep=source.keep) is not None
        except StoreError:
            raise
        except LateshiftError as error:
            refused = self._trigger.refuse(incoming, str(error))
            return take(self._name, [refused], term=term, keep=source.keep) is not None

    def _warn(self, refused: Sequence[Refused]) -> None:
        if refused:
            log.warning(
                "trigger %s refused %d of what came, such as: %s (`lateshift triggers refused`)", self._name, len(refused),
                refused[0].reason,
            )  # fmt: skip

    def _no_room(self) -> bool:
        """Whether its queue holds as much as it may: then the source is left to keep what it has."""
        most = self._trigger.max_ready()
        if most is None or self._store.queues.waiting(self._trigger.queue, most) < most:
            return False
        self._tell(f"the queue {self._trigger.queue} is full: {most:,} jobs wait")
        return True

    def _is_ours(self, standing: Standing) -> bool:
        return self._app is None or standing.app == self._app

    def _give_way(self) -> None:
        """To the app that has a trigger of this name: its reader gets the term at once. Whoever declares has said so."""
        self._close()
        self._term = None
        self._leadership.resign()

    def _back_off(self, why: str, error: Exception | None = None) -> timedelta:
        self._close()
        self._tell(why)
        seconds = min(LAST_PAUSE, FIRST_PAUSE * 2.0 ** min(self._away, 10))
        self._away += 1
        self._complain(why, error)
        return timedelta(seconds=seconds)

    def _complain(self, why: str, error: Exception | None = None) -> None:
        """In the log once, until it is something else or it is over."""
        known = blanked(why)
        if known != self._complained:
            self._complained = known
            log.warning(
                "trigger %s: %s; it is tried again, at most every %g s", self._name, why.rstrip("."), LAST_PAUSE, exc_info=error
            )  # fmt: skip

    def _tell(self, error: str | None, lag: int | None = None) -> None:
        error = None if error is None else clip(error, ERROR_LIMIT)
        now = self._clock.monotonic()
        if (error, lag) != self._told or now >= self._told_at + TELL_EVERY:
            self._store.triggers.tell(self._name, error=error, lag=lag)
            self._told, self._told_at = (error, lag), now

    def _close(self) -> None:
        source, self._source = self._source, None
        if source is not None:
            source.close()


class Receipts:
    """See source.Receipts."""

    def __init__(self, store: Store, name: str, term: int) -> None:
        self._triggers = store.triggers
        self._name = name
        self._term = term

    def unseen(self, events: list[tuple[str, str]]) -> list[bool]:
        return self._triggers.unseen(self._name, events) if events else []

    def after(self, event: str, limit: int) -> list[str]:
        return self._triggers.receipts(self._name, event, limit)

    def forget(self, events: list[str], *, before: str | None = None) -> int:
        return self._triggers.forget(self._name, events, before=before, term=self._term)
