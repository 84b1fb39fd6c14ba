"""What a submitter's jobs may be, judged by the database: what no call of Lateshift would have written is refused. The courier, which makes jobs of
the routes in such a row by a worker's right, judges them again by the same rules: see model/reply.py."""

from lateshift.model.job import (
    OWN,
    PAYLOAD_LIMIT,
    PRIORITIES,
    STRETCHES,
    TASK_NAME_LIMIT,
    TRACE_LIMIT,
    Holds,
    Lane,
    Spec,
    State,
)
from lateshift.model.placing import NAME_LIMIT, SEQUENCES
from lateshift.model.queue import QUEUE_NAME
from lateshift.model.reply import (
    ALL_KINDS,
    CHANNEL,
    CHANNEL_NAME,
    CORRELATION_LIMIT,
    DELIVERIES,
    DELIVERING,
    QUEUE_CHANNELS,
    REPLY_LIMIT,
    ROUTES_MOST,
    URL_LIMIT,
)
from lateshift.model.retry import LONGEST_DELAY
from lateshift.model.triggering.naming import ALERTS

STORED_PAYLOAD = 2 * PAYLOAD_LIMIT  # bytes: one that is sealed is longer by a third


def _lanes(*lanes: Lane) -> str:
    return ", ".join(f"{lane:d}" for lane in lanes)


_GUARDED = _lanes(*(lane for lane in Lane if lane.room is not lane))
_PLAIN = _lanes(*(lane for lane in Lane if not lane.careful))
_DELIVERS = " OR ".join(f"starts_with(spec->>0, '{begin}')" for begin in DELIVERING)
# A hyphen stands last in each, where it needs no backslash, which a session may read otherwise.
_QUEUE = QUEUE_NAME.pattern.replace("\\-", "-")
_CHANNEL = CHANNEL_NAME.pattern.replace("\\-", "-")


def _is_duration(what: str, least: str) -> str:
    """Without months, whose length is another each time, and without parts that only together are not too long for a date."""
    days = LONGEST_DELAY.days
    return f"""({what} >= interval '{least}' AND {what} <= interval '{days} days' AND date_part('year', {what}) = 0
    AND date_part('month', {what}) = 0 AND date_part('day', {what}) BETWEEN 0 AND {days})"""


# Of a job, or of one that events become: which task, in which queue, and how. `delivers`: it is told to by Lateshift's own tasks, which send on.
_JOB_FAULT = f"""CREATE OR REPLACE FUNCTION lateshift.job_fault(task text, queue text, lane bigint, priority bigint, attempts bigint,
  time_limit interval, exclusive text, batch text, delivers boolean) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
  RETURN CASE
   WHEN NOT delivers AND starts_with(task, '{OWN}')
    OR EXISTS (SELECT FROM lateshift.trigger t WHERE t.task = job_fault.task AND starts_with(t.about, '{ALERTS}') AND t.removed_at IS NULL)
    THEN 'the task ' || left(task, {TASK_NAME_LIMIT}) || ' is started by nobody'
   WHEN (char_length(task) BETWEEN 1 AND {TASK_NAME_LIMIT} AND task !~ '[[:cntrl:]]') IS NOT TRUE THEN 'there is no such name of a task'
   WHEN NOT delivers AND starts_with(queue, '{DELIVERIES}') THEN 'the queue ' || left(queue, 100) || ' is of deliveries'
   WHEN (queue ~ '^({_QUEUE})$') IS NOT TRUE THEN 'there is no such name of a queue'
   WHEN batch IS NOT NULL THEN 'it is in a batch'
   WHEN (lane IN ({_PLAIN}, {_GUARDED})) IS NOT TRUE THEN 'there is no such lane for a new job'
   WHEN (priority BETWEEN {PRIORITIES[0]} AND {PRIORITIES[-1]}) IS NOT TRUE THEN 'it has no such priority'
   WHEN (attempts BETWEEN 1 AND {STRETCHES}) IS NOT TRUE THEN 'it has no such attempts'
   WHEN NOT {_is_duration("time_limit", "1 microsecond")} THEN 'it has no such time limit'
   WHEN exclusive <> 'task:' || task OR exclusive IS NOT NULL AND lane IN ({_PLAIN}) THEN 'it is exclusive with others'
  END;
 END $$"""

