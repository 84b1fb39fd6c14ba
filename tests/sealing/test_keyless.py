"""A sealed job that nobody has the key for needs somebody, and whoever lacks something is told all of it at once."""

import asyncio
import logging
from collections.abc import Iterator
from datetime import timedelta

import pytest

from lateshift import Lateshift
from lateshift.api.application import make_api
from lateshift.errors import SealKeyMissing
from lateshift.model.member import Serves
from lateshift.sealing import ring
from lateshift.store.keyless import without_key
from tests.api.asking import asking
from tests.sealing.clinic import OLD, clinic
from tests.store_contract.driving import member

HOUR = timedelta(hours=1)


@pytest.fixture
def keyless(store_url: str) -> Iterator[Lateshift]:
    app = clinic(store_url)
    yield app
    app.close()


def serving(app: Lateshift, *keys: str, queues: tuple[str, ...] = ()) -> None:
    """A worker that says which keys it has."""
    program = app.program()
    serves = Serves(
        app=app.name,
        version="1",
        code=program.digest,
        queues=queues,
        slots={"thread": 1},
        heartbeat=3600,
        keys=keys,
    )
    there = member()
    app.store.members.join(there, HOUR)
    assert app.store.members.introduce(there.id, serves, program)


def test_sealed_jobs_are_told_of_while_no_worker_of_their_queue_has_the_key(
    app: Lateshift, keyless: Lateshift
) -> None:
    app.tasks["examine"].enqueue("Ada")
    app.tasks["examine"].options(delay=timedelta(seconds=20)).enqueue("Bea")
    store = keyless.store
    assert without_key(store, 100) == []  # nobody is there at all, which is told otherwise
    serving(keyless)
    serving(keyless, "old", queues=("other",))
    [found] = without_key(store, 100)
    assert (found.queue, found.key, found.count) == ("patients", OLD.partition(":")[0], 2)
    assert [it.count for it in without_key(store, 1)] == [2]
    assert without_key(store, 100, lambda queue: queue != "patients") == []

    with asking(keyless, make_api(keyless)) as web:
        told = [it for it in web("GET", "/v1/overview").json()["attention"] if it["kind"] == "key missing"]
        assert [(it["subject"], it["count"]) for it in told] == [("patients", 2)]
        assert "LATESHIFT_KEYS" in told[0]["do"]
        metrics = web("GET", "/metrics").text
        assert "\nlateshift_jobs_without_key 2" in metrics
    serving(app, OLD.partition(":")[0])
    assert without_key(store, 100) == []


def test_a_worker_that_cannot_open_what_it_is_to_run_says_so_when_it_begins(
    keyless: Lateshift, caplog: pytest.LogCaptureFixture
) -> None:
    async def briefly() -> None:
        async with keyless.running():
            async with asyncio.timeout(20):
                while "no job of patients runs here" not in caplog.text:  # noqa: ASYNC110 - a thread logs it
                    await asyncio.sleep(0.01)

    with caplog.at_level(logging.WARNING, "lateshift"):
        asyncio.run(briefly())
    assert "export LATESHIFT_KEYS=$(lateshift keys new)" in caplog.text


def test_all_that_is_missing_is_told_at_once(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring, "_installed", lambda: False)
    bare, digestless = clinic(store_url), clinic(store_url, OLD)
    with pytest.raises(SealKeyMissing) as told:
        bare.tasks["examine"].options(key="one").enqueue("Ada")
    for part in (
        "a key to seal with", "the key digest", "the package cryptography", "pip install 'lateshift[sensitive]'",
        "export LATESHIFT_KEYS=$(lateshift keys new),$(lateshift keys new digest)",
    ):  # fmt: skip
        assert part in str(told.value)
    with pytest.raises(SealKeyMissing) as told:
        bare.tasks["examine"].enqueue("Ada")
    assert "lacks a key to seal with and the package cryptography." in str(told.value)
    monkeypatch.undo()
    with pytest.raises(SealKeyMissing) as told:
        digestless.tasks["examine"].options(key="one").enqueue("Ada")
    assert "export LATESHIFT_KEYS=$LATESHIFT_KEYS,$(lateshift keys new digest)" in str(told.value)
    assert "cryptography" not in str(told.value)
    bare.close()
    digestless.close()
