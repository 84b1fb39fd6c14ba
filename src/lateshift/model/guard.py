"""Who may run: a pure decision, the same on every store, from what stands in the rows.

A store reads some ready jobs of a guarded line and the facts about them, asks `choose`, and writes what it says. Nobody
else leases from that queue meanwhile, nor against the same limits."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from msgspec import Struct, field

from lateshift.model.gate import Gates

FIRST_NUMBER = 1  # of a session whose jobs are numbered
HORIZON = 3.0  # seconds ahead for which tokens are promised; the supervisor looks each second who is next
MOST_SLOTS = 10_000
ENOUGH = 1 - 1e-6  # of a token: what has grown in parts may lack a hair


class Rule(Struct, frozen=True):
    """A limit as the code declares it: on a queue, on a task, or on each key of a kind (`tenant` for `tenant:7`).

    `rate` jobs may start in each `per`, and `burst` at once after a pause."""

    scope: str
    name: str
    concurrency: int | None = None
    rate: int | None = None
    per: timedelta = timedelta(seconds=1)
    burst: int = 1

    @property
    def limits_nothing(self) -> bool:
        """Declared so, a limit is withdrawn."""
        return self.concurrency is None and self.rate is None

    @property
    def spacing(self) -> float:
        """Seconds in which one token grows."""
        return self.per.total_seconds() / (self.rate or 1)


def queue_rates(rules: Iterable[Rule]) -> dict[str, float]:
    """How many jobs of a queue may start in a second, where that is limited."""
    return {it.name: 1 / it.spacing for it in rules if it.scope == "queue" and it.rate is not None}


Rules = Mapping[tuple[str, str], Rule]
"""By scope and name."""


Limits = Mapping[str, Rule]
"""By what a job counts against: `queue:emails`, `task:send`, `key:vendor:acme`."""


def scopes_of(queue: str, task: str, limit_key: str | None) -> list[tuple[str, str, str]]:
    """What may limit a job: the scope, the rule's name in it, and what is counted. The narrowest first: who must wait, waits
    where fewest stand before it."""
    wide = [("task", task, task), ("queue", queue, queue)]
    return wide if limit_key is None else [("key", limit_key.partition(":")[0], limit_key), *wide]


def limits_of(rules: Rules, queue: str, task: str, limit_key: str | None) -> list[tuple[str, Rule]]:
    """The limits that a job counts against, each with its key. By hand: this is done for each of thousands in a second."""
    found: list[tuple[str, Rule]] = []
    if not rules:
        return found
    if limit_key is not None and (rule := rules.get(("key", limit_key.partition(":")[0]))):
        found.append((f"key:{limit_key}", rule))
    if rule := rules.get(("task", task)):
        found.append((f"task:{task}", rule))
    if rule := rules.get(("queue", queue)):
        found.append((f"queue:{queue}", rule))
    return found


def rule_of(rules: Rules, key: str) -> Rule:
    """The limit of a key such as `task:send`; one that was withdrawn limits nothing."""
    scope, _, counted = key.partition(":")
    name = counted.partition(":")[0] if scope == "key" else counted
    return rules.get((scope, name), Rule(scope, name))


def news(
    known: Rules, owners: Mapping[tuple[str, str], str], declared: Iterable[Rule], by: str
) -> list[Rule]:
    """What of this is not as it is known, in one order. A limit belongs to the app that declared it last. Both may have been
    read a moment apart: then somebody declares at the same time, and one of us looks again under the lock."""
    last = {(rule.scope, rule.name): rule for rule in declared}
    return [
        rule
        for name, rule in sorted(last.items())
        if known.get(name, Rule(*name)) != rule or (not rule.limits_nothing and owners.get(name) != by)
    ]


class Turns(dict[Any, str]):
    """The tenant that had the last turn, in a line or at a limit. Only a hint: losing it costs nobody more than a round."""

    MOST = 10_000

    def had(self, where: Any, after: str, tenants: Collection[str]) -> None:
        """These had a turn, beginning with the one after `after`."""
        if not tenants:
            return
        if len(self) >= self.MOST:  # a program that makes up keys must not grow this for ever
            self.clear()
        begun_anew = [tenant for tenant in tenants if tenant <= after]
        self[where] = max(begun_anew or tenants)


class Guarded(Struct, frozen=True, gc=False):
    """What a job that ends may leave to others: the turn in its session, its place in its limits."""

    queue: str
    task: str
    session: str | None
    limit_key: str | None


class Candidate(Struct, frozen=True, gc=False):
    """A ready job, as far as its guards go. `promised`: a rate limit named it this moment to start."""

    id: Any  # as the store has it
    queue: str
    task: str
    session: str | None = None
    sequence: int | None = None
    limit_key: str | None = None
    promised: bool = False
    exclusive: str | None = None


class Session(Struct, frozen=True):
    """What is known of a session: whether one of its jobs has the turn, the first in its line, what holds it, and the
    number that it expects, if its jobs are numbered."""

    busy: bool = False
    head: Any = None
    held: bool = False
    expects: int | None = None
    state: bytes | None = None


class Bucket(Struct):
    """Tokens of a rate limit at a moment (seconds), and until when they are promised to jobs that wait."""

    tokens: float
    at: float
    promised: float


class Facts(Struct):
    """What a decision is made from. It learns as a lease goes on: what was looked at is not read again."""

    rules: Rules
    now: float
    running: Counter[str] = field(default_factory=Counter)
    held: set[str] = field(default_factory=set)  # exclusive keys that somebody has
    buckets: dict[str, Bucket] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)  # limits that were looked at
    found: dict[tuple[str, str | None], list[tuple[str, Rule]]] = field(default_factory=dict)
    sessions: Mapping[str, Session] = field(default_factory=dict)
    gates: Gates | None = None  # if any task has one

    def limits_of(self, job: Candidate) -> list[tuple[str, Rule]]:
        """Those that it counts against; candidates are of one queue."""
        if not self.rules:
            return []
        named = job.task, job.limit_key
        limits = self.found.get(named)
        if limits is None:
            limits = self.found[named] = limits_of(self.rules, job.queue, *named)
        return limits

    @property
    def counted(self) -> bool:
        """Whether queues or tasks have limits on how many run."""
        return any(rule.concurrency is not None and rule.scope != "key" for rule in self.rules.values())

    @property
    def rates(self) -> bool:
        return any(rule.rate is not None for rule in self.rules.values())

    def news(self, candidates: Iterable[Candidate]) -> Limits:
        """Limits that were not looked at before."""
        different = {(job.task, job.limit_key): job for job in candidates} if self.rules else {}
        limits = [limit for job in different.values() for limit in self.limits_of(job)]
        fresh = {key: rule for key, rule in limits if key not in self.known}
        self.known |= fresh.keys()
        return fresh

    def with_places(self) -> Limits:
        """Limits that have room for more than was found ready under them."""
        known = {key: rule for limits in self.found.values() for key, rule in limits}
        return {
            key: rule
            for key, rule in known.items()
            if rule.concurrency is not None and self.running[key] < rule.concurrency
        }


class Choice(Struct):
    """What to do with the candidates: lease, block until something ends, or wait until a moment (seconds)."""

    take: list[Any] = field(default_factory=list)
    block: dict[str, list[Any]] = field(default_factory=dict)
    later: list[tuple[Any, str, float]] = field(default_factory=list)
    heads: set[str] = field(default_factory=set)  # sessions whose turn is free, and no candidate's
    gaps: dict[str, Any] = field(default_factory=dict)  # sessions that miss a number, and who waits for it
    numbered: dict[str, int] = field(default_factory=dict)  # sessions, and the number they expect from now on
    spent: dict[str, Bucket] = field(default_factory=dict)  # buckets that have changed
    waited: Counter[str] = field(default_factory=Counter)  # promised tokens that have not grown yet


def choose(candidates: Sequence[Candidate], room: int, facts: Facts) -> Choice:
    """In the order of the candidates, and who was promised this moment before all others. Counts in `facts` go on, so that
    it can be asked again for more."""
    choice = Choice()
    turns: set[str] = set()
    rates = facts.rates
    for job in sorted(candidates, key=_not_promised) if rates else candidates:
        if len(choice.take) >= room:
            break
        limits = facts.limits_of(job)
        waits_for = _key(job, facts)
        if waits_for is None and job.session is not None:
            waits_for = _turn(job, job.session, facts, turns, choice)
        if waits_for is None and facts.gates is not None:
            waits_for = facts.gates.shut(job.task, job.queue)
        if waits_for is None and limits:
            waits_for = _full(limits, facts)
        if waits_for is not None:
            choice.block.setdefault(waits_for, []).append(job.id)
            continue
        start = _start(job, limits, facts, choice) if rates else None
        if start is not None:
            waits_for, at = start
            if at is None:
                choice.block.setdefault(waits_for, []).append(job.id)
            else:
                choice.later.append((job.id, waits_for, at))
            if job.session is not None:
                turns.add(job.session)
            continue
        choice.take.append(job.id)
        if job.exclusive is not None:
            facts.held.add(job.exclusive)
        if facts.gates is not None:
            facts.gates.let_through(job.task, job.queue, job.id)
        for key, _ in limits:
            facts.running[key] += 1
        if job.session is not None:
            turns.add(job.session)
            if job.sequence is not None:
                choice.numbered[job.session] = job.sequence + 1
    return choice


def _not_promised(job: Candidate) -> bool:
    return not job.promised


def _key(job: Candidate, facts: Facts) -> str | None:
    return job.exclusive if job.exclusive is not None and job.exclusive in facts.held else None


def _turn(job: Candidate, name: str, facts: Facts, turns: set[str], choice: Choice) -> str | None:
    """What keeps it from having its session's turn."""
    session = facts.sessions[name]
    if session.busy or session.held or name in turns:
        return f"session:{name}"
    if session.head != job.id:
        choice.heads.add(name)
        return f"session:{name}"
    if job.sequence is not None and job.sequence > (session.expects or FIRST_NUMBER):
        choice.gaps[name] = job.id
        return f"sequence:{name}"
    return None


