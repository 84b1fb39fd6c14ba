"""`by="database"`: PostgreSQL itself writes the job, in the very transaction that changes the row."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import RFC_4122

import msgspec
import psycopg
import pytest
from psycopg import errors as pg
from sqlalchemy import text

from lateshift import JobFilter, Lateshift, Limit, Retry, RowChange, State
from lateshift.errors import TriggerInvalid
from lateshift.model.ids import new_job_id
from lateshift.model.job import JobView, Lane, Line
from lateshift.runtime.aside import aside
from lateshift.store.open import open_store
from lateshift.store.postgres.row_triggers import function_of
from lateshift.triggers.declaring import LOOK_EVERY, NOT_YET
from tests.triggers.tables import ORDERS, Orders
from tests.walks.waiting import until

T = TypeVar("T")

NOON = datetime(2030, 1, 1, 12)  # noqa: DTZ001 - the column has no zone
FUNCTIONS = r"""SELECT oid::int FROM pg_proc WHERE pronamespace = 'lateshift'::regnamespace AND proname LIKE 'row\_%%' ORDER BY oid"""


@pytest.fixture
def orders(postgres_url: str) -> Iterator[Orders]:
    """In the store's own database."""
    orders = Orders(postgres_url)
    orders.run(ORDERS)
    yield orders
    orders.close()


@pytest.fixture
def app(postgres_url: str) -> Iterator[Lateshift]:
    app = Lateshift("shop", store=postgres_url)
    yield app
    app.close()


def on_row(app: Lateshift, orders: Orders, **options: Any) -> Callable[[T], T]:
    return app.on_row(orders.url, **{"table": "orders", "cursor": "id", "by": "database", **options})


def watched(app: Lateshift, orders: Orders, **options: Any) -> None:
    @on_row(app, orders, **options)
    @app.task
    def handle(row: dict[str, Any]) -> None: ...

    declare(app)


def declare(app: Lateshift) -> timedelta:
    return asyncio.run(app.readers()[0].turn())


def jobs(app: Lateshift) -> list[JobView]:
    return app.store.reports.jobs(JobFilter(), 1000)[::-1]


def rows(app: Lateshift) -> list[Any]:
    return [msgspec.json.decode(job.payload)["row"] for job in jobs(app)]


def ids(app: Lateshift) -> list[int]:
    return [row["id"] for row in rows(app)]


def error(app: Lateshift, name: str = "handle") -> str:
    view = app.store.triggers.get(name)
    assert view is not None
    return str(view.error)


def functions(orders: Orders) -> list[int]:
    with orders.begin() as connection:
        return [oid for (oid,) in connection.exec_driver_sql(FUNCTIONS)]


def test_the_row_and_the_job_are_there_together_or_neither(app: Lateshift, orders: Orders) -> None:
    watched(app, orders)
    connection = orders.engine.connect()
    connection.execute(text("INSERT INTO orders (id, note) VALUES (1, 'x')"))
    assert ids(app) == []
    connection.rollback()
    assert ids(app) == []
    connection.execute(text("INSERT INTO orders (id, note) VALUES (2, 'y'), (3, 'z')"))
    connection.commit()
    connection.close()
    assert rows(app) == [{"id": 2, "at": None, "note": "y"}, {"id": 3, "at": None, "note": "z"}]


def test_the_job_is_as_the_task_says(app: Lateshift, orders: Orders) -> None:
    @on_row(app, orders)
    @app.task(queue="orders", priority=7, retry=Retry(attempts=3), time_limit=timedelta(minutes=5))
    async def handle(row: dict[str, Any]) -> None: ...

    declare(app)
    before = new_job_id()
    orders.put([1])
    [job] = jobs(app)
    after = new_job_id()
    assert (job.queue, job.task, job.state) == ("orders", "handle", State.READY)
    with orders.begin() as connection:
        how = connection.execute(text("SELECT lane, time_limit FROM lateshift.job")).one()
    assert tuple(how) == (Lane.COROUTINE, timedelta(minutes=5))
    assert (job.priority, job.attempts) == (7, 3)
    assert app.tasks["handle"].arguments.decode(job.payload) == (({"id": 1, "at": None, "note": None},), {})
    assert (job.id.version, job.id.variant) == (7, RFC_4122)
    assert before.hex[:11] <= job.id.hex[:11] <= after.hex[:11]  # a hair of the clocks aside


