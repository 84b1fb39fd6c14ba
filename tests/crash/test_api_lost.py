"""Row 33 of the catalogue under the API: PostgreSQL has committed what a request asked for, and its answer to the COMMIT never reaches the
server. Each request is answered as if it had come, and each deed is there once, with one line of the audit."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.asking import (
    CANCEL,
    FIRE,
    PAUSE,
    RESUBMIT,
    SCHEDULE,
    TOKEN,
    Caller,
    Deed,
    counted,
    prepare,
)
from tests.crash.conftest import played
from tests.crash.proxy import Proxy
from tests.crash.scene import Scene
from tests.store_contract.driving import make_batch

AUDIT, ENQUEUE = "INTO lateshift.audit", "INTO lateshift.job"

START = Deed(
    "/v1/tasks/quick/jobs", "start", "SELECT count(*) FROM {}job WHERE queue = 'started'",
    {"arguments": {"number": 1}, "queue": "started"},
)  # fmt: skip


@pytest.fixture
def postgres(tmp_path: Path, postgres_url: str) -> Iterator[Scene]:
    yield from played(Scene(tmp_path, postgres_url))


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    with Proxy(postgres_url) as proxy:
        yield proxy


def test_every_deed_whose_commit_was_not_answered_is_answered_done_once_and_told_once(
    postgres: Scene, proxy: Proxy
) -> None:
    prepare(postgres)
    run = postgres.app.find_task("order").enqueue(1, "well")
    signal = Deed(
        f"/v1/workflows/{run.id}/signal", "signal", "SELECT count(*) FROM {}signal", {"name": "picked", "data": 7}
    )  # fmt: skip
    batch, _ = make_batch(postgres.app.store, 2)
    called_off = Deed(
        f"/v1/batches/{batch.id}/cancel",
        "cancel",
        "SELECT count(*) FROM {}batch WHERE cancelled_by IS NOT NULL",
    )
    caller, server = Caller(postgres), postgres.server(url=proxy.url)
    for deed in (START, CANCEL, called_off, RESUBMIT, FIRE, PAUSE, SCHEDULE, signal, TOKEN):
        before = deed.audited(postgres)
        lost = proxy.lose_answer(ENQUEUE if deed is START else AUDIT)
        answer = caller.ask(server, deed.path, deed.body)
        assert answer is not None
        assert lost.done.is_set(), deed
        assert answer.is_success, (deed, answer.text)
        assert told(answer.json()), (deed, answer.text)
        assert (deed.shows(postgres), deed.audited(postgres) - before) == (1, 1), deed
    again = caller.ask(server, START.path, START.body)
    assert again is not None
    assert again.json()["created"] is False
    assert counted(postgres, START.count) == 1


def told(answer: dict[str, Any]) -> bool:
    """Whether it says of itself that it was done, each in its way."""
    return all(
        answer.get(name, True) for name in ("changed", "created", "done", "resubmitted", "job", "id", "token")
    )
