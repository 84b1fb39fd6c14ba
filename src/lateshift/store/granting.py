"""What both stores do alike about tokens and the audit: how a row is written, and what is refused before a store is asked."""

from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from lateshift.errors import OptionInvalid, TokenNameTaken, TokenRevoked
from lateshift.model.access import SIGN_IN_LINK, Scope, Token, TokenState
from lateshift.model.outcome import clip
from lateshift.store.access_contract import (
    AUDIT_AT_ONCE,
    AUDIT_TEXT_LIMIT,
    TOKENS_AT_ONCE,
    TokenGroup,
    TokenPlace,
)

# Whether a token is a browser's own, in the words that the indexes have.
SIGN_IN = f"(CASE WHEN parent IS NOT NULL OR created_by = '{SIGN_IN_LINK}' THEN 1 ELSE 0 END)"


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a listing of tokens: those of a group that end after `above`, and stand behind `at` and `id`. None is no bound."""

    group: TokenGroup
    above: datetime | None = None
    at: datetime | None = None
    id: UUID | None = None


def spans(state: TokenState | None, after: TokenPlace | None, now: datetime) -> list[Span]:
    """What is read one after the other until there are enough."""
    lasting, revoked = Span(TokenGroup.LASTING), Span(TokenGroup.REVOKED)
    match state:
        case None:
            wanted = [lasting, Span(TokenGroup.ENDING), revoked]
        case TokenState.GOOD:
            wanted = [lasting, Span(TokenGroup.ENDING, above=now)]
        case TokenState.EXPIRED:
            # One that ends at this moment has expired: no id is before the first.
            wanted = [Span(TokenGroup.ENDING, at=now, id=UUID(int=2**128 - 1))]
        case TokenState.REVOKED:
            wanted = [revoked]
    if after is None:
        return wanted
    left = [span for span in wanted if span.group >= after.group]
    return [replace(span, at=after.at, id=after.id) if span.group is after.group else span for span in left]


def scopes_of(kept: str) -> tuple[Scope, ...]:
    """A scope that this version does not know is good for nothing in it."""
    known = set(Scope)
    return tuple(Scope(each) for each in kept.split(",") if each in known)


def queues_of(kept: str) -> tuple[str, ...]:
    return tuple(kept.split(",")) if kept else ()


def subject_of(name: str) -> str:
    """What the audit calls a token."""
    return f"token {name}"


def taken(name: str) -> TokenNameTaken:
    return TokenNameTaken(
        f"There is a token {name} that is not revoked. Choose another name, or revoke that one first: "
        f"`lateshift tokens revoke {name}`."
    )


def makers(token: Token, maker: UUID | None) -> list[UUID]:
    """Those that have to be good for it to be made, each once, in one order for all: who looks at them locks them."""
    return sorted({id for id in (token.parent, maker) if id is not None})


def orphan(name: str) -> TokenRevoked:
    return TokenRevoked(
        f"The token that {name} would be made from is revoked, has expired or is gone. Ask or sign in with another."
    )


def tokens_limit(limit: int) -> int:
    return _limit(limit, TOKENS_AT_ONCE)


def audit_limit(limit: int) -> int:
    return _limit(limit, AUDIT_AT_ONCE)


def recorded(text: str) -> str:
    """As much of it as a line of the audit holds."""
    return clip(text, AUDIT_TEXT_LIMIT)


def _limit(limit: int, most: int) -> int:
    if type(limit) is not int or not 1 <= limit <= most:
        raise OptionInvalid(f"limit is a whole number from 1 to {most:,}, not {limit!r}.")
    return limit
