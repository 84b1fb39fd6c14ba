"""The tables, as numbered steps that only go forward. Times are whole microseconds since 1970, ids 16 bytes.

A step that has been released is never edited; a new one is added below it.
"""

_GUARDS = (
    "session TEXT", "turn INTEGER", "sequence INTEGER", "tenant TEXT", "limit_key TEXT", "gap_after INTEGER",
    "holds INTEGER", "batch BLOB",
)  # fmt: skip

STEPS: tuple[tuple[str, ...], ...] = (
    (
        # Jobs that have not ended. Small whatever the history, because settled jobs leave it.
        """CREATE TABLE job (
            id BLOB PRIMARY KEY, queue TEXT NOT NULL, lane INTEGER NOT NULL, state INTEGER NOT NULL,
            priority INTEGER NOT NULL, attempt INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL,
            losses INTEGER NOT NULL DEFAULT 0, fence INTEGER NOT NULL DEFAULT 0,
            due_at INTEGER NOT NULL, created_at INTEGER NOT NULL, time_limit INTEGER,
            holder BLOB, leased_at INTEGER, complete_by INTEGER, cancel_by TEXT, exclusive TEXT,
            task TEXT NOT NULL, payload BLOB NOT NULL, progress BLOB, checkpoint BLOB, history BLOB
        ) WITHOUT ROWID""",
        "CREATE INDEX job_ready ON job (queue, lane, priority DESC, due_at, id) WHERE state = 1",
        "CREATE INDEX job_scheduled ON job (due_at) WHERE state = 0",
        "CREATE INDEX job_running ON job (holder, complete_by) WHERE state = 2",
        "CREATE INDEX job_stopping ON job (holder) WHERE state = 2 AND cancel_by IS NOT NULL",
        "CREATE INDEX job_exclusive ON job (exclusive, state) WHERE exclusive IS NOT NULL",
        # Jobs that have ended, until their retention passes. An id stands in one of the two tables, never in both.
        """CREATE TABLE settled (
            id BLOB PRIMARY KEY, queue TEXT NOT NULL, lane INTEGER NOT NULL, state INTEGER NOT NULL,
            priority INTEGER NOT NULL, attempt INTEGER NOT NULL, attempts INTEGER NOT NULL,
            losses INTEGER NOT NULL, fence INTEGER NOT NULL,
            due_at INTEGER NOT NULL, created_at INTEGER NOT NULL, time_limit INTEGER,
            holder BLOB, leased_at INTEGER, settled_at INTEGER NOT NULL, expires_at INTEGER NOT NULL,
            exclusive TEXT, task TEXT NOT NULL, payload BLOB NOT NULL, progress BLOB, checkpoint BLOB,
            history BLOB, result BLOB, reason TEXT
        ) WITHOUT ROWID""",
        "CREATE INDEX settled_expires ON settled (expires_at)",
        "CREATE INDEX settled_dead ON settled (id) WHERE state = 6",
        # One job per task and key within the window.
        """CREATE TABLE job_key (
            task TEXT NOT NULL, text TEXT NOT NULL, job_id BLOB NOT NULL, digest BLOB NOT NULL,
            expires_at INTEGER NOT NULL, PRIMARY KEY (task, text)
        ) WITHOUT ROWID""",
        "CREATE INDEX job_key_expires ON job_key (expires_at)",
        """CREATE TABLE queue (name TEXT PRIMARY KEY, paused_at INTEGER, paused_by TEXT) WITHOUT ROWID""",
        """CREATE TABLE member (
            id BLOB PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL,
            started_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, dead_at INTEGER, stats BLOB NOT NULL
        ) WITHOUT ROWID""",
        # Locks and terms of leadership. A row stays when it is free, so that its fence never goes down.
        """CREATE TABLE lock (
            name TEXT PRIMARY KEY, owner BLOB, fence INTEGER NOT NULL, expires_at INTEGER NOT NULL
        ) WITHOUT ROWID""",
        # What operators did: cancel, resubmit, pause, resume.
        """CREATE TABLE audit (
            at INTEGER NOT NULL, action TEXT NOT NULL, subject TEXT NOT NULL, actor TEXT NOT NULL
        )""",
        "CREATE INDEX audit_at ON audit (at)",
    ),
    (
        # What guards a job: its session, its tenant, its limits; and the batch it belongs to. A blocked job names what
        # it waits for. Jobs without a guard have none of these.
        *(f"ALTER TABLE {table} ADD COLUMN {column}" for table in ("job", "settled") for column in _GUARDS),
        "ALTER TABLE job ADD COLUMN blocked_by TEXT",
        "ALTER TABLE job ADD COLUMN in_limits INTEGER",
        *(f"UPDATE {table} SET tenant = '' WHERE lane IN (3, 4)" for table in ("job", "settled")),
        # The place of each job in its session, given out in the order of enqueueing.
        "CREATE TABLE turn (one INTEGER PRIMARY KEY CHECK (one = 1), last INTEGER NOT NULL)",
        "INSERT INTO turn VALUES (1, 0)",
        # The line of a session. The first has the turn: who has begun is before all others.
        """CREATE INDEX job_line ON job (queue, session, turn, id) WHERE session IS NOT NULL
            AND (state > 0 OR fence > 0 OR blocked_by IS NOT NULL)""",
        """CREATE UNIQUE INDEX job_sequence ON job (queue, session, sequence)
            WHERE session IS NOT NULL AND sequence IS NOT NULL""",
        """CREATE INDEX job_tenant ON job (queue, lane, tenant, priority DESC, due_at, id)
            WHERE state = 1 AND tenant IS NOT NULL""",
        """CREATE INDEX job_blocked ON job (blocked_by, queue, lane, tenant, priority DESC, due_at, id)
            WHERE state = 3""",
        # What runs against a limit: of its queue, of its task, of its key.
        "CREATE INDEX job_limit_queue ON job (queue) WHERE state = 2 AND in_limits IS NOT NULL",
        "CREATE INDEX job_limit_task ON job (task) WHERE state = 2 AND in_limits IS NOT NULL",
        "CREATE INDEX job_limit_key ON job (limit_key) WHERE state = 2 AND limit_key IS NOT NULL",
        "CREATE INDEX job_batch ON job (batch, id) WHERE batch IS NOT NULL",
        "CREATE INDEX settled_batch ON settled (batch, id) WHERE batch IS NOT NULL",
        # What a session keeps between its jobs, and what holds it: a dead letter, or a number that is missing.
        """CREATE TABLE session (
            queue TEXT NOT NULL, name TEXT NOT NULL, state BLOB, next_sequence INTEGER, gap_until INTEGER, gap_for INTEGER,
            held_by BLOB, held_why TEXT, touched_at INTEGER NOT NULL, PRIMARY KEY (queue, name)
        ) WITHOUT ROWID""",
        "CREATE INDEX session_gap ON session (gap_until) WHERE gap_until IS NOT NULL",
        "CREATE INDEX session_held ON session (held_by) WHERE held_by IS NOT NULL",
        "CREATE INDEX session_touched ON session (touched_at)",
        # Limits, as the code declares them or an operator sets them: of a queue, of a task, of each key of a kind.
        """CREATE TABLE rule (
            scope TEXT NOT NULL, name TEXT NOT NULL, concurrency INTEGER, rate INTEGER, per INTEGER, burst INTEGER,
            set_by TEXT NOT NULL, set_at INTEGER NOT NULL, PRIMARY KEY (scope, name)
        ) WITHOUT ROWID""",
        # How full the bucket of tokens of each limit was, and when.
        """CREATE TABLE bucket (
            key TEXT PRIMARY KEY, tokens REAL NOT NULL, at INTEGER NOT NULL, promised INTEGER NOT NULL
        ) WITHOUT ROWID""",
        "CREATE INDEX bucket_at ON bucket (at)",
        # What a worker is there for, and the code that it runs: one row of code for all workers that run it.
        "ALTER TABLE member ADD COLUMN serves BLOB",
        "ALTER TABLE member ADD COLUMN code TEXT",
        """CREATE TABLE program (
            code TEXT PRIMARY KEY, told BLOB NOT NULL, seen_at INTEGER NOT NULL
        ) WITHOUT ROWID""",
        # The job that stands for its duplicates: in which of its states, and until when whatever its state. A row that has
        # expired is looked at: it goes unless its job may still count.
        """CREATE TABLE job_identity (
            identity BLOB PRIMARY KEY, job_id BLOB NOT NULL, scope INTEGER NOT NULL, until INTEGER NOT NULL,
            expires_at INTEGER NOT NULL
        ) WITHOUT ROWID""",
        "CREATE INDEX job_identity_expires ON job_identity (expires_at)",
        # Whom a rate has promised this moment.
        """CREATE INDEX job_promised ON job (queue, lane, due_at, id)
            WHERE state = 1 AND blocked_by IS NOT NULL""",
        # How many wait in a queue though they are due.
        "CREATE INDEX job_held_up ON job (queue) WHERE state = 3",
        # Batches: how many jobs each will have and has, how they ended, and what is enqueued then. The counts are written
        # in the transaction that settles a job, or makes it ready again.
        """CREATE TABLE batch (
            id BLOB PRIMARY KEY, name TEXT, key TEXT, digest BLOB, total INTEGER NOT NULL,
            added INTEGER NOT NULL DEFAULT 0, completed INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0,
            cancelled INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL,
            sealed_at INTEGER, finished_at INTEGER, expires_at INTEGER, cancelled_by TEXT,
            then_call BLOB, then_at INTEGER, failure_call BLOB, failure_at INTEGER
        ) WITHOUT ROWID""",
        "CREATE UNIQUE INDEX batch_key ON batch (key) WHERE key IS NOT NULL",
        "CREATE INDEX batch_expires ON batch (expires_at) WHERE expires_at IS NOT NULL",
        "CREATE INDEX job_batch_running ON job (batch) WHERE state = 2 AND batch IS NOT NULL",
        "CREATE INDEX settled_batch_dead ON settled (batch, id) WHERE state = 6 AND batch IS NOT NULL",
    ),
    (
        # Schedules: the plan and the job as they are kept, the last decided tick, the next one, and what became of the newest.
        # One that was removed though code declares it stays, so that a restart does not bring it back.
        """CREATE TABLE schedule (
            name TEXT PRIMARY KEY, app TEXT, declared BLOB, plan BLOB NOT NULL, spec BLOB NOT NULL,
            payload BLOB NOT NULL, guards BLOB, overlap INTEGER NOT NULL, generation INTEGER NOT NULL,
            cursor INTEGER NOT NULL, next_at INTEGER, recent BLOB NOT NULL, zones TEXT NOT NULL,
            paused_at INTEGER, paused_by TEXT, removed_at INTEGER, created_at INTEGER NOT NULL,
            changed_at INTEGER NOT NULL, changed_by TEXT NOT NULL
        ) WITHOUT ROWID""",
        """CREATE INDEX schedule_due ON schedule (next_at, name)
            WHERE next_at IS NOT NULL AND paused_at IS NULL AND removed_at IS NULL""",
        """CREATE INDEX schedule_cancels ON schedule (next_at)
            WHERE overlap = 3 AND next_at IS NOT NULL AND paused_at IS NULL AND removed_at IS NULL""",
        # What became of each tick, or of several in a row: written once, with the job. In the order of time, so that many
        # schedules that fire together are written in one place.
        """CREATE TABLE tick (
            at INTEGER NOT NULL, schedule TEXT NOT NULL, generation INTEGER NOT NULL, until INTEGER NOT NULL,
            count INTEGER NOT NULL, outcome INTEGER NOT NULL, job BLOB, PRIMARY KEY (at, schedule, generation)
        ) WITHOUT ROWID""",
    ),
    (
        # Triggers: how far each has read, what came of it, and what keeps it from reading. Of an event's subscription also what
        # the event becomes.
        """CREATE TABLE trigger (
            name TEXT PRIMARY KEY, app TEXT NOT NULL, kind TEXT NOT NULL, about TEXT NOT NULL, task TEXT NOT NULL,
            subscription BLOB, position BLOB, made INTEGER NOT NULL DEFAULT 0, repeated INTEGER NOT NULL DEFAULT 0,
            refused INTEGER NOT NULL DEFAULT 0, rate REAL NOT NULL DEFAULT 0, counted_since INTEGER NOT NULL,
            counted INTEGER NOT NULL DEFAULT 0, lag INTEGER, last_at INTEGER, looked_at INTEGER, error TEXT, error_at INTEGER,
            paused_at INTEGER, paused_by TEXT, removed_at INTEGER
        ) WITHOUT ROWID""",
        # Each event that has arrived, and which version of it: a job was made of it, or it was refused, or passed over.
        """CREATE TABLE receipt (
            trigger TEXT NOT NULL, event TEXT NOT NULL, mark TEXT NOT NULL, expires_at INTEGER, PRIMARY KEY (trigger, event)
        ) WITHOUT ROWID""",
        "CREATE INDEX receipt_expires ON receipt (expires_at) WHERE expires_at IS NOT NULL",
        # Events that no job can be made of, as they came.
        """CREATE TABLE refused (
            id BLOB PRIMARY KEY, trigger TEXT NOT NULL, event TEXT NOT NULL, mark TEXT NOT NULL, at INTEGER NOT NULL,
            raw BLOB NOT NULL, rest BLOB NOT NULL, reason TEXT NOT NULL, expires_at INTEGER NOT NULL
        ) WITHOUT ROWID""",
        "CREATE INDEX refused_trigger ON refused (trigger, id)",
        # What a tick cancels is found where it fires.
        "DROP INDEX schedule_cancels",
        "CREATE INDEX refused_expires ON refused (expires_at)",
    ),
    (
        # Runs of workflows: what is kept beside the job that each is. `news` counts what came from outside, so that none of it is
        # slept over.
        """CREATE TABLE run (
            id BLOB PRIMARY KEY, name TEXT NOT NULL, version TEXT NOT NULL, phase INTEGER NOT NULL DEFAULT 0, why TEXT,
            news INTEGER NOT NULL DEFAULT 0, status TEXT, cancel_by TEXT, waits_for TEXT, started_at INTEGER NOT NULL
        ) WITHOUT ROWID""",
        "CREATE INDEX run_name ON run (name, id)",
        "CREATE INDEX run_phase ON run (phase, id) WHERE phase > 0",
        # The steps of each run, in their order. What has completed is written once.
        """CREATE TABLE step (
            run BLOB NOT NULL, path TEXT NOT NULL, kind INTEGER NOT NULL, name TEXT NOT NULL, state INTEGER NOT NULL,
            payload BLOB, result BLOB, error BLOB, place INTEGER, failures INTEGER NOT NULL, job BLOB, due_at INTEGER,
            complete_by INTEGER, started_at INTEGER NOT NULL, ended_at INTEGER, undo TEXT, undo_state INTEGER NOT NULL,
            undo_failures INTEGER NOT NULL, undo_error BLOB, undo_job BLOB, undone_at INTEGER,
            mended INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (run, path)
        ) WITHOUT ROWID""",
        # Steps that are jobs, while nobody has written their end.
        "CREATE INDEX step_job ON step (run) WHERE job IS NOT NULL AND state = 1",
        "CREATE INDEX step_undo_job ON step (run) WHERE undo_job IS NOT NULL AND undo_state = 1",
        # Which of them are late.
        "CREATE INDEX step_late ON step (complete_by) WHERE job IS NOT NULL AND state = 1",
        # What runs were told, in its order. `taken`: by which step.
        """CREATE TABLE signal (
            run BLOB NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, data BLOB, key TEXT, at INTEGER NOT NULL,
            taken TEXT, PRIMARY KEY (run, number)
        ) WITHOUT ROWID""",
        "CREATE UNIQUE INDEX signal_key ON signal (run, key) WHERE key IS NOT NULL",
    ),
    (
        # Circuit breakers as the code declares them; what stands before each task, a breaker or the room in a queue (`most`); and
        # where each breaker stands.
        """CREATE TABLE breaker (
            name TEXT PRIMARY KEY, failures INTEGER NOT NULL, share REAL NOT NULL, within INTEGER NOT NULL,
            open_for INTEGER NOT NULL, by_version INTEGER NOT NULL, set_by TEXT NOT NULL, set_at INTEGER NOT NULL
        ) WITHOUT ROWID""",
        """CREATE TABLE gate (
            task TEXT NOT NULL, room INTEGER NOT NULL, name TEXT NOT NULL, queue TEXT NOT NULL, most INTEGER, set_by TEXT NOT NULL,
            PRIMARY KEY (task, room, name, queue)
        ) WITHOUT ROWID""",
        """CREATE TABLE circuit (
            name TEXT PRIMARY KEY, breaker TEXT NOT NULL, since INTEGER NOT NULL, failed INTEGER NOT NULL, passed INTEGER NOT NULL,
            in_a_row INTEGER NOT NULL, opened_at INTEGER, opened_by TEXT, reason TEXT, probe_at INTEGER NOT NULL, probe BLOB,
            probe_fence INTEGER, told INTEGER NOT NULL DEFAULT 0
        ) WITHOUT ROWID""",
    ),
    (
        # What attempts logged, each lease's newest lines.
        """CREATE TABLE attempt_log (
            job BLOB NOT NULL, fence INTEGER NOT NULL, attempt INTEGER NOT NULL, logged INTEGER NOT NULL, lines BLOB NOT NULL,
            PRIMARY KEY (job, fence)
        )""",
        # What operators did, with a number that pages go by. In the order of time, which the old rows need not have been in.
        "ALTER TABLE audit RENAME TO audit_before",
        """CREATE TABLE audit (
            number INTEGER PRIMARY KEY, at INTEGER NOT NULL, action TEXT NOT NULL, subject TEXT NOT NULL, actor TEXT NOT NULL
        )""",
        """INSERT INTO audit (at, action, subject, actor)
            SELECT at, action, subject, actor FROM audit_before ORDER BY at, rowid""",
        "DROP TABLE audit_before",
        "CREATE INDEX audit_at ON audit (at)",
        "CREATE INDEX audit_subject ON audit (subject, number)",
        "CREATE INDEX audit_actor ON audit (actor, number)",
        "CREATE INDEX audit_action ON audit (action, number)",
        # Tokens, each with the digest of its secret. Scopes and patterns of queues are joined by commas.
        """CREATE TABLE token (
            id BLOB PRIMARY KEY, name TEXT NOT NULL, scopes TEXT NOT NULL, queues TEXT NOT NULL, digest BLOB NOT NULL,
            created_at INTEGER NOT NULL, created_by TEXT NOT NULL, expires_at INTEGER, revoked_at INTEGER, revoked_by TEXT,
            last_used_at INTEGER, parent BLOB
        ) WITHOUT ROWID""",
        "CREATE UNIQUE INDEX token_name ON token (name) WHERE revoked_at IS NULL",
        "CREATE INDEX token_parent ON token (parent) WHERE parent IS NOT NULL AND revoked_at IS NULL",
        "CREATE INDEX token_live ON token (id) WHERE revoked_at IS NULL",
        "CREATE INDEX token_revoked ON token (revoked_at) WHERE revoked_at IS NOT NULL",
        "CREATE INDEX token_expires ON token (expires_at) WHERE expires_at IS NOT NULL",
    ),
    (
        # The context of whoever asked for a job, where that is traced; of settled ones, of those that may run again.
        "ALTER TABLE job ADD COLUMN trace TEXT",
        "ALTER TABLE settled ADD COLUMN trace TEXT",
    ),
    (
        # What went on in each minute, five minutes and hour (`grain`, in seconds), of each queue, and of all ('').
        """CREATE TABLE figure (
            grain INTEGER NOT NULL, queue TEXT NOT NULL, at INTEGER NOT NULL, sampled INTEGER NOT NULL DEFAULT 0,
            started INTEGER NOT NULL, completed INTEGER NOT NULL, retried INTEGER NOT NULL, dead INTEGER NOT NULL,
            cancelled INTEGER NOT NULL, waited REAL NOT NULL, ran REAL NOT NULL, busy REAL NOT NULL, present REAL NOT NULL,
            waits_0 INTEGER NOT NULL, waits_1 INTEGER NOT NULL, waits_2 INTEGER NOT NULL, waits_3 INTEGER NOT NULL,
            waits_4 INTEGER NOT NULL, waits_5 INTEGER NOT NULL, waits_6 INTEGER NOT NULL, longest REAL NOT NULL,
            backlog INTEGER NOT NULL, PRIMARY KEY (grain, queue, at)
        ) WITHOUT ROWID""",
        "CREATE INDEX figure_at ON figure (grain, at)",
        # Up to which number a member has told what it counted.
        "ALTER TABLE member ADD COLUMN figured INTEGER NOT NULL DEFAULT 0",
    ),
    (
        # Where what becomes of a job is told: None for most, and then nothing below concerns it.
        "ALTER TABLE job ADD COLUMN reply TEXT",
        "ALTER TABLE settled ADD COLUMN reply TEXT",
        # What has become of such jobs, until it is sent on. Written in the transaction that changes them: how they move by triggers,
        # that they came and ended by the statements that write that, for a trigger on an insert would cost every job. See
        # replies.py.
        """CREATE TABLE outbox (
            number INTEGER PRIMARY KEY AUTOINCREMENT, job BLOB NOT NULL, kind INTEGER NOT NULL, queue TEXT NOT NULL,
            task TEXT NOT NULL, attempt INTEGER NOT NULL, at INTEGER, progress BLOB, history BLOB, result BLOB, reason TEXT,
            reply TEXT NOT NULL
        )""",
        "CREATE INDEX outbox_progress ON outbox (job) WHERE kind = 2",
        # A run of a workflow starts once, however often it sleeps. What was handed back has not failed: its history is as it was.
        """CREATE TRIGGER job_moved AFTER UPDATE OF state ON job WHEN NEW.reply IS NOT NULL AND (NEW.state = 2) <> (OLD.state = 2)
        BEGIN
            INSERT INTO outbox (job, kind, queue, task, attempt, at, history, reply)
            SELECT NEW.id, CASE NEW.state WHEN 2 THEN 1 ELSE 3 END, NEW.queue, NEW.task, NEW.attempt,
             CASE NEW.state WHEN 2 THEN NEW.leased_at END, CASE NEW.state WHEN 2 THEN NULL ELSE NEW.history END, NEW.reply
            WHERE NEW.state = 2 AND (NEW.attempts < 1000000 OR NEW.fence = 1)
             OR NEW.state <> 2 AND NEW.attempts < 1000000 AND NEW.history IS NOT OLD.history;
        END""",
        # Only the newest waits to be sent on.
        """CREATE TRIGGER job_progressed AFTER UPDATE OF progress ON job
        WHEN NEW.reply IS NOT NULL AND NEW.progress IS NOT OLD.progress
        BEGIN
            DELETE FROM outbox WHERE job = NEW.id AND kind = 2;
            INSERT INTO outbox (job, kind, queue, task, attempt, progress, reply)
            VALUES (NEW.id, 2, NEW.queue, NEW.task, NEW.attempt, NEW.progress, NEW.reply);
        END""",
        # What was told to channels, in the order in which it became known.
        """CREATE TABLE event (
            number INTEGER PRIMARY KEY AUTOINCREMENT, channel TEXT NOT NULL, queue TEXT NOT NULL, told BLOB NOT NULL,
            expires_at INTEGER NOT NULL
        )""",
        "CREATE INDEX event_expires ON event (expires_at)",
    ),
    (
        # Answers to requests with an Idempotency-Key, and requests of that kind that are under way.
        """CREATE TABLE answer (
            id BLOB PRIMARY KEY, request BLOB NOT NULL, turn INTEGER NOT NULL, until INTEGER NOT NULL, answer BLOB,
            expires_at INTEGER NOT NULL
        ) WITHOUT ROWID""",
        "CREATE INDEX answer_expires ON answer (expires_at)",
    ),
    (
        # What jobs are found by, and which job's attempt asked for them. Beside the jobs, so that those without have no part in it.
        """CREATE TABLE job_tag (tag TEXT NOT NULL, job_id BLOB NOT NULL, PRIMARY KEY (tag, job_id)) WITHOUT ROWID""",
        "CREATE INDEX job_tag_job ON job_tag (job_id)",
        """CREATE TABLE job_parent (child BLOB PRIMARY KEY, parent BLOB NOT NULL) WITHOUT ROWID""",
        "CREATE INDEX job_parent_parent ON job_parent (parent, child)",
    ),
    (
        # Queues that some program's code says are sensitive: what stands in them is shown to nobody. Who seals goes by the code.
        "CREATE TABLE sensitive (name TEXT PRIMARY KEY) WITHOUT ROWID",
    ),
    (
        # The lines of the audit but those of jobs that were started, which are more than all others.
        "CREATE INDEX audit_deeds ON audit (number) WHERE action <> 'start'",
    ),
    (
        # When a job was due that a rate has named a later moment, until it is leased: from then on it waits.
        "ALTER TABLE job ADD COLUMN was_due INTEGER",
        # Schedules whose last ticks were found too late: the newest record of `recent` says so, by its thirteenth byte.
        """CREATE INDEX schedule_missed ON schedule (cursor)
            WHERE substr(recent, 13, 1) = x'02' AND paused_at IS NULL AND removed_at IS NULL""",
        # How old the loops of a process were at its last heartbeat.
        "ALTER TABLE member ADD COLUMN loops BLOB",
        # Since when a trigger has not been read without an error.
        "ALTER TABLE trigger ADD COLUMN failing_since INTEGER",
        # Sessions that wait for somebody, in the order in which they are listed.
        "CREATE INDEX session_waits ON session (queue, name) WHERE held_why IS NOT NULL",
        # Tokens in the order in which they are listed, and browsers' own apart from others.
        "DROP INDEX token_live",
        """CREATE INDEX token_lasting ON token ((CASE WHEN parent IS NOT NULL OR created_by = 'sign-in-link' THEN 1 ELSE 0 END), id)
            WHERE revoked_at IS NULL AND expires_at IS NULL""",
        """CREATE INDEX token_ending ON token ((CASE WHEN parent IS NOT NULL OR created_by = 'sign-in-link' THEN 1 ELSE 0 END), expires_at, id)
            WHERE revoked_at IS NULL AND expires_at IS NOT NULL""",
        """CREATE INDEX token_gone ON token ((CASE WHEN parent IS NOT NULL OR created_by = 'sign-in-link' THEN 1 ELSE 0 END), revoked_at, id)
            WHERE revoked_at IS NOT NULL""",
        # How many of each queue wait for their time or for something, and how many are dead, of each of its tasks. What is enqueued,
        # leased and completed is in none of these.
        "CREATE INDEX job_later ON job (queue) WHERE state = 0",
        "DROP INDEX job_held_up",
        "CREATE INDEX job_held_up ON job (queue, blocked_by) WHERE state = 3",
        "CREATE INDEX settled_dead_of ON settled (queue, task, id) WHERE state = 6",
    ),
    (
        # What all servers of this store know, and nobody who asks them: places in listings are hidden with it.
        "CREATE TABLE secret (number INTEGER PRIMARY KEY DEFAULT 1 CHECK (number = 1), value BLOB NOT NULL)",
        "INSERT INTO secret (value) VALUES (randomblob(32))",
    ),
)

VERSION = len(STEPS)
