"""What roles may do only through their owner: each function does one thing, by the owner's right, and looks itself whether it is to be done.
What everybody enqueues by is in claims.py, what a
submitter's jobs may be in judging.py."""

from lateshift.store.postgres import enqueue
from lateshift.store.postgres.audit import purging
from lateshift.store.postgres.judging import JUDGES, JUDGING
from lateshift.store.taking import AUDIT_KEPT, STARTS_KEPT, TOKEN_KEPT

_MADE = "LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp"

# What a submitter may not do by itself: see enqueue.UNDO_REPEAT.
UNDO_REPEAT = f"""CREATE OR REPLACE FUNCTION lateshift.undo_repeat(ids uuid[]) RETURNS void {_MADE}
 AS $${enqueue.undone("ids")}$$"""

# What a supervisor with a worker's rights purges: the time is the function's own, so that whoever runs the worker's code cannot take anything
# younger. See upkeep.
_PURGING = purging(
    "clock_timestamp()", f"interval '{AUDIT_KEPT.days} days'", f"interval '{STARTS_KEPT.days} days'", "most"
)
PURGE_AUDIT = f"""CREATE OR REPLACE FUNCTION lateshift.purge_audit(most integer) RETURNS bigint {_MADE}
 AS $$WITH gone AS ({_PURGING} RETURNING 1)
 SELECT count(*) FROM gone$$"""
PURGE_TOKENS = f"""CREATE OR REPLACE FUNCTION lateshift.purge_tokens(most integer) RETURNS bigint {_MADE}
 AS $$WITH gone AS (DELETE FROM lateshift.token WHERE id = ANY(ARRAY(SELECT id FROM lateshift.token
  WHERE revoked_at <= (SELECT clock_timestamp() - interval '{TOKEN_KEPT.days} days')
  ORDER BY revoked_at LIMIT most FOR UPDATE SKIP LOCKED) || ARRAY(SELECT id FROM lateshift.token
  WHERE expires_at <= (SELECT clock_timestamp() - interval '{TOKEN_KEPT.days} days')
  ORDER BY expires_at LIMIT most FOR UPDATE SKIP LOCKED)) RETURNING 1)
 SELECT count(*) FROM gone$$"""
PURGE_ANSWERS = f"""CREATE OR REPLACE FUNCTION lateshift.purge_answers(most integer) RETURNS bigint {_MADE}
 AS $$WITH gone AS (DELETE FROM lateshift.answer WHERE id = ANY(ARRAY(SELECT id FROM lateshift.answer
  WHERE expires_at <= (SELECT clock_timestamp()) LIMIT most)) AND expires_at <= clock_timestamp() RETURNING 1)
 SELECT count(*) FROM gone$$"""

MAKING = (UNDO_REPEAT, PURGE_AUDIT, PURGE_TOKENS, PURGE_ANSWERS, *JUDGING)
# Which are whose, but for the owner's.
CALLED_BY = {
    "undo_repeat(uuid[])": ("submitter",),
    "purge_audit(integer)": ("worker",),
    "purge_tokens(integer)": ("worker",),
    "purge_answers(integer)": ("worker",),
} | dict.fromkeys(JUDGES, ())
