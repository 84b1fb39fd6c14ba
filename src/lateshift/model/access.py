"""Who may do what: tokens, their scopes and the queues that they are for. Decisions only; stores keep the tokens.

The text of a token is shown once, when it is made. What is kept is a digest, of which nobody can make the text again.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from hmac import compare_digest
from secrets import token_bytes
from typing import Any
from uuid import UUID

from msgspec import Struct

from lateshift.config import QUEUE_PATTERN
from lateshift.errors import OptionInvalid
from lateshift.model import checks
from lateshift.model.ids import job_id_of, new_job_id
from lateshift.model.member import served

TOKEN_NAME_LIMIT = 100  # characters
TOKEN_QUEUES_MOST = 50  # patterns of one token
TOKEN_PATTERN_LIMIT = 100  # characters of one pattern, as many as a queue's name may have
PREFIX = "lsh_"  # so that scanners for secrets find a token that was left somewhere
SECRET_BYTES = 32
SIGN_IN_LINK = "sign-in-link"  # who made the token of a browser that signed in by a link, which has no parent

_NAME = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_.:@\-]{{0,{TOKEN_NAME_LIMIT - 1}}}")
# 16 bytes of the id and 32 of the secret: no padding, one spelling.
_TEXT = re.compile(PREFIX + r"[A-Za-z0-9_-]{64}")
_ID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)


class Scope(StrEnum):
    """What a token is good for. `admin` includes all others, `operate` includes `read`."""

    ENQUEUE = "enqueue"
    READ = "read"
    OPERATE = "operate"
    ADMIN = "admin"


_INCLUDED = {
    Scope.ENQUEUE: {Scope.ENQUEUE},
    Scope.READ: {Scope.READ},
    Scope.OPERATE: {Scope.OPERATE, Scope.READ},
    Scope.ADMIN: set(Scope),
}


class TokenState(StrEnum):
    GOOD = "good"
    EXPIRED = "expired"
    REVOKED = "revoked"


class Token(Struct, frozen=True, kw_only=True):
    """What is kept of a token. `queues` are patterns such as `images.*`; none is all queues. `parent`: the token that a browser
    signed in with, which this one is revoked with."""

    id: UUID
    name: str
    scopes: tuple[Scope, ...]
    queues: tuple[str, ...]
    digest: bytes
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    revoked_by: str | None = None
    last_used_at: datetime | None = None
    parent: UUID | None = None

    @property
    def root(self) -> UUID:
        """Whose it is: that of a browser is the token's that it signed in with."""
        return self.parent or self.id

    def __repr__(self) -> str:
        return f"Token(id={self.id}, name={self.name!r}, scopes={','.join(self.scopes)!r}, queues={self.queues!r})"


def new_token(
    name: str,
    scopes: Iterable[Scope | str],
    queues: Iterable[str],
    *,
    at: datetime,
    by: str,
    expires_at: datetime | None = None,
    parent: UUID | None = None,
) -> tuple[Token, str]:
    """A token to keep, and its text to show once. Raises OptionInvalid for what no token can have."""
    secret = token_bytes(SECRET_BYTES)
    token = Token(
        id=new_job_id(), name=_name(name), scopes=_scopes(scopes), queues=_queues(queues), digest=sha256(secret).digest(),
        created_at=at, created_by=by, expires_at=_expiry(at, expires_at), parent=parent,
    )  # fmt: skip
    return token, PREFIX + urlsafe_b64encode(token.id.bytes + secret).decode()


def parse(text: str) -> tuple[UUID, bytes] | None:
    """The id and the secret that a token's text holds, or None if it is the text of none."""
    if not _TEXT.fullmatch(text):
        return None
    held = urlsafe_b64decode(text.removeprefix(PREFIX))
    return job_id_of(held[:16]), held[16:]


def verify(token: Token, secret: bytes) -> bool:
    """Whether this is the token's secret, in a time that does not tell how nearly it is."""
    return compare_digest(sha256(secret).digest(), token.digest)


