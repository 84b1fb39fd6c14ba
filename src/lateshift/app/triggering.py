"""`@app.on_message(…)`, `@app.on_file(…)`, `@app.on_row(…)`, `@app.on_webhook(…)`, `@app.on(…)` and `app.emit(…)`: triggers as a
program makes them."""

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from lateshift.app.emitting import Emitting
from lateshift.clock import Clock
from lateshift.errors import OptionInvalid, TriggerInvalid, TriggerUnknown
from lateshift.model import checks
from lateshift.model.ids import JobId, new_member_id
from lateshift.model.queue import PLAIN, QueueSettings, is_sensitive
from lateshift.model.triggering.naming import event_pattern
from lateshift.model.triggering.sources import (
    MESSAGE_WINDOW,
    POLL_EVERY,
    SCAN_EVERY,
    SETTLE,
    BlobSource,
    EventSource,
    FileSource,
    MessageSource,
    RowSource,
    Source,
    Verify,
    WebhookSource,
)
from lateshift.model.triggering.trigger import BY_DATABASE, TRIGGER_NAME_LIMIT
from lateshift.runtime.loop import Part
from lateshift.store.contract import Store
from lateshift.store.urls import shown
from lateshift.task import Bound, Task
from lateshift.triggers.addresses import bare
from lateshift.triggers.declaring import Declaring
from lateshift.triggers.hooks import Delivered, deliver
from lateshift.triggers.open import open_source
from lateshift.triggers.patterns import PathPattern, literal
from lateshift.triggers.reader import Reader
from lateshift.triggers.schemes import refuse_misspelt_broker, refuse_misspelt_database
from lateshift.triggers.trigger import Decode, Trigger, first_parameter
from lateshift.webhooks import require_headers

T = TypeVar("T")

PREFETCH_MOST = 10_000
WINDOW_LEAST = timedelta(minutes=10)  # a signature is good for five minutes before its time and after it
HOOK_NAME = re.compile(r"[A-Za-z0-9_\-][A-Za-z0-9_.\-]*")


