"""Signing in: by a link that the server printed at its start and that is good once, or with a token. Either makes a token for
this browser alone, which is revoked with the one it came from."""

from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest
from secrets import token_hex, token_urlsafe

from lateshift.api.authentication import Doorkeeper
from lateshift.api.problem import Refused
from lateshift.app.app import Lateshift
from lateshift.dashboard.session import SESSION
from lateshift.model.access import PREFIX, SIGN_IN_LINK, Scope, Token, new_token, parse, standing
from lateshift.runtime.aside import aside

LINK_USED = "This link was used, or is of an earlier start of the server."
NO_TOKEN = f"This is no token. A token begins with {PREFIX}: was it copied whole?"
CODE_BYTES = (
    16  # random ones, good once: more would not be guessed less, and the link fits a line of 80 columns
)


class SignIn:
    """Of one server. `code`: of the link, until it is used; only a digest of it is kept."""

    def __init__(self, app: Lateshift, doorkeeper: Doorkeeper) -> None:
        self._app = app
        self._doorkeeper = doorkeeper
        self._code: bytes | None = None

    def new_code(self) -> str:
        """For whoever sees the terminal. An earlier one is good for nothing from then on."""
        code = token_urlsafe(CODE_BYTES)
        self._code = sha256(code.encode()).digest()
        return code

    @property
    def waits(self) -> bool:
        """Whether the link is still good."""
        return self._code is not None

    async def by(self, form: Mapping[str, str], address: str = "") -> tuple[Token, str]:
        """A token for this browser, and its text. `address`: the socket's; who guesses has to wait. Raises Refused."""
        if form.get("code"):
            return await self._by_code(form["code"])
        typed = form.get("token", "").strip()
        try:
            parent = await self._doorkeeper.admit_to_sign_in(f"Bearer {typed}", address)
        except Refused as refused:
            if parse(typed) is None and refused.problem.status == 401:
                raise Refused(401, "unauthorized", NO_TOKEN) from None
            raise
        if standing(parent, Scope.READ, self._app.store.clock.now()) is not None:
            raise Refused(
                403, "scope-forbidden", f"This token has the scopes {', '.join(parent.scopes)}, and every page asks for read. Sign in with another.",
            )  # fmt: skip
        self._doorkeeper.count_sign_in(parent)
        made = await self._made(parent)
        await self._doorkeeper.note(parent)
        return made

    def knows(self, code: str) -> bool:
        """Whether a link with this code is still good."""
        return self._code is not None and compare_digest(self._code, sha256(code.encode()).digest())

    async def _by_code(self, code: str) -> tuple[Token, str]:
        if not self.knows(code):
            raise Refused(401, "link-used", LINK_USED)
        self._code = None
        return await self._made(None)

    async def _made(self, parent: Token | None) -> tuple[Token, str]:
        now = self._app.store.clock.now()
        ends = now + SESSION
        if parent is not None and parent.expires_at is not None:
            ends = min(ends, parent.expires_at)
        name = f"{SIGN_IN_LINK if parent is None else parent.name[:60]}:browser-{token_hex(6)}"
        scopes, queues = ([Scope.ADMIN], []) if parent is None else (parent.scopes, parent.queues)
        token, text = new_token(
            name, scopes, queues, at=now, by=SIGN_IN_LINK if parent is None else f"token {parent.name}", expires_at=ends,
            parent=None if parent is None else parent.root,
        )  # fmt: skip
        await aside(self._app.store.tokens.create, token, maker=None if parent is None else parent.id)
        return token, text
