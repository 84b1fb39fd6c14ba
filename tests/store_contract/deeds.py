"""Every deed of an operator that a store has a verb for: how it is made possible, what it gives, and what others may do right after it so that
it could be done once more."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from lateshift.model.access import new_token
from lateshift.model.discard import Discarded
from lateshift.model.ids import JobId, new_job_id
from lateshift.model.job import Holds, Place
from lateshift.model.outcome import DeadLettered
from lateshift.model.triggering.trigger import Arrival
from lateshift.model.workflow.run import Phase
from lateshift.model.workflow.step import StepState, path_of
from lateshift.store.batch_contract import Deed as Told
from lateshift.store.contract import Store
from lateshift.store.workflow_contract import Told as Heard
from tests.store_contract.driving import (
    DAY,
    GUARDED,
    HOUR,
    LINE,
    TABLES,
    Worker,
    added,
    make_batch,
    make_job,
    only,
    query,
)
from tests.store_contract.test_breakers import declare
from tests.store_contract.test_schedules import hourly
from tests.store_contract.test_triggers import refusal, trigger
from tests.store_contract.test_workflows import asleep

DEAD = DeadLettered("permanent", b"[]", DAY)


def nothing() -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Deed:
    """`do` it as ana. `gives`: what it answers; None where that is another each time. `undo`: what others do, so that it could be done
    again. `looks`: transactions that come before it. `lines`: how many the audit has of it."""

    do: Callable[[], Any]
    gives: Any = True
    undo: Callable[[], object] = nothing
    looks: int = 0
    lines: int = 1


def dead(store: Store, *, holds: bool = False) -> JobId:
    place = Place("s", holds=Holds.ON_DEAD) if holds else None
    [id] = added(store, make_job(place=place, time_limit=None if holds else HOUR))
    worker = Worker(store)
    worker.settle(worker.lease_one(GUARDED if holds else LINE), DEAD)
    return id


def cancel(store: Store) -> Deed:
    ids = added(store, make_job(), make_job())
    Worker(store).lease_one()
    return Deed(
        do=lambda: store.jobs.cancel(ids, by="ana"),
        gives=ids,
        lines=2,
        undo=lambda: store.jobs.resubmit(ids, by="bob"),
    )


def resubmit(store: Store) -> Deed:
    id = dead(store)
    worker = Worker(store)
    return Deed(
        do=lambda: store.jobs.resubmit([id], by="ana"), gives=[id], undo=lambda: worker.settle(worker.lease_one(), DEAD)
    )  # fmt: skip


def discard(store: Store) -> Deed:
    ids = [dead(store) for _ in range(2)]
    query(store, "UPDATE {settled} SET created_at = {}", long_ago(store))
    return Deed(do=lambda: store.jobs.discard(ids, by="ana"), gives=Discarded(ids=ids, kept={}), lines=2)


def long_ago(store: Store) -> Any:
    at = store.clock.now() - DAY
    return at if store.url.startswith("postgresql") else int(at.timestamp() * 1_000_000)


def open_batch(store: Store) -> Deed:
    batch, _ = make_batch(store, 1, added=0)
    other = structs.replace(batch, id=new_job_id())
    return Deed(do=lambda: store.batches.open(other, deed=Told("backfill", "schedule x", "ana")), gives=None)


def seal(store: Store) -> Deed:
    batch, _ = make_batch(store, 2, added=1)
    return Deed(do=lambda: store.batches.seal(batch.id, by="ana"))


def cancel_batch(store: Store) -> Deed:
    batch, _ = make_batch(store, 2)
    return Deed(do=lambda: store.batches.cancel(batch.id, by="ana"))


def pause_queue(store: Store) -> Deed:
    return Deed(
        do=lambda: store.queues.pause("images", by="ana"),
        undo=lambda: store.queues.resume("images", by="bob"),
    )


def resume_queue(store: Store) -> Deed:
    store.queues.pause("images", by="bob")
    return Deed(
        do=lambda: store.queues.resume("images", by="ana"),
        undo=lambda: store.queues.pause("images", by="bob"),
    )


def add_schedule(store: Store) -> Deed:
    new = hourly(store.clock.now())
    return Deed(
        do=lambda: store.schedules.add(new, by="ana"), undo=lambda: store.schedules.remove("report", by="bob")
    )


def edit_schedule(store: Store) -> Deed:
    begin = store.clock.now()
    store.schedules.add(hourly(begin), by="bob")
    return Deed(
        do=lambda: store.schedules.edit(hourly(begin + HOUR / 2), by="ana"),
        undo=lambda: store.schedules.edit(hourly(begin), by="bob"),
    )


def pause_schedule(store: Store) -> Deed:
    store.schedules.add(hourly(store.clock.now()), by="bob")
    return Deed(
        do=lambda: store.schedules.pause("report", by="ana"),
        undo=lambda: store.schedules.resume("report", by="bob"),
    )


def resume_schedule(store: Store) -> Deed:
    store.schedules.add(hourly(store.clock.now()), by="bob")
    store.schedules.pause("report", by="bob")
    return Deed(
        do=lambda: store.schedules.resume("report", by="ana"),
        undo=lambda: store.schedules.pause("report", by="bob"),
    )


def remove_schedule(store: Store) -> Deed:
    new = hourly(store.clock.now())
    store.schedules.add(new, by="bob")
    return Deed(
        do=lambda: store.schedules.remove("report", by="ana"), undo=lambda: store.schedules.add(new, by="bob")
    )


def fire(store: Store) -> Deed:
    store.schedules.add(hourly(store.clock.now()), by="bob")
    return Deed(do=lambda: store.schedules.fire_now("report", by="ana"), gives=None)


def fire_unique(store: Store) -> Deed:
    """There is such a job already."""
    store.schedules.add(hourly(store.clock.now(), job=make_job(unique=only("report"))), by="bob")
    id = store.schedules.fire_now("report", by="bob")
    return Deed(do=lambda: store.schedules.fire_now("report", by="ana"), gives=id)


def pause_trigger(store: Store) -> Deed:
    store.triggers.declare([trigger()], app="shop")
    return Deed(
        do=lambda: store.triggers.pause("orders", by="ana"), looks=1,
        undo=lambda: store.triggers.resume("orders", by="bob"),
    )  # fmt: skip


def resume_trigger(store: Store) -> Deed:
    store.triggers.declare([trigger()], app="shop")
    store.triggers.pause("orders", by="bob")
    return Deed(
        do=lambda: store.triggers.resume("orders", by="ana"), undo=lambda: store.triggers.pause("orders", by="bob")
    )  # fmt: skip


def accept(store: Store) -> Deed:
    arrival = received(store)
    assert arrival.refused is not None
    id, job = arrival.refused.id, make_job()
    return Deed(do=lambda: store.triggers.accept(id, job, by="ana"))


def discard_refused(store: Store) -> Deed:
    arrival = received(store)
    assert arrival.refused is not None
    id = arrival.refused.id
    return Deed(do=lambda: store.triggers.discard([id], by="ana"), gives=1)


def received(store: Store) -> Arrival:
    """Refused."""
    store.triggers.declare([trigger()], app="shop")
    arrival = refusal("e1")
    store.triggers.receive("orders", [arrival], keep=timedelta(days=1))
    return arrival


def signal(store: Store) -> Deed:
    id = asleep(store, StepState.RUNNING, phase=Phase.FORWARD)
    return Deed(
        do=lambda: store.workflows.signal(id, "picked", b"7", key=None, by="ana"), gives=Heard.KEPT,
        undo=lambda: store.jobs.cancel([id], by="bob"),
    )  # fmt: skip


def held_again(store: Store) -> None:
    query(store, "UPDATE {step} SET state = 4")


def resume_run(store: Store) -> Deed:
    id = asleep(store, StepState.HELD, phase=Phase.HELD)
    return Deed(
        do=lambda: store.workflows.direct(id, Phase.FORWARD, why="", by="ana"), undo=lambda: held_again(store)
    )


def undo_run(store: Store) -> Deed:
    id = asleep(store, StepState.RUNNING, phase=Phase.FORWARD)
    return Deed(do=lambda: store.workflows.direct(id, Phase.UNDOING, why="no", by="ana"))


def mend(store: Store) -> Deed:
    id = asleep(store, StepState.HELD, phase=Phase.HELD)
    return Deed(
        do=lambda: store.workflows.mend(id, path_of("", 1), None, by="ana"), undo=lambda: held_again(store)
    )


def mended(store: Store) -> Deed:
    """And nobody has held it again."""
    return Deed(do=mend(store).do)


def release(store: Store) -> Deed:
    dead(store, holds=True)
    return Deed(
        do=lambda: store.sessions.release("default", "s", by="ana"),
        undo=lambda: query(store, "UPDATE {session} SET held_why = 'gap'"),
    )


def create_token(store: Store) -> Deed:
    token, _ = new_token("ci", ["read"], [], at=store.clock.now(), by="ana")
    return Deed(
        do=lambda: store.tokens.create(token),
        gives=None,
        undo=lambda: store.tokens.revoke(token.id, by="bob"),
    )


def sign_in(store: Store) -> Deed:
    """By a token that is revoked meanwhile."""
    parent, _ = new_token("ci", ["read"], [], at=store.clock.now(), by="bob")
    store.tokens.create(parent)
    token, _ = new_token("browser", ["read"], [], at=store.clock.now(), by="ana", parent=parent.id)
    return Deed(
        do=lambda: store.tokens.create(token),
        gives=None,
        undo=lambda: store.tokens.revoke(parent.id, by="bob"),
    )


def revoke(store: Store) -> Deed:
    token, _ = new_token("ci", ["read"], [], at=store.clock.now(), by="bob")
    store.tokens.create(token)
    return Deed(do=lambda: store.tokens.revoke(token.id, by="ana"))


def open_breaker(store: Store) -> Deed:
    declare(store)
    return Deed(
        do=lambda: store.breakers.open("payments", by="ana"),
        undo=lambda: store.breakers.close("payments", by="bob"),
    )


def close_breaker(store: Store) -> Deed:
    declare(store)
    store.breakers.open("payments", by="bob")
    return Deed(
        do=lambda: store.breakers.close("payments", by="ana"),
        undo=lambda: store.breakers.open("payments", by="bob"),
    )


def record(store: Store) -> Deed:
    return Deed(do=lambda: store.audit.record("sign in", "dashboard", by="ana"), gives=None)


DEEDS: dict[str, list[Callable[[Store], Deed]]] = {
    "audit.record": [record],
    "batches.cancel": [cancel_batch],
    "batches.open": [open_batch],
    "batches.seal": [seal],
    "breakers.close": [close_breaker],
    "breakers.open": [open_breaker],
    "jobs.cancel": [cancel],
    "jobs.discard": [discard],
    "jobs.resubmit": [resubmit],
    "queues.pause": [pause_queue],
    "queues.resume": [resume_queue],
    "schedules.add": [add_schedule],
    "schedules.edit": [edit_schedule],
    "schedules.fire_now": [fire, fire_unique],
    "schedules.pause": [pause_schedule],
    "schedules.remove": [remove_schedule],
    "schedules.resume": [resume_schedule],
    "sessions.release": [release],
    "tokens.create": [create_token, sign_in],
    "tokens.revoke": [revoke],
    "triggers.accept": [accept],
    "triggers.discard": [discard_refused],
    "triggers.pause": [pause_trigger],
    "triggers.resume": [resume_trigger],
    "workflows.direct": [resume_run, undo_run],
    "workflows.mend": [mend, mended],
    "workflows.signal": [signal],
}
"""By the verb."""

NO_DEEDS = {
    "batches.cancel_jobs": "a page of what batches.cancel did, which the audit has",
    "breakers.declare": "code says what there is, not an operator; again, it changes nothing",
    "rules.declare": "likewise",
    "schedules.late": "it reads, what is late by so much",
}
"""Verbs that take a name and write no line of the audit, and why."""

Make = Callable[[Store], Deed]
each = pytest.mark.parametrize(
    "make", [make for makes in DEEDS.values() for make in makes], ids=lambda make: make.__name__
)


def all_of(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """All that stands in the store."""
    postgres = store.url.startswith("postgresql")
    tables = ("batch", "schedule", "tick", *TABLES, *(("batch_count",) if postgres else ()))
    row = "t::text" if postgres else "*"
    return {name: sorted(query(store, f"SELECT {row} FROM {{{name}}} t"), key=repr) for name in tables}


def done_by_ana(store: Store) -> list[str]:
    return [row.action for row in store.audit.list(limit=100, actor="ana")]
