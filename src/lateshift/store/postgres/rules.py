"""Limits in PostgreSQL: what is declared, what runs against each, and the tokens of the rates."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from psycopg import Cursor

from lateshift.model.guard import Bucket, Rule, Rules, Turns, news, rule_of, slots
from lateshift.model.job import Line
from lateshift.store.contract import Rows
from lateshift.store.lines import lines_there
from lateshift.store.postgres.arrays import BigInts, Texts
from lateshift.store.postgres.database import Connection, Database

AT_ONCE = 1000  # jobs made ready for one limit and line

RULES = "SELECT scope, name, concurrency, rate, per, burst FROM lateshift.rule"
DECLARE = """INSERT INTO lateshift.rule (scope, name, concurrency, rate, per, burst, set_by, set_at)
 VALUES (%s, %s, %s::integer, %s::integer, %s, %s, %s, clock_timestamp() + %s::interval)
 ON CONFLICT (scope, name) DO UPDATE SET concurrency = excluded.concurrency, rate = excluded.rate, per = excluded.per,
 burst = excluded.burst, set_by = excluded.set_by, set_at = excluded.set_at"""
OWNERS = "SELECT scope, name, set_by FROM lateshift.rule"
WITHDRAW = "DELETE FROM lateshift.rule WHERE scope = %s AND name = %s AND set_by = %s"

# What runs already counts too, from now on. job_running.
_COUNT = "UPDATE lateshift.job SET in_limits = true WHERE state = 2 AND lane > 2 AND in_limits IS NULL AND"
COUNT = {"queue": f"{_COUNT} queue = %s", "task": f"{_COUNT} task = %s"}

# While somebody leases or settles guarded jobs no limit is declared, and the other way round.
SHARE_RULES = "pg_advisory_xact_lock_shared(hashtextextended('lateshift rules', 0))"
LOCK_RULES = "SELECT pg_advisory_xact_lock(hashtextextended('lateshift rules', 0))"
# Whoever leases against limits, or frees a place in one, does so alone until the end of the transaction.
LOCK_LIMITS = "SELECT pg_advisory_xact_lock(hashtextextended('lateshift limits', 0))"
LOCK_LIMITS_IF_ANY = f"{LOCK_LIMITS} WHERE EXISTS (SELECT 1 FROM lateshift.rule)"

# What runs, as far as the limit: job_limit_queue, job_limit_task, job_limit_key.
RUNNING = {
    "queue": """SELECT k.name, (SELECT count(*) FROM (SELECT 1 FROM lateshift.job
 WHERE state = 2 AND in_limits IS NOT NULL AND queue <> '' AND queue = k.name LIMIT k.most) AS counted)
 FROM unnest(%b::text[], %b::bigint[]) AS k (name, most)""",
    "task": """SELECT k.name, (SELECT count(*) FROM (SELECT 1 FROM lateshift.job
 WHERE state = 2 AND in_limits IS NOT NULL AND task <> '' AND task = k.name LIMIT k.most) AS counted)
 FROM unnest(%b::text[], %b::bigint[]) AS k (name, most)""",
    "key": """SELECT k.name, (SELECT count(*) FROM (SELECT 1 FROM lateshift.job
 WHERE state = 2 AND limit_key IS NOT NULL AND limit_key = k.name LIMIT k.most) AS counted)
 FROM unnest(%b::text[], %b::bigint[]) AS k (name, most)""",
}
# Primary key.
BUCKETS = """SELECT key, tokens, extract(epoch FROM at)::float8, extract(epoch FROM promised)::float8
 FROM lateshift.bucket WHERE key = ANY(%b::text[])"""
SPEND = """INSERT INTO lateshift.bucket (key, tokens, at, promised)
 SELECT key, tokens, to_timestamp(at), to_timestamp(promised)
 FROM unnest(%b::text[], %s::float8[], %s::float8[], %s::float8[]) AS new (key, tokens, at, promised)
 ON CONFLICT (key) DO UPDATE SET tokens = excluded.tokens, at = excluded.at, promised = excluded.promised"""

# Which of these any job waits for. job_blocked.
WAITED_FOR = """SELECT key FROM unnest(%b::text[]) AS k (key) WHERE
 (SELECT true FROM lateshift.job WHERE state = 3 AND blocked_by = 'limit:' || k.key LIMIT 1)"""
# Who wait for a limit, in each line that has some, for one of them may be paused, or served by nobody: of the tenant
# whose turn it is. job_blocked.
_WAITING = """SELECT id FROM lateshift.job j WHERE j.state = 3 AND j.blocked_by = %(waits)s AND j.queue = line.queue
   AND j.lane = line.lane AND j.tenant"""
_ORDER = "ORDER BY j.tenant, j.priority DESC, j.due_at, j.id LIMIT %(free)s"
READY_FIRST = f"""WITH RECURSIVE line AS (
  (SELECT queue, lane FROM lateshift.job WHERE state = 3 AND blocked_by = %(waits)s ORDER BY queue, lane LIMIT 1)
  UNION ALL
  SELECT next.queue, next.lane FROM line, LATERAL (SELECT queue, lane FROM lateshift.job
    WHERE state = 3 AND blocked_by = %(waits)s AND (queue, lane) > (line.queue, line.lane)
    ORDER BY queue, lane LIMIT 1) next),
