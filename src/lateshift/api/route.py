"""A route as a value: what is asked, who may, and what is given. The application, the OpenAPI document and the matrix of
permissions are all made of these."""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from inspect import iscoroutinefunction
from typing import Any, Literal, TypeAlias
from urllib.parse import quote
from uuid import UUID

from msgspec import Struct

from lateshift.api.cursor import Cursors
from lateshift.api.problem import Refused
from lateshift.app.app import Lateshift
from lateshift.errors import JobUnknown, TaskUnknown, no_job, no_run
from lateshift.model.access import Scope, Token, refusal, standing
from lateshift.model.ids import JobId
from lateshift.model.job import JobView
from lateshift.model.member import served
from lateshift.operating import names
from lateshift.schedules import Schedule
from lateshift.store.contract import Store
from lateshift.task import Task

EVENT_STREAM = "text/event-stream"
PUBLIC: Literal["public"] = "public"
Permission: TypeAlias = Scope | Literal["public"]
_PARAMETER = re.compile(r"{(\w+)(?::path)?}")


class Reach(StrEnum):
    """Which queues a route is about, and so what a token that is for some queues may do with it."""

    ONE = "one queue"  # its handler says which, before it shows or does anything
    OWN = "its queues"  # a listing, which leaves out the others
    ALL = "all queues"  # of no one queue: only a token for all queues may


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The first line of the handler's docstring says what it does."""

    method: Literal["GET", "POST"]
    path: str
    handler: "Handler"
    gives: Any  # the type of the answer
    scope: Permission | None = None  # of the token that asks
    reach: Reach | None = None
    besides: Scope | None = None  # a second scope that it asks for
    besides_for: tuple[str, ...] = ()  # only where one of these fields of the body is given
    takes: Any = None  # the type of the body
    asks: Any = None  # the type of the query
    status: int = 200  # of the answer
    keyed: bool = False  # an Idempotency-Key has a meaning of its own
    raw: bool = False  # the body is taken as it comes
    ends: bool = False  # of a stream, that it has an end; whoever has seen it is answered 204
    forgets: bool = False  # no answer of it is kept, whatever the key: it shows a secret
    previews: bool = False  # it says what another one would do, and does nothing; nor is its answer kept
    locates: bool = False  # it says where what it made is found
    dear: bool = False  # it looks at so much that it waits for its turn
    # On a thread: whether it looks at the steps of runs, for a token that is for some queues. Then that waits likewise; one for all never does.
    judges: Callable[["Asked"], bool] | None = None
    # On the loop: refuses what is known to be wrong before the body is read.
    before: Callable[["Asked"], None] | None = None
    media: tuple[str, ...] = ("application/json",)  # the kinds in which the answer may come
    # Fields of the answer that are left out of its ETag, as they change while nothing has; the tag is weak then.
    untagged: tuple[str, ...] = ()
    # Names of handlers that its answer leads to, and where in it stands what they are asked for by.
    links: Mapping[str, str] = field(default_factory=dict)

    @property
    def stream(self) -> bool:
        """Whether it gives any number of answers, one event each."""
        return self.media == (EVENT_STREAM,)

    @property
    def parameters(self) -> list[str]:
        return _PARAMETER.findall(self.path)

    @property
    def shown_path(self) -> str:
        return _PARAMETER.sub(r"{\1}", self.path)

    @property
    def remembers(self) -> bool:
        """Whether an Idempotency-Key has its answer kept; it may have a meaning of its own instead."""
        forgets = self.forgets or self.previews
        return self.method == "POST" and self.scope != PUBLIC and not self.keyed and not forgets

    def does(self, body: Any) -> bool:
        """Whether something is done with this body, and not only said what would be."""
        return self.method == "POST" and not self.previews and not getattr(body, "preview", False)

    @property
    def scopes(self) -> str:
        """In words, as the matrix has it."""
        if self.besides is None:
            return str(self.scope)
        return f"{self.scope}, {self.besides}" + (f" for {self.besides_in_words}" if self.besides_for else "")

    @property
    def besides_in_words(self) -> str:
        return " or ".join(self.besides_for)

    @property
    def always(self) -> list[Scope]:
        """The scopes that every request needs; none if it is public."""
        besides = [] if self.besides is None or self.besides_for else [self.besides]
        return [self.scope, *besides] if isinstance(self.scope, Scope) else []

    @property
    def needs(self) -> str:
        """The same as RFC 6750 has it."""
        return " ".join(self.always)

    @property
    def about(self) -> str:
        return (self.handler.__doc__ or "").strip()

    def check(self) -> None:
        """Deny by default: what does not say who may, is not served. Raises TypeError."""
        if self.scope != PUBLIC and not isinstance(self.scope, Scope):
            raise TypeError(f"{self.method} {self.path} declares no scope: say who may.")
        if self.scope != PUBLIC and self.reach is None:
            raise TypeError(f"{self.method} {self.path} does not say which queues it is about.")
        if self.besides_for and (
            self.besides is None or not set(self.besides_for) <= set(self.takes.__struct_fields__)
        ):
            raise TypeError(
                f"{self.method} {self.path}: {self.besides_in_words} is no field of its body that a scope is asked for."
            )
        if self.remembers and iscoroutinefunction(self.handler):
            raise TypeError(
                f"{self.method} {self.path}: what is done once for an Idempotency-Key is done on one thread; its handler is a plain function."
            )
        if (self.dear or self.judges is not None) and (
            self.scope == PUBLIC or iscoroutinefunction(self.handler)
        ):
            raise TypeError(
                f"{self.method} {self.path}: what looks at a lot is asked for by a token, and runs on a thread."
            )
        if not self.about:
            raise TypeError(
                f"{self.method} {self.path}: its handler has no docstring, which the document needs."
            )


