"""The program of docs/files.md and examples/inbox_files.py, run as they stand there; the options and limits that the page names."""

import importlib
import inspect
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lateshift import JobFilter, Lateshift, State
from lateshift.runtime.aside import aside
from lateshift.worker.program import find_app
from tests.walks.waiting import until

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "files.md").read_text()


def test_the_program_of_the_page_is_one(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATESHIFT_STORE", store_url)
    [program] = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict[str, Any] = {"__name__": "shop"}
    exec(compile(program, "files.md", "exec"), names)
    app: Lateshift = names["app"]
    kinds = {name: trigger.declared.kind for name, trigger in app.triggers.items()}
    assert kinds == {"load": "file", "measure": "file", "fetch": "blob"}
    app.close()


def test_every_option_of_a_file_is_documented() -> None:
    said = inspect.signature(Lateshift.on_file).parameters.values()
    names = [each.name for each in said if each.kind is each.KEYWORD_ONLY]
    assert names
    assert [name for name in names if f"| `{name}` |" not in PAGE] == []


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("CANDIDATES_MOST", "files"),
        ("ASKED_AT_ONCE", "files"),
        ("HINTS_KEPT", "watching"),
        ("DEPTH_MOST", "walking"),
        ("GONE_MOST", "blobs"),
    ],
)
def test_every_limit_is_documented_with_its_value(name: str, module: str) -> None:
    value = getattr(importlib.import_module(f"lateshift.triggers.{module}"), name)
    assert f"| `{name}` | {value:,} |" in PAGE


@pytest.mark.anyio
async def test_the_example_inbox_loads_what_is_put_into_it(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    shop = find_app(str(ROOT / "examples" / "inbox_files.py"))
    shop.settings = replace(shop.settings, store=store_url)
    (inbox / "monday.csv").write_text("item,count\ntea,3\nmilk,4\n")

    def results(views: list[Any]) -> set[tuple[str, bytes]]:
        return {(view.task, view.result) for view in views}

    try:
        async with shop.running():
            picture = inbox / "pictures" / "shelf" / "a.jpg"
            picture.parent.mkdir(parents=True)
            picture.with_suffix(".part").write_bytes(b"x" * 1234)
            picture.with_suffix(".part").rename(picture)
            wanted = {("load", b"7"), ("measure", b'"a.jpg: 1,234 bytes"')}
            await until(
                lambda: aside(shop.store.reports.jobs, JobFilter(state=State.COMPLETED), 10),
                lambda views: results(views) == wanted,
            )
            (inbox / "monday.csv").write_text("item,count\ntea,30\n")
            await until(
                lambda: aside(shop.store.reports.jobs, JobFilter(state=State.COMPLETED), 10),
                lambda views: results(views) == wanted | {("load", b"30")},
            )
        views = {view.name: view for view in await aside(shop.store.triggers.all)}
        assert {name: (view.made, view.error) for name, view in views.items()} == {
            "load": (2, None),
            "pictures": (1, None),
        }
    finally:
        shop.close()
