"""Jobs behind a web application, and its worker in the same process: `python examples/web.py`, with lateshift[serve] installed.

    curl -i -d '{"path": "cat.png"}' http://127.0.0.1:8000/thumbnails

answers 202 with where to look. Its own front end has no token, so two views are for that: how a job stands, and what becomes of it, as
a stream for EventSource. Beside them Lateshift's own API, for whoever has a token.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from lateshift import Job, Lateshift, progress
from lateshift.api.application import make_api
from lateshift.errors import JobUnknown, OptionInvalid
from lateshift.integrations.starlette import accepted

app = Lateshift("shop")


@app.task(queue="images")
async def thumbnail(path: str) -> str:
    progress(1, 2)
    await asyncio.sleep(1)
    progress(2, 2)
    return f"{path} at 200 pixels"


class Wanted(msgspec.Struct):
    path: str


async def make(request: Request) -> Response:
    wanted = msgspec.json.decode(await request.body(), type=Wanted)
    job = await thumbnail.aenqueue(wanted.path)
    return accepted(job, status=f"/thumbnails/{job.id}")


async def stands(request: Request) -> Response:
    job = await found(request)
    view = await job.aview()
    result = await job.aresult() if view.state.label == "completed" else None
    return JSONResponse({"state": view.state.label, "result": result})


async def events(request: Request) -> Response:
    """`new EventSource("/thumbnails/ID/events")`."""
    job = await found(request)

    async def frames() -> AsyncIterator[bytes]:
        async for event in job.events():
            yield b"data: " + msgspec.json.encode(event) + b"\n\n"

    return StreamingResponse(frames(), media_type="text/event-stream")


async def found(request: Request) -> Job[str]:
    """Whether this user may see this job is the application's to say, here."""
    return await asyncio.to_thread(app.job, request.path_params["id"])


async def not_found(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 404)


async def not_read(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 400)


@asynccontextmanager
async def life(web: Starlette) -> AsyncIterator[None]:
    async with app.running():  # workers and supervisor; leave it out where `lateshift work` runs elsewhere
        yield


web = Starlette(
    routes=[
        Route("/thumbnails", make, methods=["POST"]),
        Route("/thumbnails/{id}", stands),
        Route("/thumbnails/{id}/events", events),
        Mount("/jobs-api", make_api(app)),  # hosts=["shop.example.com"] where it is called by that name
    ],
    exception_handlers={JobUnknown: not_found, OptionInvalid: not_found, msgspec.DecodeError: not_read},
    lifespan=life,
)

if __name__ == "__main__":
    # Whoever listens to the events of a job is not waited for: each open tab would keep the server from stopping.
    uvicorn.run(web, host="127.0.0.1", port=8000, timeout_graceful_shutdown=5)
