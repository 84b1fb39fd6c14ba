"""Limits in SQLite: what is declared, what runs against each, and the tokens of the rates."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta

from lateshift.model.guard import Bucket, Rule, Rules, Turns, news, rule_of, slots
from lateshift.model.instants import MICROSECOND
from lateshift.model.job import Line
from lateshift.store.guards import WAITS_FOR_A_PLACE
from lateshift.store.lines import lines_there
from lateshift.store.sqlite.blocks import blocks
from lateshift.store.sqlite.database import Connection, Database

SECOND = 1_000_000
AT_ONCE = 1000  # jobs made ready for one limit and line

RULES = "SELECT scope, name, concurrency, rate, per, burst FROM rule"
DECLARE = """INSERT INTO rule (scope, name, concurrency, rate, per, burst, set_by, set_at)
 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (scope, name) DO UPDATE SET concurrency = ?3, rate = ?4, per = ?5,
 burst = ?6, set_by = ?7, set_at = ?8"""
OWNERS = "SELECT scope, name, set_by FROM rule"
WITHDRAW = "DELETE FROM rule WHERE scope = ? AND name = ? AND set_by = ?"

# job_blocked
ANYBODY_WAITS = f"SELECT {WAITS_FOR_A_PLACE.format('')}"
# What runs already counts too, from now on. job_running.
_COUNT = "UPDATE job SET in_limits = 1 WHERE state = 2 AND lane > 2 AND in_limits IS NULL AND"
COUNT = {"queue": f"{_COUNT} queue = ?", "task": f"{_COUNT} task = ?"}

# So many limits are looked at by one statement.
BLOCK = 100
_NAMES = f"WITH k(name) AS (VALUES {', '.join(['(?)'] * BLOCK)})"
# What runs against each: job_limit_queue, job_limit_task, job_limit_key.
_COUNTED = "SELECT name, (SELECT count(*) FROM job WHERE state = 2 AND"
RUNNING = {
    "queue": f"{_NAMES} {_COUNTED} in_limits IS NOT NULL AND queue = k.name) FROM k",
    "task": f"{_NAMES} {_COUNTED} in_limits IS NOT NULL AND task = k.name) FROM k",
    "key": f"{_NAMES} {_COUNTED} limit_key IS NOT NULL AND limit_key = k.name) FROM k",
}
BUCKET = "SELECT tokens, at, promised FROM bucket WHERE key = ?"
SPEND = """INSERT INTO bucket (key, tokens, at, promised) VALUES (?, ?, ?, ?) ON CONFLICT (key)
 DO UPDATE SET tokens = excluded.tokens, at = excluded.at, promised = excluded.promised"""

# Which of these any job waits for. job_blocked.
WAITED_FOR = (
    f"{_NAMES} SELECT name FROM k WHERE EXISTS (SELECT 1 FROM job WHERE state = 3 AND blocked_by = k.name)"
)
# The lines in which jobs wait for a limit, from one to the next; and in each those of the tenant whose turn it is.
# job_blocked.
NEXT_WAITING_LINE = """SELECT queue, lane FROM job WHERE state = 3 AND blocked_by = ? AND (queue, lane) > (?, ?)
 ORDER BY queue, lane LIMIT 1"""
_WAITING = "SELECT id FROM job WHERE state = 3 AND blocked_by = ?1 AND queue = ?2 AND lane = ?3 AND tenant"
_ORDER = "ORDER BY tenant, priority DESC, due_at, id LIMIT ?4"
READY_FIRST = f"""UPDATE job SET state = 1, blocked_by = NULL WHERE id IN (SELECT id FROM (
  SELECT id FROM ({_WAITING} > ?5 {_ORDER})
  UNION ALL SELECT id FROM ({_WAITING} <= ?5 {_ORDER})) LIMIT ?4) RETURNING tenant"""


class SqliteRules:
    """See contract.Rules."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def declare(self, rules: Sequence[Rule], *, by: str) -> None:
        with self._database.read() as connection:
            if not news(read(connection), owners(connection), rules, by):
                return
        with self._database.write() as connection:
            now = self._database.clock.microseconds()
            for rule in news(read(connection), owners(connection), rules, by):
                if rule.limits_nothing:
                    connection.execute(WITHDRAW, (rule.scope, rule.name, by))
                    continue
                what = (
                    rule.scope,
                    rule.name,
                    rule.concurrency,
                    rule.rate,
                    rule.per // MICROSECOND,
                    rule.burst,
                )
                connection.execute(DECLARE, (*what, by, now))
                if rule.concurrency is not None and rule.scope in COUNT:
                    connection.execute(COUNT[rule.scope], (rule.name,))

    def list(self) -> list[Rule]:
        with self._database.read() as connection:
            return sorted(read(connection).values(), key=lambda rule: (rule.scope, rule.name))


