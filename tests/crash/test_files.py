"""Whoever reads a folder dies, by kill -9, at the worst of moments: each version of each file makes one job all the same."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from lateshift.store.open import open_store
from tests.crash.checker import query
from tests.crash.scene import PATH, ROOT

KILLS = {"sqlite": 100, "postgresql": 20}


@pytest.mark.slow
@pytest.mark.parametrize("point", ["trigger.after_read", "trigger.before_commit", "trigger.after_commit"])
def test_no_file_is_lost_and_none_makes_two_jobs(store_url: str, tmp_path: Path, point: str) -> None:
    store = open_store(store_url)
    store.ready()
    store.close()
    folder = tmp_path / "inbox"
    folder.mkdir()
    kills = KILLS[store_url.partition(":")[0]]
    environment = os.environ | {"PYTHONPATH": PATH, "LATESHIFT_STORE": store_url}
    command = [sys.executable, "-m", "tests.crash.file_reader", str(folder), point, str(kills)]
    done = subprocess.run(
        command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["killed"] == kills
    sql = "SELECT payload FROM {}job"
    jobs = Counter(
        _version(payload) for (payload,) in query(store_url, sql.format(""), sql.format("lateshift."))
    )
    versions = {(path, mark) for path, mark in told["versions"]}
    assert len(versions) > 3 * kills
    print(f"{kills} kills, {len(versions)} versions, {jobs.total()} jobs")
    assert set(jobs) == versions  # none lost
    assert set(jobs.values()) == {1}  # none doubled


def _version(payload: bytes) -> tuple[str, str]:
    file = json.loads(payload)["file"]
    return file["path"], file["etag"]
