"""Triggers of PostgreSQL itself: the job of a changed row is written in the transaction that changes it.

For each there is a function in the schema lateshift, and two triggers on the user's table that call it. What it was made from stands
in the function's comment: a start that finds the same takes no lock on the table."""

from datetime import timedelta
from hashlib import sha256
from typing import Any

import msgspec
import psycopg
from psycopg import errors as pg
from psycopg import sql

from lateshift.errors import StoreUnavailable, TriggerInvalid
from lateshift.model.job import PAYLOAD_LIMIT
from lateshift.model.triggering.in_database import RowTrigger
from lateshift.model.triggering.trigger import REFUSED_LIMIT
from lateshift.store.hints import written
from lateshift.store.postgres.database import Connection, Database
from lateshift.store.taking import REFUSED_KEPT
from lateshift.store.urls import shown

FORM = 2  # of the function below: one higher with each change of it
LOCK_SECONDS = 2  # nobody waits longer for a table that is in use, for all who write to it wait behind us
# Without a declaration: a release that has it repeats its own once in a minute.
UNINSTALL_AFTER = timedelta(minutes=10)
PREFIX = "row_"

# The same as for declaring: what is installed and what is declared change together.
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('lateshift triggers', 0))"
WHERE = "SELECT current_database()::text, pg_postmaster_start_time()::text"
# Functions are few, and found by their schema. pg_proc_proname_args_nsp_index.
INSTALLED = """SELECT p.proname::text, obj_description(p.oid, 'pg_proc') FROM pg_catalog.pg_proc p
 WHERE p.pronamespace = 'lateshift'::regnamespace AND p.proname LIKE 'row\\_%'"""
TABLE = "SELECT c.oid, c.relkind::text FROM pg_catalog.pg_class c WHERE c.oid = to_regclass(%s)"
COLUMNS = """SELECT attname::text FROM pg_catalog.pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped
 ORDER BY attnum"""
# Those that some code has, or had not long ago. Triggers are few.
HAD = """SELECT name FROM lateshift.trigger WHERE app = %(app)s
 AND (removed_at IS NULL OR removed_at > clock_timestamp() + %(skew)s::interval - %(after)s::interval)"""
PAUSED = "SELECT paused_at IS NOT NULL FROM lateshift.trigger WHERE name = %s"

# Runs with the rights of whoever installed it, and with nothing on its search path that others may write to. The id is a
# UUIDv7: milliseconds, twelve bits of the fraction, random bits. A row that is too large is refused, not the user's write.
FUNCTION = """CREATE FUNCTION lateshift.{function}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
 SET search_path = pg_catalog, pg_temp AS {body}"""
BODY = """DECLARE
 at timestamptz := clock_timestamp();
 due timestamptz := greatest(at, coalesce({at}::timestamptz, at + {delay}::interval, at));
 changed json := row_to_json(NEW);
 payload bytea := convert_to(json_build_object({parameter}::text, {argument})::text, 'UTF8');
 since numeric := extract(epoch FROM at) * 1000;
 made bytea := uuid_send(gen_random_uuid());
 came bytea;
 fraction int := floor((since - floor(since)) * 4096);
 id uuid;
BEGIN
 made := overlay(made PLACING substring(int8send(floor(since)::bigint) FROM 3) FROM 1 FOR 6);
 made := set_byte(set_byte(made, 6, 112 | (fraction >> 8)), 7, fraction & 255);
 id := encode(made, 'hex')::uuid;
 IF octet_length(payload) > {most} THEN
  came := convert_to({whole}::text, 'UTF8');
  INSERT INTO lateshift.refused (id, trigger, event, mark, at, raw, rest, reason, expires_at)
  VALUES (id, {name}, id::text, '', at, substring(came FROM 1 FOR {bytes}),
   convert_to(CASE WHEN octet_length(came) > {bytes} THEN {cut} ELSE {rest} END, 'UTF8'),
   {task} || ': the arguments are ' || octet_length(payload) || ' bytes, over the limit of ' || {most} || '.' || CASE
   WHEN octet_length(came) > {bytes} THEN ' (of ' || octet_length(came) || ' bytes that came, the first ' || {bytes} ||
   ' are kept: it cannot be retried)' ELSE '' END, at + {kept}::interval);
  RETURN NULL;
 END IF;
 INSERT INTO lateshift.job (id, queue, lane, state, priority, attempts, due_at, created_at, time_limit, task, payload)
 VALUES (id, {queue}, {lane}, CASE WHEN due > at THEN 0 ELSE 1 END, {priority}, {attempts}, due, at,
  {time_limit}::interval, {task}, payload);
 IF due <= at THEN
  PERFORM pg_notify('lateshift', {hint});
 END IF;
 RETURN NULL;
END"""
# Not PUBLIC's: whoever may use it could write jobs by a trigger on a table of their own.
REVOKE = "REVOKE ALL ON FUNCTION lateshift.{function}() FROM PUBLIC"
COMMENT = "COMMENT ON FUNCTION lateshift.{function}() IS {comment}"
ON_INSERT = """CREATE TRIGGER {trigger} AFTER INSERT ON {table} FOR EACH ROW WHEN (NEW.{cursor} IS NOT NULL)
 EXECUTE FUNCTION lateshift.{function}()"""
