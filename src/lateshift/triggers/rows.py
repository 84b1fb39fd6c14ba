"""Rows of a table, found by a column that only grows.

A look begins `behind` the newest cursor that was known when the look before it began. Whoever committed since then, with a cursor
at most `behind` the newest of that moment, is met: no row is lost because many others came while we looked. Where there is much to look
at again, some looks are at new rows alone, and do not count as a look in this.

A time that is later than the database's own does not count as the newest: one of the year 2999 would hide all that come. Rows ahead
of time are looked at again in each look, and told by their receipts."""

import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from lateshift.errors import TriggerInvalid
from lateshift.model.triggering.events import RowChange
from lateshift.model.triggering.sources import RowSource
from lateshift.model.triggering.trigger import known_by
from lateshift.runtime.log import log
from lateshift.triggers import cursors
from lateshift.triggers.reader import LONGEST_PAUSE
from lateshift.triggers.row_table import Place, RowTable, refuse_two_libraries
from lateshift.triggers.row_values import plain_row
from lateshift.triggers.source import Incoming, Read, Receipts, SourceAway
from lateshift.triggers.unreadable import Unreadable

LOOKED_AT = 2000  # rows of which the cursor and the key are looked at together, for those that came late
NEW_AT_ONCE = 5000  # new rows in one look; then what came late meanwhile is looked for
RESTS = 4  # times as long as it took, if that was longer than a pause, until rows that came late are looked for again
LAG_MOST = 10_000  # rows that wait are counted so far
FORGET_AFTER = 1000  # receipts, until those behind the overlap are thrown away
_SORTED_BY = 200  # characters of a text that decide what may be thrown away; fewer keep more


