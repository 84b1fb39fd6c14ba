"""A program that gives all sockets a timeout, as some do at their top, is run like any other: in workers and in processes of their own."""

from pathlib import Path

from lateshift.model.job import JobFilter, State
from lateshift.store.open import open_store
from tests.walks.commands import eventually, interrupted, started

PROGRAM = """
import socket
socket.setdefaulttimeout(5)
from lateshift import Lateshift, Retry
app = Lateshift("timeouts")

@app.task
def plain(number: int) -> int:
    return number

@app.task(process=True, retry=Retry(attempts=1))
def apart(number: int) -> int:
    return number

@app.on_start
def begin() -> None:
    plain.options(key="plain").enqueue(1)
    apart.options(key="apart").enqueue(2)
"""


def test_a_default_timeout_of_sockets_stops_no_worker_and_no_process(tmp_path: Path, store_url: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    store = open_store(store_url)
    store.ready()
    with started("work", "program.py", cwd=tmp_path, LATESHIFT_STORE=store_url) as process:
        completed = JobFilter(state=State.COMPLETED)
        eventually(lambda: len(store.reports.jobs(completed, 10)) == 2, "both have completed")
        assert interrupted(process, 30) == 0
    store.close()
