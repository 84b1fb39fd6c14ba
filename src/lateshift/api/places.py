"""Who has a connection of a server. One address has a part of them at the most, so that it cannot keep all others out; and a few are
spare, on which probes are answered whoever has the rest."""

from collections import Counter, OrderedDict
from typing import Literal, Protocol, TypeAlias

from lateshift.api.bounds import CONNECTIONS_OF_ADDRESS, REQUESTS_AT_ONCE, SPARE_CONNECTIONS
from lateshift.api.rates import caller_at

Without: TypeAlias = Literal["full", "address"]
"""Why there is no place for a connection: the server has none left, or its address has its part."""


class Connection(Protocol):
    def give_way(self) -> None:
        """Close it now."""


class Places:
    """Of one server. `by_address`: whether the socket's address says who it is, and not a proxy's."""

    def __init__(
        self, *, most: int = REQUESTS_AT_ONCE, of_address: int = CONNECTIONS_OF_ADDRESS, spare: int = SPARE_CONNECTIONS,
        by_address: bool = True,
    ) -> None:  # fmt: skip
        self._most = most
        self._of_address = of_address
        self._spare = spare
        self._by_address = by_address
        self._taken: dict[Connection, str] = {}
        self._of: Counter[str] = Counter()
        self._spares: OrderedDict[Connection, None] = OrderedDict()

    def take(self, one: Connection, address: str) -> Without | None:
        """None if it has a place. One without is a spare one: of too many the oldest gives way, so that whoever holds them all keeps a
        probe out for no longer than it takes to come again."""
        caller = caller_at(address) if self._by_address and address else ""
        without: Without | None = None
        if caller and self._of[caller] >= self._of_address:
            without = "address"
        elif len(self._taken) >= self._most:
            without = "full"
        if without is None:
            self._taken[one] = caller
            self._of[caller] += 1
            return None
        self._spares[one] = None
        if len(self._spares) > self._spare:
            oldest, _ = self._spares.popitem(last=False)
            oldest.give_way()
        return without

    def leave(self, one: Connection) -> None:
        self._spares.pop(one, None)
        caller = self._taken.pop(one, None)
        if caller is not None:
            self._of[caller] -= 1
            if not self._of[caller]:
                del self._of[caller]
