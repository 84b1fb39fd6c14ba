"""A view of a web application answers 202 with where to look, in one call."""

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from lateshift import Lateshift
from lateshift.integrations.starlette import accepted

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


async def test_without_a_word_the_api_is_taken_to_be_beside_it(app: Lateshift) -> None:
    @app.task
    async def thumbnail(path: str) -> str:
        return path

    job = await thumbnail.aenqueue("cat.png")
    assert accepted(job).headers["location"] == f"/v1/jobs/{job.id}"
