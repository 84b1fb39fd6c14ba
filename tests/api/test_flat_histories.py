"""`lateshift serve` as a real process, on both stores: however long the histories of jobs are, its memory stays flat."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from lateshift.model.history import KEPT, append
from lateshift.model.job import AttemptRecord
from lateshift.model.outcome import MESSAGE_LIMIT, TRACEBACK_LIMIT, DeadLettered
from lateshift.store.open import open_store
from tests.api.test_flat_memory import GROWTH, Server, serving
from tests.api.test_flat_reading import PROGRAM
from tests.api.test_flat_reads import peak
from tests.store_contract.driving import DAY, Worker, added, make_job

BURIED = 400  # jobs, each with as much of a history as is kept
AT_ONCE = 4  # readers
LISTINGS = ("/v1/jobs?limit=200", "/v1/jobs?state=dead&limit=200", "/v1/dead-letters")
PREVIEWS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/v1/bulk/preview", {"action": "resubmit"}),
    ("/v1/dead-letters/preview", {}),
    ("/v1/dead-letters/preview", {"change": {"text": "short"}}),
    ("/v1/dead-letters/discard/preview", {}),
)


def bury(url: str) -> None:
    store = open_store(url)
    store.ready()
    worker, story = Worker(store), b""
    for attempt in range(1, KEPT + 1):
        record = AttemptRecord(
            attempt=attempt, fence=attempt, at=store.clock.now(), reason="failed", error="ValueError",
            message="why " * (MESSAGE_LIMIT // 4), traceback="deep" * (TRACEBACK_LIMIT // 4),
        )  # fmt: skip
        story = append(story, record)
    added(store, *[make_job(task="fall", payload=b'{"text":"a"}') for _ in range(BURIED)])
    worker.settle_all(worker.lease(BURIED), DeadLettered("exhausted", story, DAY))
    store.close()


def grown(server: Server, ask: Callable[[], object]) -> int:
    """How much more memory than before it had at the most, while several ask."""
    before = peak(server)
    with ThreadPoolExecutor(AT_ONCE) as asking:
        for each in [asking.submit(ask) for _ in range(AT_ONCE)]:
            each.result()
    return peak(server) - before


def test_the_memory_of_a_server_stays_flat_however_long_the_histories_of_many_jobs_are(
    tmp_path: Path, store_url: str
) -> None:
    bury(store_url)
    with serving(tmp_path, store_url, PROGRAM) as server:

        def read(path: str) -> None:
            answer = server.client.get(path)
            assert answer.status_code == 200, answer.text

        def preview(path: str, body: dict[str, Any]) -> list[str]:
            answer = server.client.post(path, json=body)
            assert answer.status_code == 200, answer.text
            told = answer.json()
            ids: list[str] = told["ids"]
            assert len(ids) + sum(each["count"] for each in told.get("kept", ())) == BURIED
            return ids

        ids = preview("/v1/bulk/preview", {"action": "resubmit", "all": True})
        more = {path: grown(server, partial(read, path)) for path in LISTINGS}
        for path, body in PREVIEWS:
            for named in ({"all": True}, {"ids": ids}):
                asked = body | named
                more[f"{path} {[*asked]}"] = grown(server, partial(preview, path, asked))
        before = peak(server)
        done = server.client.post("/v1/bulk", json={"action": "resubmit", "ids": ids})
        more["resubmitted"] = peak(server) - before
        assert len(done.json()["done"]) == BURIED, done.text
    print({what: f"{most / 2**20:.1f} MiB" for what, most in more.items()})
    assert sum(more.values()) < 3 * GROWTH