first AS MATERIALIZED (SELECT next.id FROM line, LATERAL (
  SELECT * FROM ({_WAITING} > %(after)s {_ORDER} FOR UPDATE SKIP LOCKED) AS later
  UNION ALL SELECT * FROM ({_WAITING} <= %(after)s {_ORDER} FOR UPDATE SKIP LOCKED) AS earlier LIMIT %(free)s) next)
UPDATE lateshift.job SET state = 1, blocked_by = NULL WHERE id = ANY(ARRAY(SELECT id FROM first))
RETURNING queue, lane, tenant"""


class PostgresRules:
    """See contract.RuleBook."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def declare(self, rules: Sequence[Rule], *, by: str) -> None:
        offset = self._database.clock.offset

        def work(connection: Connection, again: bool) -> None:
            if not news(read(connection), owners(connection), rules, by):
                return
            with connection.transaction():
                connection.execute(LOCK_RULES)
                for rule in news(read(connection), owners(connection), rules, by):
                    if rule.limits_nothing:
                        connection.execute(WITHDRAW, (rule.scope, rule.name, by))
                        continue
                    what = (rule.scope, rule.name, rule.concurrency, rule.rate, rule.per, rule.burst)
                    connection.execute(DECLARE, (*what, by, offset))
                    if rule.concurrency is not None and rule.scope in COUNT:
                        connection.execute(COUNT[rule.scope], (rule.name,))

        self._database.run(work)

    def list(self) -> list[Rule]:
        rules = self._database.run(lambda connection, again: read(connection))
        return sorted(rules.values(), key=lambda rule: (rule.scope, rule.name))


def read(connection: Connection) -> Rules:
    return rules_of(connection.execute(RULES).fetchall())


def owners(connection: Connection) -> dict[tuple[str, str], str]:
    return {(scope, name): by for scope, name, by in connection.execute(OWNERS).fetchall()}


def rules_of(rows: Rows) -> Rules:
    return {
        (scope, name): Rule(scope, name, concurrency, rate, per or timedelta(seconds=1), burst or 1)
        for scope, name, concurrency, rate, per, burst in rows
    }


def running(connection: Connection, limits: Mapping[str, Rule]) -> Counter[str]:
    """How many run against each of these, as far as it matters."""
    asked: dict[str, list[tuple[str, int]]] = {}
    for key, rule in limits.items():
        if rule.concurrency is not None:
            scope, _, name = key.partition(":")
            asked.setdefault(scope, []).append((name, rule.concurrency))
    told: dict[str, Cursor[Any]] = {}  # in a pipeline, all are asked before the first is answered
    for scope, pairs in asked.items():
        names, most = Texts(name for name, _ in pairs), BigInts(most for _, most in pairs)
        told[scope] = connection.execute(RUNNING[scope], (names, most))
    return Counter(
        {f"{scope}:{name}": count for scope, cursor in told.items() for name, count in cursor.fetchall()}
    )


def buckets(connection: Connection, limits: Mapping[str, Rule]) -> dict[str, Bucket]:
    rated = Texts(key for key, rule in limits.items() if rule.rate is not None)
    rows = connection.execute(BUCKETS, (rated,)).fetchall() if rated else []
    return {key: Bucket(tokens, at, promised) for key, tokens, at, promised in rows}


def spend(connection: Connection, spent: Mapping[str, Bucket]) -> None:
    if spent:
        rows = [(key, it.tokens, it.at, it.promised) for key, it in sorted(spent.items())]
        keys, *numbers = zip(*rows, strict=True)
        connection.execute(SPEND, [Texts(keys), *(list(column) for column in numbers)])


def ready_next(
    connection: Connection, limits: Mapping[str, Rule], turns: Turns, *, least: int = 0
) -> set[Line]:
    """As many as have place, in each line that waits. Gives those lines."""
    lines: set[Line] = set()
    waited = connection.execute(WAITED_FOR, (Texts(limits),)).fetchall() if limits else []
    limits = {key: limits[key] for (key,) in waited}
    counts = running(connection, limits) if limits else Counter()
    for key, rule in sorted(limits.items()):
        free = (AT_ONCE if rule.concurrency is None else rule.concurrency) - counts[key]
        free = min(AT_ONCE, max(free, least)) if free > 0 else 0
        if free > 0:
            lines |= ready(connection, f"limit:{key}", free, turns)
    return lines


def ready_for_tokens(
    connection: Connection, keys: Sequence[str], known: Rules, now: float, turns: Turns
) -> set[Line]:
    """Those who wait for a token of these and may be promised one by now."""
    rated = {key: rule_of(known, key) for key in keys}
    have = buckets(connection, rated)
    lines: set[Line] = set()
    for key, rule in sorted(rated.items()):
        free = slots(rule, have.get(key), now)
        lines |= ready(connection, f"rate:{key}", free, turns) if free else set()
    return lines


def ready(connection: Connection, waits_for: str, free: int, turns: Turns) -> set[Line]:
    """So many in each line that waits."""
    after = turns.get(waits_for, "")
    rows = connection.execute(READY_FIRST, {"waits": waits_for, "free": free, "after": after}).fetchall()
    turns.had(waits_for, after, {tenant for _, _, tenant in rows})
    return set(lines_there((queue, lane) for queue, lane, _ in rows))
