"""A route as a value: what is asked, who may, and what is given. The application, the OpenAPI document and the matrix of
permissions are all made of these."""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct

from lateshift.api.problem import Refused
from lateshift.app.app import Lateshift
from lateshift.model.access import Scope, Token, refusal, standing

if TYPE_CHECKING:
    from lateshift.api.asked import Asked

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


Handler: TypeAlias = "Callable[[Asked], Any]"
"""Plain functions run on a thread, coroutines on the loop. Gives what the route `gives`, or an Answer with it."""