ON_UPDATE = """CREATE TRIGGER {trigger} AFTER UPDATE ON {table} FOR EACH ROW
 WHEN (NEW.{cursor} IS NOT NULL AND OLD.{cursor} IS DISTINCT FROM NEW.{cursor}) EXECUTE FUNCTION lateshift.{function}()"""
# With the triggers that call it.
DROP = "DROP FUNCTION IF EXISTS lateshift.{function}() CASCADE"


class RowTriggers:
    """What trigger_contract.Triggers has about these."""

    def __init__(self, database: Database, url: str) -> None:
        self._database = database
        self._url = url

    def install(self, trigger: RowTrigger, *, app: str) -> bool:
        self._refuse_elsewhere(trigger)

        def work(connection: Connection, again: bool) -> bool:
            with connection.transaction():
                connection.execute(LOCK, prepare=False)
                connection.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'", prepare=False)
                return _install(connection, trigger, app)

        try:
            return self._database.run_once(work)
        except StoreUnavailable as error:
            if isinstance(error.__cause__, pg.LockNotAvailable):
                raise TriggerInvalid(
                    f"the table {trigger.table} was in use all the time, and a trigger can be made only between transactions that write "
                    "to it; it is tried again"
                ) from error
            raise

    def uninstall(self, otherwise: list[str], *, app: str) -> list[str]:
        return [name for name in self._gone(otherwise, app) if self._uninstalled(name, otherwise, app)]

    def _gone(self, otherwise: list[str], app: str) -> list[str]:
        return self._database.run(lambda connection, again: self._gone_now(connection, otherwise, app))

    def _gone_now(self, connection: Connection, otherwise: list[str], app: str) -> list[str]:
        asked = {"app": app, "skew": self._database.clock.offset, "after": UNINSTALL_AFTER}
        had = {name for (name,) in connection.execute(HAD, asked, prepare=False).fetchall()} - {*otherwise}
        installed = [told(comment) for _, comment in connection.execute(INSTALLED, prepare=False).fetchall()]
        return [one["name"] for one in installed if one.get("app") == app and one["name"] not in had]

    def _uninstalled(self, name: str, otherwise: list[str], app: str) -> bool:
        """Each by itself: one whose table is in use is left for the next time, and keeps no other."""

        def work(connection: Connection, again: bool) -> bool:
            with connection.transaction():
                connection.execute(LOCK, prepare=False)
                if name not in self._gone_now(connection, otherwise, app):  # declared since then
                    return False
                connection.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'", prepare=False)
                _run(connection, DROP, function=sql.Identifier(function_of(name)))
            return True

        try:
            return self._database.run_once(work)
        except StoreUnavailable as error:
            if isinstance(error.__cause__, pg.LockNotAvailable):
                return False
            raise

    def is_installed(self, name: str) -> bool:
        rows = self._database.run(
            lambda connection, again: connection.execute(INSTALLED, prepare=False).fetchall()
        )
        return function_of(name) in [function for function, _ in rows]

    def _refuse_elsewhere(self, trigger: RowTrigger) -> None:
        """What is written in one transaction is in one database."""
        scheme, _, rest = trigger.url.partition("://")
        url = f"postgresql://{rest}"
        if scheme.partition("+")[0] not in ("postgresql", "postgres"):
            raise TriggerInvalid(
                f'by="database" needs the PostgreSQL that is the store, not {shown(trigger.url)}. Leave by= out, and the table is polled.'
            )
        if trigger.url == self._url:
            return
        ours = self._database.run(
            lambda connection, again: connection.execute(WHERE, prepare=False).fetchall()
        )
        try:
            other = Database(url, self._database.clock)
            with other.connect() as connection:
                theirs = connection.execute(WHERE, prepare=False).fetchall()
        except (psycopg.Error, ValueError) as error:
            raise TriggerInvalid(
                f'by="database" needs the PostgreSQL that is the store, and {shown(trigger.url)} cannot be reached to see whether it is: '
                f"{type(error).__name__}. Give the store's URL, or leave by= out."
            ) from error
        if ours != theirs:
            raise TriggerInvalid(
                f'by="database" writes the job beside the row, and {shown(trigger.url)} is another database than the store, '
                f"{self._database.name}. Leave by= out, and the table is polled."
            )


def function_of(name: str) -> str:
    """A name that PostgreSQL does not cut, for any name of a trigger."""
    return f"{PREFIX}{sha256(name.encode()).hexdigest()[:24]}"