class Asked:
    """A request that is read and checked, in the hands of a handler."""

    def __init__(
        self, *, app: Lateshift, route: Route, token: Token | None, path: Mapping[str, str], query: Any, body: Any, key: str | None,
        last_event: str | None = None, accepts: str = "", headers: Sequence[tuple[str, str]] = (), prefix: str = "",
    ) -> None:  # fmt: skip
        self._app = app
        self.prefix = prefix  # before all paths, where this is mounted in another application
        self.token = token
        self.query = query
        self.body = body
        self.key = key
        self.last_event = last_event
        self.accepts = accepts  # the header, as it came
        self.checked = False  # whether its queue was looked at
        self.judged = 0  # steps of runs that were looked at, to say whether it may
        self._route = route
        self.path = path
        self._headers = headers

    @property
    def headers(self) -> dict[str, str]:
        """Names in small letters. One that stands twice is left out: nobody knows which is meant."""
        names = [name for name, _ in self._headers]
        return {name: value for name, value in self._headers if names.count(name) == 1}

    @property
    def app(self) -> Lateshift:
        """Where the route is about one queue, only for whoever has looked at it: a handler that forgets to can do nothing."""
        if self._route.reach is Reach.ONE and not self.checked:
            raise RuntimeError(
                f"{self._route.method} {self._route.path} is about one queue: look at it first, by allow(), job() or schedule()."
            )
        return self._app

    @property
    def store(self) -> Store:
        return self.app.store

    @property
    def task(self) -> Task[..., Any]:
        """The task that the path names. One whose own queue the token is not for is unknown to it. Raises TaskUnknown."""
        if not self.knows_task(self.name):
            raise self._no_task(self.name)
        return self.find_task(self.name)

    def knows_task(self, name: str) -> bool:
        """Whether a token that is for some queues hears of such a task; one for all is told of what there is not, too."""
        task = self._app.tasks.get(name)
        if self.token is None or self.sees_all:
            return True
        return task is not None and served(task.limits.queue, self.token.queues)

    def _no_task(self, name: str) -> TaskUnknown:
        return TaskUnknown(f"The app {self._app.name} has no task {name!r}.")

    def find_task(self, name: str) -> Task[..., Any]:
        """Raises TaskUnknown; the names there are, are told to those who may see all."""
        if name not in self._app.tasks and not self.sees_all:
            raise self._no_task(name)
        return self._app.find_task(name)

    def task_to_run(self, queue: str | None) -> Task[..., Any]:
        """The same, if the token is for its own queue and for the one where it is to run. What Lateshift itself has as tasks, such as
        deliveries that sign with a secret, is started by nobody else. Raises TaskUnknown, Refused."""
        task = self.task
        if task.limits.own:
            raise Refused(
                403, "task-forbidden", f"{task.name} is of Lateshift itself: it is started by nobody else."
            )
        self.allow(task.limits.queue)
        if queue is not None:
            self.allow(queue)
        return task

    def allow_task(self, name: str) -> None:
        """Raises Refused unless the token is for the task's own queue, which is not named: who says what it is given, runs it."""
        if (task := self._app.tasks.get(name)) is None:
            return
        if not self.knows_task(name):
            raise Refused(
                403, "queue-forbidden", f"The task {name} is declared with a queue that this token is not for: it takes no arguments from it."
            )  # fmt: skip
        self.allow(task.limits.queue)

    def check_besides(self) -> None:
        """Raises Refused unless the token is good for the second scope too, where the body asks for one."""
        given = [name for name in self._route.besides_for if getattr(self.body, name, None) is not None]
        if given:
            self.need_besides(given[0])

    def need_besides(self, field: str) -> None:
        """The same of a field that asks for it by what it says."""
        scope = self._route.besides
        assert scope is not None, "its route names the scope"
        if self.token is None or standing(self.token, scope, self._app.store.clock.now()) is not None:
            raise Refused(
                403, "scope-forbidden", f"Other arguments ask for the scope {scope} besides.", field=field
            )

    def job(self) -> JobView:
        """The job that the path names, if the token is for its queue. Raises JobUnknown."""
        return self._allowed(self._app.store.reports.job(self.id))

    def run_job(self) -> JobView:
        """The same of a run. Raises RunUnknown."""
        try:
            return self.job()
        except JobUnknown:
            raise no_run(self.id) from None

    def _allowed(self, view: JobView | None) -> JobView:
        if view is None:
            raise no_job(self.id)
        self.allow(view.queue)
        return view

    async def ajob(self, *, whole: bool = True) -> JobView:
        """The same from the loop: those who ask at the same time share a look. `whole`: else it is slim."""
        return self._allowed(await self._app.client.aview(self.id, whole=whole))

    def schedule(self) -> Schedule:
        """The schedule that the path names, likewise; one of a queue that the token is not for is to it as one that is not there. Raises
        ScheduleUnknown; the names there are, are told to those who may see all."""
        view = self._app.store.schedules.get(self.name)
        queue = None if view is None else view.job.spec.queue
        self.allow(queue if queue is not None and self.shows(queue) else None)
        return names.schedule(self._app.store, self.name)

    @property
    def by(self) -> str:
        """For the audit."""
        return f"token {self.token.name}" if self.token else "nobody"

    @property
    def name(self) -> str:
        return self.path["name"]

    @property
    def step(self) -> str:
        return self.path["step"]

    @property
    def id(self) -> UUID:
        text = self.path["id"]
        try:
            return UUID(text)
        except ValueError:
            raise Refused(
                404,
                "id-unknown",
                f"{text!r} is no id: one looks like 01936f2e-8c1a-7000-8000-5b1d6c0e9a42, as listings give them.",
            ) from None

    def jobs(self, ids: Sequence[JobId]) -> list[JobView | None]:
        """Those that a request names, each once and slim, if the token is for the queue of every one; None for what is not there."""
        found = self._app.store.reports.named(list(dict.fromkeys(ids)), whole=False)
        for queue in sorted({view.queue for view in found if view is not None}):
            self.allow(queue)
        self.checked = True
        return found

    def allow(self, queue: str | None) -> None:
        """Raises Refused unless the token is for this queue; None is all of them."""
        scope = self._route.scope
        if self.token is None or not isinstance(scope, Scope):
            raise RuntimeError(
                f"{self._route.method} {self._route.path} is for anybody: there is nobody to look at."
            )
        if refusal(self.token, scope, queue, self._app.store.clock.now()) is not None:
            raise no_queue(self.token, queue, self._route)
        self.checked = True

    def link(self, *parts: str) -> str:
        """Where something of this API is found, wherever it is mounted: its path, as it goes out."""
        return quote("/".join((f"{self.prefix}/v1", *parts)))

    @property
    def sees_all(self) -> bool:
        """Whether the token is for all queues."""
        return self.token is None or not self.token.queues

    def shows(self, queue: str) -> bool:
        """Whether a listing shows what is of this queue."""
        self.checked = True
        return self.token is None or served(queue, self.token.queues or None)

    @property
    def cursors(self) -> Cursors:
        """Of this listing with these filters, for this token."""
        filters = {
            name: getattr(self.query, name)
            for name in self.query.__struct_fields__
            if name not in ("cursor", "limit")
        }
        key = sha256(self._app.store.tokens.secret() + (self.token.digest if self.token else b"")).digest()
        return Cursors(key, self._route.path, filters)


