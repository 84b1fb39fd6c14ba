"""A task of a sensitive queue stays among sensitive queues: whoever names another one is refused, and what comes there all the same is not run."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from lateshift import JobFilter, Lateshift
from lateshift.api.application import make_api
from lateshift.errors import OptionInvalid
from lateshift.model.job import State
from lateshift.model.sealed import NOT_SEALED, is_sealed
from lateshift.testing import testing
from tests.api.asking import asking
from tests.sealing.clinic import DIGEST, OLD, clinic, kept
from tests.walks.commands import Cli

NAME = "canary-elsewhere-51c0"

DOORS: list[tuple[str, Callable[[Lateshift, Any], Any]]] = [
    ("options", lambda app, task: task.options(queue="images")),
    ("enqueue", lambda app, task: task.options(queue="images").enqueue(NAME)),
    ("many", lambda app, task: app.enqueue_many([task.options(queue="images").call(NAME)])),
    ("batch", lambda app, task: app.batch([task.options(queue="images").call(NAME)])),
    ("then", lambda app, task: app.batch([], then=task.options(queue="images").call(NAME))),
    ("schedule", lambda app, task: app.schedule(task.options(queue="images"), every=timedelta(hours=1), args=[NAME])),
    ("trigger", lambda app, task: app.on("patient.*")(task.options(queue="images"))),
    ("reply", lambda app, task: app.tasks["compute"].options(reply_to=task.options(queue="images"))),
    ("pipeline", lambda app, task: app.pipeline(app.tasks["sort"] | task.options(queue="images"), name="ward")),
]  # fmt: skip


def with_images(app: Lateshift) -> Lateshift:
    @app.task(queue="images")
    def sort(name: str) -> str:
        return name

    return app


@pytest.mark.parametrize(("_", "send"), DOORS, ids=[name for name, _ in DOORS])
def test_no_door_leads_into_a_queue_that_is_not_sensitive(
    _: str, send: Callable[[Lateshift, Any], Any]
) -> None:
    app = with_images(clinic("memory://", OLD, DIGEST))
    with pytest.raises(OptionInvalid, match="examine is of the sensitive queue patients") as refused:
        send(app, app.tasks["examine"])
    assert refused.value.field == "queue"


def test_a_step_of_a_run_does_not_either(store_url: str, app: Lateshift) -> None:
    @app.workflow
    async def refer(flow: Any, name: str) -> None:
        await flow.step(app.tasks["examine"].options(queue="images"), name)

    with testing(app, store=store_url) as kit:
        refer.enqueue("a reference")
        kit.drain()
        [dead] = kit.dead_letters()
    assert "sensitive queue patients" in (dead.history[-1].message or "")


def test_one_sensitive_queue_is_as_good_as_another(store_url: str, app: Lateshift) -> None:
    app.queue("relatives", sensitive=True)
    with testing(app, store=store_url) as kit:
        job = app.tasks["examine"].options(queue="relatives").enqueue(NAME)
        kit.drain()
        assert kit.result(job)
        view = job.view()
    assert (view.queue, is_sealed(view.payload), is_sealed(view.result)) == ("relatives", True, True)


def test_a_task_of_a_plain_queue_goes_into_a_sensitive_one_and_is_sealed(
    store_url: str, app: Lateshift
) -> None:
    with_images(app)
    with testing(app, store=store_url) as kit:
        job = app.tasks["sort"].options(queue="patients").enqueue(NAME)
        kit.drain()
        assert kit.result(job) == NAME
        view = job.view()
    assert (view.queue, is_sealed(view.payload), is_sealed(view.result)) == ("patients", True, True)


def test_the_queue_is_declared_before_a_call_could_have_gone_elsewhere() -> None:
    app = Lateshift("late", store="memory://")

    @app.task(queue="patients")
    def examine(name: str) -> None: ...

    examine.options(queue="images")
    with pytest.raises(OptionInvalid, match="Declare it before"):
        app.queue("patients", sensitive=True)


@pytest.mark.parametrize("path", ["jobs", "schedules"])
def test_over_http_the_queue_is_the_field_that_is_wrong_and_nothing_is_written(
    store_url: str, app: Lateshift, path: str
) -> None:
    with_images(app)
    body: dict[str, Any] = {"arguments": {"name": NAME}, "queue": "images"}
    if path == "schedules":
        body |= {"name": "rounds", "every": 3600}
    with testing(app, store=store_url) as kit, asking(app, make_api(app)) as web:
        refused = web("POST", f"/v1/tasks/examine/{path}", body)
        said = refused.json()
        assert (refused.status_code, said["type"], said["field"]) == (
            422,
            "urn:lateshift:problem:option-invalid",
            "queue",
        )
        assert NAME not in refused.text
        assert (kit.enqueued(), app.store.schedules.list(None, 10)) == ([], [])
    assert [place for place, bytes in kept(store_url) if NAME.encode() in bytes] == []


def test_an_unsealed_job_of_such_a_task_is_not_run_in_whatever_queue_it_came(
    store_url: str, app: Lateshift
) -> None:
    stranger = Lateshift("stranger", store=store_url)

    @stranger.task(name="examine", queue="images")
    def examine(name: str) -> None: ...

    job = examine.enqueue("Mallory")
    with testing(app, store=store_url) as kit:
        kit.drain()
        [dead] = kit.dead_letters()
        assert (dead.id, dead.reason, dead.state) == (job.id, NOT_SEALED, State.DEAD)
        assert app.ran == []  # type: ignore[attr-defined]
        assert "was not sealed" in str(app.job(job.id).explain())

        app.dead_letters(reason=NOT_SEALED).resubmit({})  # where the ring is, which seals it
        kit.drain()
        view = app.job(job.id).view()
    assert (view.state, is_sealed(view.payload), is_sealed(view.result)) == (State.COMPLETED, True, True)
    stranger.close()


def test_resubmitted_without_the_ring_it_is_refused_again(store_url: str, app: Lateshift) -> None:
    call = app.tasks["examine"].call("Mallory").job
    plain = structs.replace(call, spec=structs.replace(call.spec, queue="images"))
    app.store.jobs.enqueue([plain])
    with testing(app, store=store_url) as kit, asking(app, make_api(app)) as web:
        kit.drain()
        app.store.jobs.resubmit([plain.id], by="somebody")
        kit.drain()
        [dead] = kit.dead_letters()
        assert (dead.reason, app.ran) == (NOT_SEALED, [])  # type: ignore[attr-defined]
        assert len(app.store.reports.jobs(JobFilter(), 10)) == 1
        assert web("GET", f"/v1/jobs/{plain.id}").json()["reason"] == NOT_SEALED


PROGRAM = """from lateshift import Lateshift

app = Lateshift("clinic")
app.queue("patients", sensitive=True)


@app.task(queue="patients")
def examine(name: str) -> None: ...
"""


def test_the_command_line_says_so_too(cli: Cli, tmp_path: Path, store_url: str) -> None:
    program = f"ward_on_{store_url.partition(':')[0]}.py"  # a module is imported once
    (tmp_path / program).write_text(PROGRAM)
    args = ("--args", '{"name": "Ada"}', "--every", "1h", "--queue", "images")
    said = cli("schedules", "add", "rounds", "--app", program, "--task", "examine", *args)
    assert said.code
    assert "sensitive queue patients" in said.err
