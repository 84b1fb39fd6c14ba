"""Full tables of both stores, on which plans are looked at."""

READY, SCHEDULED, RUNNING, BLOCKED, SETTLED, KEYS = 12_000, 3_000, 300, 500, 20_000, 5_000
LARGE = {
    "job",
    "settled",
    "job_key",
    "job_identity",
    "job_tag",
    "job_parent",
    "batch",
    "batch_count",
    "schedule",
    "run",
    "step",
    "signal",
    "refused",
}

FILL_SQLITE = f"""
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {READY + SCHEDULED + RUNNING + BLOCKED})
INSERT INTO job (id, queue, lane, state, priority, attempts, due_at, created_at, holder, exclusive, task, payload)
SELECT randomblob(16), 'q' || (i % 5), i % 3, state, i % 4, 3, i, i,
 CASE state WHEN 2 THEN randomblob(16) END, CASE WHEN state = 3 OR i % 50 = 0 THEN 'k' || (i % 40) END, 'noop', x'5b5d'
FROM (SELECT i, CASE WHEN i <= {READY} THEN 1 WHEN i <= {READY + SCHEDULED} THEN 0
 WHEN i <= {READY + SCHEDULED + RUNNING} THEN 2 ELSE 3 END AS state FROM n);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {SETTLED})
INSERT INTO settled (id, queue, lane, state, priority, attempt, attempts, losses, fence, due_at, created_at, settled_at,
 expires_at, task, payload)
SELECT randomblob(16), 'q' || (i % 5), 0, CASE WHEN i % 50 = 0 THEN 6 ELSE 4 END, 0, 1, 3, 0, 1, i, i, i, i, 'noop', x'5b5d'
FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {KEYS})
INSERT INTO job_key (task, text, job_id, digest, expires_at) SELECT 'noop', 'k' || i, randomblob(16), x'00', i FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {KEYS})
INSERT INTO job_identity (identity, job_id, scope, until, expires_at) SELECT randomblob(16), randomblob(16), 2, i, i FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {KEYS})
INSERT INTO job_tag (tag, job_id) SELECT 't' || (i % 5), randomblob(16) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {KEYS})
INSERT INTO job_parent (child, parent) SELECT randomblob(16), randomblob(16) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {KEYS})
INSERT INTO run (id, name, version, started_at) SELECT randomblob(16), 'w' || (i % 50), '', i FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {KEYS})
INSERT INTO step (run, path, kind, name, state, failures, job, started_at, undo_state, undo_failures)
SELECT randomblob(16), '00001', i % 2, 'do', 1 + i % 2, 0, CASE i % 2 WHEN 0 THEN randomblob(16) END, i, 0, 0 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {KEYS})
INSERT INTO signal (run, number, name, key, at) SELECT randomblob(16), i, 'go', 'k', i FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {KEYS})
INSERT INTO refused (id, trigger, event, mark, at, raw, rest, reason, expires_at)
SELECT randomblob(16), 'g' || (i % 5), 'e' || i, '', i, x'00', x'7b7d', 'no', i FROM n;
"""


