"""A submitter adds jobs as Lateshift writes them, and no others: each column that it may write is judged, or given."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors as pg

from lateshift import JobEvent, Lateshift, Limit
from lateshift.config import load
from lateshift.store.postgres.enqueue import UNDO_REPEAT, UNDO_REPEAT_FOR_ME
from tests.roles.conftest import Realm
from tests.roles.forged import ANY, FORGED, GIVEN, GUARDED, NUMBERED, PLAIN, ROWS, SESSION, adding
from tests.roles.test_walk import HOUR, program

COLUMNS = """SELECT column_name, has_column_privilege(%s, 'lateshift.job', column_name, 'INSERT')
 FROM information_schema.columns WHERE table_schema = 'lateshift' AND table_name = 'job'"""


@pytest.fixture(scope="module")
def alerted(realm: Realm) -> Realm:
    """A program that has an alert's webhook under a name of its own."""
    with program(realm, "worker") as app:
        app.alert_webhook("http://127.0.0.1:9/", secret="whsec_" + "A" * 40, internal=True, name="ops-alerts")
        app.store.triggers.declare([trigger.declared for trigger in app.triggers.values()], app=app.name)
    return realm


def test_each_column_that_a_submitter_may_write_is_judged_or_given(realm: Realm) -> None:
    with psycopg.connect(realm.admin) as connection:
        rows = connection.execute(COLUMNS, (f"{realm.prefix}_submitter",)).fetchall()
    assert {column for column, may in rows if may} == FORGED.keys() | GIVEN | ANY


@pytest.mark.parametrize("what", ROWS)
def test_a_submitter_adds_no_job_that_no_call_of_its_own_could_make(alerted: Realm, what: str) -> None:
    with alerted.connect("submitter") as connection:
        with pytest.raises(pg.InsufficientPrivilege, match="who only submits may not enqueue this job"):
            connection.execute(adding(ROWS[what]))


@pytest.mark.parametrize(
    "row", [PLAIN, GUARDED, SESSION, NUMBERED], ids=["plain", "guarded", "session", "number"]
)
def test_what_is_forged_is_forged_in_one_column_alone(realm: Realm, row: dict[str, str]) -> None:
    with realm.connect("submitter") as connection, connection.transaction(force_rollback=True):
        connection.execute(adding(row))


@pytest.mark.parametrize(
    "what", ["a delivery to a webhook", "among deliveries", "in a batch", "in a lane to come"]
)
@pytest.mark.parametrize("role", ["owner", "server", "worker"])
def test_who_makes_such_jobs_by_right_makes_them(realm: Realm, role: str, what: str) -> None:
    with psycopg.connect(realm.url(role)) as connection:
        connection.execute(adding(ROWS[what]))
        connection.rollback()


def test_a_role_that_may_only_add_jobs_is_a_submitter(realm: Realm) -> None:
    with psycopg.connect(realm.admin) as connection:
        role = f"{realm.prefix}_own"
        connection.execute(f"CREATE ROLE {role}".encode())
        connection.execute(f"GRANT USAGE ON SCHEMA lateshift TO {role}".encode())
        connection.execute(f"GRANT INSERT ON lateshift.job TO {role}; SET ROLE {role}".encode())
        with pytest.raises(pg.InsufficientPrivilege, match="who only submits"):
            connection.execute(adding(ROWS["an alert"]))
        connection.rollback()


def test_a_submitter_does_not_jump_the_line_of_a_session(realm: Realm) -> None:
    with program(realm, "submitter") as app, realm.connect("submitter") as connection:
        first = app.tasks["add"].options(session="line", delay=HOUR).enqueue(1, 1)
        row = GUARDED | {"session": "'line'", "turn": "-5", "queue": "'default'"}
        rows = connection.execute(adding(row) + b" RETURNING turn").fetchall()
        before = connection.execute("SELECT turn FROM lateshift.job WHERE id = %s", (first.id,)).fetchall()
    assert rows[0][0] > before[0][0]


@pytest.mark.parametrize("state", ["0", "1"])
def test_the_times_of_a_submitters_job_are_the_databases_and_it_stands_behind_who_came_before(
    realm: Realm, state: str
) -> None:
    row = PLAIN | {"state": state, "due_at": "'2001-01-01'", "created_at": "'2001-01-01'"}
    with realm.connect("submitter") as connection:
        [[before]] = connection.execute("SELECT clock_timestamp()").fetchall()
        [[due, made]] = connection.execute(adding(row) + b" RETURNING due_at, created_at").fetchall()
        [[after]] = connection.execute("SELECT clock_timestamp()").fetchall()
    assert before <= made <= due <= after


def test_a_submitter_brings_no_job_back_that_was_settled(realm: Realm) -> None:
    with psycopg.connect(realm.admin, autocommit=True) as admin, realm.connect("submitter") as connection:
        id = settled(admin)
        assert connection.execute(adding(PLAIN, {"id": f"'{id}'"})).rowcount == 0
        assert admin.execute("SELECT 1 FROM lateshift.job WHERE id = %s", (id,)).fetchall() == []


def settled(admin: psycopg.Connection[Any], id: Any = None) -> Any:
    id = id or uuid4()
    admin.execute(
        "INSERT INTO lateshift.settled (id, fence, due_at, created_at, settled_at, expires_at, attempt, attempts, lane, state, priority,"
        " losses, queue, task, payload) VALUES (%s, 1, now(), now(), now(), now() + interval '1 day', 1, 1, 4, 4, 0, 0, 'q', 't', '{}')",
        (id,),
    )
    return id


