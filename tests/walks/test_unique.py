"""Unique jobs and windows of duplicates, as a program meets them."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from lateshift import JobFilter, Lateshift, Unique
from lateshift.testing import testing

SOON = timedelta(seconds=20)
HOUR = timedelta(hours=1)


def jobs_of(app: Lateshift) -> int:
    return len(app.store.reports.jobs(JobFilter(), 100))


def test_a_duplicate_gives_the_job_that_is_there(app: Lateshift) -> None:
    @app.task(unique=Unique(by=("user_id",)))
    def remind(user_id: int, why: str = "") -> None: ...

    first = remind.enqueue(7, "late")
    second = remind.options(delay=HOUR).enqueue(7, "later still")
    other = remind.enqueue(8)

    assert (first.created, second.created, second.id) == (True, False, first.id)
    assert other.created
    assert remind.options(unique=False).enqueue(7).created
    assert jobs_of(app) == 3


def test_bulk_counts_only_what_was_made(app: Lateshift) -> None:
    @app.task(unique=True)
    def remind(user_id: int) -> None: ...

    assert app.enqueue_many(remind.call(number % 10) for number in range(2500)) == 10
    assert app.enqueue_many(remind.call(number) for number in range(12)) == 2
    assert jobs_of(app) == 12


@pytest.mark.anyio
async def test_callers_that_share_a_commit_get_one_job(app: Lateshift) -> None:
    @app.task(unique=True)
    async def remind(user_id: int) -> str:
        return f"reminded {user_id}"

    jobs = await asyncio.gather(*(remind.aenqueue(number % 3) for number in range(60)))
    assert len({job.id for job in jobs}) == 3
    assert sum(job.created for job in jobs) == 3
    async with app.running():
        assert await jobs[-1].aresult(SOON) == "reminded 2"
        again = await remind.aenqueue(2)
        assert again.created  # the first has ended
        await again.aresult(SOON)


def test_a_queues_window_drops_what_is_sent_twice(app: Lateshift) -> None:
    app.queue("webhooks", duplicates=timedelta(minutes=10))

    @app.task(queue="webhooks")
    def receive(event: str) -> None: ...

    with testing(app) as kit:
        first = receive.enqueue("a")
        kit.drain()
        assert receive.enqueue("a").id == first.id
        assert receive.enqueue("b").created
        assert receive.options(queue="elsewhere").enqueue("a").created
        kit.travel(minutes=11)
        assert receive.enqueue("a").created


def test_a_job_may_enqueue_its_own_successor_while_only_waiting_counts(app: Lateshift) -> None:
    @app.task(unique=Unique(while_="waiting"))
    def sync(user_id: int) -> None:
        if len(made) < 3:
            made.append(sync.enqueue(user_id).created)

    made: list[bool] = []
    with testing(app) as kit:
        sync.enqueue(7)
        kit.drain()
    assert made == [True, True, True]


def test_the_program_in_the_documentation_does_what_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "queues.md").read_text()
    program = page.partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "queues.md", "exec"), {"__name__": "queues_md"})
    said = [line.partition("# ")[2] for line in program.splitlines() if line.startswith("print(")]
    assert capsys.readouterr().out.splitlines() == said
