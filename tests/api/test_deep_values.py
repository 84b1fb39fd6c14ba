"""What an older release, or somebody's own SQL, has kept deeper than anything may be today is shown as the text that it is."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import msgspec
import pytest

from lateshift.documents.reading import readable
from lateshift.model import history
from lateshift.model.depth import JSON_DEPTH, PAYLOAD_DEPTH
from lateshift.model.edit import Edit, line_of
from lateshift.model.job import Note
from lateshift.model.outcome import Completed, Settlement
from lateshift.store.contract import Store, Want
from lateshift.store.open import open_store
from lateshift.store.workflow_contract import Told
from lateshift.testing import Kit
from tests.api.asking import Web, told
from tests.api.shop import Shop
from tests.store_contract.driving import member

DEPTHS = [PAYLOAD_DEPTH + 1, 940, 985, 100_000]


@pytest.fixture
def plain(kit: Kit, store_url: str) -> Iterator[Store]:
    """The store itself: what the kit keeps books of, it reads."""
    store = open_store(store_url, kit.clock)
    yield store
    store.close()


def deep(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@pytest.fixture(params=DEPTHS)
def kept(request: pytest.FixtureRequest) -> bytes:
    return deep(request.param)


def done(plain: Store, shop: Shop, result: bytes, *, session: str | None = None) -> UUID:
    """A job that has deep arguments, a deep result and a deep checkpoint."""
    bound = shop.send if session is None else shop.send.options(session=session)
    call = bound.call("ann").take()
    job = msgspec.structs.replace(call, payload=b'{"to":' + result + b"}")
    plain.jobs.enqueue([job])
    worker = member()
    plain.members.join(worker, timedelta(days=1))
    [lease] = plain.jobs.exchange(worker.id, [], [Want(job.spec.line, 1)]).leases
    assert not plain.jobs.save([Note(lease, checkpoint=result)])
    ended = Completed(result, timedelta(days=1), None if session is None else result)
    assert not plain.jobs.exchange(worker.id, [Settlement(lease, ended)], []).lost
    return job.id


def test_a_job_with_deep_values_is_shown_with_their_text(
    web: Web, plain: Store, shop: Shop, kept: bytes
) -> None:
    id = done(plain, shop, kept)

    answer = web("GET", f"/v1/jobs/{id}")

    assert answer.status_code == 200
    assert answer.json()["result"] == kept.decode()
    assert answer.json()["arguments"] == f'{{"to":{kept.decode()}}}'
    assert web("GET", "/v1/jobs").status_code == 200


def test_its_events_leave_the_result_out(web: Web, plain: Store, shop: Shop, kept: bytes) -> None:
    id = done(plain, shop, kept)

    answer = web("GET", f"/v1/jobs/{id}/events")

    assert answer.status_code == 200
    assert msgspec.json.decode(told(answer)[-1])["result_left_out"]


def test_a_session_with_a_deep_state_is_shown_with_its_text(
    web: Web, plain: Store, shop: Shop, kept: bytes
) -> None:
    done(plain, shop, kept, session="ann")
    [found] = web("GET", "/v1/sessions").json()["sessions"]
    assert found["state"] == kept.decode()


def test_a_run_with_a_deep_signal_is_shown_with_its_text(
    web: Web, kit: Kit, plain: Store, shop: Shop, kept: bytes
) -> None:
    run = shop.order.enqueue(7)
    kit.drain()
    assert plain.workflows.signal(run.id, "picked", kept, key="k", by="ann") is Told.KEPT
    assert plain.workflows.signal(run.id, "picked", kept, key="k", by="ann") is Told.REPEATED

    answer = web("GET", f"/v1/workflows/{run.id}")

    assert answer.status_code == 200
    assert answer.json()["signals"] == [{"name": "picked", "data": kept.decode()}]


def test_what_is_as_deep_as_it_may_be_is_shown_as_it_is() -> None:
    for depth in (JSON_DEPTH, PAYLOAD_DEPTH):
        assert readable(deep(depth)) == msgspec.json.decode(deep(depth))
    assert readable(deep(PAYLOAD_DEPTH + 1)) == deep(PAYLOAD_DEPTH + 1).decode()


@pytest.mark.parametrize("depth", [PAYLOAD_DEPTH, 900, 100_000])
def test_the_history_of_a_job_whose_deep_arguments_were_changed_can_be_read(kit: Kit, depth: int) -> None:
    edit = Edit(b'{"to":' + deep(depth) + b"}", b'{"to":1}')
    record = line_of(edit, by="ann", attempt=1, fence=1, at=kit.clock.now())

    [read] = history.read(history.append(None, record))

    assert read.message is not None
    assert read.message.startswith("by ann")