def test_ids_grow_with_time(app: Lateshift, orders: Orders) -> None:
    watched(app, orders)
    for id in range(200):
        orders.put([id])
    assert ids(app) == list(range(200))


def test_a_task_may_ask_for_the_whole_change(app: Lateshift, orders: Orders) -> None:
    @on_row(app, orders)
    @app.task
    def handle(change: RowChange) -> None: ...

    declare(app)
    orders.put([1])
    [job] = jobs(app)
    [[change], _] = app.tasks["handle"].arguments.decode(job.payload)
    assert change == RowChange(table="orders", row={"id": 1, "at": None, "note": None})


def test_a_delay_holds_the_job_back(app: Lateshift, orders: Orders) -> None:
    @app.task
    def handle(row: dict[str, Any]) -> None: ...

    on_row(app, orders)(handle.options(delay=timedelta(hours=1)))
    declare(app)
    orders.put([1])
    [job] = jobs(app)
    assert job.state is State.SCHEDULED
    assert timedelta(minutes=59) < job.due_at - datetime.now(UTC) <= timedelta(hours=1)


def test_an_update_is_told_of_when_the_cursor_changes(app: Lateshift, orders: Orders) -> None:
    watched(app, orders, cursor="at")
    orders.put([1])  # without a cursor
    orders.put([2], at=NOON)
    orders.run(
        "UPDATE orders SET note = 'as it was'",
        "UPDATE orders SET at = at",
        "UPDATE orders SET at = '2030-01-02' WHERE id = 2",
        "UPDATE orders SET at = '2030-01-03' WHERE id = 1",
        "UPDATE orders SET at = NULL",
        "DELETE FROM orders",
    )
    told = [(row["id"], row["at"]) for row in rows(app)]
    assert told == [(2, "2030-01-01T12:00:00"), (2, "2030-01-02T00:00:00"), (1, "2030-01-03T00:00:00")]


def test_a_number_that_stays_tells_of_new_rows_alone(app: Lateshift, orders: Orders) -> None:
    watched(app, orders)
    orders.put([1])
    orders.run(
        "UPDATE orders SET note = 'paid'",
        "INSERT INTO orders (id) VALUES (1), (2) ON CONFLICT (id) DO UPDATE SET note = 'again'",
    )
    assert ids(app) == [1, 2]


def test_what_the_writers_own_triggers_change_is_seen(app: Lateshift, orders: Orders) -> None:
    orders.run(
        """CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN NEW.at := clock_timestamp() AT TIME ZONE 'UTC'; RETURN NEW; END $$""",
        "CREATE TRIGGER touch BEFORE INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION touch()",
    )
    watched(app, orders, cursor="at")
    orders.put([1])
    orders.run("UPDATE orders SET note = 'touched'")
    assert [row["note"] for row in rows(app)] == [None, "touched"]


def test_it_is_installed_once_and_again_when_the_code_has_changed(app: Lateshift, orders: Orders) -> None:
    watched(app, orders)
    first = functions(orders)
    declare(app)
    assert functions(orders) == first
    other = Lateshift("shop", store=app.store.url)

    @on_row(other, orders)
    @other.task(priority=5)
    def handle(row: dict[str, Any]) -> None: ...

    declare(other)
    assert len(functions(orders)) == 1
    assert functions(orders) != first
    orders.put([1])
    assert [job.priority for job in jobs(app)] == [5]
    orders.run(f"DROP TRIGGER lateshift_{function_of('handle')}_insert ON orders")
    declare(other)
    orders.put([2])
    assert ids(app) == [1, 2]
    other.close()


