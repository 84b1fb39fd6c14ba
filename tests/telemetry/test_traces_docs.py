"""examples/traced.py, run as docs/telemetry.md says: one trace over four processes, on both stores."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from lateshift.model.job import TRACE_LIMIT
from lateshift.telemetry.spans import LINKS_MOST
from tests.walks.commands import environment, eventually, interrupted, started

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "traced.py"
PAGE = (ROOT / "docs" / "telemetry.md").read_text()


def spans_in(text: str) -> dict[str, dict[str, Any]]:
    """By name. A log line may stand before one on the same line."""
    lines = [line[line.index('{"name"') :] for line in text.splitlines() if '{"name"' in line]
    return {span["name"]: span for span in map(json.loads, lines)}


def test_the_example_is_one_trace_over_all_its_processes(tmp_path: Path, store_url: str) -> None:
    def written() -> str:
        return (tmp_path / "output").read_text()

    with started("up", str(EXAMPLE), "--no-api", cwd=tmp_path, LATESHIFT_STORE=store_url) as process:
        eventually(lambda: "1 worker" in written() or process.poll() is not None, "it is up")
        asked = subprocess.run(
            [sys.executable, str(EXAMPLE)], cwd=tmp_path, env=environment(LATESHIFT_STORE=store_url), check=True,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        eventually(lambda: "process mail" in written() and "process images" in written(), "all have run")
        assert interrupted(process, 30) == 0
    found = spans_in(asked.stdout) | spans_in(written())
    below = ["request", "enqueue images", "process images", "draw", "enqueue mail", "process mail"]
    for parent, child in pairwise(below):
        assert found[child]["parent_id"] == found[parent]["context"]["span_id"], child
    assert len({found[name]["context"]["trace_id"] for name in below}) == 1


def test_the_page_shows_the_example_and_the_limits() -> None:
    assert EXAMPLE.read_text().partition("from opentelemetry import trace\n")[2].strip() in PAGE
    assert f"{TRACE_LIMIT:,} characters" in PAGE
    assert f"{LINKS_MOST} jobs" in PAGE
