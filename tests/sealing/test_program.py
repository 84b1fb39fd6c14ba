"""Real processes: a worker with a process for each heavy job, and what they write."""

from datetime import timedelta
from pathlib import Path

import pytest

from lateshift import Lateshift
from lateshift.model.sealed import MASK, is_sealed
from tests.sealing.clinic import DIGEST, OLD, kept
from tests.walks.commands import started

SOON = timedelta(seconds=40)
PROGRAM = """
import logging
from lateshift import Lateshift, checkpoint, last_checkpoint

app = Lateshift("clinic")
app.queue("patients", sensitive=True)

def look(name):
    logging.getLogger("clinic").warning("looking at %s", name)
    try:
        raise ValueError(name)
    except ValueError:
        logging.getLogger("clinic").exception("again")
    return name.upper()

@app.task(queue="patients")
async def coroutine(name: str) -> str:
    return look(name)

@app.task(queue="patients")
def thread(name: str) -> str:
    return look(name)

@app.task(queue="patients", process=True)
def process(name: str) -> str:
    checkpoint(name)
    return look(last_checkpoint())
"""


@pytest.mark.parametrize("log_format", ["plain", "json"])
def test_workers_write_nothing_of_what_sealed_jobs_log(
    store_url: str, tmp_path: Path, log_format: str
) -> None:
    (tmp_path / "clinic.py").write_text(PROGRAM)
    (tmp_path / "ring").write_text(f"# one for each line\n{OLD}\n{DIGEST}\n")
    (tmp_path / "ring").chmod(0o600)
    variables = {
        "LATESHIFT_STORE": store_url, "LATESHIFT_KEYS_FILE": str(tmp_path / "ring"), "LATESHIFT_LOG": "DEBUG",
        "LATESHIFT_LOG_FORMAT": log_format,
    }  # fmt: skip
    app = Lateshift("clinic", store=store_url)
    app.settings = type(app.settings)(store=store_url, keys=(OLD, DIGEST))
    app.queue("patients", sensitive=True)
    jobs = []
    for name in ("coroutine", "thread", "process"):

        @app.task(name=name, queue="patients", process=name == "process")
        def task(name: str) -> str:
            return name

        jobs.append(task.enqueue(f"canary-{name}"))
    with started("work", "clinic.py", cwd=tmp_path, **variables):
        assert [job.result(SOON) for job in jobs] == ["CANARY-COROUTINE", "CANARY-THREAD", "CANARY-PROCESS"]
    assert all(is_sealed(job.view().result) for job in jobs)
    assert [len(job.logs()[0].lines) for job in jobs] == [2, 2, 2]
    app.close()
    written = (tmp_path / "output").read_text()
    assert (written.lower().count("canary"), written.count(MASK)) == (0, 6)
    assert [place for place, bytes in kept(store_url) if b"canary" in bytes.lower()] == []