# Of the place among others: a job of a plain lane has none.
_PLACE_FAULT = f"""CREATE OR REPLACE FUNCTION lateshift.place_fault(lane smallint, session text, sequence bigint, gap_after interval,
  holds smallint, tenant text, limit_key text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
  RETURN CASE
   WHEN lane IN ({_PLAIN}) THEN CASE WHEN num_nonnulls(session, sequence, gap_after, holds, tenant, limit_key) > 0
    THEN 'its lane is of jobs without a guard' END
   WHEN tenant IS NULL OR holds IS NULL THEN 'its lane is of jobs with a guard'
   WHEN char_length(tenant) > {NAME_LIMIT} THEN 'there is no such tenant'
   WHEN char_length(session) NOT BETWEEN 1 AND {NAME_LIMIT} THEN 'there is no such session'
   WHEN char_length(limit_key) NOT BETWEEN 1 AND {NAME_LIMIT} THEN 'there is no such limit'
   WHEN holds NOT BETWEEN 0 AND {Holds.ON_DEAD | Holds.ON_GAP:d} OR holds > 0 AND session IS NULL
    OR holds & {Holds.ON_GAP:d} > 0 AND sequence IS NULL THEN 'it holds no such thing'
   WHEN sequence NOT BETWEEN {SEQUENCES[0]} AND {SEQUENCES[-1]} OR sequence IS NOT NULL AND session IS NULL THEN 'it has no such number'
   WHEN NOT {_is_duration("gap_after", "1 microsecond")} OR gap_after IS NOT NULL AND sequence IS NULL THEN 'it waits for no number so'
  END;
 END $$"""

# Of where its events go. What each becomes is judged as a job that is added; a webhook's and a broker's deliveries alone are Lateshift's own tasks.
# Whatever cannot be read, by its depth or otherwise, is refused as well.
_REPLY_FAULT = f"""CREATE OR REPLACE FUNCTION lateshift.reply_fault(reply text, of_queue text, of_task text) RETURNS text LANGUAGE plpgsql AS $$
 DECLARE
  route jsonb;
  target jsonb;
  spec jsonb;
  delivers boolean;
  fault text;
 BEGIN
  IF octet_length(reply) > {REPLY_LIMIT} OR jsonb_array_length(reply::jsonb) NOT BETWEEN 1 AND {ROUTES_MOST + 1} THEN
   RETURN 'its reply has too many routes, or none';
  END IF;
  FOR route IN SELECT value FROM jsonb_array_elements(reply::jsonb) LOOP
   target := route->'target';
   spec := nullif(target->'spec', 'null');
   delivers := ({_DELIVERS}) AND starts_with(spec->>1, '{DELIVERIES}');
   fault := CASE
    WHEN route - ARRAY['target', 'kinds', 'correlation_id'] <> '{{}}' OR target - ARRAY['to', 'spec', 'parameter', 'given'] <> '{{}}'
     OR spec IS NULL AND target - 'to' <> '{{}}' OR jsonb_array_length(spec) <> {len(Spec.__struct_fields__)} THEN 'there is more or less of it'
    WHEN ((route->>'kinds')::bigint BETWEEN 1 AND {ALL_KINDS}) IS NOT TRUE THEN 'there are no such events'
    WHEN char_length(route->>'correlation_id') NOT BETWEEN 1 AND {CORRELATION_LIMIT} THEN 'its correlation_id is too long'
    WHEN spec IS NULL THEN CASE
     WHEN target->>'to' = lateshift.queue_channel(of_queue, of_task) THEN NULL
     WHEN (target->>'to' ~ '^{CHANNEL}({_CHANNEL})$' AND NOT starts_with(target->>'to', '{CHANNEL}{QUEUE_CHANNELS}')) IS NOT TRUE
      THEN 'there is no such channel for it' END
    WHEN char_length(target->>'parameter') NOT BETWEEN 1 AND {TASK_NAME_LIMIT} OR delivers AND target->>'parameter' <> 'event'
     THEN 'there is no such parameter'
    WHEN coalesce(target->'given', '{{}}') - 'url' <> '{{}}' OR jsonb_typeof(target->'given'->'url') <> 'string'
     OR char_length(target->'given'->>'url') NOT BETWEEN 1 AND {URL_LIMIT} THEN 'it is given more than the event and where it goes'
    WHEN (spec->>2)::bigint NOT IN ({_GUARDED}) THEN 'its lane keeps no order'
    WHEN spec->>8 IS NOT NULL THEN 'it is exclusive with others'
    WHEN NOT {_is_duration("(spec->>6)::interval", "0")} OR (spec->>7)::timestamptz NOT BETWEEN '0001-01-02' AND '9999-12-30'
     THEN 'it has no such time'
    WHEN (spec->>10)::jsonb <> jsonb_build_array(jsonb_build_object('target', jsonb_build_object('to',
      lateshift.queue_channel(spec->>1, spec->>0)), 'kinds', {ALL_KINDS})) THEN 'what is told tells others'
    ELSE lateshift.job_fault(spec->>0, spec->>1, (spec->>2)::bigint, coalesce(spec->>3, '0')::bigint, coalesce(spec->>4, '1')::bigint,
     (spec->>5)::interval, spec->>8, spec->>9, delivers) END;
   EXIT WHEN fault IS NOT NULL;
  END LOOP;
  RETURN 'where it replies to, ' || fault;
 EXCEPTION WHEN OTHERS THEN
  RETURN 'its reply cannot be read';
 END $$"""
