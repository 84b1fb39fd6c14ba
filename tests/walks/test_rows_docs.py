"""The programs of docs/rows.md and examples/rows.py, run as they stand there; and that the page says all there is."""

import asyncio
import inspect
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from lateshift import JobFilter, Lateshift, State
from lateshift.model.triggering import sources
from lateshift.runtime.aside import aside
from lateshift.store.open import open_store
from lateshift.triggers import row_table, rows
from lateshift.triggers.declaring import NOT_YET
from lateshift.worker.program import find_app
from tests.walks.waiting import until

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "rows.md").read_text()


def turn(app: Lateshift, times: int = 4) -> None:
    for _ in range(times):
        for part in app.readers():
            asyncio.run(part.turn())
            if hasattr(part, "resign"):
                part.resign()


def test_the_first_program_of_the_page_runs(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LATESHIFT_STORE", store_url)
    program, _ = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict[str, Any] = {"__name__": "shop"}
    shop = sqlite3.connect("shop.db")
    shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    shop.execute("CREATE TABLE customers (number TEXT, changed_at DATETIME DEFAULT CURRENT_TIMESTAMP)")
    exec(compile(program, "rows.md", "exec"), names)
    app: Lateshift = names["app"]
    try:
        turn(app)
        with shop:
            shop.execute("INSERT INTO orders VALUES (7)")
            shop.execute("INSERT INTO customers (number) VALUES ('a')")
        turn(app)
        made = sorted(view.task for view in app.store.reports.jobs(JobFilter(), 10))
        assert made == ["ship", "sync"]
    finally:
        shop.close()
        app.close()


def test_the_second_program_of_the_page_is_taken(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, program = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    app = Lateshift("shop", store=postgres_url)
    exec(compile(program, "rows.md", "exec"), {"app": app, "Any": Any})
    try:
        assert app.triggers["invoice"].in_database.table == "orders"
        assert not app.triggers["invoice"].is_read
    finally:
        app.close()


def test_the_example_ships_what_is_ordered(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LATESHIFT_STORE", store_url)
    app = find_app(str(ROOT / "examples" / "rows.py"))
    place = app.tasks["ship"].function.__globals__["place"]

    def stands() -> bool:
        view = app.store.triggers.get("ship")
        return view is not None and view.position is not None

    async def live() -> list[Any]:
        async with app.running():
            await until(lambda: aside(stands), bool)
            await aside(place, 3)
            done = JobFilter(task="ship", state=State.COMPLETED)
            return await until(lambda: aside(app.store.reports.jobs, done, 10), lambda found: len(found) == 3)

    with app.using(open_store(store_url)):  # the program is imported once, for all tests of this process
        results = sorted(view.result.decode().partition(": ")[2] for view in asyncio.run(live()))
        assert results == [f'{n} x lamp"' for n in (1, 2, 3)]


def test_every_option_is_on_the_page() -> None:
    said = inspect.signature(Lateshift.on_row).parameters.values()
    names = [each.name for each in said if each.kind is each.KEYWORD_ONLY]
    assert names
    assert [name for name in names if f"| `{name}` |" not in PAGE] == []


def test_every_number_on_the_page_is_true() -> None:
    assert f"| `behind` | {sources.ROWS_BEHIND:,}, or a minute |" in PAGE
    assert sources.TIME_BEHIND.total_seconds() == 60
    assert sources.POLL_EVERY.total_seconds() == 1
    assert f"counted up to {rows.LAG_MOST:,}." in PAGE
    assert f"tried for {row_table.CONNECT_SECONDS} seconds" in PAGE
    assert f"runs for {row_table.STATEMENT_SECONDS} at most" in PAGE
    assert f"tries again {NOT_YET.total_seconds():g} seconds later" in PAGE
