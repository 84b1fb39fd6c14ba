"""Known secrets, and where they are not: in no table, no file, no log, no answer."""

import io
import logging
from datetime import timedelta

import pytest

from lateshift import Lateshift, Retry
from lateshift.documents.jobs import job_whole
from lateshift.documents.logs import log_document
from lateshift.errors import JobDead
from lateshift.model.sealed import MASK
from lateshift.runtime.log import FORMAT, OneLine
from lateshift.telemetry.structured import JsonLines
from tests.sealing.clinic import DIGEST, SECRETS, clinic, kept, leaks
from tests.walks.commands import Cli

SOON = timedelta(seconds=20)


async def a_day(app: Lateshift) -> list[str]:
    """All that jobs can leave behind. Gives their ids."""
    examine, fail, remember = (app.tasks[name] for name in ("examine", "fail", "remember"))
    name = SECRETS["argument"]
    jobs = [
        await examine.aenqueue(name),
        await examine.options(key=SECRETS["key"]).aenqueue(name),
        await fail.aenqueue(name),
        *[await remember.options(session="ward").aenqueue(name) for _ in range(2)],
    ]
    batch = await app.abatch([examine.call(name)], then=examine.call(SECRETS["batch"]), key="night")
    async with app.running():
        assert await jobs[0].aresult(SOON) == SECRETS["result"]
        assert await jobs[1].aresult(SOON) == SECRETS["result"]
        with pytest.raises(JobDead, match=SECRETS["error"]):
            await jobs[2].aresult(SOON)
        assert [await job.aresult(SOON) for job in jobs[3:]] == ["", SECRETS["state"]]
        await batch.awaited(SOON)
        assert [result.value async for result in batch.results()] == [SECRETS["result"]]
    return [str(job.id) for job in jobs]


@pytest.mark.anyio
async def test_no_secret_is_in_the_store_in_the_log_or_in_what_is_shown(
    store_url: str, app: Lateshift
) -> None:
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    logging.getLogger("lateshift").addHandler(handler)
    try:
        ids = await a_day(app)
    finally:
        logging.getLogger("lateshift").removeHandler(handler)

    found = {where: leaks(bytes) for where, bytes in kept(store_url)}
    assert {where: names for where, names in found.items() if names} == {}
    assert leaks(said.getvalue().encode()) == []
    assert MASK in said.getvalue()  # a failure was told of, without what it said
    for id in ids:
        job = app.job(id)
        shown = f"{job_whole(job.view())}{job.explain()}"
        shown += "".join(str(log_document(log)) for log in app.store.logs.of(job.id))
        assert leaks(shown.encode()) == []


@pytest.mark.anyio
@pytest.mark.parametrize("lines", [OneLine(FORMAT), JsonLines()], ids=["plain", "json"])
async def test_the_log_tells_which_job_failed_and_how_and_nothing_of_what_it_holds(
    app: Lateshift, caplog: pytest.LogCaptureFixture, lines: logging.Formatter
) -> None:
    @app.task(queue="patients", retry=Retry(attempts=2, base=timedelta(0)))
    async def stumble(name: str) -> None:
        own = logging.getLogger("lateshift")
        try:
            raise ValueError(f"{SECRETS['error']} of {name}")
        except ValueError:
            own.exception("it stumbles over %s", name, stack_info=True)
            raise

    with caplog.at_level("WARNING"):
        async with app.running():
            job = await stumble.aenqueue(SECRETS["argument"])
            with pytest.raises(JobDead):
                await job.aresult(SOON)

    said = [lines.format(record) for record in caplog.records]
    assert leaks("".join(said).encode()) == []
    told = [line for line in said if str(job.id) in line and f"ValueError: {MASK}" in line]
    assert [
        "failed at attempt 1" in line or "is a dead letter (exhausted) at attempt 2" in line for line in told
    ] == [True, True]
    assert not any("it stumbles" in line or "Traceback" in line for line in said)


def test_the_look_finds_what_is_not_sealed(store_url: str) -> None:
    app = Lateshift("open", store=store_url)

    @app.task
    def examine(name: str) -> None: ...

    examine.enqueue(SECRETS["argument"])
    app.close()
    assert any(leaks(bytes) == ["argument"] for _, bytes in kept(store_url))


@pytest.mark.anyio
async def test_the_command_line_shows_masks(store_url: str, app: Lateshift, cli: Cli) -> None:
    ids = await a_day(app)
    commands = [
        ["jobs", "list"],
        ["jobs", "list", "--json"],
        ["jobs", "dead"],
        ["jobs", "dead", "--json"],
        ["batches", "list"],
    ]
    commands += [
        ["jobs", what, id, *more]
        for id in ids
        for what in ("show", "logs", "explain")
        for more in ([], ["--json"])
    ]
    commands += [["sessions", "list", "--json"], ["audit", "list"], ["metrics"], ["store", "check"]]
    for command in commands:
        said = cli(*command)
        assert (command, leaks((said.out + said.err).encode())) == (command, [])
    assert MASK in cli("jobs", "show", ids[0]).out


@pytest.mark.anyio
async def test_who_has_the_ring_reads_the_log_of_an_attempt(store_url: str, app: Lateshift) -> None:
    ids = await a_day(app)
    [log] = app.job(ids[0]).logs()
    assert [line.message for line in log.lines] == [f"looking at {SECRETS['log']}"]
    other = clinic(store_url, DIGEST)
    [masked] = other.job(ids[0]).logs()
    assert [line.message for line in masked.lines] == [MASK]
    other.close()
