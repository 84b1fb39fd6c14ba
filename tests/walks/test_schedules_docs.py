"""The programs of docs/schedules.md and examples/nightly.py, run as they stand there; and its table of the clocks."""

import asyncio
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lateshift import JobFilter, Lateshift, State
from lateshift.model.scheduling.timing import Timing, ticks
from lateshift.model.scheduling.zones import zone
from lateshift.runtime.aside import aside
from lateshift.scheduler.ticker import Ticker
from lateshift.worker.program import find_app
from tests.walks.waiting import until

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "schedules.md").read_text()


def test_the_programs_of_the_page_do_what_they_say(
    store_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LATESHIFT_STORE", store_url)
    first, second = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict[str, Any] = {"__name__": "office"}
    exec(compile(first, "schedules.md", "exec"), names)
    app: Lateshift = names["app"]
    try:
        assert sorted(app.schedules) == ["before the move", "clean", "clean a year", "report"]
        asyncio.run(Ticker(app.store, app.name, lambda: list(app.schedules.values())).turn())
        exec(compile(second, "schedules.md", "exec"), names)
        said = [line.partition("  # ")[2] for line in second.splitlines() if line.startswith("print(")]
        assert capsys.readouterr().out.splitlines()[1:] == said[1:] == ["by hand", "5"]
        assert names["job"].view().task == "report"
        [first_tick, *_] = [view.payload for view in app.store.reports.jobs(JobFilter(task="report"), 10)][
            ::-1
        ]
        assert b"eu" in first_tick
    finally:
        app.close()


@pytest.mark.parametrize(
    ("expression", "spring", "autumn"),
    [
        ("30 2 * * *", "03:00", "02:30"),
        ("*/10 2 * * *", "03:00", "02:00 02:10 02:20 02:30 02:40 02:50"),
        ("0 2,3 * * *", "03:00", "02:00 03:00"),
        ("*/15 * * * *", "01:30 01:45 03:00 03:15", "02:00 02:15 02:30 02:45 02:00 02:15 02:30 02:45 03:00"),
    ],
)
def test_the_table_of_the_clocks_is_true(expression: str, spring: str, autumn: str) -> None:
    place = zone("Europe/Madrid")

    def shown(begin: datetime, end: datetime) -> str:
        timing = Timing(cron=expression, timezone="Europe/Madrid")
        return " ".join(f"{each.astimezone(place):%H:%M}" for each in ticks(timing, begin, end))

    night = datetime(2026, 3, 29, 0, 15, tzinfo=UTC), datetime(2026, 3, 29, 1, 15, tzinfo=UTC)
    assert shown(*night) == spring
    night = datetime(2026, 10, 24, 23, 45, tzinfo=UTC), datetime(2026, 10, 25, 2, tzinfo=UTC)
    assert shown(*night) == autumn
    assert f"| `{expression}` |" in PAGE


@pytest.mark.anyio
async def test_the_example_office_fires_its_schedules(store_url: str) -> None:
    office = find_app(str(ROOT / "examples" / "nightly.py"))
    office.settings = replace(office.settings, store=store_url)

    def yesterday() -> date:
        return datetime.now(zone("Europe/Madrid")).date() - timedelta(days=1)

    before = yesterday()
    try:
        async with office.running():
            await until(lambda: aside(office.store.schedules.list, None, 10), lambda views: len(views) == 2)
            for name in office.schedules:
                await aside(office.find_schedule(name).fire)
            views = await until(
                lambda: aside(office.store.reports.jobs, JobFilter(state=State.COMPLETED), 10),
                lambda views: {view.task for view in views} == {"report", "look"},
            )
        [report] = [view for view in views if view.task == "report"]
        days = {before, yesterday()}  # midnight may fall between
        assert report.result in {f'"the report of {day}"'.encode() for day in days}
    finally:
        office.close()
