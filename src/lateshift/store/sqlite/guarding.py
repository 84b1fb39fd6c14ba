"""Leasing with a look at what else runs, in SQLite: sessions, tenants, limits, keys that only one may hold."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from typing import Any
from uuid import UUID

from msgspec import structs

from lateshift.model.guard import (
    Candidate,
    Choice,
    Facts,
    Guarded,
    Rule,
    Turns,
    choose,
    limits_freed,
    limits_of,
    sessions_of,
)
from lateshift.model.ids import MemberId
from lateshift.model.job import Lane, Lease, Line
from lateshift.model.outcome import Completed, DeadLettered, Settlement
from lateshift.store.contract import Want
from lateshift.store.sqlite import rules, sessions, settling
from lateshift.store.sqlite.database import Connection
from lateshift.store.sqlite.leasing import COLUMNS, OLDEST_LEVEL, TAKE, leases_of
from lateshift.store.sqlite.times import MICROSECOND
from lateshift.store.taking import GAP_AFTER

_GUARDS = "id, task, session, sequence, limit_key, blocked_by, exclusive, tenant"

# Ready jobs of a line in order, or of one priority. job_ready.
CANDIDATES = f"""SELECT {_GUARDS} FROM job WHERE state = 1 AND queue = ? AND lane = ?
 ORDER BY priority DESC, due_at, id LIMIT ?"""
CANDIDATES_LEVEL = f"""SELECT {_GUARDS} FROM job WHERE state = 1 AND queue = ?1 AND lane = ?2
 AND priority = ?4 ORDER BY due_at, id LIMIT ?3"""
# Tenants with a ready job, from one to the next; and the jobs of one. job_tenant.
NEXT_TENANT = """SELECT tenant FROM job WHERE state = 1 AND tenant IS NOT NULL AND queue = ? AND lane = ?
 AND tenant > ? ORDER BY tenant LIMIT 1"""
FIRST_TENANT = """SELECT tenant FROM job WHERE state = 1 AND tenant IS NOT NULL AND queue = ? AND lane = ?
 ORDER BY tenant LIMIT 1"""
CANDIDATES_OF = f"""SELECT {_GUARDS} FROM job WHERE state = 1 AND tenant IS NOT NULL AND queue = ? AND lane = ?
 AND tenant = ? ORDER BY priority DESC, due_at, id LIMIT ?"""

# job_exclusive
HELD_KEY = "SELECT 1 FROM job WHERE exclusive = ? AND state = 2 LIMIT 1"
# The ready jobs of a key that is held wait for it, many at once so that they delay nobody else. job_exclusive.
BLOCK_KEY = """UPDATE job SET state = 3, blocked_by = exclusive WHERE id IN
 (SELECT id FROM job WHERE exclusive = ? AND state = 1 LIMIT 1000)"""
# Primary keys.
BLOCK = "UPDATE job SET state = 3, blocked_by = ? WHERE id = ? AND state = 1"
LATER = "UPDATE job SET state = 0, blocked_by = ?, due_at = ? WHERE id = ? AND state = 1"
LEASE_ONE = f"{TAKE}, blocked_by = NULL WHERE id = ?3 AND state = 1 RETURNING {COLUMNS}"
OF_LEASE = "SELECT session, limit_key FROM job WHERE id = ?"

ROUNDS = 10  # of blocking, before a claim leaves the rest to the next
LOOK_AT = 100  # candidates at least: a few that wait for something must not make each step a small one


def lease(connection: Connection, holder: MemberId, want: Want, now: int, turns: Turns) -> list[Lease]:
    queue = want.line.queue
    facts = Facts(rules.read(connection), now / rules.SECOND)
    leases: list[Lease] = []
    for _ in range(ROUNDS):
        room = want.count - len(leases)
        found = {row[0]: row for row in _candidates(connection, want, max(room, LOOK_AT), turns)}
        candidates = [_candidate(queue, row) for row in found.values()]
        _learn(connection, queue, candidates, facts)
        choice = choose(candidates, room, facts)
        for id in choice.take:
            _, _, session, _, limit_key, _, _, tenant = found[id.bytes]
            [taken] = leases_of(connection.execute(LEASE_ONE, (holder.bytes, now, id.bytes)).fetchall())
            if tenant is not None:
                turns[want.line] = tenant
                state = None if session is None else facts.sessions[session].state
                taken = structs.replace(taken, session=session, session_state=state, limit_key=limit_key)
            leases.append(taken)
        _write(
            connection, queue, choice, facts, now
        )  # who waits for one of these is blocked after it is leased
        if len(leases) >= want.count or not (choice.block or choice.later):
            break
    return leases


def settle(
    connection: Connection,
    settlements: Sequence[Settlement],
    now: int,
    turns: Turns,
    counts: Counter[tuple[bytes, int]],
) -> tuple[list[Lease], set[Line]]:
    """Jobs of careful lanes: what they leave to others is given on in the same transaction. Gives the leases that were
    lost, and the lines that have ready jobs now."""
    said: dict[sessions.Named, bytes] = {}
    dead: list[bytes] = []
    lost: list[Lease] = []
    plain: list[Settlement] = []
    for settlement in settlements:
        lease, outcome = settlement.lease, settlement.outcome
        state = outcome.session_state if isinstance(outcome, Completed) else None
        if lease.session is None or (state is None and not isinstance(outcome, DeadLettered)):
            plain.append(settlement)
            continue
        written = settling.settle_one(connection, settlement, now, counts)
        if written is None:
            lost.append(lease)
        elif written and state is not None:
            said[lease.queue, lease.session] = state
        elif written:
            dead.append(lease.id.bytes)
    lost += settling.settle(connection, plain, now, counts)
    sessions.keep_states(connection, said, now)
    sessions.hold(connection, dead, now)
    leases = [settlement.lease for settlement in settlements]
    return lost, give_on(
        connection, [Guarded(it.queue, it.task, it.session, it.limit_key) for it in leases], turns
    )


def give_on(connection: Connection, ended: Sequence[Guarded], turns: Turns) -> set[Line]:
    """The turns and places of these are free: ready who waits for them. Gives their lines."""
    lines = sessions.ready_next(
        connection, [(job.queue, job.session) for job in ended if job.session is not None]
    )
    freed = limits_freed(rules.read(connection), ended) if ended else {}
    return lines | rules.ready_next(connection, freed, turns)


def _candidate(queue: str, row: tuple[Any, ...]) -> Candidate:
    id, task, session, sequence, limit_key, blocked_by, exclusive, _ = row
    promised = blocked_by is not None and blocked_by.startswith("rate:")
    return Candidate(UUID(bytes=id), queue, task, session, sequence, limit_key, promised, exclusive)


def _candidates(connection: Connection, want: Want, count: int, turns: Turns) -> list[tuple[Any, ...]]:
    line = (want.line.queue, int(want.line.lane))
    level = connection.execute(OLDEST_LEVEL, line).fetchall() if want.by_age else []
    if level:
        return list(connection.execute(CANDIDATES_LEVEL, (*line, count, *level[0])))
    if want.line.lane is Lane.SOLO:
        return list(connection.execute(CANDIDATES, (*line, count)))
    tenants = list(_tenants(connection, line, count, turns.get(want.line, "")))
    each = -(-count // max(1, len(tenants)))
    jobs = [connection.execute(CANDIDATES_OF, (*line, tenant, each)).fetchall() for tenant in tenants]
    return [row for row in chain.from_iterable(zip_longest(*jobs)) if row is not None]


def _tenants(connection: Connection, line: tuple[str, int], count: int, after: str) -> Iterator[str]:
    """Each once, beginning with the one after who had the last turn."""
    at = after
    for _ in range(count):
        rows = connection.execute(NEXT_TENANT, (*line, at)).fetchall()
        if not rows:
            break
        at = rows[0][0]
        yield at
    else:
        return
    rows = connection.execute(FIRST_TENANT, line).fetchall()
    while rows and rows[0][0] <= after:
        yield rows[0][0]
        rows = connection.execute(NEXT_TENANT, (*line, rows[0][0])).fetchall()


def _learn(connection: Connection, queue: str, candidates: list[Candidate], facts: Facts) -> None:
    """Read what is not known yet of what these are guarded by."""
    facts.sessions = sessions.look(connection, queue, sessions_of(candidates))
    limits: dict[str, Rule] = {}
    for job in candidates:
        if job.exclusive is not None and connection.execute(HELD_KEY, (job.exclusive,)).fetchall():
            facts.held.add(job.exclusive)
        limits |= dict(limits_of(facts.rules, job.queue, job.task, job.limit_key))
    fresh = {key: rule for key, rule in limits.items() if key not in facts.known}
    facts.known |= fresh.keys()
    facts.running.update(rules.running(connection, fresh))
    facts.buckets |= rules.buckets(connection, fresh)


def _write(connection: Connection, queue: str, choice: Choice, facts: Facts, now: int) -> None:
    for waits_for, ids in choice.block.items():
        if waits_for in facts.held:
            connection.execute(BLOCK_KEY, (waits_for,))
        else:
            connection.executemany(BLOCK, [(waits_for, id.bytes) for id in ids])
    later = [(rate, round(at * rules.SECOND), id.bytes) for id, rate, at in choice.later]
    connection.executemany(LATER, later)
    sessions.ready_next(connection, [(queue, name) for name in choice.heads])
    connection.executemany(
        sessions.MISS, [(id.bytes, now, GAP_AFTER // MICROSECOND) for id in choice.gaps.values()]
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
            lease = structs.replace(lease, session=session, session_state=state, limit_key=limit_key)
        whole.append(lease)
    return whole
