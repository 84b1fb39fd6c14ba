"""What becomes of the ticks that are due: which fire, which are skipped and why. Pure."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from enum import IntEnum
from hashlib import blake2b
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from lateshift.errors import ScheduleInvalid
from lateshift.model import checks
from lateshift.model.scheduling.timing import Timing, count_ticks, last_ticks, next_tick
from lateshift.model.scheduling.zones import zone

Overlap: TypeAlias = Literal["allow", "skip", "queue", "cancel"]
CatchUp: TypeAlias = Literal["none", "last", "all"]
TickForm: TypeAlias = Literal["instant", "date"]

GRACE = timedelta(seconds=60)  # a tick that is fired within it is not late
CATCH_UP_MOST = 1_000  # late ticks that are fired at most, of one schedule
SKIPS_COUNTED = 10_000  # of a long pause; more are "at least so many"
_MOMENT = timedelta(microseconds=1)


class Outcome(IntEnum):
    """What became of a tick, or of a row of ticks."""

    FIRED = 0
    OVERLAP = 1
    TOO_LATE = 2
    PAUSED = 3
    DUPLICATE = 4  # the call is unique, and its job is there
    BY_HAND = 5

    @property
    def label(self) -> str:
        return self.name.lower().replace("_", " ")


class Plan(Struct, frozen=True, kw_only=True, array_like=True):
    """When a schedule fires, and what it does about its own jobs, about ticks that nobody was there for, and about all that
    fire at once. `tick_as`: the parameter that is given the tick's time, as the instant in UTC or as the date in its zone."""

    timing: Timing
    overlap: Overlap = "skip"
    catch_up: CatchUp = "last"
    most: int = CATCH_UP_MOST
    grace: timedelta = GRACE
    jitter: timedelta = timedelta(0)
    tick_as: str | None = None
    tick_form: TickForm = "instant"

    @property
    def alone(self) -> bool:
        """Whether its jobs never run beside each other."""
        return self.overlap != "allow"


def plan_of(
    timing: Timing, *, overlap: str, catch_up: str, most: int, grace: timedelta, jitter: timedelta | None, tick_as: str | None
) -> Plan:  # fmt: skip
    if overlap not in get_args(Overlap):
        raise ScheduleInvalid(f"overlap is one of {', '.join(get_args(Overlap))}, not {overlap!r}.")
    if catch_up not in get_args(CatchUp):
        raise ScheduleInvalid(f"catch_up is one of {', '.join(get_args(CatchUp))}, not {catch_up!r}.")
    if catch_up == "all" and overlap in ("skip", "cancel"):
        raise ScheduleInvalid(
            f'catch_up="all" is for a job of each late tick, and overlap="{overlap}" leaves one of them. Say overlap="allow" to '
            'have them all, or catch_up="last" for one.'
        )
    if type(most) is not int or not 1 <= most <= CATCH_UP_MOST:
        raise ScheduleInvalid(f"most is a whole number from 1 to {CATCH_UP_MOST:,}, not {most!r}.")
    if checks.duration("grace", grace) <= timedelta(0):
        raise ScheduleInvalid("grace must be longer than nothing.")
    jitter = timedelta(0) if jitter is None else checks.duration("jitter", jitter)
    if jitter < timedelta(0):
        raise ScheduleInvalid("jitter must not be negative.")
    return Plan(
        timing=timing, overlap=overlap, catch_up=catch_up, most=most, grace=grace, jitter=jitter, tick_as=tick_as,  # type: ignore[arg-type]
    )  # fmt: skip


class Skip(Struct, frozen=True):
    """Ticks in a row that did not fire: the first, the last, and how many (counted up to SKIPS_COUNTED)."""

    first: datetime
    last: datetime
    count: int
    why: Outcome


class Decision(Struct, frozen=True):
    """What to do now. All ticks up to the cursor are decided."""

    fire: tuple[datetime, ...]
    skip: tuple[Skip, ...]
    cursor: datetime
    next_at: datetime | None


def decide(plan: Plan, first: datetime, now: datetime, busy: int) -> Decision:
    """`first`: the first tick that is not decided, and due. `busy`: how many of its last two jobs have not ended."""
    timing, horizon = plan.timing, now - plan.grace
    late: list[datetime] = []
    skips: list[Skip] = []
    following: datetime | None = first
    if first <= horizon:
        late, skips, following = _late(plan, first - _MOMENT, horizon, now)
    fresh: list[datetime] = []
    while following is not None and following <= now:
        fresh.append(following)
        following = next_tick(timing, following)
    chosen = late + fresh
    fire, over = _overlapping(plan.overlap, chosen, busy)
    cursor = chosen[-1] if chosen else skips[-1].last
    skips += [Skip(tick, tick, 1, Outcome.OVERLAP) for tick in over]
    return Decision(tuple(fire), tuple(skips), cursor, following)


def paused_for(plan: Plan, cursor: datetime, now: datetime) -> Skip | None:
    """The ticks of a pause that ends now."""
    return _between(plan.timing, cursor, now, Outcome.PAUSED)


def told(plan: Plan, tick: datetime) -> datetime | date:
    """What a job is told of its tick."""
    return tick if plan.tick_form == "instant" else tick.astimezone(zone(plan.timing.timezone)).date()


def due_at(plan: Plan, name: str, tick: datetime) -> datetime:
    """When the job of a tick may start."""
    [delay] = delays(plan, [name], tick)
    return tick + delay * _MOMENT


def delays(plan: Plan, names: Sequence[str], tick: datetime) -> list[int]:
    """How long after the tick the job of each may start, in microseconds. The jitter is the same whoever computes it."""
    span = plan.jitter // _MOMENT
    if not span:
        return [0] * len(names)
    at = f"\0{tick.isoformat()}".encode()
    digests = (blake2b(name.encode() + at, digest_size=8).digest() for name in names)
    return [int.from_bytes(digest, "big") % span for digest in digests]


def _late(
    plan: Plan, cursor: datetime, horizon: datetime, now: datetime
) -> tuple[list[datetime], list[Skip], datetime | None]:
    """Of the ticks up to the horizon, which fire after all, which do not; and the first one after them."""
    upcoming = next_tick(plan.timing, horizon)
    newer = upcoming is not None and upcoming <= now
    most = {"none": 0, "last": 0 if newer else 1, "all": plan.most}[plan.catch_up]
    fire = last_ticks(plan.timing, cursor, horizon, most) if most else []
    skip = _between(plan.timing, cursor, fire[0] - _MOMENT if fire else horizon, Outcome.TOO_LATE)
    return fire, [] if skip is None else [skip], upcoming


def _between(timing: Timing, after: datetime, until: datetime, why: Outcome) -> Skip | None:
    if not (last := last_ticks(timing, after, until, 1)):
        return None
    first = next_tick(timing, after)
    assert first is not None
    return Skip(first, last[0], count_ticks(timing, after, until, SKIPS_COUNTED), why)


def _overlapping(
    overlap: Overlap, chosen: list[datetime], busy: int
) -> tuple[list[datetime], list[datetime]]:
    """Which fire, and which do not because of others."""
    match overlap:
        case "allow":
            return chosen, []
        case "cancel":
            return chosen[-1:], chosen[:-1]
        case "skip":
            room = 0 if busy else 1
        case "queue":
            room = max(0, 2 - busy)
    return chosen[:room], chosen[room:]
