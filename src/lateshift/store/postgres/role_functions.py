"""What roles may do only through their owner: each function does one thing, by the owner's right, and looks itself whether it is to be done.
What everybody enqueues by is in claims.py."""

from lateshift.model.job import PRIORITIES
from lateshift.store.postgres.audit import purging
from lateshift.store.taking import AUDIT_KEPT, STARTS_KEPT, TOKEN_KEPT

_MADE = "LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp"

# What a submitter may not do by itself: see enqueue.UNDO_REPEAT.
UNDO_REPEAT = f"""CREATE OR REPLACE FUNCTION lateshift.undo_repeat(ids uuid[]) RETURNS void {_MADE}
 AS $$DELETE FROM lateshift.job WHERE fence = 0
 AND id = ANY(ARRAY(SELECT id FROM lateshift.settled WHERE id = ANY(ids)))$$"""

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

# What a new job of a submitter may be: of no task that signs or that hears alerts, in no queue of deliveries, in no batch, and not before
# others by what only Lateshift writes. Its place in its session it is given here. `about` is the pattern that a task has subscribed to.
JOB_SUBMITTED = f"""CREATE OR REPLACE FUNCTION lateshift.job_submitted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
 SET search_path = pg_catalog, pg_temp AS $$ DECLARE fault text := CASE
  WHEN starts_with(NEW.task, 'lateshift.')
   OR EXISTS (SELECT FROM lateshift.trigger t WHERE t.task = NEW.task AND starts_with(t.about, 'alert.'))
   THEN 'the task ' || NEW.task || ' is started by nobody'
  WHEN starts_with(NEW.queue, 'replies.') THEN 'the queue ' || NEW.queue || ' is of deliveries'
  WHEN NEW.batch IS NOT NULL THEN 'it is in a batch'
  WHEN (NEW.state IN (0, 1) AND NEW.blocked_by IS NULL
   OR NEW.state = 3 AND NEW.blocked_by = 'session:' || NEW.session) IS NOT TRUE THEN 'its state is not a new job''s'
  WHEN NEW.priority NOT BETWEEN {PRIORITIES[0]} AND {PRIORITIES[-1]} THEN 'it has no such priority'
  WHEN NEW.due_at NOT BETWEEN '0001-01-02' AND '9999-12-30' OR NEW.created_at NOT BETWEEN '0001-01-02' AND '9999-12-30'
   THEN 'it has no such time'
  END;
 BEGIN
  IF fault IS NOT NULL THEN
   RAISE insufficient_privilege USING MESSAGE = 'who only submits may not enqueue this job: ' || fault;
  END IF;
  NEW.turn := CASE WHEN NEW.session IS NOT NULL THEN coalesce(NEW.sequence, nextval('lateshift.turn')) END;
  RETURN NEW;
 END $$"""
# Others are asked once for each row whether they may delete, which costs them nothing to speak of.
JUDGE_SUBMITTED = """CREATE OR REPLACE TRIGGER job_submitted BEFORE INSERT ON lateshift.job FOR EACH ROW
 WHEN (NOT has_table_privilege('lateshift.job'::regclass, 'DELETE')) EXECUTE FUNCTION lateshift.job_submitted()"""

MAKING = (UNDO_REPEAT, PURGE_AUDIT, PURGE_TOKENS, PURGE_ANSWERS, JOB_SUBMITTED, JUDGE_SUBMITTED)
# Which are whose, but for the owner's.
CALLED_BY = {
    "undo_repeat(uuid[])": ("submitter",),
    "purge_audit(integer)": ("worker",),
    "purge_tokens(integer)": ("worker",),
    "purge_answers(integer)": ("worker",),
    "job_submitted()": (),
}
