"""Roles with the least rights, in PostgreSQL: who migrates, who serves, who works, who looks, who submits. The matrix below is all there
is: a right that is not written here is not given."""

import re

from psycopg import sql

from lateshift.errors import OptionInvalid
from lateshift.store.postgres.audit import purging
from lateshift.store.postgres.database import Connection, Database
from lateshift.store.taking import AUDIT_KEPT, STARTS_KEPT

ROLES = ("owner", "server", "worker", "reader", "submitter")
PREFIX = re.compile(r"[a-z_][a-z0-9_]{0,39}")

_ALL = "SELECT, INSERT, UPDATE, DELETE"
_TOKEN = "id, name, scopes, queues, created_at, created_by, expires_at, revoked_at, revoked_by, last_used_at, parent"
_STATUS = """id, task, queue, lane, state, priority, attempt, attempts, fence, losses, created_at, due_at, leased_at, holder, exclusive,
 batch, session, sequence, turn, tenant, limit_key"""
_NEW = """id, queue, lane, state, priority, attempts, due_at, created_at, time_limit, exclusive, task, payload, session, sequence,
 gap_after, holds, tenant, limit_key, blocked_by, turn, batch, trace, reply"""

# What workers, and the supervisors, schedulers and readers of triggers beside them, write.
WORKED_ON = (
    "answer", "attempt_log", "batch", "batch_count", "breaker", "bucket", "circuit", "event", "figure", "gate", "job", "job_identity", "job_key",
    "job_parent", "job_tag", "lock", "member",
    "outbox", "program", "receipt", "refused", "rule", "run", "schedule", "sensitive", "session", "settled", "signal", "step", "tick", "trigger",
)  # fmt: skip
# What each may do with each table, besides: all but tokens' digests may be read by who reads, and all be written by who serves.
WORKER = {
    "audit": ["SELECT", "INSERT"],  # what has passed its time it purges by purge_audit(), and nothing else
    "queue": ["SELECT"],
    "token": [f"SELECT ({_TOKEN})", "UPDATE (last_used_at)", "DELETE"],
}
SUBMITTER = {
    "job": [f"SELECT ({_STATUS}, complete_by, cancel_by, blocked_by)", f"INSERT ({_NEW})"],
    "settled": [f"SELECT ({_STATUS}, settled_at, expires_at, reason)"],
    "job_tag": ["SELECT", "INSERT"],
    "job_parent": ["SELECT", "INSERT"],
    "job_key": [_ALL],
    "job_identity": [_ALL],
    "sensitive": ["SELECT", "INSERT"],
    "session": ["SELECT (queue, name, next_sequence)"],
    "trigger": ["SELECT (app, name, subscription, removed_at)"],
}
TABLES = (*WORKED_ON, *WORKER, "migration")

# What writes the outbox, by its owner's right.
TELLING = ("job_received()", "job_moved()", "job_progressed()", "job_ended()")

# What a submitter may not do by itself: see enqueue.UNDO_REPEAT.
_UNDO_REPEAT = """CREATE OR REPLACE FUNCTION lateshift.undo_repeat(ids uuid[]) RETURNS void LANGUAGE sql SECURITY DEFINER
 SET search_path = pg_catalog, pg_temp AS $$DELETE FROM lateshift.job WHERE fence = 0
 AND id = ANY(ARRAY(SELECT id FROM lateshift.settled WHERE id = ANY(ids)))$$"""

# What a supervisor with a worker's rights purges: the time is the function's own, so that whoever runs the worker's code cannot take a younger
# line out. See upkeep.PURGE_AUDIT.
_PURGING = purging(
    "clock_timestamp()", f"interval '{AUDIT_KEPT.days} days'", f"interval '{STARTS_KEPT.days} days'", "most"
)
_PURGE_AUDIT = f"""CREATE OR REPLACE FUNCTION lateshift.purge_audit(most integer) RETURNS bigint LANGUAGE sql SECURITY DEFINER
 SET search_path = pg_catalog, pg_temp AS $$WITH gone AS ({_PURGING} RETURNING 1)
 SELECT count(*) FROM gone$$"""


def names(prefix: str) -> dict[str, str]:
    """What each role is called: a `_` stands between, once."""
    if not PREFIX.fullmatch(prefix):
        raise OptionInvalid(
            f"{prefix!r} cannot begin the name of a role: a to z, 0 to 9 and _ , up to 40 of them."
        )
    return {role: f"{prefix.removesuffix('_')}_{role}" for role in ROLES}


