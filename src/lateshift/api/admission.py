"""That a caller was let in, which is true of a moment: whoever had something to wait for after that, such as his body or a thread, is looked
at again before anything is done, so that a token that is revoked meanwhile does nothing. Whoever had not pays next to nothing for it."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from lateshift.api.authentication import Doorkeeper
from lateshift.api.bounds import LOOK_LASTS
from lateshift.api.route import Route
from lateshift.model.access import Token

T = TypeVar("T")
_LASTS = LOOK_LASTS.total_seconds()


class Admission:
    """Of one request. `token`: None where anybody may ask."""

    def __init__(self, doorkeeper: Doorkeeper, route: Route, token: Token | None) -> None:
        self.token = token
        self._doorkeeper = doorkeeper
        self._route = route
        self._monotonic = doorkeeper.monotonic
        self._looked_at = self._monotonic()

    async def again(self) -> None:
        """Raises Refused unless the token is still good for this."""
        if self.token is not None:
            await self._doorkeeper.again(self.token, self._route)
            self._looked_at = self._monotonic()

    async def if_late(self) -> None:
        """The same where the last look was more than a moment ago."""
        if self._is_late:
            await self.again()

    def if_late_here(self) -> None:
        """The same on a thread, right before what is done there."""
        if self._is_late and self.token is not None:
            self._doorkeeper.again_here(self.token, self._route)
            self._looked_at = self._monotonic()

    def refuse_unread(self) -> None:
        """Before something is done, whose answer is told however large it is: not to whoever leaves so much unread already. Raises Refused."""
        if self.token is not None:
            self._doorkeeper.budgets.answers.refuse_over(self.token.root)

    async def in_turn(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What a route that looks at a lot gives, when it is its turn. The browsers of a token count as that token. Raises Refused."""
        assert self.token is not None, "nobody looks at a lot without one"
        return await self._doorkeeper.turns.run(self.token.root, work)

    @property
    def _is_late(self) -> bool:
        return self._monotonic() - self._looked_at > _LASTS
