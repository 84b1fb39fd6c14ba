"""What comes into a sensitive queue, and what is run of it."""

import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from lateshift import Breaker, JobFilter, Lateshift, Retry, Unique
from lateshift.errors import (
    KeyConflict,
    OptionInvalid,
    ScheduleInvalid,
    SealKeyMissing,
    SealKeysInvalid,
    TriggerInvalid,
)
from lateshift.model.job import JobView, State
from lateshift.model.sealed import MASK, NOT_SEALED, SEAL_BROKEN, is_sealed, key_of
from lateshift.runtime.aside import aside
from lateshift.testing import testing
from tests.sealing.clinic import DIGEST, NEW, OLD, clinic
from tests.walks.waiting import until

HOUR = timedelta(hours=1)


def jobs_of(app: Lateshift) -> list[JobView]:
    return app.store.reports.jobs(JobFilter(), 100)


def test_what_is_enqueued_without_a_key_is_refused_and_nothing_is_written(store_url: str) -> None:
    app = clinic(store_url)
    examine = app.tasks["examine"]
    for enqueue in (
        lambda: examine.enqueue("Ada"),
        lambda: app.enqueue_many([examine.call("Ada")]),
        lambda: app.batch([examine.call("Ada")]),
        lambda: app.batch([], then=examine.call("Ada")),
    ):
        with pytest.raises(SealKeyMissing, match="LATESHIFT_KEYS"):
            enqueue()
    assert (jobs_of(app), app.store.batches.newest(None, 10)) == ([], [])
    app.close()


def test_a_key_or_a_unique_job_needs_the_digest_key(store_url: str) -> None:
    app = clinic(store_url, OLD)
    examine = app.tasks["examine"]
    with pytest.raises(SealKeyMissing, match="keys new digest"):
        examine.options(key="one").enqueue("Ada")
    with pytest.raises(SealKeyMissing, match="keys new digest"):
        examine.options(unique=True).enqueue("Ada")
    assert examine.enqueue("Ada").created
    app.close()


def test_keys_and_unique_jobs_work_on_after_the_key_was_rotated(store_url: str, app: Lateshift) -> None:
    examine = app.tasks["examine"]
    first = examine.options(key="one").enqueue("Ada")
    only = examine.options(unique=Unique(window=HOUR)).enqueue("Bea")

    later = clinic(store_url, NEW, OLD, DIGEST)
    again = later.tasks["examine"]
    assert again.options(key="one").enqueue("Ada").id == first.id
    assert again.options(unique=Unique(window=HOUR)).enqueue("Bea").id == only.id
    with pytest.raises(KeyConflict):
        again.options(key="one").enqueue("Cleo")
    later.close()


def test_a_batch_is_gone_on_with_by_its_key_after_the_key_was_rotated(store_url: str, app: Lateshift) -> None:
    def send(app: Lateshift, last: str = "Cleo") -> Any:
        examine = app.tasks["examine"]
        calls = [examine.call(name) for name in ("Ada", "Bea", last)]
        return app.batch(calls, then=examine.call("Dora"), key="round").id

    first = send(app)
    later = clinic(store_url, NEW, OLD, DIGEST)
    assert send(later) == first
    with pytest.raises(KeyConflict):
        send(later, "Eve")
    later.close()


def test_a_worker_without_the_key_leaves_the_job_to_others_and_costs_it_no_attempt(
    store_url: str, app: Lateshift
) -> None:
    job = app.tasks["examine"].enqueue("Ada")
    other = clinic(store_url, NEW, DIGEST)
    with testing(other, store=store_url) as kit:
        for _ in range(5):
            kit.drain()
            kit.travel(seconds=6)
        assert other.ran == []  # type: ignore[attr-defined]
        view = job.view()
        assert (view.state.settled, view.attempt, view.history) == (False, 0, [])
    with testing(app, store=store_url) as kit:
        kit.travel(minutes=1)
        assert kit.result(job)
    other.close()


