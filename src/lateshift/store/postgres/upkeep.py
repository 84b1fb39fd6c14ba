"""Retention, checks and backups, in PostgreSQL."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from lateshift.errors import OptionInvalid, StoreError
from lateshift.model.ids import JobId
from lateshift.store import private
from lateshift.store.postgres import answers, batches, figures, logs, marks, roles, runs, tokens
from lateshift.store.postgres.audit import purging
from lateshift.store.postgres.database import Connection, Database
from lateshift.store.postgres.locks import TERM
from lateshift.store.postgres.replies import PURGE_EVENTS
from lateshift.store.taking import (
    AUDIT_KEPT,
    CIRCUIT_KEPT,
    IDENTITY_KEPT,
    SESSION_KEPT,
    STARTS_KEPT,
    TICKS_KEPT,
    TRIGGER_KEPT,
)

# Not a job of a workflow whose run has not been told of its end yet. batch_count_batch, and the primary key of run.
IS_TOLD = """(SELECT true FROM lateshift.batch_count c JOIN lateshift.run r ON r.id = c.batch
 WHERE c.batch = s.batch LIMIT 1) IS NULL"""
# Settled jobs past their retention. settled_expires, which serves a bound that is computed once: (SELECT …).
PURGE_SETTLED = f"""DELETE FROM lateshift.settled WHERE id = ANY(ARRAY(SELECT id FROM lateshift.settled s
 WHERE expires_at <= (SELECT clock_timestamp() + %(skew)s::interval) AND {IS_TOLD} LIMIT %(limit)s)) RETURNING id"""
ANY_RUN = "SELECT 1 FROM lateshift.run UNION ALL SELECT 1 FROM lateshift.signal LIMIT 1"
# Settled jobs by name, before their time. Primary key.
ERASE = f"DELETE FROM lateshift.settled s WHERE id = ANY(%s) AND {IS_TOLD} RETURNING id"
# Keys past their window. job_key_expires.
PURGE_KEYS = """DELETE FROM lateshift.job_key WHERE (task, text) IN (SELECT task, text FROM lateshift.job_key
 WHERE expires_at <= (SELECT clock_timestamp() + %(skew)s::interval) LIMIT %(limit)s)
 AND expires_at <= (SELECT clock_timestamp() + %(skew)s::interval)"""
# Identities that nobody asks for any more: past their time, and of a job that has completed or is gone. Of those past their
# time, a job that has not ended is looked at again later, one that may be resubmitted at its retention's end.
# job_identity_expires, primary keys.
_NOW = "(SELECT clock_timestamp() + %(skew)s::interval)"
_DUE = f"""identity = ANY(ARRAY(SELECT identity FROM lateshift.job_identity WHERE expires_at <= {_NOW}
 ORDER BY expires_at LIMIT %(limit)s)) AND expires_at <= {_NOW}"""
_LATER = f"""coalesce((SELECT {_NOW} + %(identity)s::interval FROM lateshift.job j WHERE j.id = i.job_id),
 (SELECT s.expires_at FROM lateshift.settled s WHERE s.id = i.job_id AND s.state IN (5, 6) AND s.expires_at > {_NOW}))"""
PURGE_IDENTITIES = f"DELETE FROM lateshift.job_identity i WHERE {_DUE} AND {_LATER} IS NULL"
KEEP_IDENTITIES = f"""UPDATE lateshift.job_identity i SET expires_at = {_LATER}
 WHERE {_DUE} AND {_LATER} IS NOT NULL"""
# Dead members that hold nothing any more. A scan of the members.
PURGE_MEMBERS = """DELETE FROM lateshift.member m
 WHERE dead_at <= (SELECT clock_timestamp() + %(skew)s::interval - interval '10 minutes')
 AND NOT EXISTS (SELECT 1 FROM lateshift.job j WHERE j.holder = m.id AND j.state = 2)"""
# Programs that no member runs any more. A scan of the programs, as few as there were releases of late.
PURGE_PROGRAMS = """DELETE FROM lateshift.program p
 WHERE seen_at <= (SELECT clock_timestamp() + %(skew)s::interval - interval '10 minutes')
 AND NOT EXISTS (SELECT 1 FROM lateshift.member m WHERE m.code = p.code)"""
# What operators did longer ago than AUDIT_KEPT, and who started a job longer ago than STARTS_KEPT. audit_at, audit_action.
PURGE_AUDIT = purging(
    "clock_timestamp() + %(skew)s::interval", "%(audit)s::interval", "%(starts)s::interval", "%(limit)s"
)
# The same, and tokens and answers, for one who may only work: see roles.
MAY_PURGE = "SELECT has_table_privilege('lateshift.audit', 'DELETE')"
PURGE_FOR_ME = """SELECT lateshift.purge_audit(%(limit)s) + lateshift.purge_tokens(%(limit)s) + lateshift.purge_answers(%(limit)s)"""
# Sessions and tokens that nobody has touched for SESSION_KEPT. session_touched, bucket_at.
PURGE_SESSIONS = """DELETE FROM lateshift.session WHERE ctid = ANY(ARRAY(SELECT ctid FROM lateshift.session
 WHERE touched_at <= (SELECT clock_timestamp() + %(skew)s::interval - %(session)s::interval) AND held_why IS NULL LIMIT %(limit)s
 FOR UPDATE SKIP LOCKED))"""
PURGE_BUCKETS = """DELETE FROM lateshift.bucket WHERE ctid = ANY(ARRAY(SELECT ctid FROM lateshift.bucket
 WHERE at <= (SELECT clock_timestamp() + %(skew)s::interval - %(session)s::interval) LIMIT %(limit)s
 FOR UPDATE SKIP LOCKED))"""
# Circuits of one version that have counted nothing for CIRCUIT_KEPT, and park nobody. Few; job_blocked.
PURGE_CIRCUITS = f"""DELETE FROM lateshift.circuit WHERE name = ANY(ARRAY(SELECT name FROM lateshift.circuit c WHERE name <> breaker
 AND since <= {_NOW} - %(circuit)s::interval AND opened_by IS NULL
 AND (SELECT true FROM lateshift.job WHERE state = 3 AND blocked_by = 'breaker:' || c.name LIMIT 1) IS NULL
 FOR UPDATE SKIP LOCKED))"""
# Ticks of longer ago than TICKS_KEPT. Primary key.
PURGE_TICKS = """DELETE FROM lateshift.tick WHERE ctid = ANY(ARRAY(SELECT ctid FROM lateshift.tick
 WHERE at <= (SELECT clock_timestamp() + %(skew)s::interval - %(ticks)s::interval) ORDER BY at LIMIT %(limit)s))"""
# What has arrived and need not be known any more, and what was refused too long ago. receipt_expires, refused_expires.
PURGE_RECEIPTS = f"""DELETE FROM lateshift.receipt WHERE ctid = ANY(ARRAY(SELECT ctid FROM lateshift.receipt
 WHERE expires_at <= {_NOW} ORDER BY expires_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED))"""
# Of triggers that no code has had for TRIGGER_KEPT: first what has arrived, then they themselves. Triggers are few.
_GONE = f"SELECT name FROM lateshift.trigger WHERE removed_at <= {_NOW} - %(trigger)s::interval"
PURGE_ARRIVED = f"""DELETE FROM lateshift.receipt WHERE ctid = ANY(ARRAY(SELECT ctid FROM lateshift.receipt
 WHERE trigger = ANY(ARRAY({_GONE})) LIMIT %(limit)s FOR UPDATE SKIP LOCKED))"""
PURGE_TRIGGERS = f"""DELETE FROM lateshift.trigger t WHERE name = ANY(ARRAY({_GONE}))
 AND NOT EXISTS (SELECT 1 FROM lateshift.receipt r WHERE r.trigger = t.name)"""
PURGE_REFUSED = f"""DELETE FROM lateshift.refused WHERE id = ANY(ARRAY(SELECT id FROM lateshift.refused
 WHERE expires_at <= {_NOW} ORDER BY expires_at LIMIT %(limit)s))"""

# What must never be: an id in both tables, a running job without a holder, a waiting one with a holder.
RULES = {
    "{n} jobs are both waiting and settled": "SELECT count(*) FROM lateshift.job JOIN lateshift.settled USING (id)",
    "{n} running jobs have no holder": "SELECT count(*) FROM lateshift.job WHERE state = 2 AND holder IS NULL",
    "{n} waiting jobs have a holder": "SELECT count(*) FROM lateshift.job WHERE state <> 2 AND holder IS NOT NULL",
    "{n} batches have counted other jobs than their own": """SELECT count(*) FROM lateshift.batch
     WHERE least(completed, failed, cancelled) < 0 OR completed + failed + cancelled > added""",
    "{n} sessions have two jobs running": """SELECT count(*) FROM (SELECT 1 FROM lateshift.job
 WHERE state = 2 AND session IS NOT NULL GROUP BY queue, session HAVING count(*) > 1) AS twice""",
}


def _purge_of_api(connection: Connection, parameters: dict[str, Any]) -> int:
    """A worker's role may delete no line of the audit, no token and no answer but by the owner's functions, which keep to the time."""
    [[may]] = connection.execute(MAY_PURGE).fetchall()
    if may:
        skew, limit = parameters["skew"], parameters["limit"]
        lines = connection.execute(PURGE_AUDIT, parameters).rowcount
        return lines + tokens.purge(connection, skew, limit) + answers.purge(connection, skew, limit)
    [[purged]] = connection.execute(PURGE_FOR_ME, parameters).fetchall()
    return int(purged)


class PostgresUpkeep:
    """See upkeep_contract.Upkeep."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._clock = database.clock

    def purge(self, *, term: int, limit: int) -> int:
        def work(connection: Connection, again: bool) -> int:
            parameters = {
                "skew": self._clock.offset,
                "limit": limit,
                "audit": AUDIT_KEPT,
                "starts": STARTS_KEPT,
                "identity": IDENTITY_KEPT,
                "session": SESSION_KEPT,
                "circuit": CIRCUIT_KEPT,
                "ticks": TICKS_KEPT,
                "trigger": TRIGGER_KEPT,
            }
            with connection.transaction():
                if not connection.execute(TERM, (term,)).fetchall():
                    return 0
                settled = connection.execute(PURGE_SETTLED, parameters).fetchall()
                forget(connection, [id for (id,) in settled])
                deleted = len(settled) + sum(
                    connection.execute(sql, parameters).rowcount
                    for sql in (
                        PURGE_KEYS,
                        PURGE_EVENTS,
                        PURGE_IDENTITIES,
                        KEEP_IDENTITIES,
                        PURGE_MEMBERS,
                        PURGE_PROGRAMS,
                        PURGE_SESSIONS,
                        PURGE_BUCKETS,
                        PURGE_CIRCUITS,
                        PURGE_TICKS,
                        PURGE_RECEIPTS,
                        PURGE_ARRIVED,
                        PURGE_TRIGGERS,
                        PURGE_REFUSED,
                    )
                )
                deleted += _purge_of_api(connection, parameters)
                deleted += figures.purge(connection, self._clock.offset, limit)
                return deleted + batches.purge(connection, self._clock.offset, limit)

        return self._database.run(work)

    def erase(self, ids: Sequence[JobId]) -> int:
        def work(connection: Connection, again: bool) -> int:
            with connection.transaction():
                erased = [id for (id,) in connection.execute(ERASE, (list(ids),)).fetchall()]
                forget(connection, erased)
            return len(erased)

        return self._database.run(work)

    def check(self) -> list[str]:
        def work(connection: Connection, again: bool) -> list[str]:
            found = []
            for sentence, sql in RULES.items():
                self._database.watchdog.begin(connection)  # each may take its time
                [[count]] = connection.execute(sql.encode()).fetchall()
                found += [sentence.format(n=count)] if count else []
            return found

        return self._database.run(work)

    def backup(self, target: Path) -> None:
        """The schema `lateshift` by pg_dump, in its custom format (`pg_restore` reads it)."""
        if target.exists():
            raise OptionInvalid(f"{target} exists. Name a file that does not: a backup never overwrites.")
        if not target.parent.is_dir():
            raise OptionInvalid(f"There is no folder {target.parent} to hold {target.name}. Create it first.")
        program = shutil.which("pg_dump")
        if program is None:
            raise StoreError(
                "pg_dump is not on the PATH. Install PostgreSQL's client programs, and try again."
            )
        address = conninfo_to_dict(self._database.address)
        password = address.pop("password", None)  # a command line can be read by everybody on the machine
        environment = os.environ | ({"PGPASSWORD": str(password)} if password else {})
        command = [program, "--format=custom", "--schema=lateshift", f"--file={target}"]
        command.append(f"--dbname={make_conninfo('', **address)}")
        private.create(target)  # which pg_dump then writes to
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            target.unlink(missing_ok=True)
            raise StoreError(f"pg_dump failed: {done.stderr.strip()}")

    def roles(self, prefix: str) -> str:
        return roles.script(self._database, prefix)

    def apply_roles(self, prefix: str) -> list[str]:
        return roles.apply(self._database, prefix)


def forget(connection: Connection, ids: Sequence[JobId]) -> None:
    """Logs, tags and parents go with their jobs, and what is kept of workflows with the jobs that they are."""
    if not ids:
        return
    logs.forget(connection, ids)
    marks.forget(connection, ids)
    if connection.execute(ANY_RUN).fetchall():
        runs.forget(connection, ids)
