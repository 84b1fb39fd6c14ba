"""What a program's trigger is made of: a source, and the task that its events become jobs of."""

import typing
from collections.abc import Callable
from functools import cached_property
from typing import Any

from lateshift.errors import LateshiftError, OptionInvalid, TriggerInvalid
from lateshift.model.triggering.events import KINDS, Event, FileChange, Message, RowChange, Seen
from lateshift.model.triggering.in_database import RowTrigger
from lateshift.model.triggering.naming import matches
from lateshift.model.triggering.sources import (
    KIND_NAMES,
    BlobSource,
    EventSource,
    FileSource,
    MessageSource,
    RowSource,
    WebhookSource,
)
from lateshift.model.triggering.sources import Source as Where
from lateshift.model.triggering.trigger import Arrival, NewTrigger, Subscription, known_by
from lateshift.task import Bound, Call, Task
from lateshift.triggers.refusing import refused, seen_again
from lateshift.triggers.source import Incoming, Source

Decode = Callable[[Any], Any]

GIVES: dict[type[Where], type[Seen]] = {
    MessageSource: Message, FileSource: FileChange, BlobSource: FileChange, RowSource: RowChange, EventSource: Event,
    WebhookSource: Message,
}  # fmt: skip
# What the content is, in words, and plain types that it never is.
CONTENTS: dict[type[Seen], tuple[str, tuple[type, ...]]] = {
    FileChange: ("a path", (int, float, bool, dict, list, tuple, set)),
    RowChange: ("a row, a dict", (int, float, bool, str, bytes, list, tuple, set)),
}


class Trigger:
    """`what`: a task, or a task with options. `decode`: makes of what was seen a call, an argument, or None to pass it over."""

    def __init__(
        self,
        name: str,
        where: Where,
        about: str,
        what: Task[..., Any] | Bound[..., Any],
        decode: Decode | None,
        open: Callable[[], Source],
        max_ready: Callable[[str], int | None],
    ) -> None:
        self.name = name
        self.where = where
        self.task = what if isinstance(what, Task) else what.task
        self.open = open
        self.about = about
        self._what = what
        self._decode = decode
        self._max_ready = max_ready

    @property
    def declared(self) -> NewTrigger:
        return NewTrigger(
            name=self.name, kind=KIND_NAMES[type(self.where)], about=self.about, task=self.task.name,
            subscription=self._subscription(),
        )  # fmt: skip

    @property
    def is_read(self) -> bool:
        """Whether somebody must look; the others are written where they happen."""
        return not isinstance(self.where, EventSource | WebhookSource) and not self.by_database

    @property
    def is_webhook(self) -> bool:
        return isinstance(self.where, WebhookSource)

    @property
    def by_database(self) -> bool:
        """Whether the database itself makes its jobs."""
        return isinstance(self.where, RowSource) and self.where.by == "database"

    def hears(self, event: str) -> bool:
        """Whether it subscribed to the application's events of that name."""
        return isinstance(self.where, EventSource) and matches(event, self.where.pattern)

    @property
    def in_database(self) -> RowTrigger:
        """What the database is told, if that is who makes its jobs. Raises TriggerInvalid."""
        assert isinstance(self.where, RowSource)
        spec = self._what.spec
        if spec.lane.careful or not self._what.bare:
            raise TriggerInvalid(
                f"{self.task.name} has a session, a tenant, a limit, a key, tags, or is a singleton or unique, which only Lateshift's own enqueue looks "
                'after. Leave by="database" out, or have a plain task enqueue it.'
            )
        return RowTrigger(
            name=self.name, url=self.where.url, table=self.where.table, cursor=self.where.cursor, key=self.where.key, spec=spec,
            parameter=first_parameter(self.task), whole=takes_whole(self.task, RowChange),
        )  # fmt: skip

    @property
    def queue(self) -> str:
        return self._what.spec.queue

    def max_ready(self) -> int | None:
        return self._max_ready(self.queue)

    def call(self, seen: Seen) -> Call[Any] | None:
        """The call that this becomes; None where the program passes it over. Raises what the program or the arguments do."""
        if self._decode is None:
            return self._what.call(seen if isinstance(seen, self._wants) else seen.content)
        argument = self._decode(seen)
        return argument if argument is None or isinstance(argument, Call) else self._what.call(argument)

    @cached_property
    def _wants(self) -> type[Seen] | tuple[()]:
        """All that was seen, where its first parameter is annotated so; else the content."""
        return next((kind for kind in KINDS if takes_whole(self.task, kind)), ())

    @property
    def misfit(self) -> str | None:
        """Why its task cannot take what it is given; None if nothing is known against it."""
        if self._decode is not None:
            return None
        name, given = first_parameter(self.task), GIVES[type(self.where)]
        wanted = typing.get_type_hints(self.task.function).get(name)
        words, never = CONTENTS.get(given, ("", ()))
        if wanted in KINDS and wanted is not given:
            return f"{name} is annotated {wanted.__name__}, and this trigger gives a {given.__name__}, or its content."
        if (typing.get_origin(wanted) or wanted) in never:
            return f"{name} is annotated {_written(wanted)}, and this trigger gives {words}, or a {given.__name__}."
        return None

    def arrive(self, incoming: Incoming) -> Arrival:
        if incoming.old:
            return Arrival(event=known_by(incoming.event), mark=incoming.mark)
        if incoming.wrong is not None:
            return self.refuse(incoming, incoming.wrong)
        try:
            call = self.call(incoming.seen)
        except LateshiftError as error:
            return self.refuse(incoming, str(error))
        except Exception as error:  # the program's own
            return self.refuse(incoming, f"{type(error).__name__}: {error}", ours=False)
        job = None if call is None else call.take()
        return Arrival(event=known_by(incoming.event), mark=incoming.mark, job=job)

    def refuse(self, incoming: Incoming, why: str, *, ours: bool = True) -> Arrival:
        kept = refused(incoming, why, self.queue, ours=ours)
        return Arrival(event=known_by(incoming.event), mark=incoming.mark, refused=kept)

    def again(self, raw: bytes, rest: bytes) -> Seen:
        """What was refused, as it was seen."""
        return seen_again(raw, rest)

    def _subscription(self) -> Subscription | None:
        if not isinstance(self.where, EventSource):
            return None
        whole = takes_whole(self.task, Event)
        place = self._what.place if isinstance(self._what, Bound) else None
        parameter = first_parameter(self.task)
        return Subscription(self.where.pattern, self._what.spec, parameter, whole, place, self._what.tags)


def takes_whole(task: Task[..., Any], kind: type[Seen]) -> bool:
    """Whether its first parameter asks for all that was seen, not for its content."""
    name = first_parameter(task)
    return typing.get_type_hints(task.function).get(name) is kind


def first_parameter(task: Task[..., Any]) -> str:
    if not task.arguments.names:
        raise OptionInvalid(f"{task.name} takes no argument, and a trigger gives it one: what was seen.")
    return task.arguments.names[0]


def _written(annotation: Any) -> str:
    return annotation.__name__ if type(annotation) is type else str(annotation)
