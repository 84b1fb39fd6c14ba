"""The tables, as numbered steps that only go forward. Times are whole microseconds since 1970, ids 16 bytes.

A step that has been released is never edited; a new one is added below it.
"""

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
)

VERSION = len(STEPS)