@pytest.mark.parametrize("within", ["a transaction", "a savepoint"])
@pytest.mark.parametrize("role", ["submitter", "worker"])
def test_a_repeat_that_brought_a_settled_job_back_tells_nobody_that_it_came(
    realm: Realm, role: str, within: str
) -> None:
    """It was settled while the insert waited. What was told of the job before that stays."""
    told = "SELECT count(*) FROM lateshift.outbox WHERE job = %s"
    with program(realm, role) as app, psycopg.connect(realm.admin, autocommit=True) as admin:
        job = app.tasks["add"].options(reply_to="channel:done").call(1, 1).take()
        app.store.jobs.enqueue([job])
        admin.execute("DELETE FROM lateshift.job WHERE id = %s", (job.id,))
        with psycopg.connect(realm.url(role)) as connection:
            if within == "a savepoint":
                connection.execute("SAVEPOINT here")
            app.store.enqueue_on(connection, [job])
            assert connection.execute("SELECT 1 FROM lateshift.job WHERE id = %s", (job.id,)).fetchall()
            settled(admin, job.id)
            repeat(connection, role, job.id)
            connection.commit()
        assert admin.execute("SELECT 1 FROM lateshift.job WHERE id = %s", (job.id,)).fetchall() == []
        assert admin.execute(told, (job.id,)).fetchall() == [(1,)]


def repeat(connection: psycopg.Connection[Any], role: str, id: Any) -> None:
    undo = UNDO_REPEAT_FOR_ME if role == "submitter" else UNDO_REPEAT
    connection.execute(undo.encode(), ([id],))


SENT: dict[str, dict[str, Any]] = {
    "plain": {},
    "later": {"delay": timedelta(days=3650)},
    "at a time": {"at": datetime(2038, 1, 19, tzinfo=UTC), "priority": -100},
    "in the past": {"at": datetime(2001, 1, 1, tzinfo=UTC), "priority": 100},
    "in a session": {"session": "s" * 200, "on_dead": "hold"},
    "with a number": {"session": "n", "sequence": 2**62 - 1, "gap_after": timedelta(days=3650), "on_gap": "hold", "on_dead": "hold"},
    "with a gap of hours": {"session": "m", "sequence": 3, "gap_after": timedelta(days=2, hours=23, microseconds=1)},
    "of a tenant": {"tenant": "\U0001f40d" * 200},
    "of a limit": {"limit_key": "vendor:" + "a" * 193},
    "in another queue": {"queue": "a.b:c-d_E9"},
    "told to a channel": {"reply_to": "channel:orders.7:x-y", "correlation_id": "7" * 200, "reply_on": ["completed"]},
    "told to a task": {"reply_to": "task:heard"},
    "told to a task of a queue that tells": {"reply_to": "task:loud"},
    "told to a webhook": {"reply_to": "http://127.0.0.1:9/" + "x" * 2000},
    "told to a broker": {"reply_to": "broker:rabbit"},
    "told to ten": {"reply_to": ["http://127.0.0.1:9/" + "x" * 2000] * 10},
    "told by its queue": {"queue": "loud", "reply_to": ["channel:c"] * 10},
}  # fmt: skip


@pytest.fixture(scope="module")
def sender(realm: Realm) -> Any:
    """A submitter's program with whatever a task may have."""
    app = Lateshift("sender", store=realm.url("submitter"))
    app.settings = load(store=realm.url("submitter"))
    app.queue("loud", events=True)
    app.limit("vendor", Limit(concurrency=5))
    app.reply_webhook("http://127.0.0.1:9", secret="whsec_" + "A" * 40, internal=True)
    app.reply_broker("rabbit", "amqp://127.0.0.1:9", queue="out")

    @app.task(time_limit=None)
    def plain(n: int = 0) -> None: ...
    @app.task(singleton=True, time_limit=timedelta(microseconds=1))
    async def alone(n: int = 0) -> None: ...
    @app.task(process=True, limit=Limit(rate="1/s"), time_limit=timedelta(days=3650))
    def apart(n: int = 0) -> None: ...
    @app.task(name="a task: \u00e9\U0001f40d/[x]" + "y" * 180, queue="loud")
    def named(n: int = 0) -> None: ...
    @app.task
    def heard(event: JobEvent) -> None: ...
    @app.task(name="loud", queue="loud", process=True)
    def loud(event: JobEvent) -> None: ...
    @app.workflow
    async def order(flow: Any) -> None: ...

    yield app
    app.close()


def fit(task: str, options: dict[str, Any]) -> bool:
    """A singleton has no session, and a run of a workflow no place at all."""
    return not options.keys() & {"alone": {"session"}, "order": {"session", "tenant", "limit_key"}}.get(
        task, set()
    )


@pytest.mark.parametrize(
    ("task", "how"),
    [
        (task, how)
        for task in ("plain", "alone", "apart", "named", "order")
        for how in SENT
        if fit(task, SENT[how])
    ],
)
def test_whatever_a_program_may_enqueue_a_submitter_enqueues(sender: Any, task: str, how: str) -> None:
    tasks = {name.partition(":")[0]: each for name, each in sender.tasks.items()}
    wanted = tasks["a task" if task == "named" else task]
    options = SENT[how]
    if "sequence" in options:
        options = options | {"session": f"{task} {options['session']}"}
    job = wanted.options(**options).enqueue()
    assert job.view().task == wanted.name