def statements(prefix: str, database: str) -> list[str]:
    """In their order, to be run in one transaction by a superuser, or by who owns the schema and may make roles. Repeating them is
    harmless, and needed after a migration."""
    name = names(prefix)
    runtime = [name[role] for role in ROLES if role != "owner"]
    quoted = sql.Identifier(database).as_string(None)
    made = [_made(role) for role in name.values()]
    made += [
        f"ALTER ROLE {role} IN DATABASE {quoted} SET search_path = pg_catalog, pg_temp"
        for role in name.values()
    ]
    owned = [f"GRANT {name['owner']} TO CURRENT_USER", f"ALTER SCHEMA lateshift OWNER TO {name['owner']}"]
    owned += [f"ALTER TABLE lateshift.{table} OWNER TO {name['owner']}" for table in sorted(TABLES)]
    owned += [f"ALTER SEQUENCE lateshift.turn OWNER TO {name['owner']}", _UNDO_REPEAT, _PURGE_AUDIT]
    owned += [
        f"ALTER FUNCTION lateshift.{each} OWNER TO {name['owner']}"
        for each in ("undo_repeat(uuid[])", "purge_audit(integer)", *TELLING)
    ]
    everybody = ", ".join(["PUBLIC", *runtime])
    revoked = [
        f"REVOKE ALL ON {what} FROM {everybody}"
        for what in (
            "SCHEMA lateshift",
            "ALL TABLES IN SCHEMA lateshift",
            "ALL SEQUENCES IN SCHEMA lateshift",
            "FUNCTION lateshift.undo_repeat(uuid[])",
            "FUNCTION lateshift.purge_audit(integer)",
        )
    ]
    # Rights to columns go with the rights to their tables only where those are named.
    revoked += [f"REVOKE ALL ON lateshift.{table} FROM {', '.join(runtime)}" for table in sorted(TABLES)]
    granted = [
        f"GRANT USAGE ON SCHEMA lateshift TO {', '.join(runtime)}",
        f"GRANT SELECT ON lateshift.migration TO {', '.join(runtime)}",
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA lateshift TO {name['server']}, {name['worker']}, {name['submitter']}",
        f"GRANT EXECUTE ON FUNCTION lateshift.undo_repeat(uuid[]) TO {name['submitter']}",
        f"GRANT EXECUTE ON FUNCTION lateshift.purge_audit(integer) TO {name['worker']}",
    ]
    granted += [
        f"GRANT {right} ON lateshift.{table} TO {name[role]}"
        for role in ROLES[1:]
        for table, rights in sorted(matrix()[role].items())
        for right in rights
    ]
    return [*made, *owned, *revoked, *granted]


def matrix() -> dict[str, dict[str, list[str]]]:
    """For each role but the owner, the rights to each table, as GRANT has them."""
    every = [table for table in TABLES if table != "migration"]
    reads = {table: ["SELECT"] for table in every} | {"token": [f"SELECT ({_TOKEN})"]}
    return {
        "server": {table: [_ALL] for table in every},
        "worker": {table: [_ALL] for table in WORKED_ON} | WORKER,
        "reader": reads,
        "submitter": SUBMITTER,
    }


def script(database: Database, prefix: str) -> str:
    """For a DBA to read, and to run."""
    lines = [
        "-- Who migrates: owner. Who serves the API: server. Who works: worker. Who looks: reader. Who only enqueues: submitter.",
        f"-- None has a password yet: \\password {names(prefix)['worker']}. Of the whole database, so not done here: REVOKE CREATE ON SCHEMA public FROM PUBLIC;",
        "BEGIN;",
        *(f"{each};" for each in statements(prefix, database.called)),
        "COMMIT;",
    ]
    return "\n".join(lines)


def apply(database: Database, prefix: str) -> list[str]:
    """Gives the names of the roles."""
    made = statements(prefix, database.called)

    def work(connection: Connection, again: bool) -> None:
        with connection.transaction():
            for each in made:
                connection.execute(each.encode(), prepare=False)

    database.run(work)
    return list(names(prefix).values())


def _made(role: str) -> str:
    return (
        f"DO $$BEGIN IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = '{role}') THEN "
        f"CREATE ROLE {role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS; END IF; END$$"
    )