_QUEUE_CHANNEL = f"""CREATE OR REPLACE FUNCTION lateshift.queue_channel(queue text, task text) RETURNS text LANGUAGE sql IMMUTABLE
 AS $$SELECT '{CHANNEL}{QUEUE_CHANNELS}' || queue || '.' || regexp_replace(task, '[^A-Za-z0-9_.:-]', '_', 'g')$$"""

# A new job of a submitter. Its times are the database's, and its place in its session it is given. One whose id has been settled is sent again,
# and is left out as it would have been a moment later.
_JOB_SUBMITTED = f"""CREATE OR REPLACE FUNCTION lateshift.job_submitted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
 SET search_path = pg_catalog, pg_temp AS $$ DECLARE fault text := coalesce(
   lateshift.job_fault(NEW.task, NEW.queue, NEW.lane, NEW.priority, NEW.attempts, NEW.time_limit, NEW.exclusive, NEW.batch::text, false),
   lateshift.place_fault(NEW.lane, NEW.session, NEW.sequence, NEW.gap_after, NEW.holds, NEW.tenant, NEW.limit_key),
   CASE
    WHEN (NEW.state IN ({State.SCHEDULED:d}, {State.READY:d}) AND NEW.blocked_by IS NULL
     OR NEW.state = {State.BLOCKED:d} AND NEW.blocked_by = 'session:' || NEW.session) IS NOT TRUE THEN 'its state is not a new job''s'
    WHEN NEW.due_at NOT BETWEEN '0001-01-02' AND '9999-12-30' THEN 'it has no such time'
    WHEN octet_length(NEW.payload) > {STORED_PAYLOAD} THEN 'its arguments are too long'
    WHEN char_length(NEW.trace) > {TRACE_LIMIT} THEN 'its trace is too long'
    WHEN NEW.reply IS NOT NULL THEN CASE WHEN NEW.lane IN ({_PLAIN}) THEN 'its lane is of jobs without a guard'
     ELSE lateshift.reply_fault(NEW.reply, NEW.queue, NEW.task) END
   END);
 BEGIN
  IF fault IS NOT NULL THEN
   RAISE insufficient_privilege USING MESSAGE = 'who only submits may not enqueue this job: ' || fault;
  END IF;
  IF EXISTS (SELECT FROM lateshift.settled s WHERE s.id = NEW.id) THEN
   RETURN NULL;
  END IF;
  NEW.created_at := clock_timestamp();
  NEW.due_at := CASE NEW.state WHEN {State.SCHEDULED:d} THEN greatest(NEW.due_at, NEW.created_at) ELSE NEW.created_at END;
  NEW.turn := CASE WHEN NEW.session IS NOT NULL THEN coalesce(NEW.sequence, nextval('lateshift.turn')) END;
  RETURN NEW;
 END $$"""
# Others are asked once for each row whether they may delete, which costs them nothing to speak of.
_JUDGE = """CREATE OR REPLACE TRIGGER job_submitted BEFORE INSERT ON lateshift.job FOR EACH ROW
 WHEN (NOT has_table_privilege('lateshift.job'::regclass, 'DELETE')) EXECUTE FUNCTION lateshift.job_submitted()"""

JUDGING = (_QUEUE_CHANNEL, _JOB_FAULT, _PLACE_FAULT, _REPLY_FAULT, _JOB_SUBMITTED, _JUDGE)
# They are called by the trigger alone.
JUDGES = (
    "queue_channel(text, text)",
    "job_fault(text, text, bigint, bigint, bigint, interval, text, text, boolean)",
    "place_fault(smallint, text, bigint, interval, smallint, text, text)",
    "reply_fault(text, text, text)",
    "job_submitted()",
)