@pytest.mark.anyio
async def test_it_is_explained_that_nobody_has_the_key(store_url: str, app: Lateshift) -> None:
    job = app.tasks["examine"].enqueue("Ada")
    other = clinic(store_url, NEW, DIGEST)
    async with other.running():
        await until(
            lambda: aside(other.store.reports.members), lambda seen: any(member.serves for member in seen)
        )
        [reason] = [reason for reason in job.explain().reasons if reason.code == "key_missing"]
        assert reason.holds
        assert "the key 2026-10" in reason.says
        assert "has 2026-11" in reason.says
    other.close()


def test_a_plain_payload_in_a_sensitive_queue_is_a_dead_letter_that_was_not_run(
    store_url: str, app: Lateshift
) -> None:
    stranger = Lateshift("stranger", store=store_url)

    @stranger.task(name="examine", queue="patients")
    def examine(name: str) -> None: ...

    job = examine.enqueue("Mallory")
    with testing(app, store=store_url) as kit:
        kit.drain()
        [dead] = kit.dead_letters()
    assert (dead.id, dead.reason, dead.state) == (job.id, NOT_SEALED, State.DEAD)
    assert app.ran == []  # type: ignore[attr-defined]
    assert "was not sealed" in str(app.job(job.id).explain())
    stranger.close()


def test_a_payload_of_another_job_is_not_run(store_url: str, app: Lateshift) -> None:
    examine = app.tasks["examine"]
    taken, moved = (examine.call(name).take() for name in ("Ada", "Bea"))
    app.store.jobs.enqueue([structs.replace(moved, payload=taken.payload)])
    with testing(app, store=store_url) as kit:
        kit.drain()
        [dead] = kit.dead_letters()
    assert (dead.reason, app.ran) == (SEAL_BROKEN, [])  # type: ignore[attr-defined]


def test_a_payload_that_was_changed_is_not_run(store_url: str, app: Lateshift) -> None:
    job = app.tasks["examine"].call("Ada").take()
    payload = bytearray(job.payload)
    payload[-8] ^= 1
    app.store.jobs.enqueue([structs.replace(job, payload=bytes(payload))])
    with testing(app, store=store_url) as kit:
        kit.drain()
        [dead] = kit.dead_letters()
    assert (dead.reason, app.ran) == (SEAL_BROKEN, [])  # type: ignore[attr-defined]


def test_dead_letters_are_resubmitted_with_other_arguments_where_the_ring_is(
    store_url: str, app: Lateshift
) -> None:
    with testing(app, store=store_url) as kit:
        job = app.tasks["fail"].enqueue("Ada")
        kit.drain()
        without = clinic(store_url)
        plan = without.dead_letters().plan({"name": "Bea"})
        assert list(plan.problems) == [str(SealKeyMissing(next(iter(plan.problems))))]
        without.close()
        done = app.dead_letters().resubmit({"name": "Bea"})
        view = job.view()
        assert (done.edited, is_sealed(view.payload)) == (1, True)
        assert app.client.opened(view).payload == b'{"name":"Bea"}'
        assert (view.history[-1].was, "sealed" in (view.history[-1].message or "")) == (None, True)


def test_what_came_in_unsealed_is_sealed_when_an_operator_resubmits_it(
    store_url: str, app: Lateshift
) -> None:
    stranger = Lateshift("stranger", store=store_url)

    @stranger.task(name="examine", queue="patients")
    def examine(name: str) -> None: ...

    job = examine.enqueue("Ada")
    with testing(app, store=store_url) as kit:
        kit.drain()
        app.dead_letters(reason=NOT_SEALED).resubmit({})
        kit.drain()
        assert kit.result(app.job(job.id))
    assert key_of(app.job(job.id).view().payload) == "2026-10"
    assert b"Ada" not in str(app.job(job.id).view().history).encode()
    stranger.close()


FEEDERS: list[tuple[str, type[Exception], Callable[[Lateshift, Any], Any]]] = [
    ("a schedule", ScheduleInvalid, lambda app, task: app.schedule(task, cron="0 2 * * *", args=["Ada"])),
    ("a file trigger", TriggerInvalid, lambda app, task: app.on_file("in/*.csv")(task)),
    ("a subscription", TriggerInvalid, lambda app, task: app.on("patient.*")(task)),
]