def no_queue(token: Token, queue: str | None, route: Route) -> Refused:
    """`queue`: what was asked for is of it; None is all of them, and where the route can be asked for one of them, that is told."""
    own = ", ".join(token.queues)
    names_one = any("queue" in getattr(kind, "__struct_fields__", ()) for kind in (route.asks, route.takes))
    if queue is not None:
        what = f"is of the queue {queue}"
    elif names_one:
        what = "is of all queues; name one of them in `queue`"
    else:
        what = "is of all queues: it takes a token for all of them"
    return Refused(
        403, "queue-forbidden", f"This token is for the queues {own}, and what you ask for {what}."
    )


def may(token: Token, route: Route, app: Lateshift) -> str | None:
    """Why a token may not use a route, as far as that is known before anything is looked up."""
    assert isinstance(route.scope, Scope)
    now = app.store.clock.now()
    for scope in route.always:
        why = refusal(token, scope, None, now) if route.reach is Reach.ALL else standing(token, scope, now)
        if why is not None:
            return why
    return None


@dataclass(frozen=True, slots=True)
class Answer:
    """More than a body: another status, headers, for a text that is no JSON, of which kind it is, and where what was made is found, as
    `asked.link` writes it."""

    body: Any
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """Messages without an end, or until there are no more, those together that were read together. `begin`: what to go on after if none
    is received."""

    frames: AsyncIterator[Iterable[bytes]]
    begin: str | None


class Done(Struct, frozen=True, kw_only=True):
    """What was done. `changed`: false if it was so before. `state`: what it is in now, where it has states."""

    subject: str
    action: str
    changed: bool
    state: str | None = None


Handler: TypeAlias = Callable[[Asked], Any]
"""Plain functions run on a thread, coroutines on the loop. Gives what the route `gives`, or an Answer with it."""
