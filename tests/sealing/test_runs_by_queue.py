"""Runs, schedules and refused events of before their queue was marked: what they hold is shown to nobody, sealed or not."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from lateshift import Cancel, Flow, Lateshift
from lateshift.api.application import make_api
from lateshift.app.workflows import tell
from lateshift.errors import Permanent
from lateshift.model.ids import new_job_id, new_member_id
from lateshift.model.sealed import MASK
from lateshift.model.triggering.events import Message
from lateshift.model.workflow.step import StepRow
from lateshift.operating.schedule_making import add
from lateshift.runtime.log import log
from lateshift.testing import testing
from lateshift.triggers.source import Incoming
from lateshift.workflow import steps
from tests.api.asking import Web, asking
from tests.dashboard.browsing import browsing
from tests.sealing.clinic import DIGEST, NEW, SECRETS, clinic, leaks
from tests.walks.commands import Cli

SECRET = SECRETS["argument"]
HOURLY = timedelta(hours=1)


@contextmanager
def older_logs() -> Iterator[None]:
    """Runs log what their steps raised, as older releases did."""

    def said(row: StepRow) -> str:
        log.error("workflow %s is held: %s", new_job_id(), steps.why_held(row))
        return "which has failed"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "to_log", said)
        yield


def ward(url: str, *keys: str, sensitive: bool) -> Lateshift:
    """Workflows of the queue, and of another one with steps in it."""
    app = clinic(url, *keys, sensitive=sensitive)
    examine, fail = app.tasks["examine"], app.tasks["fail"]

    @app.task(queue="patients")
    async def give_up(name: str) -> None:
        raise Cancel(SECRETS["cancel"])

    @app.workflow(queue="patients", on_failure="hold")
    async def stay(flow: Flow, name: str) -> str:
        async def look(who: str) -> str:
            return SECRETS["result"]

        async def lose(who: str) -> str:
            raise Permanent(SECRETS["error"])

        flow.status(SECRETS["note"])
        await flow.step(look, name)
        return await flow.step(lose, name)

    @app.workflow(queue="patients")
    async def told(flow: Flow, name: str) -> str:
        await flow.wait_for("well")
        return SECRETS["result"]

    @app.workflow(on_failure="hold")
    async def visit(flow: Flow) -> None:
        await flow.step(examine, SECRET)
        await flow.step(fail, SECRET)

    @app.workflow(on_failure="hold")
    async def leave(flow: Flow) -> None:
        await flow.step(give_up, SECRET)

    return app


@pytest.fixture
def runs(store_url: str) -> dict[str, str]:
    """The ids of runs of before, by their workflows, and of what a trigger refused."""
    app = ward(store_url, sensitive=False)

    @app.on_webhook("admissions", verify=lambda headers, body, now: "e-1", decode=lambda message: 1 / 0)
    @app.task(queue="patients")
    async def admit(name: str) -> None: ...

    with testing(app, store=store_url) as kit, older_logs():
        given = {"stay": (SECRET,), "told": (SECRET,), "visit": (), "leave": ()}
        jobs = {name: app.tasks[name].enqueue(*args) for name, args in given.items()}
        add(
            app.store, app.tasks["examine"].options(), "rounds", {"every": HOURLY}, {"name": SECRET}, by="ada"
        )
        kit.drain()
        tell(app.store, jobs["told"].id, "other", SECRETS["state"], key=None, by="ada")
        app.declare_webhooks()
        seen = Incoming(
            "e-1", Message(body=SECRETS["log"].encode(), id=SECRETS["key"], headers={"x": SECRETS["key"]})
        )
        grip = app.store.locks.acquire("trigger admissions", new_member_id(), HOURLY)
        assert grip is not None
        arrival = app.triggers["admissions"].refuse(seen, f"no such patient: {SECRETS['error']}")
        assert app.store.triggers.take("admissions", [arrival], term=grip.fence) is not None
        assert arrival.refused is not None
        return {name: str(job.id) for name, job in jobs.items()} | {"refused": str(arrival.refused.id)}


@pytest.fixture
def marked(runs: dict[str, str], store_url: str) -> Iterator[Lateshift]:
    app = clinic(store_url, NEW, DIGEST)
    with testing(app, store=store_url):
        yield app


@pytest.fixture
def web(marked: Lateshift) -> Iterator[Web]:
    with asking(marked, make_api(marked)) as web:
        yield web


def paths(runs: dict[str, str]) -> list[str]:
    ids = [id for name, id in runs.items() if name != "refused"]
    return [
        *[f"/v1/workflows/{id}{more}" for id in ids for more in ("", "/graph", "/graph?format=svg")],
        *[f"/v1/jobs/{id}{more}" for id in ids for more in ("", "/explain", "/logs")],
        "/v1/workflows", "/v1/workflows?state=held", "/v1/schedules", "/v1/schedules/rounds", "/v1/triggers", "/v1/refused",
        f"/v1/refused/{runs['refused']}", "/v1/overview", "/v1/audit", "/metrics",
    ]  # fmt: skip


def test_what_the_tests_look_for_is_shown_until_the_queue_is_marked(
    runs: dict[str, str], store_url: str
) -> None:
    app = Lateshift("looks", store=store_url)
    with testing(app, store=store_url), asking(app, make_api(app)) as web:
        told = b"".join(web("GET", path).content for path in paths(runs))
    assert sorted(leaks(told)) == sorted(SECRETS.keys() - {"checkpoint", "batch", "log"})


def test_no_answer_of_the_api_has_what_came_unsealed(web: Web, runs: dict[str, str]) -> None:
    for path in paths(runs):
        answer = web("GET", path)
        assert (path, answer.status_code, leaks(answer.content)) == (path, 200, [])
    whole = web("GET", f"/v1/workflows/{runs['stay']}").json()
    assert (whole["arguments"], whole["why"], whole["status"]) == (MASK, MASK, MASK)
    assert [(step["arguments"], step["result"]) for step in whole["steps"]] == [(MASK, MASK), (MASK, None)]
    assert (whole["steps"][1]["error"]["error"], whole["steps"][1]["error"]["message"]) == ("Permanent", MASK)
    assert web("GET", f"/v1/workflows/{runs['told']}").json()["signals"] == [{"name": "other", "data": MASK}]
    assert web("GET", "/v1/schedules/rounds").json()["arguments"] == {"name": MASK}


def test_a_step_in_a_sensitive_queue_is_hidden_in_a_run_that_is_not(web: Web, runs: dict[str, str]) -> None:
    whole = web("GET", f"/v1/workflows/{runs['visit']}").json()
    assert [(step["name"], step["arguments"], step["result"]) for step in whole["steps"]] == [
        ("examine", MASK, MASK),
        ("fail", MASK, None),
    ]
    assert (whole["arguments"], whole["why"]) == ({}, MASK)
    [step] = web("GET", f"/v1/workflows/{runs['leave']}").json()["steps"]
    assert (step["error"]["error"], step["error"]["reason"]) == (MASK, MASK)


def test_a_step_whose_job_is_gone_is_hidden(web: Web, marked: Lateshift, runs: dict[str, str]) -> None:
    view = web("GET", f"/v1/workflows/{runs['visit']}").json()
    marked.store.upkeep.erase([marked.job(step["job"]).id for step in view["steps"]])
    whole = web("GET", f"/v1/workflows/{runs['visit']}")
    assert leaks(whole.content) == []
    assert [step["arguments"] for step in whole.json()["steps"]] == [MASK, MASK]


def test_no_search_by_why_finds_what_is_hidden(web: Web) -> None:
    for name in ("stay", "visit"):
        body = {"name": name, "why_like": "canary", "preview": True}
        assert web("POST", "/v1/workflows/resume", body).json()["runs"] == []
        assert len(web("POST", "/v1/workflows/resume", {"name": name, "preview": True}).json()["runs"]) == 1


def test_no_page_has_what_came_unsealed(marked: Lateshift, runs: dict[str, str]) -> None:
    pages = [
        f"/{kind}/{id}" for kind in ("workflows", "jobs") for name, id in runs.items() if name != "refused"
    ]
    pages += ["/", "/workflows", "/schedules", "/schedules/rounds", "/triggers", "/triggers/admissions"]
    with browsing(marked) as browser:
        browser.sign_in()
        for path in pages:
            page = browser.ask("GET", path)
            assert (path, page.status_code, leaks(page.content)) == (path, 200, [])


def test_the_command_line_shows_nothing_that_came_unsealed(
    marked: Lateshift, runs: dict[str, str], cli: Cli
) -> None:
    ids = [id for name, id in runs.items() if name != "refused"]
    commands = [["workflows", "show", id] for id in ids] + [["workflows", "graph", "--run", id] for id in ids]
    commands += [["jobs", deed, id] for id in ids for deed in ("explain", "logs", "show")]
    commands += [
        ["workflows", "list"], ["schedules", "list"], ["schedules", "show", "rounds"], ["triggers", "list"],
        ["triggers", "refused"], ["triggers", "raw", runs["refused"]],
        ["workflows", "resubmit-step", runs["visit"], "2", "--dry-run", "--args", f'{{"name": "{SECRET}"}}'],
    ]  # fmt: skip
    for command in [
        *commands,
        *[[*command, "--json"] for command in commands],
        ["workflows", "show", ids[0], "--traceback"],
    ]:
        said = cli(*command)
        assert (command, said.code, leaks((said.out + said.err).encode())) == (command, 0, [])
