"""Leasing with a look at what else runs, in PostgreSQL: sessions, tenants, limits, keys that only one may hold.

Whoever does so has the queue's guarded lines alone until the transaction ends, and whoever counts against limits has
these alone; so what is read stays true until what follows from it is written. Locks come before rows, in one order."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from msgspec import Struct

from lateshift.model.guard import (
    Candidate,
    Choice,
    Facts,
    Guarded,
    Limits,
    Turns,
    choose,
    left_places,
    limits_freed,
)
from lateshift.model.ids import JobId, MemberId
from lateshift.model.job import Lane, Lease, Line
from lateshift.model.outcome import Completed, Settlement, last_words
from lateshift.store.contract import Want
from lateshift.store.guards import (
    BEGUN,
    FEW_TENANTS,
    GUARDS,
    LOOK_AT,
    ROUNDS,
    TENANT,
    WAITS_FOR_A_PLACE,
    WAITS_FOR_A_TURN,
    candidate,
    in_limits,
    leave,
    leaves_word,
    promised_first,
)
from lateshift.store.postgres import gates, rules, sessions, settling
from lateshift.store.postgres.arrays import Texts, Uuids
from lateshift.store.postgres.database import Connection
from lateshift.store.postgres.leasing import COLUMNS, LINE, OLDEST_LEVEL, OPEN, TAKE, leases_of, parameters_of
from lateshift.store.taking import GAP_AFTER, guarded

# Whether the queue is open, whether anybody waits for a turn or for a place, and the time. job_blocked.
OPENED = f"""SELECT {OPEN}, {WAITS_FOR_A_TURN.format("lateshift.")}, {WAITS_FOR_A_PLACE.format("lateshift.")},
 extract(epoch FROM clock_timestamp() + %(skew)s::interval)::float8"""

# Candidates, each with what is known of its session: see sessions.seen.
_OF = ", ".join(f"c.{column}" for column in GUARDS.split(", "))
_JOBS = f"SELECT {GUARDS} FROM lateshift.job WHERE {LINE}"
# Ready jobs of a line in order, or of one priority. job_ready.
CANDIDATES = sessions.seen(_OF, f"{_JOBS} ORDER BY priority DESC, due_at, id LIMIT %(count)s")
CANDIDATES_LEVEL = sessions.seen(
    _OF, f"{_JOBS} AND priority = %(level)s::smallint ORDER BY due_at, id LIMIT %(count)s"
)
# Those whom a rate named this moment to start, though others were enqueued before. job_promised.
PROMISED = sessions.seen(_OF, f"{_JOBS} AND blocked_by IS NOT NULL ORDER BY due_at, id LIMIT %(count)s")
# Those of the tenant, if all are of one: then one question is enough. job_tenant.
_END = f"SELECT tenant FROM lateshift.job WHERE {LINE} AND tenant IS NOT NULL ORDER BY tenant"
OF_ONE_TENANT = sessions.seen(
    _OF,
    f"""{_JOBS} AND tenant IS NOT NULL AND tenant = (SELECT first.tenant FROM
  ({_END} LIMIT 1) AS first, ({_END} DESC LIMIT 1) AS last WHERE first.tenant = last.tenant)
 ORDER BY tenant, priority DESC, due_at, id LIMIT %(count)s""",
)
# The first job of each tenant that has one, beginning with the tenant after who had the last turn. In the order of the
# index the first of the next tenant is the next one that has a higher name. job_tenant.
_NEXT = f"SELECT {GUARDS} FROM lateshift.job j WHERE {LINE} AND tenant IS NOT NULL"
_FIRST = "ORDER BY tenant, priority DESC, due_at, id LIMIT 1"
_HEADS = f"""WITH RECURSIVE later AS (
  (SELECT first.*, 1 AS place FROM ({_NEXT} AND tenant > %(after)s {_FIRST}) AS first)
  UNION ALL
  SELECT next.*, later.place + 1 FROM later, LATERAL ({_NEXT} AND j.tenant > later.tenant {_FIRST}) AS next
  WHERE later.place < %(count)s),
earlier AS (
  (SELECT first.*, (SELECT count(*) FROM later) + 1 AS place FROM ({_NEXT} AND tenant <= %(after)s {_FIRST}) AS first
   WHERE (SELECT count(*) FROM later) < %(count)s)
  UNION ALL
  SELECT next.*, earlier.place + 1 FROM earlier, LATERAL ({_NEXT} AND j.tenant > earlier.tenant
   AND j.tenant <= %(after)s {_FIRST}) AS next WHERE earlier.place < %(count)s)