def told(comment: str | None) -> dict[str, Any]:
    try:
        read = msgspec.json.decode(comment or "")
    except msgspec.DecodeError:
        return {}
    return read if isinstance(read, dict) else {}


def _install(connection: Connection, trigger: RowTrigger, app: str) -> bool:
    if (True,) in connection.execute(PAUSED, (trigger.name,), prepare=False).fetchall():
        raise TriggerInvalid(
            f"it is paused, and what the database writes cannot wait: `lateshift triggers resume {trigger.name}`"
        )
    found = dict(connection.execute(INSTALLED, prepare=False).fetchall())
    table, oid = _table(connection, trigger)
    function = function_of(trigger.name)
    made = msgspec.json.encode([FORM, oid, msgspec.structs.replace(trigger, url="")])
    digest = sha256(made).hexdigest()
    there = told(found.get(function))
    if there.get("digest") == digest and there.get("app") == app and _has_both(connection, function, oid):
        return False
    comment = msgspec.json.encode({"name": trigger.name, "app": app, "digest": digest}).decode()
    names: dict[str, sql.Composable] = {
        "function": sql.Identifier(function), "table": table, "cursor": sql.Identifier(trigger.cursor),
    }  # fmt: skip
    try:
        _run(connection, DROP, **names)
        body = sql.SQL(BODY).format(**_values(trigger)).as_string(connection)
        _run(connection, FUNCTION, body=sql.Literal(body), **names)
        _run(connection, REVOKE, **names)
        _run(connection, COMMENT, comment=sql.Literal(comment), **names)
        for statement, suffix in ((ON_INSERT, "_insert"), (ON_UPDATE, "_update")):
            _run(connection, statement, trigger=sql.Identifier(f"lateshift_{function}{suffix}"), **names)
    except pg.InsufficientPrivilege as error:
        role = connection.info.user
        raise TriggerInvalid(
            f"{str(error).splitlines()[0]}: the store's role needs GRANT TRIGGER ON {trigger.table} TO {role}, and CREATE on the schema lateshift"
        ) from error
    except (
        pg.WrongObjectType,
        pg.FeatureNotSupported,
        pg.UndefinedFunction,
        pg.ObjectNotInPrerequisiteState,
    ) as error:
        raise TriggerInvalid(
            f"PostgreSQL makes no such trigger on {trigger.table}: {str(error).splitlines()[0]}"
        ) from error
    return True


def _table(connection: Connection, trigger: RowTrigger) -> tuple[sql.Composable, int]:
    schema, _, name = trigger.table.rpartition(".")
    table = sql.Identifier(schema, name) if schema else sql.Identifier(name)
    found = connection.execute(TABLE, (table.as_string(connection),), prepare=False).fetchall()
    if not found:
        raise TriggerInvalid(
            f"there is no table {trigger.table} in the store's database; name its schema too"
        )
    oid = int(found[0][0])
    columns = [column for (column,) in connection.execute(COLUMNS, (oid,), prepare=False).fetchall()]
    for what, column in (("cursor", trigger.cursor), ("key", trigger.key)):
        if column not in columns:
            raise TriggerInvalid(
                f"the table {trigger.table} has no column {column}, which is to be the {what}. It has: {', '.join(columns)}."
            )
    return table, oid


def _has_both(connection: Connection, function: str, table: int) -> bool:
    """Whether nobody has dropped its triggers, or turned them off."""
    asked = """SELECT count(*) FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
     WHERE t.tgrelid = %s AND p.proname = %s AND p.pronamespace = 'lateshift'::regnamespace AND t.tgenabled <> 'D'"""
    return connection.execute(asked, (table, function), prepare=False).fetchall() == [(2,)]


def _values(trigger: RowTrigger) -> dict[str, sql.Composable]:
    spec = trigger.spec
    values = {
        "name": trigger.name, "table": trigger.table, "parameter": trigger.parameter, "task": spec.task, "queue": spec.queue,
        "lane": int(spec.lane), "priority": spec.priority, "attempts": spec.attempts, "time_limit": spec.time_limit,
        "at": spec.at, "delay": spec.delay, "most": PAYLOAD_LIMIT, "hint": written(spec.line), "kept": REFUSED_KEPT,
        "rest": '{"kind":"RowChange","seen":{}}', "cut": '{"kind":"RowChange","seen":{},"cut":true}', "bytes": REFUSED_LIMIT,
    }  # fmt: skip
    composed: dict[str, sql.Composable] = {name: sql.Literal(value) for name, value in values.items()}
    whole = sql.SQL("json_build_object('table', {table}::text, 'row', changed)").format(
        table=composed["table"]
    )
    return composed | {"whole": whole, "argument": whole if trigger.whole else sql.SQL("changed")}


def _run(connection: Connection, statement: str, **names: sql.Composable) -> None:
    connection.execute(sql.SQL(statement).format(**names), prepare=False)
