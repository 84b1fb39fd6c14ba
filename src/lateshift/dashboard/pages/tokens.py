"""Tokens, and the record of what was done with them. For whoever may do all."""

from datetime import datetime
from typing import Any
from uuid import UUID

from msgspec import Struct

from lateshift.api.bounds import PAGE_MOST
from lateshift.api.route import Asked, Reach
from lateshift.api.routes import tokens
from lateshift.dashboard.page import Action, Context, Form, Page
from lateshift.dashboard.typed import UNITS, seconds_in, words_in
from lateshift.documents.tokens import TokenDocument, token_document
from lateshift.model.access import Scope, Token

_ROUTES = {route.handler: route for route in tokens.ROUTES}
ABOUT = {
    Scope.ENQUEUE: "start jobs", Scope.READ: "look at everything", Scope.OPERATE: "look, pause, cancel, resubmit",
    Scope.ADMIN: "all of that, and tokens",
}  # fmt: skip


class TokenLine(Struct, frozen=True, kw_only=True):
    """`sign_in`: it is a browser's own, made when somebody signed in. `mine`: this browser's."""

    token: TokenDocument
    sign_in: bool
    mine: bool


def tokens_page(asked: Asked) -> Context:
    """Tokens, the newest first, and the browsers that signed in apart. By `tokens.list`, 200 at most."""
    now = asked.store.clock.now()
    found = asked.store.tokens.list(PAGE_MOST)
    own = None if asked.token is None else asked.token.id
    lines = [_line(token, own, now) for token in found]
    return {
        "lines": [line for line in lines if not line.sign_in], "sign_ins": [line for line in lines if line.sign_in],
        "scopes": ABOUT, "units": list(UNITS), "cut": len(found) == PAGE_MOST, "most": PAGE_MOST,
    }  # fmt: skip


def _line(token: Token, own: UUID | None, now: datetime) -> TokenLine:
    return TokenLine(token=token_document(token, now), sign_in=_is_sign_in(token), mine=token.id == own)


def _is_sign_in(token: Token) -> bool:
    """One by a link has no parent, and its name alone says so."""
    return token.parent is not None or ":browser-" in token.name


def _new(form: Form) -> Any:
    return {
        "name": form.get("name", "").strip(), "scopes": words_in(form, "scopes"), "queues": words_in(form, "queues"),
        "expires": seconds_in(form, "expires"),
    }  # fmt: skip


def audit_page(asked: Asked) -> Context:
    """What was done, the newest first. By `audit.list`: a page of an index, and of several filters the others are looked for among
    the newest 10,000 lines of the first."""
    return {"found": tokens.list_audit(asked), "query": asked.query}


PAGES = (
    Page(path="/tokens", title="Tokens", section="Tokens", template="tokens.html", handler=tokens_page, scope=Scope.ADMIN,
         reach=Reach.ALL,
         actions={
             "create": Action(route=_ROUTES[tokens.create_token], body=_new, shows="token_made.html"),
             "{id}/revoke": Action(route=_ROUTES[tokens.revoke_token]),
         }),
    Page(path="/audit", title="Audit", section="Audit", template="audit.html", handler=audit_page, scope=Scope.ADMIN,
         reach=Reach.ALL, asks=tokens.AuditQuery),
)  # fmt: skip