def refusal(token: Token, scope: Scope, queue: str | None, now: datetime) -> str | None:
    """Why a token whose secret is right may not do this: `revoked`, `expired`, `scope` or `queue`; None if it may.

    `queue` is the queue that it is about. None is what is of no one queue, such as the list of all jobs, the members or the
    audit: a token that is for some queues may not. Whoever asks before the queue is known asks `standing`, and this later.
    """
    why = standing(token, scope, now)
    if why is None and token.queues and (queue is None or not served(queue, token.queues)):
        return "queue"
    return why


def standing(token: Token, scope: Scope, now: datetime) -> str | None:
    """The part of `refusal` that needs no queue. Not enough to let anybody at a queue's jobs."""
    why = ended(token, now)
    if why is None and scope not in _granted(token.scopes):
        return "scope"
    return why


@lru_cache
def _granted(scopes: tuple[Scope, ...]) -> frozenset[Scope]:
    return frozenset().union(*[_INCLUDED[each] for each in scopes])


def ended(token: Token, now: datetime) -> str | None:
    """Why a token is good for nothing any more: `revoked` or `expired`; None if it is not."""
    if token.revoked_at is not None:
        return "revoked"
    if token.expires_at is not None and token.expires_at <= now:
        return "expired"
    return None


def looks_like_token(text: str) -> bool:
    """Whether somebody gave a token, or a part of one, where a name belongs: it must not be said back to them."""
    return text.lstrip().startswith(PREFIX)


def _name(name: Any) -> str:
    if isinstance(name, str) and looks_like_token(name):
        raise OptionInvalid(
            f"The name of a token must not begin with {PREFIX}, as tokens themselves do.", "name"
        )
    if not isinstance(name, str) or not _NAME.fullmatch(name) or _ID.fullmatch(name):
        raise OptionInvalid(
            f"{name!r} is no name of a token: 1 to {TOKEN_NAME_LIMIT} letters, digits and any of _ . : @ - with a letter or "
            "digit first, and no id.",
            "name",
        )
    return name


def _scopes(scopes: Iterable[Any]) -> tuple[Scope, ...]:
    known = ", ".join(Scope)
    asked = _several("scopes", scopes)
    unknown = [each for each in asked if each not in list(Scope)]
    if unknown or not asked:
        said = f"not {unknown[0]!r}" if unknown else "and there is none"
        raise OptionInvalid(f"A token has one or more of these scopes: {known}; {said}.", "scopes")
    return tuple(scope for scope in Scope if scope in asked)


def _queues(queues: Iterable[Any]) -> tuple[str, ...]:
    patterns = _several("queues", queues)
    if len(patterns) > TOKEN_QUEUES_MOST:
        raise OptionInvalid(
            f"A token has at most {TOKEN_QUEUES_MOST} patterns of queues, not {len(patterns)}.", "queues"
        )
    for pattern in patterns:
        if (
            not isinstance(pattern, str)
            or len(pattern) > TOKEN_PATTERN_LIMIT
            or not QUEUE_PATTERN.fullmatch(pattern)
        ):
            raise OptionInvalid(
                f"{pattern!r} is no pattern of queues: up to {TOKEN_PATTERN_LIMIT} characters such as images.* or mail-?.",
                "queues",
            )
    return tuple(dict.fromkeys(patterns))


def _several(name: str, given: Any) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise OptionInvalid(f"{name} is a list of text, not {given!r}.", name)
    return list(given)


def _expiry(at: datetime, expires_at: Any) -> datetime | None:
    if expires_at is None:
        return None
    if not isinstance(expires_at, datetime) or expires_at.tzinfo is None:
        raise OptionInvalid(f"expires_at is a datetime with a time zone, not {expires_at!r}.")
    if checks.duration("The life of a token", expires_at - at) <= timedelta(0):
        raise OptionInvalid("A token must expire after it is made: give it longer than nothing.", "expires")
    return expires_at