FILL_POSTGRES = f"""
INSERT INTO lateshift.job (id, queue, lane, state, priority, attempts, due_at, created_at, holder, exclusive, task,
 payload)
SELECT gen_random_uuid(), 'q' || (i % 5), i % 3, state, i % 4, 3, now() + i * interval '1 second', now(),
 CASE state WHEN 2 THEN gen_random_uuid() END, CASE WHEN state = 3 OR i % 50 = 0 THEN 'k' || (i % 40) END, 'noop', '[]'
FROM (SELECT i, CASE WHEN i <= {READY} THEN 1 WHEN i <= {READY + SCHEDULED} THEN 0
 WHEN i <= {READY + SCHEDULED + RUNNING} THEN 2 ELSE 3 END AS state
 FROM generate_series(1, {READY + SCHEDULED + RUNNING + BLOCKED}) i) n;
UPDATE lateshift.job SET lane = 4, tenant = 't' || (priority * 7 + attempts), task = 'guarded',
 limit_key = CASE WHEN state = 2 THEN 'a:1' END, session = CASE WHEN state IN (1, 3) THEN 's' || left(id::text, 2) END,
 turn = 1, in_limits = CASE WHEN state = 2 THEN true END, blocked_by = CASE WHEN state = 3 THEN 'session:s' || left(id::text, 2) END
 WHERE left(id::text, 1) IN ('1', '2', '3');
INSERT INTO lateshift.settled (id, queue, lane, state, priority, attempt, attempts, losses, fence, due_at, created_at,
 settled_at, expires_at, task, payload)
SELECT gen_random_uuid(), 'q' || (i % 5), 0, CASE WHEN i % 50 = 0 THEN 6 ELSE 4 END, 0, 1, 3, 0, 1, now(), now(), now(),
 now() + i * interval '1 second', 'noop', '[]' FROM generate_series(1, {SETTLED}) i;
INSERT INTO lateshift.job_key (task, text, job_id, digest, expires_at)
SELECT 'noop', 'k' || i, gen_random_uuid(), '', now() + i * interval '1 second' FROM generate_series(1, {KEYS}) i;
INSERT INTO lateshift.job_identity (identity, job_id, scope, until, expires_at)
SELECT gen_random_uuid(), gen_random_uuid(), 2, now(), now() + i * interval '1 second' FROM generate_series(1, {KEYS}) i;
INSERT INTO lateshift.job_tag (tag, job_id) SELECT 't' || (i % 5), gen_random_uuid() FROM generate_series(1, {KEYS}) i;
INSERT INTO lateshift.job_parent (child, parent) SELECT gen_random_uuid(), gen_random_uuid() FROM generate_series(1, {KEYS}) i;
INSERT INTO lateshift.batch (id, total, created_at, finished_at, expires_at)
SELECT gen_random_uuid(), 1, now(), now(), now() + i * interval '1 second' FROM generate_series(1, {KEYS}) i;
INSERT INTO lateshift.batch_count (batch, completed, failed, cancelled, failures)
SELECT gen_random_uuid(), 1, 0, 0, 0 FROM generate_series(1, {KEYS}) i;
UPDATE lateshift.job SET batch = gen_random_uuid() WHERE priority = 1;
UPDATE lateshift.settled SET batch = gen_random_uuid() WHERE queue = 'q1';
INSERT INTO lateshift.schedule (name, plan, spec, payload, overlap, generation, cursor, next_at, recent, zones, created_at,
 changed_at, changed_by) SELECT 's' || i, '', '', '', 1, 1, now(), now() + i * interval '1 second', '', '', now(), now(), ''
 FROM generate_series(1, {KEYS}) i;
INSERT INTO lateshift.run (id, name, version, started_at)
SELECT gen_random_uuid(), 'w' || (i % 50), '', now() FROM generate_series(1, {KEYS}) i;
INSERT INTO lateshift.step (run, path, kind, name, state, failures, job, started_at, undo_state, undo_failures)
SELECT gen_random_uuid(), '00001', i % 2, 'do', 1 + i % 2, 0, CASE i % 2 WHEN 0 THEN gen_random_uuid() END, now(), 0, 0
 FROM generate_series(1, {KEYS}) i;
INSERT INTO lateshift.signal (run, number, name, key, at) SELECT gen_random_uuid(), i, 'go', 'k', now() FROM generate_series(1, {KEYS}) i;
INSERT INTO lateshift.refused (id, trigger, event, mark, at, raw, rest, reason, expires_at)
SELECT gen_random_uuid(), 'g' || (i % 5), 'e' || i, '', now(), '', '{{}}', 'no', now() + i * interval '1 second' FROM generate_series(1, {KEYS}) i;
INSERT INTO lateshift.member (id, name, kind, host, pid, started_at, expires_at, stats)
SELECT gen_random_uuid(), 'w', 'worker', 'h', 1, now(), now(), '' FROM generate_series(1, 20);
"""
