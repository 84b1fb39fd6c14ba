"""One request on its way through: who asks, what is asked, the handler, the answer. Whatever goes wrong ends as a problem."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Any
from uuid import uuid4

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from lateshift.api.admission import Admission
from lateshift.api.asked import Asked
from lateshift.api.authentication import Doorkeeper, held_in
from lateshift.api.bounds import Bounds
from lateshift.api.budget import Share
from lateshift.api.deadline import Deadline
from lateshift.api.head import head_of
from lateshift.api.pieces import in_pieces
from lateshift.api.problem import ALWAYS, PROBLEM, Problem, Refused, fault, refused_by
from lateshift.api.reading import (
    JSON,
    address_of,
    body_of,
    is_sent_late,
    key_of,
    last_event_of,
    paths_of,
    query_of,
    refuse_conditions,
)
from lateshift.api.repeating import REPLAYED, Begin, Repeating
from lateshift.api.route import EVENT_STREAM, PUBLIC, Answer, Reach, Route, Stream
from lateshift.api.streaming import Streams
from lateshift.app.app import Lateshift
from lateshift.errors import LateshiftError, SealKeyMissing
from lateshift.model.access import Token
from lateshift.runtime.aside import aside
from lateshift.runtime.log import log
from lateshift.store.crashpoints import crashpoint
from lateshift.telemetry.tracing import spans

READ = {"Cache-Control": "private, no-cache"}  # instead, for what has an ETag
ETAG_BYTES = 16

_is_coroutine = lru_cache(inspect.iscoroutinefunction)

Endpoint = Callable[[Request], Awaitable[Response]]


def endpoint_of(
    route: Route, app: Lateshift, doorkeeper: Doorkeeper, bounds: Bounds, streams: Streams
) -> Endpoint:
    """What Starlette calls for a route."""
    repeating = Repeating(app)
    deadline = Deadline(bounds.deadline)
    posted, streams_on, negotiates, remembers = (
        route.method == "POST",
        route.stream,
        len(route.media) > 1,
        route.remembers,
    )

    budgets = doorkeeper.budgets

    def share_of(token: Token | None, request: Request) -> Share:
        if token is None:
            return budgets.unknown.share(doorkeeper.caller(address_of(request)))
        return budgets.known.share(token.root)

    async def answer(request: Request) -> Response:
        token = None
        if route.scope != PUBLIC:
            given = head_of(request.scope).all(b"authorization")
            token = await doorkeeper.admit(given, route, address_of(request))
        if not posted:
            return await answer_to(token, request)
        share = share_of(token, request)
        try:
            return await answer_to(token, request, share)
        finally:
            share.end()

    async def answer_to(token: Token | None, request: Request, share: Share | None = None) -> Response:
        admission = Admission(doorkeeper, route, token)
        if posted:
            refuse_conditions(request)
        asked = Asked(  # of the headers, those that the route has a use for
            app=app, route=route, token=token, path=paths_of(request), key=key_of(request) if posted else None,
            last_event=last_event_of(request) if streams_on else None,
            accepts=",".join(head_of(request.scope).all(b"accept")) if negotiates else "",
            query=query_of(request.query_params.multi_items() if request.scope["query_string"] else (), route.asks),
            body=None, headers=request.headers.items() if route.raw else (), prefix=request.scope.get("root_path", ""),
        )  # fmt: skip
        if route.before is not None:
            route.before(asked)
        if posted:
            asked.body = await body_of(request, route, bounds, share)

        async def do(begin: Begin | None = None) -> Response:
            given = await handled(route, asked, admission, begin)
            if getattr(asked.query, "wait", 0):
                await admission.again()
            if isinstance(given, Stream):
                if request.method == "HEAD":  # nobody listens
                    return Given(None, 200, {}, EVENT_STREAM)
                return streams.answer(given, ALWAYS, token, partial(doorkeeper.still, token, route))
            answer = answered(route, request, given)
            return answer if posted or token is None else in_pieces(answer, budgets.answers, token.root)

        if not posted or token is None:
            return await do()
        if asked.key is None or not remembers:
            return in_pieces(await do(), budgets.answers, token.root, done=route.does(asked.body))
        held = held_in(head_of(request.scope).all(b"authorization"))
        assert held is not None, "it was let in by it"
        told = await repeating.once(route, token, held[1], asked, do, admission.if_late)
        done = route.does(asked.body) and REPLAYED not in told.headers
        return in_pieces(told, budgets.answers, token.root, done=done)

    async def endpoint(request: Request) -> Response:
        if (traced := spans()) is not None:
            traced.enter_request(request.headers)
        try:
            return await deadline.keep(answer(request))
        except Exception as error:
            return problem_of(blamed(error, request), f"{route.method} {route.path}")

    return endpoint


async def handled(route: Route, asked: Asked, admission: Admission, begin: Begin | None = None) -> Any:
    """What the handler gives: a coroutine on the loop, a plain function on a thread. `begin`: what it is done inside of, which only a thread is,
    if the caller is still let in then."""
    asked.check_besides()
    if _is_coroutine(route.handler):
        await admission.if_late()
        crashpoint("api.before_deed")
        given = await route.handler(asked)
    else:

        async def work() -> Any:
            return await aside(_begun, begin, admission, route, asked)

        given = await (admission.in_turn(work) if await _is_dear(route, asked) else work())
    crashpoint("api.after_deed")
    if route.reach is Reach.ONE and not asked.checked:
        raise RuntimeError(f"{route.method} {route.path} did not look at its queue")
    return given


async def _is_dear(route: Route, asked: Asked) -> bool:
    return route.dear or (
        route.judges is not None and not asked.sees_all and await aside(route.judges, asked)
    )


def _begun(begin: Begin | None, admission: Admission, route: Route, asked: Asked) -> Any:
    admission.if_late_here()  # on the thread: for one of those it may have waited too
    if route.method == "POST":
        admission.refuse_unread()
    with nullcontext() if begin is None else begin():
        crashpoint("api.before_deed")
        return route.handler(asked)


class Given(Response):
    """With its headers as they go out: those that every answer has, unless it has one of them otherwise, are written once."""

    def __init__(
        self, body: bytes | None, status: int, headers: Mapping[str, str], kind: str | None = None
    ) -> None:
        self.status_code = status
        self.background = None
        self.body = body or b""
        raw = _ALWAYS.copy()
        for name, value in headers.items():
            raw[name.lower().encode("latin-1")] = value.encode("latin-1")
        if body is not None:
            raw[b"content-length"] = b"%d" % len(body)
        if kind is not None:
            raw[b"content-type"] = kind.encode("latin-1")
        self.raw_headers = list(raw.items())


_ALWAYS = {name.lower().encode("latin-1"): value.encode("latin-1") for name, value in ALWAYS.items()}


def answered(route: Route, request: Request, given: Any) -> Response:
    """With an ETag for what was read: who has it already is told so, and is sent nothing."""
    answer = given if isinstance(given, Answer) else Answer(given)
    if (answer.location is not None) is not route.locates:
        raise RuntimeError(f"{route.method} {route.path}: `locates` says whether its answer has a Location")
    if answer.status == 204:
        return Given(None, 204, {})
    body = msgspec.json.encode(answer.body) if answer.text is None else answer.body.encode()
    status, kind = answer.status or route.status, answer.text or JSON
    if route.method != "GET" or status != 200:
        led = {} if answer.location is None else {"Location": answer.location}
        return Given(body, status, {**answer.headers, **led}, kind)
    tag = _tag(route, answer.body, body)
    headers = {**answer.headers, "ETag": tag, **READ}
    if has(request, tag):
        return Given(None, 304, headers)
    return Given(body, status, headers, kind)


def _tag(route: Route, given: Any, body: bytes) -> str:
    if not route.untagged:
        return f'"{blake2b(body, digest_size=ETAG_BYTES).hexdigest()}"'
    lasting = {name: getattr(given, name) for name in given.__struct_fields__ if name not in route.untagged}
    return f'W/"{blake2b(msgspec.json.encode(lasting), digest_size=ETAG_BYTES).hexdigest()}"'


def has(request: Request, tag: str) -> bool:
    """Whether the caller has what this tag stands for; compared weakly, as RFC 9110 wants it here."""
    head = head_of(request.scope)
    if b"if-none-match" not in head:
        return False
    given = ",".join(head.all(b"if-none-match"))
    return any(each.strip().removeprefix("W/") in (tag.removeprefix("W/"), "*") for each in given.split(","))


def blamed(error: Exception, request: Request) -> Exception:
    """A deadline that has passed is ours, unless the body was still to come: then nothing was done, and its sender is told so."""
    if not is_sent_late(request, error):
        return error
    return Refused(
        408, "body-late", "The body came too slowly; nothing was done.", headers={"Connection": "close"}
    )


def problem_of(error: Exception, where: str) -> Response:
    """The answer to a request that was not done."""
    if isinstance(error, ClientDisconnect):
        return Response(None, 400)  # nobody reads it
    return problem_response(*problem_in(error, where))


def problem_in(error: Exception, where: str) -> tuple[Problem, Mapping[str, str]]:
    """What is told of it, and headers. A fault tells nothing but an id, under which the log has it all."""
    match error:
        case Refused():
            return error.problem, error.headers
        case LateshiftError() if (refused := refused_by(error)) is not None:
            if isinstance(error, SealKeyMissing):
                log.error("%s: %s", where, error)
            return refused.problem, refused.headers
        case TimeoutError():
            late = Refused(
                503,
                "deadline",
                "The answer took too long. What was asked may have been done: look before asking again.",
                headers={"Connection": "close"},
            )
            return late.problem, late.headers
    id = str(uuid4())
    log.error("fault %s at %s", id, where, exc_info=error)
    return fault(id), {}


def problem_response(problem: Problem, headers: Mapping[str, str]) -> Response:
    return Given(msgspec.json.encode(problem), problem.status, headers, PROBLEM)