@pytest.mark.parametrize(("_", "refused", "feed"), FEEDERS, ids=[name for name, *_ in FEEDERS])
def test_what_the_store_makes_jobs_of_by_itself_is_kept_out(
    _: str, refused: type[Exception], feed: Callable[[Lateshift, Any], Any]
) -> None:
    app = clinic("memory://", OLD)
    with pytest.raises(refused, match="sensitive queue patients"):
        feed(app, app.tasks["examine"])

    late = Lateshift("late", store="memory://")

    @late.task(queue="patients")
    def examine(name: str) -> None: ...

    feed(late, examine)
    with pytest.raises(OptionInvalid, match="not sealed"):
        late.queue("patients", sensitive=True)


def test_a_workflow_and_its_steps_are_kept_out(store_url: str, app: Lateshift) -> None:
    @app.workflow(queue="patients")
    async def admit(flow: Any, name: str) -> None: ...

    @app.workflow
    async def refer(flow: Any, name: str) -> None:
        await flow.step(app.tasks["examine"], name)

    with pytest.raises(OptionInvalid, match="is a workflow"):
        admit.enqueue("Ada")
    with testing(app, store=store_url) as kit:
        refer.enqueue("a reference")
        kit.drain()
        [dead] = kit.dead_letters()
    assert "sensitive queue patients" in (dead.history[-1].message or "")


def test_a_task_for_a_process_of_its_own_is_given_what_was_sealed() -> None:
    app = clinic("memory://", OLD)
    with testing(app) as kit:
        job = app.tasks["compute"].enqueue("ada")
        kit.drain()
        assert kit.result(job) == "ADA"
        assert is_sealed(job.view().result)


def test_without_the_package_a_job_waits_and_an_enqueue_says_what_to_install(
    store_url: str, app: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = app.tasks["examine"].enqueue("Ada")
    with monkeypatch.context() as gone:
        gone.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers", None)
        with pytest.raises(SealKeysInvalid, match=r"lateshift\[sensitive\]"):
            app.tasks["examine"].enqueue("Ada")
        with testing(app, store=store_url) as kit:
            kit.drain()
            assert (job.view().state, job.view().attempt) == (State.SCHEDULED, 0)
    with testing(app, store=store_url) as kit:
        kit.travel(minutes=1)
        assert kit.result(job)


def test_check_leaves_sealed_arguments_to_those_who_run_them(store_url: str, app: Lateshift) -> None:
    app.tasks["examine"].enqueue("Ada")
    assert app.check().findings == []


def test_a_breaker_opens_by_what_sealed_jobs_raise_and_does_not_say_it(store_url: str) -> None:
    app = clinic(store_url, OLD)

    @app.task(queue="patients", breaker=Breaker(failures=1), retry=Retry(attempts=1))
    def call(name: str) -> None:
        raise ConnectionError(f"nobody answers for {name}")

    stranger = Lateshift("stranger", store=store_url)

    @stranger.task(name="call", queue="patients", breaker=Breaker(failures=1))
    def plain(name: str) -> None: ...

    with testing(app, store=store_url) as kit:
        plain.enqueue("Mallory")
        kit.drain()
        assert app.store.breakers.list()[0].opened_at is None  # what was refused was no call
        call.enqueue("Ada")
        kit.drain()
        [view] = app.store.breakers.list()
    assert (view.opened_at is not None, view.reason) == (True, f"ConnectionError: {MASK}")
    stranger.close()


def test_a_reply_into_a_sensitive_queue_is_refused_for_the_courier_has_no_key(store_url: str) -> None:
    app = clinic(store_url, OLD, DIGEST)
    app.queue("replies.shop", sensitive=True)
    app.reply_webhook("https://hooks.example.com", secret="whsec_" + "A" * 32, name="shop")

    @app.task(queue="patients")
    def hear(event: dict[str, Any]) -> None: ...

    @app.task(queue="plain")
    def listen(event: dict[str, Any]) -> None: ...

    for wrong in (hear, "task:hear", listen.options(queue="patients"), "https://hooks.example.com/a"):
        with pytest.raises(OptionInvalid, match=r"sensitive queue (patients|replies\.shop)"):
            listen.options(reply_to=wrong)
    with pytest.raises(OptionInvalid, match="queue plain is not sensitive"):
        hear.options(queue="plain")
    assert hear.options(reply_to=listen).spec.reply
    app.close()