SELECT * FROM later UNION ALL SELECT * FROM earlier"""
HEADS = f"SELECT {GUARDS} FROM ({_HEADS}) AS found ORDER BY place"
# The first jobs of each of these tenants, in rounds. job_tenant.
_ROUNDS = f"""SELECT ranked.*, t.place FROM unnest(%(tenants)b::text[]) WITH ORDINALITY AS t (name, place),
 LATERAL (SELECT {GUARDS}, row_number() OVER () AS round FROM ({_JOBS}
  AND tenant IS NOT NULL AND tenant = t.name ORDER BY tenant, priority DESC, due_at, id LIMIT %(each)s) AS first) AS ranked"""
CANDIDATES_OF = f"{sessions.seen(_OF, _ROUNDS)} ORDER BY c.round, c.place"

# A key's lock, held until the end of the transaction; whoever does not get it leaves the job as it is.
LOCK_KEY = "SELECT pg_try_advisory_xact_lock(hashtextextended('lateshift ' || %s, 0))"
# job_exclusive
HELD_KEY = "SELECT 1 FROM lateshift.job WHERE exclusive = %s AND state = 2 LIMIT 1"
# The ready jobs of a key that is held wait for it, many at once so that they delay nobody else. job_exclusive.
BLOCK_KEY = """WITH waiting AS MATERIALIZED (SELECT id FROM lateshift.job WHERE exclusive = %s AND state = 1 LIMIT 1000
 FOR UPDATE SKIP LOCKED)
