"""A token, without what it is made of."""

from datetime import datetime
from typing import Any
from uuid import UUID

from msgspec import Struct

from lateshift.model.access import Scope, Token, TokenState, ended


class TokenDocument(Struct, frozen=True, kw_only=True):
    """What a token is good for, and until when. No queues are all queues."""

    id: UUID
    name: str
    state: str
    scopes: list[Scope]
    queues: list[str]
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None
    last_used_at: datetime | None


class ShownToken(TokenDocument, frozen=True, kw_only=True):
    """A token that was made now: its text is shown this once."""

    token: str


def token_document(token: Token, now: datetime) -> TokenDocument:
    return TokenDocument(**_fields(token, now))


def shown_token(token: Token, text: str, now: datetime) -> ShownToken:
    return ShownToken(**_fields(token, now), token=text)


def state_of(token: Token, now: datetime) -> str:
    return ended(token, now) or TokenState.GOOD


def _fields(token: Token, now: datetime) -> dict[str, Any]:
    names = [name for name in TokenDocument.__struct_fields__ if name != "state"]
    return {name: getattr(token, name) for name in names} | {"state": state_of(token, now)}
