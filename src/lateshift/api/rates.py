"""How often somebody may ask, and how long whoever guesses has to wait. Kept in this process, for a bounded number of callers.

An address is the socket's. Behind a declared proxy every request comes from the proxy's: there it is the proxy that knows addresses."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil
from typing import TypeVar

from lateshift.api.bounds import (
    BACKOFF_FIRST,
    BACKOFF_MOST,
    BURST_SECONDS,
    CALLERS_REMEMBERED,
    FAILURES_FORGOTTEN,
)
from lateshift.api.problem import Refused

T = TypeVar("T")

IPV6_ONE = 64  # bits of an address of IPv6 that one caller has; he chooses the others himself


class Rate:
    """Token buckets: so many requests in a second, and at once `burst`, or as many as BURST_SECONDS of that. `why`: what is said to who
    asks for more."""

    def __init__(
        self, per_second: float, now: Callable[[], float], *, burst: int | None = None, why: str = "You ask too often."
    ) -> None:  # fmt: skip
        self._rate = per_second
        self._burst = max(1.0, per_second * BURST_SECONDS) if burst is None else float(burst)
        self._now = now
        self._why = why
        # Of each what is left, and since when.
        self._buckets: OrderedDict[Hashable, list[float]] = OrderedDict()

    def take(self, who: Hashable) -> None:
        """Raises Refused, with when to come again."""
        now = self._now()
        if (bucket := self._buckets.get(who)) is None:
            bucket = [self._burst, now]
            _remember(self._buckets, who, bucket)
        else:
            self._buckets.move_to_end(who)
        left, since = bucket
        bucket[1] = now
        if (left := min(self._burst, left + (now - since) * self._rate)) >= 1:
            bucket[0] = left - 1
        else:
            bucket[0] = left
            raise too_many((1 - left) / self._rate, self._why)


@dataclass(frozen=True, slots=True)
class _Failures:
    count: int
    last: float
    until: float


class Backoff:
    """After so many failures each further one is answered later, twice as late each time. Of one token nothing is looked at meanwhile,
    so that a right guess is as good as a wrong one."""

    def __init__(self, free: int, now: Callable[[], float]) -> None:
        self._free = free
        self._now = now
        self._known: OrderedDict[Hashable, _Failures] = OrderedDict()

    def check(self, who: Hashable) -> None:
        """Raises Refused while somebody has to wait."""
        known = self._known.get(who)
        if known is not None and known.until > self._now():
            raise too_many(known.until - self._now(), "Too many tokens that are not good came from you.")

    def failed(self, who: Hashable) -> None:
        now = self._now()
        known = self._known.pop(who, None)
        count = (
            1 if known is None or now - known.last > FAILURES_FORGOTTEN.total_seconds() else known.count + 1
        )
        over = count - self._free
        pause = 0.0
        if over >= 0:
            pause = min(BACKOFF_MOST.total_seconds(), BACKOFF_FIRST.total_seconds() * 2.0 ** min(over, 30))
        _remember(self._known, who, _Failures(count, now, now + pause))


def _remember(kept: OrderedDict[Hashable, T], who: Hashable, what: T) -> None:
    """The newest last; of too many the oldest goes."""
    kept[who] = what
    if len(kept) > CALLERS_REMEMBERED:
        kept.popitem(last=False)


@lru_cache(maxsize=CALLERS_REMEMBERED)
def caller_at(address: str) -> str:
    """By what an address is known here."""
    try:
        known = ip_address(address)
    except ValueError:
        return address
    if isinstance(known, IPv6Address):
        if known.ipv4_mapped is not None:
            return str(known.ipv4_mapped)
        return str(ip_network((known, IPV6_ONE), strict=False))
    return str(known)


def too_many(seconds: float, why: str) -> Refused:
    after = max(1, ceil(seconds))
    return Refused(
        429, "too-many-requests", f"{why} Come again in {after} s.", headers={"Retry-After": str(after)}
    )
