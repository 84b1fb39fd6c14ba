"""Leasing with a look at what else runs, in SQLite: sessions, tenants, limits, keys that only one may hold."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Any

from lateshift.model.guard import (
    Candidate,
    Choice,
    Facts,
    Guarded,
    Turns,
    choose,
    left_places,
    limits_freed,
)
from lateshift.model.ids import MemberId
from lateshift.model.instants import MICROSECOND
from lateshift.model.job import Lane, Lease, Line
from lateshift.model.outcome import Completed, Settlement, last_words
from lateshift.store.contract import Want
from lateshift.store.guards import (
    FEW_TENANTS,
    GUARDS,
    LOOK_AT,
    ROUNDS,
    TENANT,
    candidate,
    in_limits,
    leave,
    leaves_word,
    promised_first,
)
from lateshift.store.sqlite import gates, rules, sessions, settling
from lateshift.store.sqlite.database import Connection
from lateshift.store.sqlite.leasing import COLUMNS, OLDEST_LEVEL, TAKE, Guards, leases_of
from lateshift.store.taking import GAP_AFTER, guarded

# Each candidate with what is known of its session. See sessions.SEEN.
# Ready jobs of a line in order, or of one priority. job_ready.
CANDIDATES = sessions.seen(f"""SELECT {GUARDS} FROM job WHERE state = 1 AND queue = ?1 AND lane = ?2
 ORDER BY priority DESC, due_at, id LIMIT ?3""")
CANDIDATES_LEVEL = sessions.seen(f"""SELECT {GUARDS} FROM job WHERE state = 1 AND queue = ?1 AND lane = ?2
 AND priority = ?4 ORDER BY due_at, id LIMIT ?3""")
# Those whom a rate named this moment to start, though others were enqueued before. job_promised.
PROMISED = sessions.seen(f"""SELECT {GUARDS} FROM job WHERE state = 1 AND blocked_by IS NOT NULL AND queue = ?1
 AND lane = ?2 ORDER BY due_at, id LIMIT ?3""")
# The first job of each tenant that has one, from one tenant to the next: of those after one, of those up to it. job_tenant.
_LINE = "state = 1 AND tenant IS NOT NULL AND queue = ?1 AND lane = ?2"
_HEADS = f"""WITH RECURSIVE t(name, place) AS (
  SELECT (SELECT tenant FROM job WHERE {_LINE} AND {{first}} ORDER BY tenant LIMIT 1), 1
  UNION ALL
  SELECT (SELECT tenant FROM job WHERE {_LINE} AND tenant > t.name{{last}} ORDER BY tenant LIMIT 1), place + 1
  FROM t WHERE t.name IS NOT NULL AND place < ?4)
 SELECT {GUARDS} FROM t CROSS JOIN job ON id = (SELECT id FROM job WHERE {_LINE} AND tenant = t.name
  ORDER BY priority DESC, due_at, id LIMIT 1)"""
HEADS_AFTER = sessions.seen(_HEADS.format(first="tenant > ?3", last=""))
HEADS_UP_TO = sessions.seen(_HEADS.format(first="tenant <= ?3", last=" AND tenant <= ?3"))
# The jobs of one tenant. job_tenant.
CANDIDATES_OF = sessions.seen(
    f"""SELECT {GUARDS} FROM job WHERE {_LINE} AND tenant = ?3 ORDER BY priority DESC, due_at, id LIMIT ?4"""
)

# job_exclusive
HELD_KEY = "SELECT 1 FROM job WHERE exclusive = ? AND state = 2 LIMIT 1"
# The ready jobs of a key that is held wait for it, many at once so that they delay nobody else. job_exclusive.
BLOCK_KEY = """UPDATE job SET state = 3, blocked_by = exclusive WHERE id IN
 (SELECT id FROM job WHERE exclusive = ? AND state = 1 LIMIT 1000)"""
# Primary keys.
BLOCK = "UPDATE job SET state = 3, blocked_by = ? WHERE id = ? AND state = 1"
# A rate names it another moment. When it was due comes back with its lease: so long it has waited.
LATER = """UPDATE job SET state = 0, blocked_by = ?, was_due = coalesce(was_due, due_at), due_at = ?
 WHERE id = ? AND state = 1"""
# So many at once. Primary key.
AT_ONCE = 100
_LEASE = f"""{TAKE}, blocked_by = NULL, due_at = coalesce(was_due, due_at), was_due = NULL{{}} WHERE id IN ({", ".join(f"?{3 + n}" for n in range(AT_ONCE))})
 RETURNING {COLUMNS}"""
LEASE_THESE = _LEASE.format("")
LEASE_COUNTED = _LEASE.format(f", {in_limits()}")
OF_LEASE = "SELECT session, limit_key FROM job WHERE id = ?"


def lease(
    connection: Connection, holder: MemberId, want: Want, now: int, turns: Turns, doors: gates.Doors
) -> list[Lease]:
    queue = want.line.queue
    facts = Facts(rules.read(connection), now / rules.SECOND, gates=doors.gates())
    leases: list[Lease] = []
    for _ in range(ROUNDS):
        room = want.count - len(leases)
        count = max(room, LOOK_AT)
        rows, all_there_are = _candidates(connection, want, count, turns)
        if facts.rates:
            first = connection.execute(PROMISED, (queue, int(want.line.lane), count)).fetchall()
            rows = promised_first(first, rows)
        candidates = [candidate(queue, row) for row in rows]
        facts.sessions = sessions.of(rows)
        _learn(connection, candidates, facts)
        choice = choose(candidates, room, facts)
        found = {row[0]: row for row in rows}
        taken = _take(connection, holder, now, choice.take, found, facts)
        leases += gates.begin_probes(connection, taken, facts.gates, now) if facts.gates else taken
        if choice.take:
            turns[want.line] = found[choice.take[-1]][TENANT] or ""
        _write(connection, queue, choice, facts, now)  # who waits for one of these, after it is leased
        if len(leases) < want.count and left_places(choice):
            rules.ready_next(connection, facts.with_places(), turns, least=LOOK_AT)
        if len(leases) >= want.count or (all_there_are and not choice.block and not choice.later):
            break
    return leases


def _take(
    connection: Connection,
    holder: MemberId,
    now: int,
    ids: list[bytes],
    found: dict[bytes, Any],
    facts: Facts,
) -> list[Lease]:
    taken: dict[bytes, tuple[Any, ...]] = {}
    sql = LEASE_COUNTED if facts.counted else LEASE_THESE
    for start in range(0, len(ids), AT_ONCE):
        block = ids[start : start + AT_ONCE]
        block += block[-1:] * (AT_ONCE - len(block))
        taken |= {row[0]: row for row in connection.execute(sql, (holder.bytes, now, *block)).fetchall()}
    return leases_of([taken[id] for id in ids], [_guards(found[id], facts) for id in ids])


def _guards(row: tuple[Any, ...], facts: Facts) -> Guards:
    session = row[2]
    return session, None if session is None else facts.sessions[session].state, row[4]


def settle(
    connection: Connection,
    settlements: Sequence[Settlement],
    now: int,
    turns: Turns,
    counts: Counter[tuple[bytes, int]],
    doors: gates.Doors,
) -> tuple[list[Lease], set[Line]]:
    """Jobs of careful lanes: what they leave to others is given on in the same transaction. Gives the leases that were
    lost, and the lines that have ready jobs now."""
    said: dict[sessions.Named, bytes] = {}
    dead: list[bytes] = []
    lost: list[Lease] = []
    plain: list[Settlement] = []
    settling.save(connection, last_words(settlements), now)
    for settlement in settlements:
        if not leaves_word(settlement):
            plain.append(settlement)
            continue
        lease, outcome = settlement.lease, settlement.outcome
        written = settling.settle_one(connection, settlement, now, counts)
        if written is None:
            lost.append(lease)
        elif written and isinstance(outcome, Completed) and outcome.session_state is not None:
            said[lease.queue, lease.session or ""] = outcome.session_state
        elif written:
            dead.append(lease.id.bytes)
    lost += settling.settle(connection, plain, now, counts)
    sessions.keep_states(connection, said, now)
    sessions.hold(connection, dead, now)
    lines = give_on(connection, leave([settlement.lease for settlement in settlements]), turns)
    before = doors.gates()
    if before is not None:
        lines |= gates.count(connection, before, settlements, lost, now, turns)
    return lost, lines


def give_on(connection: Connection, ended: Sequence[Guarded], turns: Turns) -> set[Line]:
    """The turns and places of these are free: ready who waits for them. Gives their lines."""
    lines = sessions.ready_next(
        connection, [(job.queue, job.session) for job in ended if job.session is not None]
    )
    freed = limits_freed(rules.read(connection), ended) if ended else {}
    return lines | rules.ready_next(connection, freed, turns)


def _candidates(
    connection: Connection, want: Want, count: int, turns: Turns
) -> tuple[list[tuple[Any, ...]], bool]:
    """Some, in the order in which they are to run; and whether there are no more."""
    line = (want.line.queue, int(want.line.lane))
    level = connection.execute(OLDEST_LEVEL, line).fetchall() if want.by_age else []
    if level:
        return list(connection.execute(CANDIDATES_LEVEL, (*line, count, *level[0]))), True
    if want.line.lane is Lane.SOLO:
        rows = connection.execute(CANDIDATES, (*line, count)).fetchall()
        return rows, len(rows) < count
    after = turns.get(want.line, "")
    heads: list[tuple[Any, ...]] = list(connection.execute(HEADS_AFTER, (*line, after, count)))
    if len(heads) < count:
        heads += connection.execute(HEADS_UP_TO, (*line, after, count - len(heads))).fetchall()
    if len(heads) > min(count - 1, FEW_TENANTS):  # one of each, and at the next step one more
        return heads, False
    each = -(-count // max(1, len(heads)))
    jobs = [connection.execute(CANDIDATES_OF, (*line, head[TENANT], each)).fetchall() for head in heads]
    rows = [row for row in chain.from_iterable(zip_longest(*jobs)) if row is not None]
    return rows, all(len(some) < each for some in jobs)


def _learn(connection: Connection, candidates: list[Candidate], facts: Facts) -> None:
    """Read what is not known yet of the keys and limits that guard these."""
    for key in {job.exclusive for job in candidates if job.exclusive is not None}:
        if connection.execute(HELD_KEY, (key,)).fetchall():
            facts.held.add(key)
    limits = facts.news(candidates)
    facts.running.update(rules.running(connection, limits))
    facts.buckets |= rules.buckets(connection, limits)
    if facts.gates is not None:
        gates.learn(connection, candidates, facts.gates)


def _write(connection: Connection, queue: str, choice: Choice, facts: Facts, now: int) -> None:
    for waits_for, ids in choice.block.items():
        if waits_for in facts.held:
            connection.execute(BLOCK_KEY, (waits_for,))
        else:
            connection.executemany(BLOCK, [(waits_for, id) for id in ids])
    later = [(rate, round(at * rules.SECOND), id) for id, rate, at in choice.later]
    connection.executemany(LATER, later)
    sessions.ready_next(connection, [(queue, name) for name in choice.heads], numbers=False)
    connection.executemany(
        sessions.MISS, [(id, now, GAP_AFTER // MICROSECOND) for id in choice.gaps.values()]
    )
    connection.executemany(
        sessions.EXPECT, [(queue, name, number, now) for name, number in choice.numbered.items()]
    )
    rules.spend(connection, choice.spent)


def complete_leases(connection: Connection, leases: list[Lease]) -> list[Lease]:
    """With the guards of those that have some, as when they are found by their holder."""
    whole: list[Lease] = []
    for lease in leases:
        if lease.lane.careful:
            session, limit_key = connection.execute(OF_LEASE, (lease.id.bytes,)).fetchall()[0]
            named = (lease.queue, session)
            state = None if session is None else sessions.states(connection, [named])[named]
            lease = gates.marked(connection, guarded(lease, session, state, limit_key))
        whole.append(lease)
    return whole