def _full(limits: Sequence[tuple[str, Rule]], facts: Facts) -> str | None:
    """The limit that has no place for it."""
    for key, rule in limits:
        if rule.concurrency is not None and facts.running[key] >= rule.concurrency:
            return f"limit:{key}"
    return None


def _start(
    job: Candidate, limits: Sequence[tuple[str, Rule]], facts: Facts, choice: Choice
) -> tuple[str, float | None] | None:
    """Takes a token of each of its rates; or says which has none, and when it will: no moment if that is far, for then it
    waits in line, where those of other tenants and higher priorities pass it."""
    rates = [(key, rule, _grown(facts, key, rule)) for key, rule in limits if rule.rate is not None]
    # What was promised a token waits for the bucket alone; what was not, for those who were as well.
    short = [
        (key, rule, bucket)
        for key, rule, bucket in rates
        if bucket.tokens < ENOUGH or (bucket.promised > facts.now and not job.promised)
    ]
    for key, _, bucket in short or rates:
        choice.spent[key] = bucket
    if not short:
        for _, _, bucket in rates:
            bucket.tokens = max(0.0, bucket.tokens - 1)
        return None
    waits_for = f"rate:{short[0][0]}"
    if not job.promised and any(slots(rule, bucket, facts.now) < 1 for _, rule, bucket in short):
        return waits_for, None
    latest = facts.now
    for key, rule, bucket in short:
        first = facts.now + max(0.0, 1 - bucket.tokens) * rule.spacing
        if job.promised:  # not there yet, by a little: it and those like it stay before all others
            latest = max(latest, first + choice.waited[key] * rule.spacing)
            choice.waited[key] += 1
        else:
            bucket.promised = (
                first if bucket.promised <= facts.now else max(first, bucket.promised + rule.spacing)
            )
            latest = max(latest, bucket.promised)
    return waits_for, latest


