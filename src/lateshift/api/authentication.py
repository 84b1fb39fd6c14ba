"""Who asks: a bearer token, looked up at every request, so that one that is revoked is good for nothing from then on.

Requests that come together share a look. Nothing is told of why a token is not known, and none of the time it takes depends on
how nearly it was right."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

from lateshift.api.bounds import (
    BOUNDS,
    DEAR_AT_ONCE,
    DEAR_OF_TOKEN,
    FAILURES_OF_ADDRESS,
    FAILURES_OF_TOKEN,
    SIGN_IN_EVERY,
    SIGN_INS_AT_ONCE,
    TOKEN_RATE,
)
from lateshift.api.budget import Budgets
from lateshift.api.problem import Refused
from lateshift.api.rates import Backoff, Rate, caller_at
from lateshift.api.route import Route, may, no_queue
from lateshift.api.turns import Turns
from lateshift.app.app import Lateshift
from lateshift.errors import LateshiftError
from lateshift.model.access import Scope, Token, ended, new_token, parse, verify
from lateshift.runtime.aside import aside
from lateshift.runtime.log import log
from lateshift.runtime.together import Together
from lateshift.store.access_contract import USED_EVERY, FindHere

REALM = 'Bearer realm="lateshift"'
REMEMBERED = 10_000  # tokens whose last use is remembered here


class Doorkeeper:
    """Knows the callers of one app."""

    def __init__(
        self, app: Lateshift, rate: Rate | None = None, *, by_address: bool = True, turns: Turns | None = None, budgets: Budgets | None = None,
    ) -> None:  # fmt: skip
        """`rate`: of one token. `by_address`: whether the socket's address says who it is, and not a proxy's. `turns`: of those who look
        at a lot, `budgets`: of what is held for those who ask; over the API and the pages alike."""
        self._app = app
        self.budgets = budgets or Budgets(BOUNDS)
        self.turns = turns or Turns(DEAR_AT_ONCE, DEAR_OF_TOKEN)
        self._rate = rate or Rate(TOKEN_RATE, self.monotonic)
        self._sign_ins = Rate(
            1 / SIGN_IN_EVERY.total_seconds(), self.monotonic, burst=SIGN_INS_AT_ONCE, why="This token has signed in too often."
        )  # fmt: skip
        self._by_address = by_address
        self._of_token = Backoff(FAILURES_OF_TOKEN, self.monotonic)
        self._of_address = Backoff(FAILURES_OF_ADDRESS, self.monotonic)
        self._together = Together(self._find, here=self._find_here)
        self._finder: FindHere | None = None
        self._used: dict[UUID, datetime] = {}
        # Whoever names no token is compared with this one's secret, which nobody has.
        self._nobody, _ = new_token("nobody", [Scope.READ], [], at=app.clock.now(), by="nobody")

    async def admit(self, headers: list[str], route: Route, address: str = "") -> Token:
        """The token that a request holds, if it is good for this route. Raises Refused."""
        token = await self.who(*headers, address=address)
        self._rate.take(token.root)  # its browsers count as the token: else it asked as often as it signs in
        self._refuse(token, route)
        await self.note(token)
        return token

    async def admit_to_sign_in(self, header: str, address: str = "") -> Token:
        """The token that somebody signs in with, if it is good for anything. Raises Refused."""
        token = await self.who(header, address=address)
        if (why := ended(token, self._app.store.clock.now())) is not None:
            raise _ended(why)
        return token

    def count_sign_in(self, token: Token) -> None:
        """Each leaves a token and lines of the audit, which stay for long. Raises Refused."""
        self._sign_ins.take(token.root)

    async def still(self, token: Token | None, route: Route) -> bool:
        """Whether a token is good for a route that it was good for. Those that ask together share a look."""
        if token is None:
            return True
        now = await self._together.put(token.id)
        return now is not None and may(now, route, self._app) is None

    async def again(self, token: Token, route: Route) -> None:
        """A second look at a token that was let in. Raises Refused unless it is still good."""
        self._refuse(await self._together.put(token.id), route)

    def again_here(self, token: Token, route: Route) -> None:
        """The same on a thread."""
        self._refuse(self._find([token.id])[0], route)

    def caller(self, address: str) -> str | None:
        """By what somebody at this address of a socket is known who has shown nothing; None behind a proxy, where all have the same."""
        return caller_at(address) if self._by_address and address else None

    def monotonic(self) -> float:
        return self._app.clock.monotonic()

    def _refuse(self, token: Token | None, route: Route) -> None:
        """Raises Refused unless a token may use a route, as far as that is known by now."""
        if token is None:
            raise _ended("deleted")
        match may(token, route, self._app):
            case "revoked" | "expired" as why:
                raise _ended(why)
            case "queue":
                raise no_queue(token, None, route)
            case "scope":
                raise Refused(
                    403, "scope-forbidden", f"This token has the scopes {', '.join(token.scopes)}, and this asks for {route.scopes}.",
                    headers={"WWW-Authenticate": f'{REALM}, error="insufficient_scope", scope="{route.needs}"'},
                )  # fmt: skip

    async def who(self, *headers: str, address: str = "") -> Token:
        """Whose token it is that these headers hold, whatever it is good for. `address`: the socket's. Raises Refused."""
        caller = self.caller(address)
        if not headers:
            raise Refused(
                401, "unauthorized", "Send a token: `Authorization: Bearer lsh_…`. `lateshift tokens create` makes one.",
                headers={"WWW-Authenticate": REALM},
            )  # fmt: skip
        if (held := held_in(headers)) is None:
            self._failed(caller)
            raise _unknown("This is no token: the header is `Authorization: Bearer lsh_…`, and stands once.")
        id, secret = held
        if caller:
            self._of_token.check((caller, id))
        token = await self._together.put(id)
        if not verify(token or self._nobody, secret) or token is None:
            if caller:
                self._of_token.failed((caller, id))
            self._failed(caller)
            raise _unknown("This token is not known. Was it copied whole?")
        return token

    def _failed(self, caller: str | None) -> None:
        """Raises Refused while the address has to wait, for whatever is not good: a token that is good is let in meanwhile, so that
        nobody without one can keep it out."""
        if caller:
            self._of_address.check(caller)
            self._of_address.failed(caller)

    @asynccontextmanager
    async def finding_here(self) -> AsyncIterator[None]:
        """Meanwhile those who ask on the running loop need no thread for a look, where the store has a way."""
        store = await aside(lambda: self._app.store)
        async with store.tokens.finding_here() as self._finder:
            try:
                yield
            finally:
                self._finder = None

    def _find(self, ids: Sequence[UUID]) -> list[Token | None]:
        return _each(ids, self._app.store.tokens.find(_once(ids)))

    async def _find_here(self, ids: Sequence[UUID]) -> list[Token | None] | None:
        found = None if self._finder is None else await self._finder(_once(ids))
        return None if found is None else _each(ids, found)

    async def note(self, token: Token) -> None:
        """That it was used, and with a browser's the one that it signed in with. Seldom, and never in the way of an answer."""
        now, before = self._app.store.clock.now(), self._used.get(token.id)
        if before is not None and now - before < USED_EVERY:
            return
        if len(self._used) >= REMEMBERED:
            self._used.clear()
        self._used[token.id] = now
        try:
            await aside(
                self._app.store.tokens.used, [token.id] if token.parent is None else [token.id, token.parent]
            )
        except LateshiftError as error:
            log.warning("when a token was used could not be noted: %s", error)


def _once(ids: Sequence[UUID]) -> list[UUID]:
    return list(dict.fromkeys(ids))


def _each(ids: Sequence[UUID], found: list[Token]) -> list[Token | None]:
    known = {token.id: token for token in found}
    return [known.get(id) for id in ids]


def held_in(headers: Sequence[str]) -> tuple[UUID, bytes] | None:
    """The id and the secret that the Authorization of a request holds, whether they are known or not."""
    scheme, _, text = headers[0].partition(" ") if len(headers) == 1 else ("", "", "")
    return parse(text.strip()) if scheme.lower() == "bearer" else None


def _ended(why: str) -> Refused:
    return _unknown(f"This token is {why}. Ask for another.")


def _unknown(detail: str) -> Refused:
    return Refused(
        401, "unauthorized", detail, headers={"WWW-Authenticate": f'{REALM}, error="invalid_token"'}
    )
