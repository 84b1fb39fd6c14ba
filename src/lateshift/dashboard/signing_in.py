"""Signing in: by a link that the server printed at its start and that is good once, or with a token. Either makes a token for
this browser alone, which is revoked with the one it came from."""

from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest
from secrets import token_hex, token_urlsafe

from lateshift.api.authentication import Doorkeeper
from lateshift.api.problem import Refused
from lateshift.app import Lateshift
from lateshift.dashboard.session import SESSION
from lateshift.model.access import Scope, Token, new_token
from lateshift.runtime.aside import aside

LINK = "sign-in-link"


class SignIn:
    """Of one server. `code`: of the link, until it is used; only a digest of it is kept."""

    def __init__(self, app: Lateshift, doorkeeper: Doorkeeper) -> None:
        self._app = app
        self._doorkeeper = doorkeeper
        self._code: bytes | None = None

    def new_code(self) -> str:
        """For whoever sees the terminal. An earlier one is good for nothing from then on."""
        code = token_urlsafe(32)
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
        parent = await self._doorkeeper.who(f"Bearer {form.get('token', '').strip()}", address=address)
        return await self._made(parent)

    async def _by_code(self, code: str) -> tuple[Token, str]:
        right = self._code is not None and compare_digest(self._code, sha256(code.encode()).digest())
        if not right:
            raise Refused(
                401, "link-used", "This link was used, or is of an earlier start. Sign in with a token, or start the server again."
            )  # fmt: skip
        self._code = None
        return await self._made(None)

    async def _made(self, parent: Token | None) -> tuple[Token, str]:
        now = self._app.store.clock.now()
        ends = now + SESSION
        if parent is not None and parent.expires_at is not None:
            ends = min(ends, parent.expires_at)
        name = f"{LINK if parent is None else parent.name[:60]}:browser-{token_hex(6)}"
        scopes, queues = ([Scope.ADMIN], []) if parent is None else (parent.scopes, parent.queues)
        token, text = new_token(
            name, scopes, queues, at=now, by=LINK if parent is None else f"token {parent.name}", expires_at=ends,
            parent=None if parent is None else parent.parent or parent.id,
        )  # fmt: skip
        await aside(self._app.store.tokens.create, token)
        return token, text
