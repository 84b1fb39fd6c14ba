"""`lateshift serve` as a real process, on both stores, over a run that is far larger than what a request may cost: whoever reads it, piece by piece,
finds all of it, and the memory of the server stays flat."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from lateshift.api.bounds import PAGE_BYTES
from lateshift.model.ids import JobId
from lateshift.model.job import STRETCHES, Lane, Line
from lateshift.model.workflow.run import Advance, Phase
from lateshift.model.workflow.step import Kind, StepRow, StepState, path_of
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from tests.api.test_flat_memory import GROWTH, Server, serving
from tests.store_contract.driving import Worker, make_job

STEPS = 300
SIZE = 240_000  # bytes of what each of them gave
WAITING = 12  # who look at a job at once, and wait for its end
READERS = 4  # of pages at once


def filled(store: Store) -> tuple[JobId, JobId]:
    """A run whose last step, a job, is under way; and that job."""
    run, step = (
        make_job(task="order", queue="images", attempts=STRETCHES),
        make_job(task="thumbnail", queue="images"),
    )
    step = replace(step, spec=replace(step.spec, batch=run.id))
    store.jobs.enqueue([run])
    worker = Worker(store)
    lease = worker.lease_one(Line("images", Lane.COROUTINE))
    done = [
        StepRow(
            path=path_of("", number), kind=Kind.CALL, name="chunk", state=StepState.COMPLETED, place=number,
            payload=b'{"args":[%d]}' % number, result=b'"%s"' % ("é" * ((SIZE - 2) // 2)).encode(),
        )
        for number in range(1, STEPS + 1)
    ]  # fmt: skip
    last = StepRow(
        path=path_of("", STEPS + 1), kind=Kind.JOB, name="thumbnail", state=StepState.RUNNING, job=step.id
    )
    store.workflows.advance([Advance(lease=lease, begin=("order", "1"), phase=Phase.HELD, why="a test")])
    for start in range(0, STEPS, 20):
        store.workflows.advance([Advance(lease=lease, steps=done[start : start + 20])])
    store.workflows.advance([Advance(lease=lease, steps=[last], jobs=[step])])
    return run.id, step.id


def read_all(server: Server, run: JobId) -> list[str]:
    """All steps of the run, page by page; none of them has much more than a page may."""
    found: list[str] = []
    cursor: dict[str, Any] = {}
    while True:
        answer = server.client.get(f"/v1/workflows/{run}", params=cursor)
        assert answer.status_code == 200, answer.text
        assert len(answer.content) < PAGE_BYTES + 2**20
        page = answer.json()
        found += [step["step"] for step in page["steps"]]
        if page["next"] is None:
            return found
        cursor = {"cursor": page["next"]}


def peak(server: Server) -> int:
    """The most memory that it ever had."""
    [line] = [
        each
        for each in Path(f"/proc/{server.pid}/status").read_text().splitlines()
        if each.startswith("VmHWM")
    ]
    return int(line.split()[1]) * 1024


def test_the_memory_of_a_server_stays_flat_whoever_reads_a_large_run(tmp_path: Path, store_url: str) -> None:
    with serving(tmp_path, store_url) as server:
        store = open_store(store_url)
        run, job = filled(store)
        store.close()
        assert server.client.get("/v1/workflows").json()["runs"][0]["id"] == str(run)
        pages = [f"/v1/workflows/{run}"] * READERS * 9
        for most, readers, paths in (
            (GROWTH, WAITING, [f"/v1/jobs/{job}?wait=0.3"] * WAITING),
            (GROWTH, 1, [f"/v1/workflows/{run}/graph", f"/v1/jobs/{run}/explain", f"/v1/jobs/{job}/explain", "/v1/overview"]),
            (GROWTH + READERS * PAGE_BYTES * 6, READERS, pages),  # read, decoded, written and sent
        ):  # fmt: skip
            before = peak(server)
            with ThreadPoolExecutor(readers) as asking:
                assert set(asking.map(lambda path: server.client.get(path).status_code, paths)) == {200}
            grown = peak(server) - before
            print(f"{paths[0]}: {before / 2**20:.1f} MiB, and {grown / 2**20:.1f} more")
            assert grown < most
        before = peak(server)
        assert read_all(server, run) == [str(number) for number in range(1, STEPS + 2)]
        assert peak(server) - before < GROWTH
