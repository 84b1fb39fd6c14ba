"""The API of an app, asked in this process. Every answer is held against the type that its route promises."""

import asyncio
import re
from collections.abc import AsyncIterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import httpx
import msgspec
from anyio.from_thread import BlockingPortal, start_blocking_portal
from starlette.types import ASGIApp

from lateshift import Lateshift
from lateshift.api.application import with_document
from lateshift.api.problem import PROBLEM, Problem
from lateshift.api.reading import JSON
from lateshift.api.route import Route
from lateshift.api.routes.all import ROUTES
from lateshift.model.access import Scope, new_token

LOCAL = "http://127.0.0.1:8642"
SENDS = [Scope.OPERATE, Scope.ENQUEUE]  # what it takes to send on what waits, with other arguments if need be


class Web:
    """`web("GET", "/v1/queues")` with a token that may do all, unless another is named; None for none."""

    def __init__(self, app: Lateshift, api: ASGIApp, portal: BlockingPortal) -> None:
        self.app = app
        self.api = api
        before = len(app.store.tokens.list(100))
        name = "all" if app.store.tokens.named("all") is None else f"all-{before}"
        self.token: str | None = token_of(app, name, [Scope.ADMIN])
        self._portal = portal
        self._transport = httpx.ASGITransport(api, client=("127.0.0.1", 50000))
        self._client = httpx.AsyncClient(transport=self._transport, base_url=LOCAL)

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = "",
        headers: Mapping[str, str] | None = None,
        content: bytes | AsyncIterable[bytes] | None = None,
    ) -> httpx.Response:
        bearer = self.token if token == "" else token
        own = [("Authorization", f"Bearer {bearer}")] if bearer else []
        more = headers.multi_items() if isinstance(headers, httpx.Headers) else (headers or {}).items()
        asking = partial(
            self._client.request, method, path, json=body, content=content, headers=[*own, *more]
        )
        answer: httpx.Response = self._portal.call(asking)
        conforms(method, path, answer)
        return answer

    def plain(self, method: str, path: str, headers: Mapping[str, str]) -> httpx.Response:
        """Of a route that is not among those of the API: its answer is held against nothing."""
        sent = {"Authorization": f"Bearer {self.token}", **headers}
        answer: httpx.Response = self._portal.call(partial(self._client.request, method, path, headers=sent))
        return answer

    def twice(self, method: str, path: str, name: str, values: Sequence[str]) -> httpx.Response:
        """With a header that stands as often as there are values; whatever is answered is a problem."""
        sent = [("Authorization", f"Bearer {self.token}"), *((name, value) for value in values)]
        asking = partial(self._client.request, method, path, content=b"{}", headers=sent)
        answer: httpx.Response = self._portal.call(asking)
        conforms(method, path, answer)
        return answer

    def at_once(
        self, count: int, method: str, path: str, body: Any, *, tokens: Sequence[str | None] = ()
    ) -> list[httpx.Response]:
        """The same request so many times, all under way together; each with a token of its own, if there are several."""
        sent = [{"Authorization": f"Bearer {token}"} for token in tokens or [self.token] * count]

        async def ask() -> list[httpx.Response]:
            return await asyncio.gather(
                *[self._client.request(method, path, json=body, headers=each) for each in sent]
            )

        return self._portal.call(ask)


def conforms(method: str, path: str, answer: httpx.Response) -> None:
    """An error is a problem; anything else is of the type that the route gives."""
    if method == "HEAD":
        return
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == PROBLEM
        said = msgspec.json.decode(answer.content, type=Problem)
        assert said.status == answer.status_code
        return
    if answer.content and answer.headers["content-type"].startswith("application/json"):
        route = next(each for each in with_document(ROUTES) if fits(each, method, path))
        assert answer.headers["content-type"] in route.media
        if answer.headers["content-type"] == JSON:
            msgspec.json.decode(answer.content, type=route.gives)
        if route.stream:
            for document in told(answer):
                msgspec.json.decode(document, type=route.gives)


async def status_of(
    api: ASGIApp, path: str, headers: Mapping[str, str], messages: Sequence[MutableMapping[str, Any]]
) -> int:
    """Of the answer to a POST whose body arrives in these pieces, after which nothing comes any more."""
    left = iter(messages)
    answers: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        for message in left:
            return message
        await asyncio.Event().wait()
        raise AssertionError("nothing comes")

    async def send(message: MutableMapping[str, Any]) -> None:
        answers.append(message)

    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "path": path,
        "raw_path": path.encode(), "query_string": b"", "root_path": "", "scheme": "http", "headers": raw,
        "client": ("127.0.0.1", 50000), "server": ("127.0.0.1", 8642),
    }  # fmt: skip
    await api(scope, receive, send)
    return int(answers[0]["status"])


def told(answer: httpx.Response) -> list[bytes]:
    """The data of each event of a stream."""
    return re.findall(rb"^data: (.*)$", answer.content, re.MULTILINE)


def fits(route: Route, method: str, path: str) -> bool:
    pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.sub(r"\\{\w+:path\\}", ".+", re.escape(route.path)))
    return route.method == method and bool(re.fullmatch(pattern, path.partition("?")[0]))


def token_of(
    app: Lateshift,
    name: str,
    scopes: list[Scope],
    queues: tuple[str, ...] = (),
    *,
    at: datetime | None = None,
    lives: timedelta | None = None,
    revoked: bool = False,
) -> str:
    """A token that is in the store, as its holder sends it."""
    made = at or app.store.clock.now()
    token, text = new_token(
        name, scopes, queues, at=made, by="a test", expires_at=None if lives is None else made + lives
    )
    app.store.tokens.create(token)
    if revoked:
        assert app.store.tokens.revoke(token.id, by="a test")
    return text


@contextmanager
def asking(app: Lateshift, api: ASGIApp) -> Iterator[Web]:
    with start_blocking_portal() as portal:
        yield Web(app, api, portal)
