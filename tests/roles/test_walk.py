"""A program for each role: one enqueues and asks how it stands, one works, one looks, one operates, one migrates."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from lateshift import JobFilter, Lateshift, Limit, Retry, Unique
from lateshift.config import load
from lateshift.errors import KeyConflict, ResultWithheld, RightMissing, RolesUnsupported
from lateshift.model.ids import new_job_id, new_member_id
from lateshift.model.job import WITHHELD, NewJob, State
from lateshift.store.open import open_store
from lateshift.store.postgres import PostgresStore, enqueue
from lateshift.store.postgres.roles import ROLES
from tests.roles.conftest import Realm
from tests.sealing.clinic import DIGEST, OLD
from tests.walks.commands import Cli
from tests.walks.waiting import until

SOON = timedelta(seconds=30)
HOUR = timedelta(hours=1)


@contextmanager
def program(realm: Realm, role: str, *keys: str) -> Iterator[Lateshift]:
    """The same program, with the rights of a role."""
    app = Lateshift("shop", store=realm.url(role))
    app.settings = load(store=realm.url(role), keys=keys)
    app.queue("secret", sensitive=True)
    app.queue("narrow", limit=Limit(concurrency=1))
    app.limit("vendor", Limit(concurrency=5))

    @app.task(queue="secret")
    async def charge(card: str) -> str:
        return f"charged {card}"

    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    @app.task(queue="narrow", retry=Retry(attempts=1))
    async def stumble(n: int) -> int:
        raise ValueError(n)

    @app.workflow
    async def order(flow: Any, n: int) -> int:
        got = await flow.step(add, n, 1)
        return int(got) + 1

    app.schedule(add, every=timedelta(seconds=1), args=[1, 1], name="tick")
    try:
        yield app
    finally:
        app.close()


@pytest.mark.anyio
async def test_a_submitter_enqueues_and_a_worker_works_and_a_reader_looks(realm: Realm) -> None:
    with (
        program(realm, "submitter", OLD, DIGEST) as submitter,
        program(realm, "worker", OLD, DIGEST) as worker,
        program(realm, "reader") as reader,
    ):
        charge, add, stumble = (submitter.tasks[name] for name in ("charge", "add", "stumble"))
        secret = await charge.options(key="order 7").aenqueue("4111")
        assert (await charge.options(key="order 7").aenqueue("4111")).id == secret.id
        with pytest.raises(KeyConflict):
            await charge.options(key="order 7").aenqueue("4222")
        only = add.options(unique=Unique(window=HOUR)).enqueue(1, 2)
        assert add.options(unique=Unique(window=HOUR)).enqueue(1, 2).id == only.id
        jobs = [
            only,
            add.options(session="s", sequence=1).enqueue(2, 2),
            add.options(session="s", sequence=2).enqueue(3, 2),
            add.options(delay=timedelta(milliseconds=10)).enqueue(4, 2),
            add.options(tenant="t").enqueue(5, 2),
            add.options(limit_key="vendor:acme", priority=9, tags=["paid"]).enqueue(6, 2),
            add.options(reply_to="channel:done").enqueue(7, 2),
        ]
        with psycopg.connect(realm.url("submitter")) as theirs, theirs.transaction():
            mine = add.options(
                connection=theirs, key="order 8", unique=Unique(window=HOUR), session="s", tags=["own"]
            )
            jobs.append(mine.enqueue(8, 2))
        with pytest.raises(RightMissing):
            submitter.batch([add.call(1, 1)])
        stumbling = stumble.enqueue(1)
        run = submitter.tasks["order"].enqueue(40)
        assert submitter.enqueue_many(add.call(n, n) for n in range(50)) == 50
        assert secret.view().payload == WITHHELD
        assert secret.state is State.READY
        assert (await secret.aview()).payload == WITHHELD

        async with worker.running():
            assert await worker.job(secret.id).aresult(SOON) == "charged 4111"
            assert [await worker.job(job.id).aresult(SOON) for job in jobs] == [3, 4, 5, 6, 7, 8, 9, 10]
            assert await worker.job(run.id).aresult(SOON) == 42
            batch = await worker.abatch([worker.tasks["add"].call(1, 1)], then=worker.tasks["add"].call(9, 9))
            await batch.awaited(SOON)
            ticks = worker.tasks["add"].enqueue(0, 0)
            await ticks.aresult(SOON)
            await until(worker.job(stumbling.id).aview, lambda view: view.state is State.DEAD)
        assert worker.store.upkeep.purge(term=_term(worker), limit=10) >= 0

        with pytest.raises(ResultWithheld, match="may not read"):
            await secret.aresult(SOON)
        assert (secret.state, secret.view().history, secret.view().result) == (State.COMPLETED, [], None)
        looked = reader.store.reports.jobs(JobFilter(queue="secret"), 10)
        assert [view.id for view in looked] == [secret.id]
        assert b"4111" not in looked[0].payload + (looked[0].result or b"")
        assert reader.store.queues.list()
        assert reader.job(run.id).explain().reasons
        with pytest.raises(RightMissing):
            reader.tasks["add"].enqueue(1, 1)
        with pytest.raises(RightMissing):
            reader.job(run.id).cancel()


def _term(app: Lateshift) -> int:
    grip = app.store.locks.acquire("supervisor", new_member_id(), HOUR)
    assert grip is not None
    app.store.locks.release(grip)
    return grip.fence


def test_a_worker_purges_of_the_audit_what_has_passed_its_time_and_nothing_else(realm: Realm) -> None:
    with psycopg.connect(realm.admin, autocommit=True) as admin, program(realm, "worker") as worker:
        admin.execute(
            "INSERT INTO lateshift.audit (at, action, subject, actor) VALUES (now() - interval '400 days', 'pause', 'old', 'ada'),"
            " (now() - interval '300 days', 'pause', 'young', 'ada')"
        )
        grip = worker.store.locks.acquire("supervisor", new_member_id(), HOUR)
        assert grip is not None
        assert worker.store.upkeep.purge(term=grip.fence, limit=1000) >= 1
        worker.store.locks.release(grip)
        left = admin.execute(
            "SELECT subject FROM lateshift.audit WHERE subject IN ('old', 'young')"
        ).fetchall()
        assert left == [("young",)]


def test_an_enqueue_that_is_repeated_after_a_lost_answer_needs_no_more_rights(realm: Realm) -> None:
    with program(realm, "submitter") as submitter, program(realm, "server") as server:
        spec = submitter.tasks["add"].spec
        job = NewJob(new_job_id(), spec, b'{"a":1,"b":1}', None, True)
        store = submitter.store
        assert isinstance(store, PostgresStore)
        for _ in range(2):
            with store._database.connect() as connection:
                [answer] = enqueue.run(connection, enqueue.statements([job], timedelta(0), again=True))
        assert answer.id == job.id
        assert server.job(job.id).view().payload == job.payload


def test_a_server_operates_and_no_other_role_does(realm: Realm) -> None:
    with program(realm, "server") as server, program(realm, "submitter") as submitter:
        job = submitter.tasks["add"].options(delay=HOUR).enqueue(1, 1)
        server.store.queues.pause("default", by="a test")
        assert server.store.queues.resume("default", by="a test")
        with pytest.raises(RightMissing, match=r"the server or worker may write that table"):
            submitter.job(job.id).cancel()
        assert server.job(job.id).cancel()
        assert server.client.resubmit([job.id]) == [job.id]
        assert server.job(job.id).cancel()
    for role in ("worker", "reader"):
        with (
            program(realm, role) as other,
            pytest.raises(
                RightMissing, match=r"for table queue\..* the server may write that table"
            ) as raised,
        ):
            other.store.queues.pause("default", by="a test")
        assert "Grant" not in str(raised.value)


@pytest.mark.parametrize("role", ["server", "worker", "reader", "submitter"])
def test_who_may_resubmit_may_discard_and_nobody_else(realm: Realm, role: str) -> None:
    with program(realm, "submitter") as submitter, program(realm, "server") as server:
        dead, again = [submitter.tasks["add"].options(delay=HOUR).enqueue(1, 1) for _ in range(2)]
        assert [server.job(job.id).cancel() for job in (dead, again)] == [True, True]
    with psycopg.connect(realm.admin, autocommit=True) as admin:
        admin.execute(
            "UPDATE lateshift.settled SET state = 6, created_at = now() - interval '1 hour' WHERE id = ANY(%s)",
            ([dead.id, again.id],),
        )
    with program(realm, role) as app:
        if role in ("server", "worker"):
            assert app.store.jobs.resubmit([again.id], by="a test") == [again.id]
            assert app.store.jobs.discard([dead.id], by="a test").ids == [dead.id]
        else:
            with pytest.raises(RightMissing):
                app.store.jobs.resubmit([again.id], by="a test")
            with pytest.raises(RightMissing):
                app.store.jobs.discard([dead.id], by="a test")


def test_the_owner_migrates(realm: Realm) -> None:
    store = open_store(realm.url("owner"))
    assert store.migrate() == []
    store.close()


def test_the_command_prints_the_script_or_says_what_to_do_instead(cli: Cli, store_url: str) -> None:
    said = cli("store", "roles", "--prefix", "shop")
    if store_url.startswith("sqlite"):
        assert (said.code, said.out) == (2, "")
        assert "mode 0600" in said.err
        assert cli("store", "roles", "--apply").code == 2
        with pytest.raises(RolesUnsupported):
            open_store(store_url).upkeep.apply_roles("shop")
    else:
        assert said.code == 0
        assert "CREATE ROLE shop_submitter LOGIN NOSUPERUSER" in said.out
        assert cli("store", "roles", "--prefix", "Robert'); --").code == 2


def test_whoever_makes_the_roles_is_told_what_they_are_called(
    realm: Realm, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LATESHIFT_STORE", realm.admin)
    called = [f"{realm.prefix}_{role}" for role in ROLES]
    for prefix in (realm.prefix, f"{realm.prefix}_"):  # a _ stands between, once
        said = cli("store", "roles", "--prefix", prefix, "--apply")
        assert (said.code, ", ".join(called) in said.out) == (0, True)
    assert cli("store", "roles", "--prefix", realm.prefix, "--apply", "--json").document["roles"] == called