def slots(rule: Rule, bucket: Bucket | None, now: float) -> int:
    """How many may be promised a moment now: what grows until the HORIZON, and one if nobody is promised any."""
    if rule.rate is None:
        return MOST_SLOTS  # it was withdrawn
    if bucket is None or bucket.promised <= now:
        return min(MOST_SLOTS, max(1, int(HORIZON / rule.spacing)) + rule.burst)
    return max(0, min(MOST_SLOTS, int((now + HORIZON - bucket.promised) / rule.spacing + 1e-6)))


def _grown(facts: Facts, key: str, rule: Rule) -> Bucket:
    """The bucket now; a new one is full. A clock that was set back gives no tokens, and holds nobody to its promises."""
    bucket = facts.buckets.get(key)
    if bucket is None:
        bucket = facts.buckets[key] = Bucket(float(rule.burst), facts.now, facts.now)
    if facts.now < bucket.at:
        bucket.promised = min(bucket.promised, facts.now)
    grown = bucket.tokens + max(0.0, facts.now - bucket.at) / rule.spacing
    bucket.tokens, bucket.at = min(float(rule.burst), grown), facts.now
    return bucket


def limits_freed(rules: Rules, ended: Iterable[Guarded]) -> Limits:
    """Limits on how many run, in which these have left a place."""
    if not rules:
        return {}
    found = [limits_of(rules, *named) for named in {(job.queue, job.task, job.limit_key) for job in ended}]
    return {key: rule for limits in found for key, rule in limits if rule.concurrency is not None}


def left_places(choice: Choice) -> bool:
    """Who waits for a limit or at a gate has not used its places in its other limits: others may."""
    return any(waits_for.startswith(("limit:", "breaker:", "room:")) for waits_for in choice.block)