class Rows:
    """See source.Source."""

    keep: timedelta | None = None

    def __init__(self, where: RowSource, store: str = "") -> None:
        self._where = where
        self._column = f"{where.table}.{where.cursor}"
        self._table = RowTable(where)
        refuse_two_libraries(where.url, store)
        self._receipts: Receipts | None = None
        self._newest: Any = None
        self._since: Any = None
        self._latest: Any = None  # that a cursor can be, when it was last asked; none if it holds no times
        self._some_ahead = False  # whether there are rows ahead of time
        self._looks: Iterator[Read] | None = None
        self._next = 0.0  # when the next look is due
        self._again_from = 0.0  # until then only new rows are looked for
        self._stored = FORGET_AFTER  # receipts that may be forgotten; unknown when it is opened
        self._told = b""  # the position that was told last
        self._seen: set[str] | None = None  # in the last look; None if they were many

    def open(self, position: bytes | None, receipts: Receipts) -> None:
        self._receipts = receipts
        self._looks = None
        try:
            self._table.open()
            self._stand(position)
        except TriggerInvalid as error:
            self._table.close()
            raise SourceAway(str(error)) from error
        except BaseException:
            self._table.close()
            raise

    def read(self, limit: int, wait: float) -> Read:
        if self._looks is None:
            left = self._next - time.monotonic()
            if left > 0 and self._where.every > LONGEST_PAUSE:
                return Read([], pause=timedelta(seconds=left))
            self._looks = self._look(limit)
        try:
            found = next(self._looks, None)
        except TriggerInvalid as error:  # of what is in the table, which may be mended
            raise SourceAway(str(error)) from error
        if found is None:
            self._looks = None
            return self.read(limit, wait)
        return found

    def done(self, events: list[Incoming]) -> None:
        self._stored += len(events)

    def close(self) -> None:
        self._table.close()
        self._looks = None

    def _stand(self, position: bytes | None) -> None:
        stood = None
        if position is not None:
            stood = cursors.read(self._column, position, database=self._table.database)
            if stood is None:
                self._begin_anew(position)
        if stood is not None:
            self._newest, self._since = (self._latest if self._is_ahead(each) else each for each in stood)
        elif not self._where.from_start:
            self._looks = self._look_first()

    def _look_first(self) -> Iterator[Read]:
        """What is there now is old: it gets receipts as far as it will be looked at again, so that what comes later, late or not, is told from it."""
        newest = last = self._table.newest()
        if self._is_ahead(newest):
            newest = self._table.newest(self._latest)
        newest = None if isinstance(newest, Unreadable) else newest
        for places in self._table.stream(self._floor(newest), LOOKED_AT):
            last = places[-1].cursor
            yield Read([self._old(place) for place in places], more=True)
        self._newest = newest if isinstance(last, Unreadable) or self._is_ahead(last) else last
        self._since = newest
        yield Read([], position=self._position(), more=True)

    def _look(self, limit: int) -> Iterator[Read]:
        """One pass over what came late and what is new. Its last answer says how long to pause."""
        self._forget()
        whole = time.monotonic() >= self._again_from
        newest, looked, took, seen = self._newest, 0, 0.0, set[str]()
        upto = self._asked_latest(self._latest) if self._some_ahead else None
        for places in self._looked_at_again(newest, upto) if whole else ():
            began = time.monotonic()
            unseen = self._unseen(places)
            took += 2 * (time.monotonic() - began)  # to read them took about as long
            looked += len(places)
            self._note(seen, places)
            for page in _pages(unseen, limit):
                late = self._table.load(page)
                self._note(seen, [self._table.place_of(row) for row in late])
                yield Read(self._events(late), more=True)
        every = self._where.every.total_seconds()
        if took > every:
            self._again_from = time.monotonic() + RESTS * took
        new: list[dict[str, Any]] = []
        met = False  # rows ahead of time, of which nothing was known when this look began
        place = None if newest is None else Place(newest, None)
        for _ in range(max(NEW_AT_ONCE, looked) // limit + 1):
            new = self._table.after(place, upto, limit)
            if new and upto is None and self._is_ahead(self._table.place_of(new[-1]).cursor):
                upto, met = self._latest, True
                new = self._table.after(place, upto, limit)
            if new:
                place = _further(place, self._table.place_of(new[-1]))
                if not isinstance(place.cursor, Unreadable):
                    self._newest = place.cursor
                self._note(seen, [self._table.place_of(row) for row in new])
            if len(new) < limit:
                break
            lag = self._table.waiting(self._newest, upto, LAG_MOST)
            yield Read(self._events(new), position=self._position(), more=True, lag=lag)
            new = []
        if whole:
            self._since, self._seen = newest, seen
        elif self._seen is not None:
            self._seen |= seen
        if self._seen is not None and len(self._seen) >= NEW_AT_ONCE:
            self._seen = None
        position = self._position()
        changed, self._told = position != self._told, position
        more = met or (place is not None and not new and self._newest != newest)
        self._next = time.monotonic() + (0 if more else every)
        yield Read(
            self._events(new), position=position if changed else None, more=more, pause=self._where.every,
            lag=None if more else 0,
        )  # fmt: skip

    def _looked_at_again(self, newest: Any, latest: Any) -> Iterator[list[Place]]:
        """Rows that were looked at before, or came late among those; and those that are ahead of time, if there are some."""
        if newest is not None:
            yield from self._places(self._floor(self._since), None, newest)
        if latest is not None:
            self._some_ahead = False
            for places in self._places(None, Place(latest, None), None):
                self._some_ahead = True
                yield places

    def _places(self, floor: Any, place: Place | None, upto: Any) -> Iterator[list[Place]]:
        while places := self._table.places(floor, place, upto, LOOKED_AT):
            yield places
            if len(places) < LOOKED_AT:
                return
            place = _further(place, places[-1])

    def _is_ahead(self, cursor: Any) -> bool:
        """Whether it is a time that is yet to come. The database is asked for its clock only if it may be."""
        if cursor is None:
            return False
        if self._latest is None or cursors.is_after(cursor, self._latest):
            self._asked_latest(cursor)
        if self._latest is None or not cursors.is_after(cursor, self._latest):
            return False
        if not self._some_ahead:
            log.warning(
                "%s holds times that are yet to come, such as %s: such rows make jobs, and do not count as the newest",
                self._column,
                cursor.text if isinstance(cursor, Unreadable) else cursor,
            )
        self._some_ahead = True
        return True

    def _asked_latest(self, like: Any) -> Any:
        """The latest that a cursor such as this can be now."""
        behind = cursors.overlap(like, self._where.behind, time=self._table.holds_times)
        if isinstance(behind, timedelta):
            self._latest = cursors.latest(like, *self._table.present(), behind)
        return self._latest

    def _position(self) -> bytes:
        return cursors.written(self._column, self._newest, self._since, database=self._table.database)

    def _begin_anew(self, position: bytes) -> None:
        """What has arrived from elsewhere must not be taken for what is here."""
        log.warning(
            "how far was read is not told of %s in %s, but %s: it begins anew",
            self._column,
            self._table.database,
            position.decode(errors="replace")[:200],
        )
        assert self._receipts is not None
        while events := self._receipts.after("", LOOKED_AT):
            if not self._receipts.forget(events):
                return  # another reads it by now

    def _floor(self, since: Any) -> Any:
        if since is None:
            return None
        return cursors.earlier(
            since, cursors.overlap(since, self._where.behind, time=self._table.holds_times)
        )

    def _unseen(self, places: Sequence[Place]) -> list[Place]:
        assert self._receipts is not None
        unseen = self._receipts.unseen([(_known(place), "") for place in places])
        return [place for place, new in zip(places, unseen, strict=True) if new]

    def _note(self, seen: set[str], places: Sequence[Place]) -> None:
        """For what is sorted by a collation, of which we know nothing: see _forget."""
        ordered = self._table.sorts_times or not places or cursors.is_ordered(places[0].cursor)
        if not ordered and len(seen) < NEW_AT_ONCE:
            seen.update(_known(place) for place in places)

    def _forget(self) -> None:
        """Receipts of what will not be looked at again. Of text only what the last look has not met is known to be such."""
        if self._stored < FORGET_AFTER or self._since is None:
            return
        assert self._receipts is not None
        if cursors.is_ordered(self._since) or self._table.sorts_times:
            self._receipts.forget([], before=cursors.sortable(self._floor(self._since))[:_SORTED_BY])
        elif self._seen is None:
            return
        else:
            last = ""
            while events := self._receipts.after(last, LOOKED_AT):
                last = events[-1]
                self._receipts.forget([event for event in events if event not in self._seen])
        self._stored = 0

    def _events(self, rows: Sequence[dict[str, Any]]) -> list[Incoming]:
        events: list[Incoming] = []
        for row in rows:
            place = self._table.place_of(row)
            told, wrong = plain_row(row)
            seen = RowChange(table=self._where.table, row=told)
            events.append(Incoming(cursors.event_of(*place), seen, wrong=wrong))
        return events

    def _old(self, place: Place) -> Incoming:
        return Incoming(cursors.event_of(*place), RowChange(table=self._where.table, row={}), old=True)


def _known(place: Place) -> str:
    return known_by(cursors.event_of(*place))


def _further(place: Place | None, next: Place) -> Place:
    """A page ends behind the one before; where it does not, Python sees less of the cursor than the database compares."""
    if place is not None and place == next:
        raise SourceAway(
            f"more rows than a page have the cursor {next.cursor}, or the database tells it finer than microseconds: use a column that "
            "is no finer, and a key that is unique"
        )
    return next


def _pages(places: Sequence[Any], limit: int) -> Iterator[Sequence[Any]]:
    return (places[start : start + limit] for start in range(0, len(places), limit))