def test_it_goes_when_the_code_declares_it_no_more(app: Lateshift, orders: Orders) -> None:
    watched(app, orders)
    another = Lateshift("another app", store=app.store.url)
    declare(another)
    another.close()
    orders.put([1])
    polling = Lateshift("shop", store=app.store.url)
    polled = Orders(orders.url)
    watched(polling, polled, by="polling")
    orders.put([2])
    assert ids(app) == [1]
    assert functions(orders) == []
    polling.close()
    polled.close()


def test_many_that_start_together_install_it_once(app: Lateshift, orders: Orders) -> None:
    @on_row(app, orders)
    @app.task
    def handle(row: dict[str, Any]) -> None: ...

    parts = [app.readers()[0] for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(part.say) for part in parts]:  # type: ignore[attr-defined]
            done.result()
    assert len(functions(orders)) == 1
    orders.put([1])
    assert ids(app) == [1]


def test_whoever_writes_needs_no_rights_in_the_schema_of_the_store(app: Lateshift, orders: Orders) -> None:
    watched(app, orders)
    orders.run(
        "DROP ROLE IF EXISTS lateshift_test_clerk", "CREATE ROLE lateshift_test_clerk",
        "GRANT INSERT ON orders TO lateshift_test_clerk", "GRANT CREATE ON SCHEMA public TO lateshift_test_clerk",
    )  # fmt: skip
    with psycopg.connect(orders.url, autocommit=True) as clerk:
        clerk.execute("SET ROLE lateshift_test_clerk")
        # What a clerk makes up in a schema of their own is not what the function calls.
        clerk.execute(
            "CREATE FUNCTION public.convert_to(text, name) RETURNS bytea LANGUAGE sql AS $$ SELECT '0'::bytea $$"
        )
        clerk.execute("CREATE TEMP TABLE refused (id uuid); SET search_path = pg_temp, public, pg_catalog")
        clerk.execute("INSERT INTO public.orders (id) VALUES (1)")
        with pytest.raises(pg.InsufficientPrivilege):
            clerk.execute("SELECT * FROM lateshift.job")
        # Nor may one have the function write jobs for another table.
        clerk.execute("CREATE TABLE public.own (id bigint)")
        with pytest.raises(pg.InsufficientPrivilege):
            clerk.execute(
                f"CREATE TRIGGER t AFTER INSERT ON public.own FOR EACH ROW EXECUTE FUNCTION lateshift.{function_of('handle')}()"
            )
    assert rows(app) == [{"id": 1, "at": None, "note": None}]
    orders.run("DROP OWNED BY lateshift_test_clerk", "DROP ROLE lateshift_test_clerk")


def test_a_store_that_may_not_make_the_trigger_says_what_to_grant(app: Lateshift, orders: Orders) -> None:
    orders.run(
        "DROP ROLE IF EXISTS lateshift_test_keeper", "CREATE ROLE lateshift_test_keeper LOGIN",
        "GRANT ALL ON SCHEMA lateshift TO lateshift_test_keeper",
        "GRANT ALL ON ALL TABLES IN SCHEMA lateshift TO lateshift_test_keeper",
    )  # fmt: skip
    before, _, after = app.store.url.partition("postgres@")
    keeper = Lateshift("shop", store=f"{before}lateshift_test_keeper@{after}")
    watched(keeper, orders)
    assert "GRANT TRIGGER ON orders TO lateshift_test_keeper" in error(keeper)
    orders.run("GRANT TRIGGER ON orders TO lateshift_test_keeper")
    declare(keeper)
    assert error(keeper) == "None"
    orders.put([1])
    assert ids(app) == [1]
    keeper.close()
    orders.run("DROP OWNED BY lateshift_test_keeper CASCADE", "DROP ROLE lateshift_test_keeper")


