"""The benchmark still runs, on both stores, and judges as the issue that set its figures asks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.figures import Figures
from bench.judge import judge
from tests.postgres_databases import PostgresDatabases

ROOT = Path(__file__).parents[2]
TAKEN = {
    "enqueue": ("one", "together", "bulk", "schedules"),
    "drain": ("drain", "drain 2", "threads"),
    "workflows": ("workflows", "steps", "replay", "none asleep cpu", "asleep cpu"),
    "batch": ("batch enqueue", "batch complete", "batch memory"),
    "http": ("http bare", "http enqueue", "http read", "serve cpu"),
}
CEILING = {
    "enqueue": {"one"},
    "drain": {"drain"},
    "workflows": set[str](),
    "batch": set[str](),
    "http": set[str](),
}


@pytest.mark.slow
@pytest.mark.parametrize("group", list(TAKEN))
def test_a_tiny_benchmark_runs_on_both_stores(
    group: str, tmp_path: Path, postgres_server: PostgresDatabases
) -> None:
    told = tmp_path / "figures.json"
    command = [sys.executable, "-m", "bench", "--quick", "--no-peers", "--no-judge", "--only", group]
    run = subprocess.run(
        [*command, "--jobs", "500", "--json", str(told)],
        cwd=ROOT,
        env={**os.environ, "LATESHIFT_TEST_POSTGRES": postgres_server.admin_url},
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "not measured" not in run.stdout
    taken = {(row["line"], row["store"], row["subject"]) for row in json.loads(told.read_text())["figures"]}
    assert {
        (line, store, "Lateshift") for line in TAKEN[group] for store in ("PostgreSQL", "SQLite")
    } <= taken
    assert {(line, "PostgreSQL", "ceiling") for line in CEILING[group]} <= taken


def test_a_ratio_is_judged_only_if_both_of_its_figures_were_taken() -> None:
    figures = Figures()
    figures.add("PostgreSQL", "Lateshift", {"drain": 30_000.0})
    assert {verdict.holds for verdict in judge(figures)} == {None}

    figures.add("PostgreSQL", "ceiling", {"drain": 59_000.0})
    figures.add("PostgreSQL", "pgqueuer", {"drain": 16_000.0})
    judged = {verdict.asked: verdict.holds for verdict in judge(figures) if verdict.holds is not None}
    assert judged == {"≥ 0.5 × the ceiling": True, "≥ 2 × pgqueuer": False}


def test_a_latency_and_an_idle_worker_are_judged_from_above() -> None:
    figures = Figures()
    figures.add("SQLite", "Lateshift", {"p50": 1.9, "p99": 6.1, "worker rss": 61.0, "worker cpu": 0.4})
    figures.add("SQLite", "ceiling", {"p50": 1.0, "p99": 1.0})
    judged = {verdict.what: verdict.holds for verdict in judge(figures) if verdict.holds is not None}
    assert judged == {
        "start latency, p50": True,
        "start latency, p99": False,
        "idle worker, memory": False,
        "idle worker, processor": True,
    }


def test_a_batch_is_judged_by_the_memory_of_its_largest_process() -> None:
    figures = Figures()
    figures.add("SQLite", "Lateshift", {"batch memory": 199.0})
    figures.add("PostgreSQL", "Lateshift", {"batch memory": 201.0})
    judged = {verdict.store: verdict.holds for verdict in judge(figures) if verdict.holds is not None}
    assert judged == {"SQLite": True, "PostgreSQL": False}


def test_the_api_is_judged_beside_an_endpoint_of_the_same_server() -> None:
    figures = Figures()
    taken = {"http bare": 4000.0, "http enqueue": 2100.0, "http read": 1900.0, "serve cpu": 0.2}
    figures.add("SQLite", "Lateshift", taken)
    judged = {verdict.what: verdict.holds for verdict in judge(figures) if verdict.holds is not None}
    assert judged == {
        "HTTP, durable enqueues": True,
        "HTTP, status of a job": False,
        "idle server, processor": True,
    }
