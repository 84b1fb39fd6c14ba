"""Retention, checks and backups, in SQLite."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lateshift.errors import OptionInvalid, RolesUnsupported
from lateshift.model.ids import JobId
from lateshift.model.instants import MICROSECOND
from lateshift.store import private
from lateshift.store.auditing import START
from lateshift.store.sqlite import answers, batches, figures, logs, marks, runs, tokens
from lateshift.store.sqlite.database import Connection, Database
from lateshift.store.sqlite.locks import TERM
from lateshift.store.sqlite.replies import PURGE_EVENTS
from lateshift.store.taking import (
    AUDIT_KEPT,
    CIRCUIT_KEPT,
    IDENTITY_KEPT,
    SESSION_KEPT,
    STARTS_KEPT,
    TICKS_KEPT,
    TRIGGER_KEPT,
)

# Settled jobs past their retention. settled_expires.
PURGE_SETTLED = (
    "DELETE FROM settled WHERE id IN (SELECT id FROM settled WHERE expires_at <= ? LIMIT ?) RETURNING id"
)
ANY_RUN = "SELECT 1 FROM run UNION ALL SELECT 1 FROM signal LIMIT 1"
# Settled jobs by name, before their time. Primary key.
ERASE = "DELETE FROM settled WHERE id = ? RETURNING id"
# Keys past their window. job_key_expires.
PURGE_KEYS = """DELETE FROM job_key WHERE (task, text) IN
 (SELECT task, text FROM job_key WHERE expires_at <= ? LIMIT ?)"""
# Identities that nobody asks for any more: past their time, and of a job that has completed or is gone. Of those past their
# time, a job that has not ended is looked at again later, one that may be resubmitted at its retention's end.
# job_identity_expires, primary keys.
_DUE = "identity IN (SELECT identity FROM job_identity WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)"
_LATER = """coalesce((SELECT ?3 FROM job WHERE id = job_id),
 (SELECT expires_at FROM settled WHERE id = job_id AND state IN (5, 6) AND expires_at > ?1))"""
PURGE_IDENTITIES = f"DELETE FROM job_identity WHERE {_DUE} AND {_LATER} IS NULL"
KEEP_IDENTITIES = f"UPDATE job_identity SET expires_at = {_LATER} WHERE {_DUE} AND {_LATER} IS NOT NULL"
# Dead members that hold nothing any more. A scan of the members.
PURGE_MEMBERS = """DELETE FROM member WHERE dead_at <= ? AND NOT EXISTS
 (SELECT 1 FROM job WHERE holder = member.id AND state = 2)"""
MEMBER_KEPT = 600 * 1_000_000  # dead members stay in sight for ten minutes
# Programs that no member runs any more. A scan of the programs, as few as there were releases of late.
PURGE_PROGRAMS = """DELETE FROM program WHERE seen_at <= ? AND code NOT IN
 (SELECT code FROM member WHERE code IS NOT NULL)"""
# What operators did longer ago than AUDIT_KEPT. audit_at.
PURGE_AUDIT = "DELETE FROM audit WHERE rowid IN (SELECT rowid FROM audit WHERE at <= ? LIMIT ?)"
# Who started a job longer ago than STARTS_KEPT: the oldest, as their numbers say, which grow with the time. audit_action.
PURGE_STARTS = f"""DELETE FROM audit WHERE rowid IN (SELECT number FROM (SELECT number, at FROM audit INDEXED BY audit_action
 WHERE action = '{START}' ORDER BY number LIMIT ?2) WHERE at <= ?1)"""
# Sessions and tokens that nobody has touched for SESSION_KEPT. session_touched, bucket_at.
PURGE_SESSIONS = """DELETE FROM session WHERE (queue, name) IN
 (SELECT queue, name FROM session WHERE touched_at <= ? AND held_why IS NULL LIMIT ?)"""
PURGE_BUCKETS = "DELETE FROM bucket WHERE key IN (SELECT key FROM bucket WHERE at <= ? LIMIT ?)"
# Circuits of one version that have counted nothing for CIRCUIT_KEPT, and park nobody. Few; job_blocked.
PURGE_CIRCUITS = """DELETE FROM circuit WHERE name <> breaker AND since <= ? AND opened_by IS NULL AND NOT EXISTS
 (SELECT 1 FROM job WHERE state = 3 AND blocked_by = 'breaker:' || circuit.name)"""
# Ticks of longer ago than TICKS_KEPT. Primary key.
PURGE_TICKS = """DELETE FROM tick WHERE (at, schedule, generation) IN
 (SELECT at, schedule, generation FROM tick WHERE at <= ? LIMIT ?)"""
# What has arrived and need not be known any more, and what was refused too long ago. receipt_expires, refused_expires.
PURGE_RECEIPTS = """DELETE FROM receipt WHERE (trigger, event) IN
 (SELECT trigger, event FROM receipt WHERE expires_at <= ? LIMIT ?)"""
# Of triggers that no code has had for TRIGGER_KEPT: first what has arrived, then they themselves. Triggers are few.
_GONE = "SELECT name FROM trigger WHERE removed_at <= ?1"
PURGE_ARRIVED = f"""DELETE FROM receipt WHERE (trigger, event) IN
 (SELECT trigger, event FROM receipt WHERE trigger IN ({_GONE}) LIMIT ?2)"""
PURGE_TRIGGERS = f"""DELETE FROM trigger WHERE name IN ({_GONE})
 AND NOT EXISTS (SELECT 1 FROM receipt WHERE receipt.trigger = trigger.name)"""
PURGE_REFUSED = "DELETE FROM refused WHERE id IN (SELECT id FROM refused WHERE expires_at <= ? LIMIT ?)"

# What must never be: an id in both tables, a running job without a holder, a waiting one with a holder.
RULES = {
    "{n} jobs are both waiting and settled": "SELECT count(*) FROM job JOIN settled USING (id)",
    "{n} running jobs have no holder": "SELECT count(*) FROM job WHERE state = 2 AND holder IS NULL",
    "{n} waiting jobs have a holder": "SELECT count(*) FROM job WHERE state <> 2 AND holder IS NOT NULL",
    "{n} batches have counted other jobs than their own": """SELECT count(*) FROM batch
     WHERE min(completed, failed, cancelled) < 0 OR completed + failed + cancelled > added""",
    "{n} sessions have two jobs running": """SELECT count(*) FROM (SELECT 1 FROM job
 WHERE state = 2 AND session IS NOT NULL GROUP BY queue, session HAVING count(*) > 1)""",
}


class SqliteUpkeep:
    """See upkeep_contract.Upkeep."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._clock = database.clock

    def purge(self, *, term: int, limit: int) -> int:
        now = self._clock.microseconds()
        with self._database.write() as connection:
            if not connection.execute(TERM, (term,)).fetchall():
                return 0
            before = connection.total_changes()
            forget(connection, connection.execute(PURGE_SETTLED, (now, limit)).fetchall())
            for sql in (PURGE_KEYS, PURGE_RECEIPTS, PURGE_REFUSED, PURGE_EVENTS):
                connection.execute(sql, (now, limit))
            identities = (now, limit, now + IDENTITY_KEPT // MICROSECOND)
            connection.execute(PURGE_IDENTITIES, identities)
            connection.execute(KEEP_IDENTITIES, identities)
            connection.execute(PURGE_MEMBERS, (now - MEMBER_KEPT,))
            connection.execute(PURGE_PROGRAMS, (now - MEMBER_KEPT,))
            connection.execute(PURGE_AUDIT, (now - AUDIT_KEPT // MICROSECOND, limit))
            connection.execute(PURGE_STARTS, (now - STARTS_KEPT // MICROSECOND, limit))
            for sql in (PURGE_SESSIONS, PURGE_BUCKETS):
                connection.execute(sql, (now - SESSION_KEPT // MICROSECOND, limit))
            connection.execute(PURGE_CIRCUITS, (now - CIRCUIT_KEPT // MICROSECOND,))
            gone = now - TRIGGER_KEPT // MICROSECOND
            connection.execute(PURGE_ARRIVED, (gone, limit))
            connection.execute(PURGE_TRIGGERS, (gone,))
            connection.execute(PURGE_TICKS, (now - TICKS_KEPT // MICROSECOND, limit))
            figures.purge(connection, now, limit)
            deleted = connection.total_changes() - before + answers.purge(connection, now, limit)
            return deleted + batches.purge(connection, now, limit) + tokens.purge(connection, now, limit)

    def erase(self, ids: Sequence[JobId]) -> int:
        with self._database.write() as connection:
            erased = [row for id in ids for row in connection.execute(ERASE, (id.bytes,)).fetchall()]
            forget(connection, erased)
            return len(erased)

    def check(self) -> list[str]:
        with self._database.read() as connection:
            found = [
                f"damaged: {line}" for (line,) in connection.execute("PRAGMA integrity_check") if line != "ok"
            ]
            for sentence, sql in RULES.items():
                count = connection.execute(sql).fetchall()[0][0]
                found += [sentence.format(n=count)] if count else []
        return found

    def roles(self, prefix: str) -> str:
        raise self._no_roles()

    def apply_roles(self, prefix: str) -> list[str]:
        raise self._no_roles()

    def _no_roles(self) -> RolesUnsupported:
        return RolesUnsupported(
            f"SQLite has no roles: whoever may open {self._database.path} may read and write all of it. Lateshift makes the file for its "
            "owner alone (mode 0600): run every part as that user, keep the folder at 0700, and use PostgreSQL for others."
        )

    def backup(self, target: Path) -> None:
        if target.exists():
            raise OptionInvalid(f"{target} exists. Name a file that does not: a backup never overwrites.")
        if not target.parent.is_dir():
            raise OptionInvalid(f"There is no folder {target.parent} to hold {target.name}. Create it first.")
        with self._database.read() as connection:
            private.create(target)
            try:
                self._database.driver.backup(connection, target)
            except BaseException:
                target.unlink(missing_ok=True)
                raise


def forget(connection: Connection, ids: Sequence[tuple[Any, ...]]) -> None:
    """Logs, tags and parents go with their jobs, and what is kept of workflows with the jobs that they are."""
    if not ids:
        return
    logs.forget(connection, ids)
    marks.forget(connection, ids)
    if connection.execute(ANY_RUN).fetchall():
        runs.forget(connection, ids)
