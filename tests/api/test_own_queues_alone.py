"""Every route, made of the routes themselves, asked for things of the queue orders that lead to other queues, by a token that is for orders
alone: whatever it is asked, no job is made in another queue, and nothing is told of what those hold."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from lateshift import NO_RETRY, Flow, Permanent, fan_out
from lateshift.api.application import with_document
from lateshift.api.route import PUBLIC, Reach, Route
from lateshift.api.routes.all import ROUTES
from lateshift.dashboard.page import Page
from lateshift.dashboard.pages.all import PAGES
from lateshift.model.access import Scope
from lateshift.model.ids import JobId
from lateshift.model.job import JobFilter
from lateshift.testing import Kit
from tests.api.asking import Web, token_of
from tests.api.shop import Shop
from tests.api.test_refusals import BODIES
from tests.dashboard.browsing import browsing

# All but streams, and what is started of a task: that does what its code says.
OPEN_TO_SOME = [
    route
    for route in with_document(ROUTES)
    if route.scope not in (PUBLIC, Scope.ADMIN)
    and route.reach is not Reach.ALL
    and not route.stream
    and "/tasks/" not in route.path
]
SECRET = "S3CRET"
QUEUES = ("vault", "belfry")  # the others
STEPS = ("1", "2", "3")  # of each run, of which one is held
GIVEN: tuple[dict[str, Any], ...] = ({}, {"arguments": [6]}, {"arguments": []}, {"arguments": {"to": "eve"}})
NAMES = {"queues": "orders", "schedules": "own"}


class Ties:
    """Runs in the queue orders, each of which leads to other queues in its own way."""

    def __init__(self, kit: Kit, web: Web) -> None:
        app = kit.app

        @app.task(queue="vault", retry=NO_RETRY)
        def keep(to: str) -> Any:
            raise Permanent(SECRET)

        @app.task(queue="vault")
        def read(to: str) -> Any:
            return {"is": SECRET}

        @app.task(queue="belfry", retry=NO_RETRY)
        def recall(result: str) -> None:
            raise Permanent(SECRET)

        @app.task(queue="belfry")
        def post(number: int) -> int:
            return number

        @app.task(queue="orders")
        def count() -> None: ...

        @app.workflow(queue="orders", on_failure="hold")
        async def told(flow: Flow) -> None:
            await flow.step(keep, SECRET)

        @app.workflow(queue="orders")
        async def undone(flow: Flow) -> None:
            await flow.step(write, undo=recall)
            await flow.wait_for("sent")

        def write() -> str:
            return "written"

        pipeline: Any = app.pipeline(read | fan_out(post), name="piped", queue="orders")
        app.schedule(count, name="own", every=timedelta(days=300))
        runs = {
            "held": told.enqueue(),
            "waits": undone.enqueue(),
            "dead": undone.enqueue(),
            "item": pipeline.enqueue("x"),
        }
        kit.drain()
        web("POST", f"/v1/workflows/{runs['dead'].id}/undo", {"why": "a test"})
        kit.travel(seconds=5)
        self.kit, self.app = kit, app
        self.runs: dict[str, JobId] = {name: run.id for name, run in runs.items()}

    def states(self, web: Web) -> dict[str, str]:
        return {name: web("GET", f"/v1/workflows/{id}").json()["state"] for name, id in self.runs.items()}

    def attempts(self) -> int:
        """In the other queues, of whatever job."""
        store = self.app.store.reports
        return sum(job.fence for queue in QUEUES for job in store.jobs(JobFilter(queue=queue), 100))


def paths(route: Route, id: JobId) -> Iterator[str]:
    kind = next((kind for kind in NAMES if f"/{kind}/" in route.path), "")
    path = route.shown_path.replace("{id}", str(id)).replace("{name}", NAMES.get(kind, "bank"))
    yield from dict.fromkeys(path.replace("{step}", step) for step in STEPS)


def bodies(route: Route, id: JobId) -> Iterator[Any]:
    """Each way in which it can be said what is meant, and with what."""
    if route.method == "GET":
        yield None
        return
    fields = () if route.takes is None else route.takes.__struct_fields__
    said = {name: value for name, value in BODIES.get(route.path, {}).items() if name not in ("all", "queue")}
    meant: list[dict[str, Any]] = [{"queue": "orders"}] if "queue" in fields else [{}]
    meant += [{"ids": [str(id)]}] if "ids" in fields else []
    given = [each for each in GIVEN if each.keys() <= set(fields)]
    given += [{"change": {}}] if "change" in fields else []
    for action in ("resubmit", "cancel") if "action" in said else (None,):
        acts = {} if action is None else {"action": action}
        yield from (said | acts | which | what for which in meant for what in given)


@pytest.fixture
def ties(kit: Kit, shop: Shop, web: Web) -> Ties:
    return Ties(kit, web)


def test_each_of_them_is_as_it_is_meant_to_be(ties: Ties, web: Web) -> None:
    assert ties.states(web) == {
        "held": "held",
        "waits": "waiting",
        "dead": "compensation_failed",
        "item": "held",
    }
    shown = [web("GET", f"/v1/workflows/{ties.runs[name]}").text for name in ("held", "dead", "item")]
    assert [SECRET in text for text in shown] == [True] * 3


@pytest.mark.parametrize("route", OPEN_TO_SOME, ids=lambda route: f"{route.method} {route.path}")
def test_no_route_makes_a_job_in_another_queue_or_tells_of_one(route: Route, ties: Ties, web: Web) -> None:
    own = token_of(web.app, "own", [Scope.READ, Scope.OPERATE, Scope.ENQUEUE], ("orders",))
    before = ties.attempts()
    for id in ties.runs.values():
        for path in paths(route, id):
            for body in bodies(route, id):
                asked = (
                    f"{path}?queue=orders"
                    if route.asks is not None and "queue" in route.asks.__struct_fields__
                    else path
                )
                answer = web(route.method, asked, body, token=own)
                assert answer.status_code < 500, (asked, body, answer.text)
                assert SECRET not in answer.text, (asked, body)
                if answer.status_code < 400:
                    assert not [queue for queue in QUEUES if queue in answer.text], (asked, answer.text)
    ties.kit.travel(seconds=5)
    assert ties.attempts() == before


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.reach is not Reach.ALL], ids=lambda page: page.path
)
def test_no_page_tells_of_another_queue(page: Page, ties: Ties) -> None:
    with browsing(ties.app) as browser:
        browser.sign_in_as(Scope.READ, Scope.OPERATE, Scope.ENQUEUE, queues=("orders",))
        narrow = "?queue=orders" if page.asks is not None and "queue" in page.asks.__struct_fields__ else ""
        for id in ties.runs.values():
            path = (
                page.path.replace("{id}", str(id))
                .replace("{name:path}", "orders")
                .replace("{name}", "orders")
            )
            text = browser.ask("GET", f"{path}{narrow}").text
            assert not [word for word in (SECRET, *QUEUES) if word in text], path