def owners(connection: Connection) -> dict[tuple[str, str], str]:
    return {(scope, name): by for scope, name, by in connection.execute(OWNERS).fetchall()}


def read(connection: Connection) -> Rules:
    return {
        (scope, name): Rule(scope, name, concurrency, rate, timedelta(microseconds=per), burst)
        for scope, name, concurrency, rate, per, burst in connection.execute(RULES).fetchall()
    }


def running(connection: Connection, limits: Mapping[str, Rule]) -> Counter[str]:
    """How many run against each of these, as far as it matters."""
    asked: dict[str, list[str]] = {}
    for key, rule in limits.items():
        if rule.concurrency is not None:
            scope, _, name = key.partition(":")
            asked.setdefault(scope, []).append(name)
    found: Counter[str] = Counter()
    for scope, names in asked.items():
        for block in blocks(names, BLOCK):
            found.update(
                {
                    f"{scope}:{name}": count
                    for name, count in dict(connection.execute(RUNNING[scope], block)).items()
                }
            )
    return found


def buckets(connection: Connection, limits: Mapping[str, Rule]) -> dict[str, Bucket]:
    rated = [key for key, rule in limits.items() if rule.rate is not None]
    found = {key: connection.execute(BUCKET, (key,)).fetchall() for key in rated}
    return {
        key: Bucket(rows[0][0], rows[0][1] / SECOND, rows[0][2] / SECOND)
        for key, rows in found.items()
        if rows
    }


def spend(connection: Connection, spent: Mapping[str, Bucket]) -> None:
    rows = [(key, it.tokens, round(it.at * SECOND), round(it.promised * SECOND)) for key, it in spent.items()]
    connection.executemany(SPEND, rows)


def ready_next(
    connection: Connection, limits: Mapping[str, Rule], turns: Turns, *, least: int = 0
) -> set[Line]:
    """As many as have place, in each line that waits: one of them may be paused, or served by nobody."""
    lines: set[Line] = set()
    if not limits or not connection.execute(ANYBODY_WAITS).fetchall()[0][0]:
        return lines
    waits = {f"limit:{key}": key for key in limits}
    waited = {
        name for block in blocks(list(waits), BLOCK) for (name,) in connection.execute(WAITED_FOR, block)
    }
    limits = {waits[name]: limits[waits[name]] for name in sorted(waited)}
    counts = running(connection, limits)
    for key, rule in limits.items():
        free = (AT_ONCE if rule.concurrency is None else rule.concurrency) - counts[key]
        free = min(AT_ONCE, max(free, least)) if free > 0 else 0
        if free > 0:
            lines |= ready(connection, f"limit:{key}", free, turns)
    return lines


def ready(connection: Connection, waits_for: str, free: int, turns: Turns) -> set[Line]:
    """So many in each line that waits: one of them may be paused, or served by nobody."""
    lines: set[Line] = set()
    at: tuple[str, int] = ("", -1)
    after, tenants = turns.get(waits_for, ""), set[str]()
    while rows := connection.execute(NEXT_WAITING_LINE, (waits_for, *at)).fetchall():
        at = rows[0]
        readied = connection.execute(READY_FIRST, (waits_for, *at, free, after)).fetchall()
        tenants |= {tenant for (tenant,) in readied}
        lines.update(lines_there([at]))
    turns.had(waits_for, after, tenants)
    return lines


def ready_for_tokens(
    connection: Connection, keys: Sequence[str], known: Rules, now: float, turns: Turns
) -> set[Line]:
    """Those who wait for a token of these and may be promised one by now."""
    rated = {key: rule_of(known, key) for key in keys}
    have = buckets(connection, rated)
    lines: set[Line] = set()
    for key, rule in rated.items():
        free = slots(rule, have.get(key), now)
        lines |= ready(connection, f"rate:{key}", free, turns) if free else set()
    return lines