def test_a_task_that_only_lateshift_itself_can_enqueue_is_refused(app: Lateshift, orders: Orders) -> None:
    @app.task
    def plain(row: dict[str, Any]) -> None: ...

    tasks = {
        "one": app.task(name="one", singleton=True)(lambda row: None),
        "few": app.task(name="few", limit=Limit(concurrency=2))(lambda row: None),
        "only": app.task(name="only", unique=True)(lambda row: None),
        "session": plain.options(session="s"),
        "tenant": plain.options(tenant="t"),
    }
    for name, task in tasks.items():
        on_row(app, orders, name=name)(task)
    assert declare(app) == NOT_YET
    for name in tasks:
        assert "which only Lateshift's own enqueue looks after" in error(app, name)
    assert functions(orders) == []


def test_another_database_than_the_stores_is_refused(app: Lateshift, orders: Orders, shop_url: str) -> None:
    @app.task
    def handle(row: dict[str, Any]) -> None: ...

    for name, url in {
        "elsewhere": shop_url, "a file": "sqlite:///shop.db", "nobody": "postgresql://me:hush@127.0.0.1:1/shop",
    }.items():  # fmt: skip
        app.on_row(url, table="orders", cursor="id", by="database", name=name)(handle)
    on_row(app, Orders(orders.url.replace("postgresql://", "postgresql+psycopg://")), name="the same")(handle)
    declare(app)
    assert "is another database than the store" in error(app, "elsewhere")
    assert "needs the PostgreSQL that is the store" in error(app, "a file")
    assert "cannot be reached" in error(app, "nobody")
    assert "hush" not in error(app, "nobody")
    assert error(app, "the same") == "None"


def test_a_store_in_sqlite_refuses_it(migrated_sqlite_url: str, orders: Orders) -> None:
    app = Lateshift("shop", store=migrated_sqlite_url)
    watched(app, orders)
    assert "needs a store in PostgreSQL" in error(app)
    app.close()


@pytest.mark.parametrize("option", [{"behind": 5}, {"from_start": True}, {"decode": str}])
def test_what_polling_alone_can_do_is_refused_where_it_is_written(
    app: Lateshift, orders: Orders, option: dict[str, Any]
) -> None:
    with pytest.raises(TriggerInvalid, match="leave behind="):
        on_row(app, orders, **option)


def test_it_is_not_paused_but_its_queue_is(app: Lateshift, orders: Orders) -> None:
    watched(app, orders)
    with pytest.raises(TriggerInvalid, match="Pause its queue"):
        app.store.triggers.pause("handle", by="somebody")
    view = app.store.triggers.get("handle")
    assert view is not None
    assert view.paused_at is None


def test_one_that_was_paused_while_it_was_polled_is_not_installed(app: Lateshift, orders: Orders) -> None:
    polling = Lateshift("shop", store=app.store.url)
    watched(polling, orders, by="polling")
    polling.store.triggers.pause("handle", by="somebody")
    watched(app, orders)
    assert "it is paused" in error(app)
    app.store.triggers.resume("handle", by="somebody")
    declare(app)
    orders.put([1])
    assert ids(app) == [1]
    polling.close()


def test_a_table_that_is_not_there_yet_is_waited_for(app: Lateshift, orders: Orders) -> None:
    @on_row(app, orders, table="sales.later", cursor="number")
    @app.task
    def handle(row: dict[str, Any]) -> None: ...

    [declaring, *_] = app.readers()
    assert asyncio.run(declaring.turn()) == NOT_YET
    assert "there is no table sales.later" in error(app)
    orders.run("CREATE SCHEMA sales", "CREATE TABLE sales.later (id int)")
    asyncio.run(declaring.turn())
    assert "has no column number, which is to be the cursor. It has: id." in error(app)
    orders.run("ALTER TABLE sales.later ADD number int")
    assert asyncio.run(declaring.turn()) == LOOK_EVERY
    assert error(app) == "None"
    orders.run("INSERT INTO sales.later VALUES (1, 2)")
    assert rows(app) == [{"id": 1, "number": 2}]


