"""The API of the measured program, served as `lateshift serve` does; and beside it, in the same process, an endpoint that only
decodes a body and answers."""

import asyncio
import json
import signal
import socket
import sys
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bench.program import app
from lateshift.api.binding import binding_of
from lateshift.api.bounds import Bounds
from lateshift.api.routes.jobs import Accepted, NewJobBody
from lateshift.api.serving import Server, listening, serve, server_of
from lateshift.dashboard.site import Site
from lateshift.model.access import Scope as Permission
from lateshift.model.access import new_token
from lateshift.model.ids import new_job_id
from lateshift.runtime.stopping import stop_on_signals

BARE = "/bare"
ANY_RATE = 1e9  # requests in a second that are let through: they are counted as always, and none is refused


class Beside:
    """Answers BARE by itself, with what an enqueue answers; all else is the API's."""

    def __init__(self, api: ASGIApp) -> None:
        self._api = api
        id = new_job_id()
        self._answer = Accepted(id=id, task="noop", created=True, status=f"/v1/jobs/{id}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != BARE:
            await self._api(scope, receive, send)
            return
        msgspec.json.decode(await Request(scope, receive).body(), type=NewJobBody)
        answer = Response(msgspec.json.encode(self._answer), 202, media_type="application/json")
        await answer(scope, receive, send)


def main(told: Path) -> None:
    """Where it is and with which token one may ask is written to a file."""
    token, text = new_token("load", [Permission.ADMIN], [], at=app.store.clock.now(), by="bench")
    app.store.tokens.create(token)
    binding = binding_of("127.0.0.1", 0)
    bounds = Bounds(token_rate=ANY_RATE, address_rate=ANY_RATE)
    site = Site(app, hosts=binding.hosts, bounds=bounds)
    server = server_of(Beside(site.application), binding)
    with listening(binding) as at:
        written = told.with_suffix(".new")
        written.write_text(json.dumps({"port": at.getsockname()[1], "token": text}))
        written.replace(told)
        asyncio.run(run(site, server, at))


async def run(site: Site, server: Server, at: socket.socket) -> None:
    stopping = asyncio.Event()
    stop_on_signals(stopping, signal.SIGTERM)
    async with site.at_home():
        await serve(server, at, stopping)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    app.close()
