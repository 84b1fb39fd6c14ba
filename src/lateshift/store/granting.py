"""What both stores do alike about tokens and the audit: how a row is written, and what is refused before a store is asked."""

from lateshift.errors import OptionInvalid, TokenNameTaken, TokenRevoked
from lateshift.model.access import Scope
from lateshift.model.outcome import clip
from lateshift.store.access_contract import AUDIT_AT_ONCE, AUDIT_TEXT_LIMIT, TOKENS_AT_ONCE


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


def orphan(name: str) -> TokenRevoked:
    return TokenRevoked(
        f"The token that {name} would be made from is revoked, or gone. Sign in with another."
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
