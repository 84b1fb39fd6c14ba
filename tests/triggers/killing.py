"""Readers of rows that are killed, one after the other, at one point; and what must have become of the rows."""

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec

import lateshift
from lateshift.model.job import JobFilter
from lateshift.runtime.leadership import TTL
from lateshift.store.open import open_store
from tests.triggers.tables import ORDERS, Orders

ROOT = Path(__file__).resolve().parents[2]
PATH = os.pathsep.join([str(ROOT), str(Path(lateshift.__file__).resolve().parents[1])])
POINTS = ("trigger.after_read", "trigger.before_commit", "trigger.after_commit")
NEW = 20  # rows before each reader: three pages
LATE = 5  # of them commit only before the next reader
PATIENCE = 60


def read(store: str, shop: str, turn: int, crash: str = "") -> int:
    """One process; gives how it ended."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LATESHIFT_")}
    environment |= {"PYTHONPATH": PATH} | ({"LATESHIFT_CRASH": crash} if crash else {})
    seconds = (turn + 1) * (TTL.total_seconds() + 1)
    command = [sys.executable, "-m", "tests.triggers.rows_program", store, shop, str(seconds)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, timeout=PATIENCE, capture_output=True, text=True, check=False
    )
    if not crash:
        assert done.returncode == 0, done.stderr
    return done.returncode


def survive(store: str, shop: str, point: str, kills: int) -> None:
    """Each reader but the first and the last is killed at the point, at one pass or another: no row is lost or doubled."""
    chance = random.Random(f"{point} {kills}")
    orders = Orders(shop)
    orders.run(ORDERS)
    orders.put(range(-NEW, 0))  # before the trigger
    read(store, shop, 0)
    late: list[int] = []
    for turn in range(1, kills + 1):
        new = list(range(turn * NEW, (turn + 1) * NEW))
        held = chance.sample(new, LATE)
        orders.put([*late, *(id for id in new if id not in held)])
        late = held
        assert read(store, shop, turn, f"{point}:{chance.randint(1, 3)}") == -signal.SIGKILL
    orders.put(late)
    orders.close()
    read(store, shop, kills + 1)
    opened = open_store(store)
    try:
        made = opened.reports.jobs(JobFilter(), 1_000_000)
        view = opened.triggers.get("handle")
    finally:
        opened.close()
    ids = Counter(msgspec.json.decode(job.payload)["row"]["id"] for job in made)
    assert sorted(ids) == list(range(NEW, (kills + 1) * NEW))
    assert set(ids.values()) == {1}
    assert view is not None
    assert view.made == kills * NEW
