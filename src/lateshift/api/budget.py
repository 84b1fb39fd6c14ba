"""How many bytes of bodies are held for callers of whom nobody knows yet who they are: as many as they like of them come together, and
none has shown anything that could be counted."""

from lateshift.api.problem import RETRY_AFTER, Refused

PART_COST = 64  # bytes that keeping a part costs besides, however small it is


class Budget:
    """Of one server."""

    def __init__(self, most: int) -> None:
        self.left = most

    def share(self) -> "Share":
        return Share(self)


class Share:
    """What one request has of it. `end` gives it back."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._taken = 0

    def take(self, size: int) -> None:
        """Raises Refused."""
        cost = size + PART_COST
        if cost > self._budget.left:
            raise Refused(
                503, "bodies-full", "This server holds all it may of what callers send that it does not know yet. Send it again later.",
                headers={"Retry-After": str(RETRY_AFTER), "Connection": "close"},
            )  # fmt: skip
        self._budget.left -= cost
        self._taken += cost

    def end(self) -> None:
        self._budget.left += self._taken
        self._taken = 0
