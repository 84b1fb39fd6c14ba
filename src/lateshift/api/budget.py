"""How many bytes are held at once for those who ask: of bodies that are under way, and of answers that are not read yet. As many
requests as connections come together, and each may have as much as one may; all together may not."""

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias
from uuid import UUID

from lateshift.api.bounds import SMALL_BODY, Bounds
from lateshift.api.problem import Refused

PART_COST = 64  # bytes that keeping a part costs besides, however small it is
_LAST = {"Connection": "close"}  # the rest of a body is not read

Whose: TypeAlias = UUID | str | None
"""A token's, or an address's; None is nobody's who is known."""


class Budget:
    """Of one server. `full`: what is said when there is no more of it. `of_one`: what one token and its browsers have of it, or one address of
    those who are not known, and what is said over that: else one could keep all others out. `free`: of each request that is not counted."""

    def __init__(
        self, most: int, full: Callable[[], Refused], *, of_one: int | None = None, over: Callable[[], Refused] | None = None, free: int = 0,
    ) -> None:  # fmt: skip
        self.free = free
        self._left = most
        self._full = full
        self._of_one = most if of_one is None else of_one
        self._over = over or full
        self._held: Counter[Whose] = Counter()

    def share(self, whose: Whose) -> "Share":
        """`whose`: None where nobody can say who asks, as behind a proxy: then nobody has a part of his own."""
        return Share(self, whose)

    def take(self, size: int, whose: Whose) -> None:
        """Raises Refused."""
        self._refuse(size, whose)
        self.count(size, whose)

    def count(self, size: int, whose: Whose) -> None:
        """However much of it there is: others are refused for it."""
        self._left -= size
        self._held[whose] += size

    def refuse_over(self, whose: Whose) -> None:
        """Raises Refused if somebody has more of it than his part, which was counted."""
        if self._held[whose] > self._of_one:
            raise self._over()

    def _refuse(self, size: int, whose: Whose) -> None:
        if whose is not None and self._held[whose] + size > self._of_one:
            raise self._over()
        if size > self._left:
            raise self._full()

    def give(self, size: int, whose: Whose) -> None:
        self._left += size
        self._held[whose] -= size
        if not self._held[whose]:
            del self._held[whose]


class Share:
    """What one request has of it. `end` gives it back."""

    __slots__ = ("_budget", "_free", "_taken", "_whose")

    def __init__(self, budget: Budget, whose: Whose) -> None:
        self._budget = budget
        self._whose = whose
        self._free = budget.free
        self._taken = 0

    def take(self, size: int) -> None:
        """Raises Refused."""
        cost = size + PART_COST
        if cost <= self._free:
            self._free -= cost
            return
        self._budget.take(cost, self._whose)
        self._taken += cost

    def count(self, size: int) -> None:
        """The same of what is not refused any more."""
        self._budget.count(size, self._whose)
        self._taken += size

    def end(self) -> None:
        if self._taken:
            self._budget.give(self._taken, self._whose)
            self._taken = 0


class Budgets:
    """Those of one server: bodies of callers of whom nobody knows yet who they are, who have shown nothing but where they ask from; of
    those who are known; and answers."""

    def __init__(self, bounds: Bounds) -> None:
        self.unknown = Budget(
            bounds.unknown_bodies, _strangers_full, of_one=bounds.unknown_of_address, over=_bodies_of_address, free=SMALL_BODY
        )  # fmt: skip
        self.known = Budget(
            bounds.known_bodies, _bodies_full, of_one=bounds.bodies_of_token, over=_bodies_of_token, free=SMALL_BODY
        )  # fmt: skip
        self.answers = Budget(
            bounds.unread_answers, _answers_full, of_one=bounds.unread_of_token, over=_answers_of_token
        )


def _strangers_full() -> Refused:
    return Refused(
        503, "bodies-full", "This server holds all it may of what callers send that it does not know yet. Send it again later; small ones are taken.",
        headers=_LAST,
    )  # fmt: skip


def _bodies_of_address() -> Refused:
    return Refused(
        429, "bodies-of-address", "Your address has all the large bodies under way here that it may have unless it shows a token. Send one after the other.",
        headers=_LAST,
    )  # fmt: skip


def _bodies_full() -> Refused:
    return Refused(
        503, "bodies-full", "This server holds all it may of large bodies. Send it again later; small ones are taken.", headers=_LAST
    )  # fmt: skip


def _bodies_of_token() -> Refused:
    return Refused(
        429, "bodies-of-token", "This token has all the large bodies under way here that it may have. Send one after the other.",
        headers=_LAST,
    )  # fmt: skip


def _answers_full() -> Refused:
    return Refused(
        503, "answers-full", "This server holds all it may of large answers that are not read yet. Ask again later, or for less at once."
    )  # fmt: skip


def _answers_of_token() -> Refused:
    return Refused(
        429, "answers-of-token", "This token has all the large answers here that it may leave unread. Read them, or ask for less at once."
    )  # fmt: skip
