"""What somebody tries who has a submitter's or a worker's password and no program of Lateshift's: nothing that the API refuses goes by SQL."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from lateshift import Lateshift, Unique
from lateshift.errors import KeyConflict
from tests.roles.conftest import Realm
from tests.roles.test_walk import HOUR, program


@pytest.fixture
def claimed(realm: Realm) -> Iterator[tuple[Lateshift, Any, Any]]:
    """A submitter's program; a job with a key and one with an identity, which have been enqueued and settled, and are gone from the store."""
    with program(realm, "submitter") as app:
        keyed = app.tasks["add"].options(key="order 9").enqueue(1, 1)
        unique = app.tasks["add"].options(unique=Unique(window=HOUR)).enqueue(9, 9)
        with psycopg.connect(realm.admin, autocommit=True) as admin:
            admin.execute("DELETE FROM lateshift.job WHERE id = ANY(%s)", ([keyed.id, unique.id],))
        yield app, keyed, unique
        with psycopg.connect(realm.admin, autocommit=True) as admin:
            admin.execute("DELETE FROM lateshift.job_key")
            admin.execute("DELETE FROM lateshift.job_identity")


GIVE_BACK = {
    "free the key": "SELECT lateshift.free_key('add', 'order 9', %(keyed)s)",
    "let the key to another": "SELECT lateshift.relet_key(gen_random_uuid(), 'add', 'order 9', %(keyed)s)",
    "take the key as if later": "SELECT lateshift.take_key('add', 'order 9', gen_random_uuid(), '', interval '1 hour', interval '90 days')",
    "take the key for less": "SELECT lateshift.take_key('add', 'order 9', gen_random_uuid(), '', interval '-9 days', interval '0')",
    "give up the identity": "SELECT lateshift.give_up_identity(%(identity)s, %(unique)s)",
    "take the identity as if later": "SELECT lateshift.take_identities(ARRAY[%(identity)s::uuid], ARRAY[gen_random_uuid()], ARRAY[0::smallint],"
    " ARRAY[interval '0'], interval '0', interval '90 days')",
    "touch the identity, and give it up": "SELECT lateshift.take_identities(ARRAY[%(identity)s::uuid], ARRAY[gen_random_uuid()],"
    " ARRAY[0::smallint], ARRAY[interval '0'], interval '0', interval '0'), lateshift.give_up_identity(%(identity)s, %(unique)s)",
}


@pytest.mark.parametrize("within", ["a transaction", "a savepoint"])
@pytest.mark.parametrize("what", GIVE_BACK)
def test_a_submitter_frees_nothing_that_another_transaction_has_claimed(
    realm: Realm, claimed: tuple[Lateshift, Any, Any], what: str, within: str
) -> None:
    app, keyed, unique = claimed
    with psycopg.connect(realm.admin, autocommit=True) as admin:
        rows = admin.execute(
            "SELECT identity FROM lateshift.job_identity WHERE job_id = %s", (unique.id,)
        ).fetchall()
    told = {"keyed": keyed.id, "unique": unique.id, "identity": rows[0][0]}
    with psycopg.connect(realm.url("submitter")) as connection:
        if within == "a savepoint":
            connection.execute("SAVEPOINT here")
        connection.execute(GIVE_BACK[what].encode(), told)
        connection.commit()
    assert app.tasks["add"].options(key="order 9").enqueue(1, 1).id == keyed.id
    assert app.tasks["add"].options(unique=Unique(window=HOUR)).enqueue(9, 9).id == unique.id


def test_a_submitter_whose_call_is_refused_keeps_no_key_also_in_a_savepoint(realm: Realm) -> None:
    with program(realm, "submitter") as app, psycopg.connect(realm.url("submitter")) as connection:
        add = app.tasks["add"]
        add.options(key="taken").enqueue(1, 1)
        jobs = [add.options(key="new").call(5, 5).take(), add.options(key="taken").call(2, 2).take()]
        with connection.transaction(), connection.transaction(), pytest.raises(KeyConflict):
            app.store.enqueue_on(connection, jobs)
        connection.commit()
        again = add.options(key="new").enqueue(6, 6)
        assert again.state.label == "ready"


def test_a_submitter_hides_no_queue_and_a_worker_with_its_code_does(
    realm: Realm, caplog: pytest.LogCaptureFixture
) -> None:
    with program(realm, "submitter") as submitter, program(realm, "worker") as worker:
        submitter.store.ready()
        submitter.queue("vault", sensitive=True)
        assert "vault" not in submitter.store.queues.concealed()
        assert "start a worker or a server that declares it" in caplog.text
        worker.queue("vault", sensitive=True)
        assert "vault" in worker.store.queues.concealed()
        assert "vault" in submitter.store.queues.concealed()


def test_a_worker_purges_of_tokens_and_answers_what_has_passed_its_time_and_nothing_else(
    realm: Realm,
) -> None:
    with psycopg.connect(realm.admin, autocommit=True) as admin, realm.connect("worker") as worker:
        for name, revoked, expires in (
            ("gone", "31 days", None), ("over", None, "31 days"), ("young", "29 days", None), ("good", None, None),
        ):  # fmt: skip
            admin.execute(
                "INSERT INTO lateshift.token (id, name, scopes, queues, digest, created_at, created_by, revoked_at, expires_at) VALUES"
                " (gen_random_uuid(), %s, 'read', '', '', now(), '', now() - %s::interval, now() - %s::interval)",
                (name, revoked, expires),
            )
        for id, left in ((b"old", timedelta(0)), (b"new", HOUR)):
            admin.execute(
                "INSERT INTO lateshift.answer (id, request, turn, until, expires_at) VALUES (%s, '', 1, now(), now() + %s)",
                (id, left),
            )
        assert worker.execute("SELECT lateshift.purge_tokens(100)").fetchall() == [(2,)]
        assert worker.execute("SELECT lateshift.purge_answers(100)").fetchall() == [(1,)]
        assert set(admin.execute("SELECT name FROM lateshift.token").fetchall()) == {("young",), ("good",)}
        assert admin.execute("SELECT id FROM lateshift.answer").fetchall() == [(b"new",)]
        admin.execute("DELETE FROM lateshift.token; DELETE FROM lateshift.answer")
