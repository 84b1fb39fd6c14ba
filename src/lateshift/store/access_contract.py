"""What every store does about tokens, and about the record of what operators did. See contract.py for what holds of all verbs.

No secret is ever given to a store: a token is kept with the digest of its secret, and its name is what the audit says."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Protocol, TypeAlias
from uuid import UUID

from msgspec import Struct

from lateshift.model.access import Token, TokenState

TOKENS_AT_ONCE = 1_000  # tokens of one listing
AUDIT_AT_ONCE = 1_000  # lines of one page
AUDIT_LOOKED_AT = 10_000  # lines of one filter among which those of the others are looked for
AUDIT_TEXT_LIMIT = 500  # characters kept of each part of a line that somebody records
USED_EVERY = timedelta(minutes=1)  # how exactly it is known when a token was last used


class AuditRow(Struct, frozen=True, kw_only=True):
    """What somebody did. `number` grows from line to line, and is what the next page is asked for with."""

    number: int
    at: datetime
    action: str
    subject: str
    actor: str


class TokenGroup(IntEnum):
    """In the order in which they are listed."""

    LASTING = 0  # without an end, the newest first
    ENDING = 1  # by their end, the last first: those that are still good, then those that have expired
    REVOKED = 2  # the last one first


class TokenPlace(Struct, frozen=True, kw_only=True):
    """Where a token stands in the listing of all. `at`: when it ends or was revoked, by which its group is in order."""

    group: TokenGroup
    at: datetime | None
    id: UUID


def place_of(token: Token) -> TokenPlace:
    if token.revoked_at is not None:
        return TokenPlace(group=TokenGroup.REVOKED, at=token.revoked_at, id=token.id)
    group = TokenGroup.LASTING if token.expires_at is None else TokenGroup.ENDING
    return TokenPlace(group=group, at=token.expires_at, id=token.id)


FindHere: TypeAlias = Callable[[Sequence[UUID]], Awaitable[list[Token] | None]]


class Tokens(Protocol):
    def create(self, token: Token, *, maker: UUID | None = None) -> None:
        """Keep a new token; audited. Repeating an id is harmless. `maker`: the token of whoever asks for it. Raises TokenNameTaken if
        another that is not revoked has its name, and TokenRevoked if its parent or its maker is not there any more, is revoked, or has
        expired: looked at in the transaction that keeps it, however long ago its maker was let in."""

    def find(self, ids: Sequence[UUID]) -> list[Token]:
        """Those of these that are there, in no order, as they are at this moment: whoever was revoked says so."""

    def finding_here(self) -> AbstractAsyncContextManager[FindHere]:
        """`find` without a thread, on the running loop, while this is entered; it gives None while it cannot, and `find` is to be asked."""

    def named(self, name: str) -> Token | None:
        """The one of this name that is not revoked."""

    def list(
        self,
        limit: int,
        *,
        state: TokenState | None = None,
        sign_ins: bool = False,
        after: TokenPlace | None = None,
    ) -> list[Token]:
        """Those that are good first: without an end, the newest first; then by their end, the last first, so that those that have
        expired follow; then those that were revoked, the last first. `sign_ins`: the browsers' own, and no others; else none of
        these. `after`: behind this place. Raises OptionInvalid over TOKENS_AT_ONCE."""

    def revoke(self, id: UUID, *, by: str) -> bool:
        """From this commit on it is good for nothing, and those whose parent it is with it; audited. False if there is none, or it was revoked before."""

    def secret(self) -> bytes:
        """What all who serve this store know, and no caller: as many bytes as a digest has, drawn when the store was made."""

    def used(self, ids: Sequence[UUID]) -> None:
        """These were used now. Written at most once in USED_EVERY for each."""


class AuditLog(Protocol):
    def list(
        self,
        *,
        before: int | None = None,
        limit: int,
        subject: str | None = None,
        actor: str | None = None,
        action: str | None = None,
        starts: bool = True,
    ) -> list[AuditRow]:
        """The newest first, those with a lower number than `before`. Of several filters the first (subject, actor, action) is
        served by an index, and the others are looked for among the newest AUDIT_LOOKED_AT lines that fit it. `starts`: with those
        of jobs that were started; to leave these out is a filter too. Raises OptionInvalid over AUDIT_AT_ONCE."""

    def record(self, action: str, subject: str, *, by: str) -> None:
        """What no other verb records, such as a sign-in. Parts over AUDIT_TEXT_LIMIT characters are cut."""
