"""Tokens, and the record of what was done with them. For whoever may do all."""

from datetime import timedelta
from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct

from lateshift.api.asked import Asked
from lateshift.api.bounds import PAGE, Cursor, PageSize, Text
from lateshift.api.paging import Paging, paged
from lateshift.api.problem import Refused
from lateshift.api.route import Done, Reach, Route
from lateshift.documents.tokens import ShownToken, TokenDocument, shown_token, token_document
from lateshift.errors import OptionInvalid
from lateshift.model.access import TOKEN_NAME_LIMIT, TOKEN_QUEUES_MOST, Scope, Token, TokenState, new_token
from lateshift.model.retry import LONGEST_DELAY
from lateshift.model.words import duration
from lateshift.operating.written import length
from lateshift.store.access_contract import AuditRow, TokenPlace, place_of

_LONGEST = LONGEST_DELAY.total_seconds()


class NewTokenBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token to make. `queues` are patterns such as images.*, and null is all queues, but an empty list is refused; `expires` is how long from now: a number of
    seconds, or text such as 12h or 30d."""

    name: Annotated[str, Meta(min_length=1, max_length=TOKEN_NAME_LIMIT)]
    scopes: Annotated[list[Scope], Meta(min_length=1, max_length=len(Scope))]
    queues: Annotated[list[str], Meta(min_length=1, max_length=TOKEN_QUEUES_MOST)] | None = None
    expires: (
        Annotated[float, Meta(gt=0, le=_LONGEST)] | Annotated[str, Meta(min_length=2, max_length=40)] | None
    ) = None


class TokenQuery(Paging, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`sign_ins`: instead of the others, those of browsers, which are made when somebody signs in."""

    state: Literal["good", "expired", "revoked"] | None = None
    sign_ins: bool = False


class TokenList(Struct, frozen=True, kw_only=True):
    """Those that are good first: without an end, the newest first, then by their end, the last first, and those that have expired behind
    them; then those that were revoked, the last first. `next`: the cursor of the next page, if there may be one."""

    tokens: list[TokenDocument]
    next: str | None


class AuditQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`starts`: with the jobs that were started."""

    subject: Text | None = None
    actor: Text | None = None
    action: Text | None = None
    starts: bool = True
    limit: PageSize = PAGE
    cursor: Cursor | None = None


class AuditPage(Struct, frozen=True, kw_only=True):
    """The newest first. `next`: the cursor of the next page, if there may be one."""

    audit: list[AuditRow]
    next: str | None


def list_tokens(asked: Asked) -> TokenList:
    """Tokens: what each is good for, and when it was last used. Of what they are made of nothing is shown."""
    query: TokenQuery = asked.query
    state = None if query.state is None else TokenState(query.state)

    def read(after: TokenPlace | None, limit: int) -> list[Token]:
        return asked.store.tokens.list(limit, state=state, sign_ins=query.sign_ins, after=after)

    found, more = paged(asked, TokenPlace, read, place_of)
    now = asked.store.clock.now()
    return TokenList(tokens=[token_document(token, now) for token in found], next=more)


def create_token(asked: Asked) -> ShownToken:
    """Make a token and show it, this once: only a digest of it is kept.

    Names are used once: the same request again is refused with 409, with an Idempotency-Key too, as its answer is not kept."""
    body: NewTokenBody = asked.body
    now = asked.store.clock.now()
    expires_at = None if body.expires is None else now + _lasting(body.expires)
    token, text = new_token(
        body.name, body.scopes, body.queues or (), at=now, by=asked.by, expires_at=expires_at
    )
    # Else whoever revokes the one that asks has to revoke what it makes at that moment too.
    asked.store.tokens.create(token, maker=None if asked.token is None else asked.token.id)
    return shown_token(token, text, now)


def _lasting(expires: float | str) -> timedelta:
    """Raises Refused."""
    try:
        lasts = length(expires) if isinstance(expires, str) else timedelta(seconds=expires)
    except OptionInvalid as error:
        raise Refused(
            422, "body-invalid", f"expires: {error} Or a number of seconds.", field="expires"
        ) from None
    if not timedelta(0) < lasts <= LONGEST_DELAY:
        raise Refused(422, "body-invalid", f"expires: up to {duration(LONGEST_DELAY)}.", field="expires")
    return lasts


def revoke_token(asked: Asked) -> Done:
    """From now on a token is good for nothing."""
    id: UUID = asked.id
    if not asked.store.tokens.find([id]):
        raise Refused(404, "token-unknown", f"There is no token {id}. GET /v1/tokens lists them.")
    return Done(subject=f"token {id}", action="revoked", changed=asked.store.tokens.revoke(id, by=asked.by))


def list_audit(asked: Asked) -> AuditPage:
    """What operators and tokens did, the newest first, page by page."""
    query: AuditQuery = asked.query
    before = asked.cursors.read(query.cursor, int)
    rows = asked.store.audit.list(
        before=before, limit=query.limit, subject=query.subject, actor=query.actor, action=query.action,
        starts=query.starts,
    )  # fmt: skip
    more = rows[-1].number if len(rows) == query.limit else None
    return AuditPage(audit=rows, next=asked.cursors.write(more))


ROUTES = (
    Route(method="GET", path="/v1/tokens", handler=list_tokens, asks=TokenQuery, gives=TokenList, scope=Scope.ADMIN,
          reach=Reach.ALL),
    Route(method="POST", path="/v1/tokens", handler=create_token, takes=NewTokenBody, gives=ShownToken, status=201,
          scope=Scope.ADMIN, reach=Reach.ALL, forgets=True,
          links={"revoke_token": "id"}),
    Route(method="POST", path="/v1/tokens/{id}/revoke", handler=revoke_token, gives=Done, scope=Scope.ADMIN, reach=Reach.ALL),
    Route(method="GET", path="/v1/audit", handler=list_audit, asks=AuditQuery, gives=AuditPage, dear=True, scope=Scope.ADMIN,
          reach=Reach.ALL),
)  # fmt: skip