def test_a_view_is_told_to_be_none_for_this(app: Lateshift, orders: Orders) -> None:
    orders.run("CREATE VIEW seen AS SELECT * FROM orders")
    watched(app, orders, table="seen")
    assert "PostgreSQL makes no such trigger on seen" in error(app)


def test_a_table_in_use_is_not_waited_for_long(app: Lateshift, orders: Orders) -> None:
    """Who waits for a lock holds up all who come after."""
    with orders.begin() as writer:
        writer.execute(text("INSERT INTO orders (id) VALUES (1)"))
        watched(app, orders)
        assert "was in use all the time" in error(app)
    declare(app)
    assert error(app) == "None"


def test_names_of_all_kinds_are_quoted(app: Lateshift, orders: Orders) -> None:
    orders.run('CREATE TABLE "Odd ""one"" {0}" ("select" int, "key\'s" int)')

    @on_row(
        app,
        orders,
        table='Odd "one" {0}',
        cursor="select",
        key="key's",
        name="it's $lateshift$ {x} %s \\ 'q'",
    )
    @app.task(name="do $$ {it} 'all' \\")
    def handle(row: dict[str, Any]) -> None: ...

    declare(app)
    orders.run('INSERT INTO "Odd ""one"" {0}" VALUES (1, 2)')
    [job] = jobs(app)
    assert job.task == "do $$ {it} 'all' \\"
    assert rows(app) == [{"select": 1, "key's": 2}]


def test_a_row_that_is_too_large_is_refused_and_written_all_the_same(app: Lateshift, orders: Orders) -> None:
    watched(app, orders)
    orders.put([1], note="x" * 300_000)
    assert ids(app) == []
    [refused] = app.store.triggers.refused("handle", None, 10)
    assert "over the limit of 262144" in refused.reason
    again = app.triggers["handle"].again(refused.raw, refused.rest)
    assert isinstance(again, RowChange)
    assert (again.table, again.row["id"]) == ("orders", 1)


def test_a_partitioned_table_tells_of_the_rows_of_all_its_parts(app: Lateshift, orders: Orders) -> None:
    orders.run(
        "CREATE TABLE parts (id int) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (10)",
    )
    watched(app, orders, table="parts")
    orders.run(
        "CREATE TABLE high PARTITION OF parts FOR VALUES FROM (10) TO (20)",
        "INSERT INTO parts VALUES (1), (11)",
    )
    assert ids(app) == [1, 11]


def test_workers_are_woken_by_the_commit(app: Lateshift, orders: Orders, postgres_url: str) -> None:
    watched(app, orders)
    listener = open_store(postgres_url)
    heard: list[Line] = []
    told = threading.Event()

    def hear(line: Line) -> None:
        heard.append(line)
        told.set()

    stop = listener.wakes.listen(hear)
    try:
        for id in range(1000):  # it may not listen yet
            orders.put([id])
            if told.wait(0.02):
                break
        assert heard[0] == Line("default", Lane.THREAD)
    finally:
        stop()
        listener.close()


def test_a_row_is_worked_on(app: Lateshift, orders: Orders) -> None:
    worked: list[int] = []

    @on_row(app, orders)
    @app.task
    async def handle(row: dict[str, Any]) -> None:
        worked.append(row["id"])

    async def live() -> None:
        async with app.running():
            await until(lambda: aside(functions, orders), lambda found: len(found) == 1)
            await aside(orders.put, [1, 2])
            await until(lambda: asyncio.sleep(0, worked), lambda worked: len(worked) == 2)

    asyncio.run(live())
    assert sorted(worked) == [1, 2]
