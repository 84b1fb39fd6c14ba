"""Roles with the least rights, in PostgreSQL: who migrates, who serves, who works, who looks, who submits. The matrix below is all there
is: a right that is not written here is not given."""

import re

from psycopg import sql

from lateshift.errors import OptionInvalid
from lateshift.store.postgres.claims import CALLED_BY_THEM, CLAIMING
from lateshift.store.postgres.database import Connection, Database
from lateshift.store.postgres.role_functions import CALLED_BY, MAKING

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
    "attempt_log", "batch", "batch_count", "breaker", "bucket", "circuit", "event", "figure", "gate", "job", "job_identity", "job_key",
    "job_parent", "job_tag", "lock", "member",
    "outbox", "program", "receipt", "refused", "rule", "run", "schedule", "session", "settled", "signal", "step", "tick", "trigger",
)  # fmt: skip
# What each may do with each table, besides: all but tokens' digests and the servers' secret may be read by who reads, and all but that secret be written by who serves. What is
# sensitive is so for good. What is the API's own, as tokens and kept answers, is purged by functions of the owner.
SERVER = {"sensitive": ["SELECT, INSERT"], "secret": ["SELECT"]}
WORKER = {
    "audit": ["SELECT, INSERT"],
    "queue": ["SELECT"],
    "sensitive": ["SELECT, INSERT"],
}
SUBMITTER = {
    "job": [f"SELECT ({_STATUS}, complete_by, cancel_by, blocked_by)", f"INSERT ({_NEW})"],
    "settled": [f"SELECT ({_STATUS}, settled_at, expires_at, reason)"],
    "job_tag": ["SELECT, INSERT"],
    "job_parent": ["SELECT, INSERT"],
    "sensitive": ["SELECT"],
    "session": ["SELECT (queue, name, next_sequence)"],
    "trigger": ["SELECT (app, name, subscription, removed_at)"],
}
TABLES = (*WORKED_ON, *WORKER, "answer", "token", "secret", "migration")

# What writes the outbox, by its owner's right.
TELLING = ("job_received()", "job_moved()", "job_progressed()", "job_ended()")


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
    owned += [f"ALTER SEQUENCE lateshift.turn OWNER TO {name['owner']}", *MAKING]
    owned += [
        f"ALTER FUNCTION lateshift.{each} OWNER TO {name['owner']}"
        for each in (*CALLED_BY, *CLAIMING, *CALLED_BY_THEM, *TELLING)
    ]
    everybody = ", ".join(["PUBLIC", *runtime])
    enqueuing = ", ".join(name[role] for role in ("server", "worker", "submitter"))
    revoked = [
        f"REVOKE ALL ON {what} FROM {everybody}"
        for what in (
            "SCHEMA lateshift",
            "ALL TABLES IN SCHEMA lateshift",
            "ALL SEQUENCES IN SCHEMA lateshift",
            *(f"FUNCTION lateshift.{each}" for each in (*CALLED_BY, *CLAIMING, *CALLED_BY_THEM, *TELLING)),
        )
    ]
    # Rights to columns go with the rights to their tables only where those are named.
    revoked += [f"REVOKE ALL ON lateshift.{table} FROM {', '.join(runtime)}" for table in sorted(TABLES)]
    granted = [
        f"GRANT USAGE ON SCHEMA lateshift TO {', '.join(runtime)}",
        f"GRANT SELECT ON lateshift.migration TO {', '.join(runtime)}",
        f"GRANT USAGE ON SEQUENCE lateshift.turn TO {enqueuing}",
    ]
    granted += [f"GRANT EXECUTE ON FUNCTION lateshift.{each} TO {enqueuing}" for each in CLAIMING]
    granted += [
        f"GRANT EXECUTE ON FUNCTION lateshift.{each} TO {name[role]}"
        for each, roles in CALLED_BY.items()
        for role in roles
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
    every = [table for table in TABLES if table not in ("migration", "secret")]
    reads = {table: ["SELECT"] for table in every} | {"token": [f"SELECT ({_TOKEN})"]}
    return {
        "server": {table: [_ALL] for table in every} | SERVER,
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