class Triggering(Emitting):
    """What an app does about triggers."""

    name: str
    clock: Clock

    def __init__(self) -> None:
        super().__init__()
        self._triggers: dict[str, Trigger] = {}

    @property
    @abstractmethod
    def tasks(self) -> Mapping[str, Task[..., Any]]: ...

    @property
    @abstractmethod
    def queues(self) -> Mapping[str, QueueSettings]: ...

    @property
    @abstractmethod
    def store(self) -> Store: ...

    @abstractmethod
    def task(self, function: Callable[..., Any], /) -> Task[..., Any]: ...

    @property
    def triggers(self) -> Mapping[str, Trigger]:
        """Those that this app's code makes, by name."""
        return MappingProxyType(self._triggers)

    def triggers_into(self, queue: str) -> list[str]:
        """Those whose jobs go into a queue, in words."""
        return [f"the trigger {name}" for name, it in self._triggers.items() if it.task.limits.queue == queue]

    def on_message(
        self,
        url: str,
        queue: str,
        *,
        key: str | Callable[[Any], str] | None = None,
        decode: Decode | None = None,
        prefetch: int = 100,
        window: timedelta = MESSAGE_WINDOW,
        options: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> Callable[[T], T]:
        """Each message on a queue of a broker is one job of the task that this decorates: amqp://, redis://, sqs://,
        azurestoragequeues:// or azureservicebus://, as kombu has them.

        The task's first parameter is given the message's body, read as JSON, or all of the message where it is annotated
        Message. `decode`: makes of a Message a call, the argument, or None to pass it over. `key`: what a message is known by,
        a field of its body or a function of the Message; without it, its id. For `window`, the same makes no second job.
        `prefetch`: so many are taken from the broker at a time. `options`: of kombu's
        transport, and ssl, heartbeat, login_method and connect_timeout of its connection.
        """
        if not 1 <= prefetch <= PREFETCH_MOST:
            raise TriggerInvalid(f"prefetch must be 1 to {PREFETCH_MOST:,}, not {prefetch!r}.")
        if checks.duration("window", window) <= timedelta(0):
            raise TriggerInvalid("window must be longer than nothing.")
        refuse_misspelt_broker(_url(url))
        _refuse_no_key(key)
        where = MessageSource(
            url=url, queue=checks.text("queue", queue, 1024), prefetch=prefetch, window=window,
            options=dict(options or {}), key=key,
        )  # fmt: skip
        return self._registering(where, f"{bare(url)} queue {queue}", name, decode)

    def on_file(
        self,
        pattern: str,
        *,
        settle: timedelta = SETTLE,
        renamed: bool = False,
        every: timedelta = SCAN_EVERY,
        decode: Decode | None = None,
        options: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> Callable[[T], T]:
        """Each new or changed file that matches, such as `inbox/*.csv` or `inbox/**/*.csv`, is one job; and each blob, where
        the pattern begins with s3://, az:// or gs://.

        The task's first parameter is given the path (of a blob, its URL), or all that is known where it is annotated FileChange.
        A file is taken once it has not changed for `settle`; at once if `renamed` says that files come whole, by a rename. `every`:
        what nobody told of is found by then. `options`: of obstore, for blobs.
        """
        where: FileSource | BlobSource
        for what, value in (("settle", settle), ("every", every)):
            _pause(what, value)
        checks.text("pattern", pattern, 1024)
        if "://" in pattern:
            root, path = _blobs(pattern)
            where = BlobSource(url=root, pattern=path, every=every, options=dict(options or {}))
        elif options:
            raise TriggerInvalid(
                f"options= are those of a store of blobs, and {pattern!r} names files of this machine. Leave options= out."
            )
        else:
            PathPattern(literal(pattern)[1])  # raises if nothing could ever match
            where = FileSource(pattern=pattern, settle=settle, renamed=renamed, every=every)
        return self._registering(where, shown(pattern), name, decode)

    def on_row(
        self,
        url: str,
        *,
        table: str,
        cursor: str,
        key: str = "id",
        behind: int | timedelta | None = None,
        every: timedelta = POLL_EVERY,
        from_start: bool = False,
        by: Literal["polling", "database"] = "polling",
        decode: Decode | None = None,
        name: str | None = None,
    ) -> Callable[[T], T]:
        """Each new or changed row of a table is one job. `cursor`: a column that only grows: a number, or the time of the last
        change. `key`: the column that names the row.

        The task's first parameter is given the row, or all that is known where it is annotated RowChange. A row that commits
        late is found if its cursor is at most `behind` the newest: 1,000 numbers or a minute, unless said. It begins with what
        comes after its first look, or `from_start`. `by="database"`: on the PostgreSQL that is the store, a trigger in the
        database writes the job in the very transaction that changes the row.
        """
        if by not in ("polling", "database"):
            raise TriggerInvalid(f'by= is "polling" or "database", not {by!r}.')
        if by == "database" and (behind is not None or from_start or decode is not None):
            raise TriggerInvalid(
                'by="database" tells of each change when it is made: leave behind=, from_start= and decode= out.'
            )
        refuse_misspelt_database(_url(url))
        where = RowSource(
            url=url, table=checks.text("table", table, 200), cursor=checks.text("cursor", cursor, 200),
            key=checks.text("key", key, 200), behind=_behind(behind), every=_pause("every", every), by=by,
            from_start=from_start,
        )  # fmt: skip
        about = f"{bare(url)} table {table}{BY_DATABASE if by == 'database' else ''}"
        return self._registering(where, about, name, decode)

    def on_webhook(
        self, name: str, *, verify: Verify, window: timedelta = MESSAGE_WINDOW, decode: Decode | None = None
    ) -> Callable[[T], T]:
        """Each delivery that is posted to /hooks/NAME of the HTTP API, and is genuine, is one job.

        `verify`: `github(…)`, `stripe(…)` or `standard_webhooks(…)` of lateshift.webhooks, with names of secrets; or a function of
        the headers, the body and the time that gives the delivery's id, or raises SignatureInvalid. The task's first parameter is
        given the body, read as JSON, or all of the delivery where it is annotated Message. For `window`, the same id makes no
        second job.
        """
        if not HOOK_NAME.fullmatch(checks.text("The name of a webhook", name, TRIGGER_NAME_LIMIT)):
            raise TriggerInvalid(
                f"{name!r} is no name of a webhook: it stands in its URL, so letters, digits and any of _ . - will do."
            )
        if not callable(verify):
            raise TriggerInvalid(
                'verify= says who may post, such as github("env:GITHUB_SECRET") of lateshift.webhooks.'
            )
        if checks.duration("window", window) < WINDOW_LEAST:
            raise TriggerInvalid(
                f"window must be at least {WINDOW_LEAST}: for so long a signature may be good."
            )
        where = WebhookSource(verify=verify, window=window)
        return self._registering(where, f"POST /hooks/{name}", name, decode)

    def on(self, pattern: str, *, name: str | None = None) -> Callable[[T], T]:
        """Each event that `app.emit` tells under a matching name, such as `order.*`, is one job: its first parameter is given
        the data, or the whole event where it is annotated Event."""
        where = EventSource(pattern=event_pattern(pattern))
        return self._registering(where, pattern, name, None)

    def readers(self) -> list[Part]:
        """What reads this app's triggers, for whoever runs its parts."""
        member = new_member_id()
        declaring = Declaring(
            self.store, self.name, lambda: [trigger.declared for trigger in self._triggers.values()],
            lambda: [trigger for trigger in self._triggers.values() if trigger.by_database],
        )  # fmt: skip
        read = [trigger for trigger in self._triggers.values() if trigger.is_read]
        return [
            declaring,
            *(
                Reader(self.store, trigger, member, self.clock, self.name, declaring.again)
                for trigger in read
            ),
        ]

    def declare_webhooks(self) -> None:
        """For a process that serves, with or without workers elsewhere: what is posted to it is known in the store. Blocking."""
        hooks = [trigger.declared for trigger in self._triggers.values() if trigger.is_webhook]
        if hooks:
            self.store.triggers.declare(hooks, app=self.name, whole=False)

    def deliver(self, name: str, headers: Mapping[str, str], body: bytes) -> Delivered:
        """Take what was posted to the webhook `name`; the HTTP API calls this. `headers`: names in small letters; one that stands
        twice is left out. Blocking. Raises TriggerUnknown, SignatureInvalid, QueueFull."""
        return deliver(self.store, self._webhook(name), self.name, self.declare_webhooks, headers, body)

    def expect_delivery(self, name: str, headers: Mapping[str, str]) -> None:
        """What can be said of a delivery before its body has come, so that nothing is held for one that is not let in. Raises
        TriggerUnknown, SignatureInvalid."""
        where = self._webhook(name).where
        assert isinstance(where, WebhookSource)
        require_headers(where.verify, headers)

    def _webhook(self, name: str) -> Trigger:
        trigger = self._triggers.get(name)
        if trigger is None or not trigger.is_webhook:
            raise TriggerUnknown(
                f"There is no webhook {name!r} here. `lateshift triggers list` shows those there are."
            )
        return trigger

    def retry_refused(self, id: UUID, *, by: str = "the caller") -> JobId | None:
        """Make a job of an event that was refused, with the code as it is now. None if the code passes it over. Raises what is
        wrong with it still."""
        found = self.store.triggers.find_refused(id)
        if found is None:
            raise TriggerUnknown(f"Nothing that was refused has the id {id}; it may have been retried.")
        trigger = self._triggers.get(found.trigger)
        if trigger is None:
            raise TriggerUnknown(f"The app {self.name} has no trigger {found.trigger!r}, which refused {id}.")
        call = trigger.call(trigger.again(found.raw, found.rest))
        if call is None:
            self.store.triggers.discard([id], by=by)
            return None
        return call.id if self.store.triggers.accept(id, call.take(), by=by) else None

    def _registering(
        self, where: Source, about: str, name: str | None, decode: Decode | None
    ) -> Callable[[T], T]:
        def register(what: T) -> T:
            given: Any = what
            bound: Any = given if isinstance(given, Task | Bound) else self.task(given)
            self._register_trigger(where, about, bound, name, decode)
            return bound  # type: ignore[no-any-return]

        return register

    def _register_trigger(
        self,
        where: Source,
        about: str,
        what: Task[..., Any] | Bound[..., Any],
        name: str | None,
        decode: Decode | None,
    ) -> None:
        task = what if isinstance(what, Task) else what.task
        if task.name not in self.tasks:
            raise OptionInvalid(f"The task {task.name!r} is not one of this app.")
        if isinstance(where, EventSource) and task.limits.unique:
            raise TriggerInvalid(
                f"{task.name} is unique, and whoever emits may not know its arguments. Leave unique= out, or enqueue it from a task."
            )
        first_parameter(task)
        others = task.arguments.required[1:]
        if decode is None and others:
            raise TriggerInvalid(
                f"{task.name} needs {', '.join(others)} too, and a trigger gives it what was seen, its first argument. Give the others "
                "defaults, or decode=, which may give a whole call."
            )
        _refuse_unfit(what)
        name = checks.line("The name of a trigger", task.name if name is None else name, TRIGGER_NAME_LIMIT)
        if name in self._triggers:
            raise TriggerInvalid(
                f"There are two triggers {name!r} in this app. Give one of them another name=."
            )
        self._triggers[name] = Trigger(
            name, where, about, what, decode, lambda: open_source(where, self.store.url),
            lambda queue: self.queues.get(queue, PLAIN).max_ready,
        )  # fmt: skip


def _refuse_unfit(what: Task[..., Any] | Bound[..., Any]) -> None:
    task, queue = (what.task, what.spec.queue) if isinstance(what, Bound) else (what, what.limits.queue)
    if is_sensitive(task.sender.queues, queue):
        raise TriggerInvalid(
            f"{task.name} is in the sensitive queue {queue}, and what a trigger cannot use is kept as it came, unsealed. Let it start a task of "
            "another queue that enqueues this one."
        )
    if isinstance(what, Bound) and (what.key is not None or what.is_numbered):
        raise TriggerInvalid(
            "A key or a number in a session is used once, and a trigger makes many jobs. Leave key= and sequence= out: each event "
            "makes one job as it is; decode= may give a call with a key of its own."
        )


def _pause(name: str, value: timedelta) -> timedelta:
    if checks.duration(name, value) < timedelta(0):
        raise TriggerInvalid(f"{name} must not be less than nothing.")
    return value


def _url(url: str) -> str:
    checks.text("url", url, 2048)
    if "://" not in url:
        raise TriggerInvalid(
            f"{shown(url)!r} is no URL: it begins with the kind of server, such as amqp:// or postgresql://"
        )
    return url


def _refuse_no_key(key: Any) -> None:
    if key is not None and not callable(key) and not (isinstance(key, str) and key):
        raise TriggerInvalid(
            f"key= is the name of a field of the body, or a function of the Message, not {key!r}."
        )


def _behind(behind: Any) -> int | timedelta | None:
    match behind:
        case None | bool():
            fits = behind is None
        case int():
            fits = behind >= 0
        case timedelta():
            fits = behind >= timedelta(0)
        case _:
            fits = False
    if not fits:
        raise TriggerInvalid(
            f"behind is a whole number or a timedelta, and not less than nothing, not {behind!r}."
        )
    return behind  # type: ignore[no-any-return]


def _blobs(pattern: str) -> tuple[str, str]:
    """`s3://bucket/in/*.csv` → the URL up to the first pattern, and the pattern of the paths below it."""
    parts = urlsplit(pattern)
    if parts.scheme not in ("s3", "az", "gs") or not parts.netloc:
        raise TriggerInvalid(
            f"{shown(pattern)!r}: blobs are found under s3://BUCKET/…, az://CONTAINER/… or gs://BUCKET/…"
        )
    path = pattern.split("://", 1)[1].partition("/")[2]
    if not path:
        raise TriggerInvalid(
            f"{shown(pattern)!r} names no blobs. Say which, such as {parts.scheme}://{parts.netloc}/in/*.csv"
        )
    PathPattern(path)  # raises if nothing could ever match
    return f"{parts.scheme}://{parts.netloc}", path