UPDATE lateshift.job SET state = 3, blocked_by = exclusive WHERE id = ANY(ARRAY(SELECT id FROM waiting))"""
# What is said of a job stands at its place in arrays sorted by id. A row that somebody else holds is passed over. Nobody
# else changes the state of a ready one: the queue is ours. Primary key.
_PLACE = "width_bucket(id, %(ids)b::uuid[])"
_FREE = """WITH free AS MATERIALIZED (SELECT id FROM lateshift.job WHERE id = ANY(%(ids)b::uuid[])
 FOR UPDATE SKIP LOCKED)"""
_THESE = "WHERE id = ANY(ARRAY(SELECT id FROM free))"
BLOCK = f"""{_FREE}
UPDATE lateshift.job SET state = 3, blocked_by = (%(waits)b::text[])[{_PLACE}] {_THESE}"""
# A rate names it another moment. When it was due comes back with its lease: so long it has waited.
LATER = f"""{_FREE}
UPDATE lateshift.job SET state = 0, blocked_by = (%(waits)b::text[])[{_PLACE}], was_due = coalesce(was_due, due_at),
 due_at = to_timestamp((%(times)s::float8[])[{_PLACE}]) {_THESE}"""
_LEASE = f"""{_FREE}
{TAKE}, blocked_by = NULL, due_at = coalesce(was_due, due_at), was_due = NULL, turn = {BEGUN}{{}} {_THESE}
 RETURNING {COLUMNS}, session, limit_key, tenant"""
LEASE_THESE = _LEASE.format("")
LEASE_COUNTED = _LEASE.format(f", {in_limits('lateshift.')}")
OF_LEASES = "SELECT id, queue, session, limit_key FROM lateshift.job WHERE id = ANY(%s::uuid[])"


def exchange(
    connection: Connection,
    holder: MemberId,
    settlements: Sequence[Settlement],
    wants: Sequence[Want],
    skew: timedelta,
    turns: Turns,
) -> tuple[list[Lease], list[Lease], set[Line]]:
    """Jobs of careful lanes end and begin, each queue's in a transaction of its own. Gives new leases, leases that were
    lost, and lines that have ready jobs now."""
    of: dict[str, tuple[list[Settlement], list[Want]]] = {}
    for settlement in settlements:
        of.setdefault(settlement.lease.queue, ([], []))[0].append(settlement)
    for want in wants:
        of.setdefault(want.line.queue, ([], []))[1].append(want)
    leases: list[Lease] = []
    lost: list[Lease] = []
    lines: set[Line] = set()
    for queue, (ended, wanted) in sorted(of.items()):
        # Whatever needs no answer first sets out together: each way there and back costs as much as some jobs.
        with connection.pipeline(), connection.transaction():
            sessions.lock(connection, [queue])
            connection.execute(rules.LOCK_LIMITS_IF_ANY)  # before the locks of keys and rows, as everywhere
            opened = connection.execute(OPENED, {"queue": queue, "holder": holder, "skew": skew})
            told = connection.execute(rules.RULES)
            doors = connection.execute(gates.GATES)
            sent = _send(connection, ended, skew)
            [(is_open, for_turns, for_places, now)] = opened.fetchall()
            facts = Facts(rules.rules_of(told.fetchall()), now)
            facts.gates = gates.of(connection, doors.fetchall(), holder, now)
            if ended:
                too_late = _settled(connection, ended, sent, skew)
                lost += too_late
                left = leave([settlement.lease for settlement in ended])
                if for_turns:
                    lines |= sessions.give_turns(connection, left)
                if for_places:
                    lines |= rules.ready_next(connection, limits_freed(facts.rules, left), turns)
                if facts.gates is not None:
                    lines |= gates.count(connection, facts.gates, ended, too_late, turns)
            for want in wanted if is_open else ():
                leases += _lease(connection, parameters_of(want, holder, skew), want, facts, turns)
    return leases, lost, lines


def _lease(
    connection: Connection, asked: dict[str, Any], want: Want, facts: Facts, turns: Turns
) -> list[Lease]:
    queue = want.line.queue
    leases: list[Lease] = []
    for _ in range(ROUNDS):
        room = want.count - len(leases)
        asked["count"] = max(room, LOOK_AT)
        rows, all_there_are = _candidates(connection, want, asked, turns)
        if facts.rates:
            first = connection.execute(PROMISED, asked, binary=True).fetchall()
            rows = promised_first(first, rows)
        facts.sessions = sessions.of(rows)
        candidates = _learn(connection, [candidate(queue, row) for row in rows], facts)
        choice = choose(candidates, room, facts)
        taken = _take(connection, asked, choice.take, facts, turns, want.line)
        leases += gates.begin_probes(connection, taken, facts.gates) if facts.gates else taken
        # Who waits for one of these is blocked after it is leased.
        _write(connection, queue, choice, facts, asked["skew"])
        if len(leases) < want.count and left_places(choice):
            rules.ready_next(connection, facts.with_places(), turns, least=LOOK_AT)
        if len(leases) >= want.count or (all_there_are and not choice.block and not choice.later):
            break
    return leases


class _OnTheWay(Struct, frozen=True):
    """Settlements that leave no word to their session, and those that do."""

    silent: list[settling.Sent]
    telling: list[settling.Sent]


def _send(connection: Connection, settlements: Sequence[Settlement], skew: timedelta) -> _OnTheWay:
    for key in _keys(settlements):
        connection.execute(settling.WAIT_FOR_KEY, (key,))
    settling.save(connection, last_words(settlements), skew)
    telling = [settlement for settlement in settlements if leaves_word(settlement)]
    silent = [it for it in settlements if not leaves_word(it)] if telling else settlements
    return _OnTheWay(
        settling.send(connection, silent, skew, settling.COMPLETE_ANY),
        settling.send(connection, telling, skew, settling.COMPLETE_TELLING),
    )


def _settled(
    connection: Connection,
    settlements: Sequence[Settlement],
    sent: _OnTheWay,
    skew: timedelta,
) -> list[Lease]:
    """The leases that were lost."""
    lost = settling.receive(connection, sent.silent, skew)
    if sent.telling:
        lost += _settled_with_word(connection, sent.telling, skew)
    for key in _keys(settlements):
        connection.execute(settling.READY_NEXT, {"key": key})
    return lost


def _keys(settlements: Sequence[Settlement]) -> list[str]:
    return sorted({it.lease.exclusive for it in settlements if it.lease.exclusive is not None})


def _settled_with_word(connection: Connection, sent: Sequence[settling.Sent], skew: timedelta) -> list[Lease]:
    """What was written before, and had its answer lost, must not be written to the session again: it may have gone on."""
    lost, written = settling.receive_telling(connection, sent, skew)
    said: dict[sessions.Named, bytes] = {}
    dead: list[JobId] = []
    for settlement in written:
        lease, outcome = settlement.lease, settlement.outcome
        if isinstance(outcome, Completed) and outcome.session_state is not None:
            said[lease.queue, lease.session or ""] = outcome.session_state
        else:
            dead.append(lease.id)
    sessions.keep_states(connection, said, skew)
    sessions.hold(connection, dead, skew)
    return lost


def lock_limits(connection: Connection, ended: Sequence[Guarded]) -> Limits:
    """Those in which these leave a place; if there are any, nobody else counts against limits until the transaction
    ends."""
    freed = limits_freed(rules.read(connection), ended) if ended else {}
    if freed:
        connection.execute(rules.LOCK_LIMITS)
    return freed


def give_on(connection: Connection, ended: Sequence[Guarded], freed: Limits, turns: Turns) -> set[Line]:
    """The turns and places of these are free: ready who waits for them. Gives their lines. The queues are locked."""
    return sessions.give_turns(connection, ended) | rules.ready_next(connection, freed, turns)


def _candidates(
    connection: Connection, want: Want, asked: dict[str, Any], turns: Turns
) -> tuple[list[tuple[Any, ...]], bool]:
    """Some, in the order in which they are to run; and whether there are no more."""

    def rows(sql: str, **more: Any) -> list[tuple[Any, ...]]:
        return connection.execute(sql, asked | more, binary=True).fetchall()

    count: int = asked["count"]
    if want.by_age and (level := rows(OLDEST_LEVEL)):
        return rows(CANDIDATES_LEVEL, level=level[0][0]), True
    if want.line.lane is Lane.SOLO:
        found = rows(CANDIDATES)
        return found, len(found) < count
    after = turns.get(want.line, "")
    if not after and (found := rows(OF_ONE_TENANT)):
        return found, len(found) < count
    heads = rows(HEADS, after=after)
    if len(heads) > min(count - 1, FEW_TENANTS):  # one of each, and at the next step one more
        return sessions.with_seen(connection, want.line.queue, heads), False
    each = -(-count // max(1, len(heads)))
    found = rows(CANDIDATES_OF, tenants=Texts(head[TENANT] for head in heads), each=each) if heads else []
    given = Counter(row[TENANT] for row in found)
    return found, all(given[head[TENANT]] < each for head in heads)


def _learn(connection: Connection, candidates: Sequence[Candidate], facts: Facts) -> list[Candidate]:
    """Read what is not known yet of the keys and limits that guard these. Leaves out those whose key somebody else looks
    at."""
    limits = facts.news(candidates)
    locked: dict[str, bool] = {}
    for key in sorted({job.exclusive for job in candidates if job.exclusive is not None}):
        locked[key] = connection.execute(LOCK_KEY, (key,)).fetchall()[0][0]
        if locked[key] and connection.execute(HELD_KEY, (key,)).fetchall():
            facts.held.add(key)
    if limits:
        facts.running.update(rules.running(connection, limits))
        facts.buckets |= rules.buckets(connection, limits)
    if facts.gates is not None:
        gates.learn(connection, candidates, facts.gates)
    return [job for job in candidates if job.exclusive is None or locked[job.exclusive]]


def _write(connection: Connection, queue: str, choice: Choice, facts: Facts, skew: timedelta) -> None:
    blocked: list[tuple[JobId, str]] = []
    for waits_for, ids in choice.block.items():
        if waits_for in facts.held:
            connection.execute(BLOCK_KEY, (waits_for,))
        else:
            blocked += [(id, waits_for) for id in ids]
    if blocked:
        blocked.sort()
        waits = Texts(waits_for for _, waits_for in blocked)
        connection.execute(BLOCK, {"ids": Uuids(id for id, _ in blocked), "waits": waits})
    if choice.later:
        later = sorted(choice.later)
        rest = {"waits": Texts(rate for _, rate, _ in later), "times": [at for _, _, at in later]}
        connection.execute(LATER, {"ids": Uuids(id for id, _, _ in later), **rest})
    sessions.ready_next(connection, [(queue, name) for name in choice.heads], numbers=False)
    if choice.gaps:
        gaps = {"ids": list(choice.gaps.values()), "gap_after": GAP_AFTER, "skew": skew}
        connection.execute(sessions.MISS, gaps)
    sessions.expect(connection, queue, choice.numbered, skew)
    rules.spend(connection, choice.spent)


def _take(
    connection: Connection,
    asked: dict[str, Any],
    ids: Sequence[JobId],
    facts: Facts,
    turns: Turns,
    line: Line,
) -> list[Lease]:
    if not ids:
        return []
    sql = LEASE_COUNTED if facts.counted else LEASE_THESE
    rows = connection.execute(sql, asked | {"ids": Uuids(sorted(ids))}, binary=True).fetchall()
    place = {id: number for number, id in enumerate(ids)}
    rows.sort(key=lambda row: place[row[0]])
    if rows and rows[-1][-1] is not None:
        turns[line] = rows[-1][-1]
    leases = leases_of([row[:-3] for row in rows])
    for number, (*_, session, limit_key, _) in enumerate(rows):
        if session is not None or limit_key is not None:
            state = None if session is None else facts.sessions[session].state
            leases[number] = guarded(leases[number], session, state, limit_key)
    return leases


def complete_leases(connection: Connection, leases: list[Lease]) -> list[Lease]:
    """With the guards of those that have some, as when they are found by their holder."""
    careful = [lease.id for lease in leases if lease.lane.careful]
    if not careful:
        return leases
    rows = connection.execute(OF_LEASES, (careful,)).fetchall()
    guards = {id: (queue, session, limit_key) for id, queue, session, limit_key in rows}
    kept = sessions.states(
        connection, {(queue, session) for queue, session, _ in guards.values() if session is not None}
    )

    def whole(lease: Lease) -> Lease:
        queue, session, limit_key = guards.get(lease.id, (lease.queue, None, None))
        return guarded(lease, session, kept.get((queue, session or "")), limit_key)

    return gates.marked(connection, [whole(lease) if lease.lane.careful else lease for lease in leases])
