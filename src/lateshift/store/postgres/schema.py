"""The tables, as numbered steps that only go forward. All names are qualified: the search path is never trusted.
A step that has been released is never edited; a new one is added below it."""

from lateshift.store.postgres.schema_serving import SERVING

STEPS: tuple[tuple[str, ...], ...] = (
    (
        # Jobs that have not ended. Small whatever the history, because settled jobs leave it; vacuumed eagerly for their dead rows.
        """CREATE TABLE lateshift.job (
            id uuid PRIMARY KEY, fence bigint NOT NULL DEFAULT 0, due_at timestamptz NOT NULL,
            created_at timestamptz NOT NULL, leased_at timestamptz, complete_by timestamptz, time_limit interval,
            holder uuid, attempt integer NOT NULL DEFAULT 0, attempts integer NOT NULL, lane smallint NOT NULL,
            state smallint NOT NULL, priority smallint NOT NULL, losses smallint NOT NULL DEFAULT 0,
            queue text NOT NULL, task text NOT NULL, payload bytea NOT NULL, exclusive text, cancel_by text,
            progress bytea, checkpoint bytea, history bytea
        ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
            autovacuum_analyze_scale_factor = 0.1, autovacuum_vacuum_insert_threshold = -1,
            autovacuum_vacuum_cost_delay = 0)""",
        """CREATE INDEX job_ready ON lateshift.job (queue, lane, priority DESC, due_at, id) WHERE state = 1""",
        "CREATE INDEX job_scheduled ON lateshift.job (due_at) WHERE state = 0",
        "CREATE INDEX job_running ON lateshift.job (holder, complete_by) WHERE state = 2",
        "CREATE INDEX job_stopping ON lateshift.job (holder) WHERE state = 2 AND cancel_by IS NOT NULL",
        "CREATE INDEX job_exclusive ON lateshift.job (exclusive, state) WHERE exclusive IS NOT NULL",
        # Jobs that have ended, until their retention passes. An id stands in one of the two tables, never in both.
        """CREATE TABLE lateshift.settled (
            id uuid PRIMARY KEY, fence bigint NOT NULL, due_at timestamptz NOT NULL, created_at timestamptz NOT NULL,
            leased_at timestamptz, settled_at timestamptz NOT NULL, expires_at timestamptz NOT NULL,
            time_limit interval, holder uuid, attempt integer NOT NULL, attempts integer NOT NULL,
            lane smallint NOT NULL, state smallint NOT NULL, priority smallint NOT NULL, losses smallint NOT NULL,
            queue text NOT NULL, task text NOT NULL, payload bytea NOT NULL, exclusive text, reason text,
            result bytea, progress bytea, checkpoint bytea, history bytea
        )""",
        "CREATE INDEX settled_expires ON lateshift.settled (expires_at)",
        "CREATE INDEX settled_dead ON lateshift.settled (id) WHERE state = 6",
        # One job per task and key within the window.
        """CREATE TABLE lateshift.job_key (
            task text NOT NULL, text text NOT NULL, job_id uuid NOT NULL, digest bytea NOT NULL,
            expires_at timestamptz NOT NULL, PRIMARY KEY (task, text)
        )""",
        "CREATE INDEX job_key_expires ON lateshift.job_key (expires_at)",
        "CREATE TABLE lateshift.queue (name text PRIMARY KEY, paused_at timestamptz, paused_by text)",
        """CREATE TABLE lateshift.member (
            id uuid PRIMARY KEY, name text NOT NULL, kind text NOT NULL, host text NOT NULL, pid integer NOT NULL,
            started_at timestamptz NOT NULL, expires_at timestamptz NOT NULL, dead_at timestamptz,
            stats bytea NOT NULL
        ) WITH (fillfactor = 50)""",
        # Locks and terms of leadership. A row stays when it is free, so that its fence never goes down.
        """CREATE TABLE lateshift.lock (
            name text PRIMARY KEY, owner uuid, fence bigint NOT NULL, expires_at timestamptz NOT NULL
        ) WITH (fillfactor = 50)""",
        # What operators did: cancel, resubmit, pause, resume.
        """CREATE TABLE lateshift.audit (
            at timestamptz NOT NULL, action text NOT NULL, subject text NOT NULL, actor text NOT NULL
        )""",
        "CREATE INDEX audit_at ON lateshift.audit (at)",
    ),
    (
        # What guards a job: its session, its tenant, its limits; and the batch it belongs to. A blocked job names what
        # it waits for. Jobs without a guard have none of these.
        """ALTER TABLE lateshift.job ADD COLUMN session text COLLATE "C", ADD COLUMN turn bigint, ADD COLUMN sequence bigint,
            ADD COLUMN tenant text COLLATE "C", ADD COLUMN limit_key text COLLATE "C", ADD COLUMN gap_after interval, ADD COLUMN holds smallint,
            ADD COLUMN blocked_by text COLLATE "C", ADD COLUMN in_limits boolean,
            ADD COLUMN batch uuid""",
        """ALTER TABLE lateshift.settled ADD COLUMN session text COLLATE "C", ADD COLUMN turn bigint, ADD COLUMN sequence bigint,
            ADD COLUMN tenant text COLLATE "C", ADD COLUMN limit_key text COLLATE "C", ADD COLUMN gap_after interval,
            ADD COLUMN holds smallint, ADD COLUMN batch uuid""",
        *(f"UPDATE lateshift.{table} SET tenant = '' WHERE lane IN (3, 4)" for table in ("job", "settled")),
        # The place of each job in its session, given out in the order of enqueueing.
        "CREATE SEQUENCE lateshift.turn",
        # The line of a session. The first has the turn: who has begun is before all others.
        """CREATE INDEX job_line ON lateshift.job (queue, session, turn, id) WHERE session IS NOT NULL
            AND (state > 0 OR fence > 0 OR blocked_by IS NOT NULL)""",
        """CREATE UNIQUE INDEX job_sequence ON lateshift.job (queue, session, sequence)
            WHERE session IS NOT NULL AND sequence IS NOT NULL""",
        """CREATE INDEX job_tenant ON lateshift.job (queue, lane, tenant, priority DESC, due_at, id)
            WHERE state = 1 AND tenant IS NOT NULL""",
        """CREATE INDEX job_blocked ON lateshift.job (blocked_by, queue, lane, tenant, priority DESC, due_at, id)
            WHERE state = 3""",
        # What runs against a limit: of its queue, of its task, of its key. Each says what it is for, lest another is used.
        "CREATE INDEX job_limit_queue ON lateshift.job (queue) WHERE state = 2 AND in_limits IS NOT NULL AND queue <> ''",
        "CREATE INDEX job_limit_task ON lateshift.job (task) WHERE state = 2 AND in_limits IS NOT NULL AND task <> ''",
        "CREATE INDEX job_limit_key ON lateshift.job (limit_key) WHERE state = 2 AND limit_key IS NOT NULL",
        "CREATE INDEX job_batch ON lateshift.job (batch, id) WHERE batch IS NOT NULL",
        "CREATE INDEX settled_batch ON lateshift.settled (batch, id) WHERE batch IS NOT NULL",
        # What a session keeps between its jobs, and what holds it: a dead letter, or a number that is missing.
        """CREATE TABLE lateshift.session (
            queue text NOT NULL, name text NOT NULL, state bytea, next_sequence bigint, gap_until timestamptz,
            gap_for bigint,
            held_by uuid, held_why text, touched_at timestamptz NOT NULL, PRIMARY KEY (queue, name)
        )""",
        "CREATE INDEX session_gap ON lateshift.session (gap_until) WHERE gap_until IS NOT NULL",
        "CREATE INDEX session_held ON lateshift.session (held_by) WHERE held_by IS NOT NULL",
        "CREATE INDEX session_touched ON lateshift.session (touched_at)",
        # Limits, as the code declares them or an operator sets them: of a queue, of a task, of each key of a kind.
        """CREATE TABLE lateshift.rule (
            scope text NOT NULL, name text NOT NULL, concurrency integer, rate integer, per interval, burst integer,
            set_by text NOT NULL, set_at timestamptz NOT NULL, PRIMARY KEY (scope, name)
        )""",
        # How full the bucket of tokens of each limit was, and when.
        """CREATE TABLE lateshift.bucket (
            key text PRIMARY KEY, tokens double precision NOT NULL, at timestamptz NOT NULL,
            promised timestamptz NOT NULL
        ) WITH (fillfactor = 50)""",
        "CREATE INDEX bucket_at ON lateshift.bucket (at)",
        # What a worker is there for, and the code that it runs: one row of code for all workers that run it.
        "ALTER TABLE lateshift.member ADD COLUMN serves bytea, ADD COLUMN code text",
        """CREATE TABLE lateshift.program (
            code text PRIMARY KEY, told bytea NOT NULL, seen_at timestamptz NOT NULL
        )""",
        # The job that stands for its duplicates: in which of its states, and until when whatever its state. A row that has
        # expired is looked at: it goes unless its job may still count.
        """CREATE TABLE lateshift.job_identity (
            identity uuid PRIMARY KEY, job_id uuid NOT NULL, scope smallint NOT NULL, until timestamptz NOT NULL,
            expires_at timestamptz NOT NULL
        ) WITH (fillfactor = 90)""",
        "CREATE INDEX job_identity_expires ON lateshift.job_identity (expires_at)",
        # Whom a rate has promised this moment.
        """CREATE INDEX job_promised ON lateshift.job (queue, lane, due_at, id)
            WHERE state = 1 AND blocked_by IS NOT NULL""",
        # How many wait in a queue though they are due.
        "CREATE INDEX job_held_up ON lateshift.job (queue) WHERE state = 3",
        # Batches: how many jobs each will have and has, how they ended, and what is enqueued then. A transaction that
        # settles jobs, or makes them ready again, adds a line of counts and locks nothing; see postgres/batches.py.
        """CREATE TABLE lateshift.batch (
            id uuid PRIMARY KEY, name text, key text, digest bytea, total integer NOT NULL,
            added integer NOT NULL DEFAULT 0, completed integer NOT NULL DEFAULT 0, failed integer NOT NULL DEFAULT 0,
            cancelled integer NOT NULL DEFAULT 0, failures integer NOT NULL DEFAULT 0, created_at timestamptz NOT NULL,
            sealed_at timestamptz, finished_at timestamptz, expires_at timestamptz, cancelled_by text,
            then_call bytea, then_at timestamptz, failure_call bytea, failure_at timestamptz
        ) WITH (fillfactor = 50)""",
        "CREATE UNIQUE INDEX batch_key ON lateshift.batch (key) WHERE key IS NOT NULL",
        "CREATE INDEX batch_expires ON lateshift.batch (expires_at) WHERE expires_at IS NOT NULL",
        """CREATE TABLE lateshift.batch_count (
            batch uuid NOT NULL, completed integer NOT NULL, failed integer NOT NULL, cancelled integer NOT NULL,
            failures integer NOT NULL
        ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
            autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0)""",
        "CREATE INDEX batch_count_batch ON lateshift.batch_count (batch)",
        "CREATE INDEX job_batch_running ON lateshift.job (batch) WHERE state = 2 AND batch IS NOT NULL",
        "CREATE INDEX settled_batch_dead ON lateshift.settled (batch, id) WHERE state = 6 AND batch IS NOT NULL",
    ),
    (
        # Schedules: the plan and the job as they are kept, the last decided tick, the next one, and what became of the newest.
        # One that was removed though code declares it stays, so that a restart does not bring it back.
        """CREATE TABLE lateshift.schedule (
            name text COLLATE "C" PRIMARY KEY, app text, declared bytea, plan bytea NOT NULL, spec bytea NOT NULL,
            payload bytea NOT NULL, guards bytea, overlap smallint NOT NULL, generation bigint NOT NULL,
            cursor timestamptz NOT NULL, next_at timestamptz, recent bytea NOT NULL, zones text NOT NULL,
            paused_at timestamptz, paused_by text, removed_at timestamptz, created_at timestamptz NOT NULL,
            changed_at timestamptz NOT NULL, changed_by text NOT NULL
        ) WITH (fillfactor = 50)""",
        """CREATE INDEX schedule_due ON lateshift.schedule (next_at, name)
            WHERE next_at IS NOT NULL AND paused_at IS NULL AND removed_at IS NULL""",
        """CREATE INDEX schedule_cancels ON lateshift.schedule (next_at)
            WHERE overlap = 3 AND next_at IS NOT NULL AND paused_at IS NULL AND removed_at IS NULL""",
        # What became of each tick, or of several in a row: written once, with the job. In the order of time, so that many
        # schedules that fire together are written in one place.
        """CREATE TABLE lateshift.tick (
            at timestamptz NOT NULL, schedule text COLLATE "C" NOT NULL, generation bigint NOT NULL, until timestamptz NOT NULL,
            count integer NOT NULL, outcome smallint NOT NULL, job uuid, PRIMARY KEY (at, schedule, generation)
        )""",
    ),
    (
        # Triggers: how far each has read, what came of it, and what keeps it from reading. Of an event's subscription also what
        # the event becomes.
        """CREATE TABLE lateshift.trigger (
            name text COLLATE "C" PRIMARY KEY, app text NOT NULL, kind text NOT NULL, about text NOT NULL, task text NOT NULL,
            subscription bytea, position bytea, made bigint NOT NULL DEFAULT 0, repeated bigint NOT NULL DEFAULT 0,
            refused bigint NOT NULL DEFAULT 0, rate double precision NOT NULL DEFAULT 0, counted_since timestamptz NOT NULL,
            counted bigint NOT NULL DEFAULT 0, lag bigint, last_at timestamptz, looked_at timestamptz, error text, error_at timestamptz,
            paused_at timestamptz, paused_by text, removed_at timestamptz
        ) WITH (fillfactor = 50)""",
        # Each event that has arrived, and which version of it: a job was made of it, or it was refused, or passed over.
        """CREATE TABLE lateshift.receipt (
            trigger text COLLATE "C" NOT NULL, event text COLLATE "C" NOT NULL, mark text NOT NULL, expires_at timestamptz, PRIMARY KEY (trigger, event)
        )""",
        "CREATE INDEX receipt_expires ON lateshift.receipt (expires_at) WHERE expires_at IS NOT NULL",
        # Events that no job can be made of, as they came.
        """CREATE TABLE lateshift.refused (
            id uuid PRIMARY KEY, trigger text COLLATE "C" NOT NULL, event text COLLATE "C" NOT NULL, mark text NOT NULL, at timestamptz NOT NULL,
            raw bytea NOT NULL, rest bytea NOT NULL, reason text NOT NULL, expires_at timestamptz NOT NULL
        )""",
        "CREATE INDEX refused_trigger ON lateshift.refused (trigger, id)",
        # What a tick cancels is found where it fires.
        "DROP INDEX lateshift.schedule_cancels",
        "CREATE INDEX refused_expires ON lateshift.refused (expires_at)",
    ),
    (
        # Runs of workflows: what is kept beside the job that each is. `news` counts what came from outside, so that none of it is
        # slept over.
        """CREATE TABLE lateshift.run (
            id uuid PRIMARY KEY, name text COLLATE "C" NOT NULL, version text NOT NULL, phase smallint NOT NULL DEFAULT 0, why text,
            news bigint NOT NULL DEFAULT 0, status text, cancel_by text, waits_for text, started_at timestamptz NOT NULL
        ) WITH (fillfactor = 70)""",
        "CREATE INDEX run_name ON lateshift.run (name, id)",
        "CREATE INDEX run_phase ON lateshift.run (phase, id) WHERE phase > 0",
        # The steps of each run, in their order. What has completed is written once.
        """CREATE TABLE lateshift.step (
            run uuid NOT NULL, path text COLLATE "C" NOT NULL, kind smallint NOT NULL, name text NOT NULL, state smallint NOT NULL,
            payload bytea, result bytea, error bytea, place bigint, failures integer NOT NULL, job uuid, due_at timestamptz,
            complete_by timestamptz, started_at timestamptz NOT NULL, ended_at timestamptz, undo text, undo_state smallint NOT NULL,
            undo_failures integer NOT NULL, undo_error bytea, undo_job uuid, undone_at timestamptz,
            mended boolean NOT NULL DEFAULT false, PRIMARY KEY (run, path)
        ) WITH (fillfactor = 70)""",
        # Steps that are jobs, while nobody has written their end.
        "CREATE INDEX step_job ON lateshift.step (run) WHERE job IS NOT NULL AND state = 1",
        "CREATE INDEX step_undo_job ON lateshift.step (run) WHERE undo_job IS NOT NULL AND undo_state = 1",
        # Which of them are late.
        "CREATE INDEX step_late ON lateshift.step (complete_by) WHERE job IS NOT NULL AND state = 1",
        # What runs were told, in its order. `taken`: by which step.
        """CREATE TABLE lateshift.signal (
            run uuid NOT NULL, number integer NOT NULL, name text NOT NULL, data bytea, key text COLLATE "C", at timestamptz NOT NULL,
            taken text, PRIMARY KEY (run, number)
        )""",
        "CREATE UNIQUE INDEX signal_key ON lateshift.signal (run, key) WHERE key IS NOT NULL",
    ),
    (
        # Circuit breakers as the code declares them; what stands before each task, a breaker or the room in a queue (`most`); and
        # where each breaker stands.
        """CREATE TABLE lateshift.breaker (
            name text COLLATE "C" PRIMARY KEY, failures integer NOT NULL, share float8 NOT NULL, within interval NOT NULL,
            open_for interval NOT NULL, by_version boolean NOT NULL, set_by text NOT NULL, set_at timestamptz NOT NULL
        )""",
        """CREATE TABLE lateshift.gate (
            task text COLLATE "C" NOT NULL, room boolean NOT NULL, name text COLLATE "C" NOT NULL, queue text COLLATE "C" NOT NULL,
            most integer, set_by text NOT NULL, PRIMARY KEY (task, room, name, queue)
        )""",
        """CREATE TABLE lateshift.circuit (
            name text COLLATE "C" PRIMARY KEY, breaker text COLLATE "C" NOT NULL, since timestamptz NOT NULL, failed bigint NOT NULL,
            passed bigint NOT NULL, in_a_row bigint NOT NULL, opened_at timestamptz, opened_by text, reason text,
            probe_at timestamptz NOT NULL, probe uuid, probe_fence bigint, told boolean NOT NULL DEFAULT false
        ) WITH (fillfactor = 50)""",
    ),
    *SERVING,
)

VERSION = len(STEPS)
