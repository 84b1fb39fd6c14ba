"""The tables, as numbered steps that only go forward. All names are qualified: the search path is never trusted.

A step that has been released is never edited; a new one is added below it.
"""

STEPS: tuple[tuple[str, ...], ...] = (
    (
        # Jobs that have not ended. Small whatever the history, because settled jobs leave it; vacuumed eagerly,
        # because each job leaves dead rows behind.
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
)

VERSION = len(STEPS)
