"""A view of a web application answers 202 with where to look, in one call; and examples/web.py, as it stands there."""

from dataclasses import replace
from datetime import timedelta

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from examples import web as example
from lateshift import Lateshift
from lateshift.integrations.starlette import accepted
from lateshift.model.access import Scope
from tests.api.asking import token_of

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["starlette", "fastapi"])
def web(request: pytest.FixtureRequest, app: Lateshift) -> ASGIApp:
    @app.task
    async def thumbnail(path: str) -> str:
        return path

    if request.param == "fastapi":
        fast = FastAPI()

        @fast.post("/thumbnails")
        async def make(path: str) -> Response:
            return accepted(await thumbnail.aenqueue(path), api="https://shop.example/jobs-api/v1/")

        return fast

    async def view(request: Request) -> Response:
        job = await thumbnail.aenqueue(request.query_params["path"])
        return accepted(job, api="https://shop.example/jobs-api/v1/")

    return Starlette(routes=[Route("/thumbnails", view, methods=["POST"])])


async def test_a_view_answers_with_the_status_url_of_its_job(web: ASGIApp, app: Lateshift) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(web), base_url="http://shop") as client:
        answer = await client.post("/thumbnails?path=cat.png")

    assert answer.status_code == 202
    said = answer.json()
    assert (
        answer.headers["location"] == said["status"] == f"https://shop.example/jobs-api/v1/jobs/{said['id']}"
    )
    assert answer.headers["retry-after"] == "1"
    assert (said["task"], said["created"]) == ("thumbnail", True)
    assert app.job(said["id"]).state.label == "ready"


async def test_it_says_when_the_job_is_due_as_the_api_does(app: Lateshift) -> None:
    @app.task
    async def thumbnail(path: str) -> None: ...

    for delay, after in ((timedelta(hours=2), 7200), (timedelta(days=9), 86_400)):
        answer = accepted(await thumbnail.options(delay=delay).aenqueue("cat.png"))
        assert answer.headers["retry-after"] == str(after)
    at = app.store.clock.now() + timedelta(minutes=10)
    answer = accepted(await thumbnail.options(at=at).aenqueue("cat.png"))
    assert abs(int(answer.headers["retry-after"]) - 600) <= 2


async def test_without_a_word_the_api_is_taken_to_be_beside_it(app: Lateshift) -> None:
    @app.task
    async def thumbnail(path: str) -> str:
        return path

    job = await thumbnail.aenqueue("cat.png")
    assert accepted(job).headers["location"] == f"/v1/jobs/{job.id}"


async def test_the_example_answers_tells_how_a_job_stands_streams_it_and_has_the_api_beside(
    store_url: str,
) -> None:
    example.app.settings = replace(example.app.settings, store=store_url)
    transport = httpx.ASGITransport(example.web, client=("127.0.0.1", 50000))
    async with (
        example.life(example.web),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        answer = await client.post("/thumbnails", json={"path": "cat.png"})
        status = answer.json()["status"]
        assert (answer.status_code, answer.headers["location"]) == (202, status)
        streamed = await client.get(f"{status}/events")  # until its end
        assert streamed.headers["content-type"].startswith("text/event-stream")
        assert '"kind":"completed"' in streamed.text
        assert (await client.get(status)).json() == {"state": "completed", "result": "cat.png at 200 pixels"}
        for wrong in (b"{bad", b"{}", b'{"path": 1}'):
            assert (await client.post("/thumbnails", content=wrong)).status_code == 400
        for nothing in ("x", "01a1ee86-32c9-7000-8146-33f9dcd63a2d"):
            assert (await client.get(f"/thumbnails/{nothing}")).status_code == 404
        assert (await client.get("/jobs-api/v1/queues")).status_code == 401
        headers = {"Authorization": f"Bearer {token_of(example.app, 'ann', [Scope.ENQUEUE, Scope.READ])}"}
        made = await client.post(
            "/jobs-api/v1/tasks/thumbnail/jobs", json={"arguments": {"path": "b"}}, headers=headers
        )
        assert made.headers["location"] == made.json()["status"] == f"/jobs-api/v1/jobs/{made.json()['id']}"
        assert (await client.get(made.headers["location"], headers=headers)).json()["task"] == "thumbnail"
    example.app.close()
