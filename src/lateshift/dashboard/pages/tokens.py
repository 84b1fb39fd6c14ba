"""Tokens, and the record of what was done with them. For whoever may do all."""

from typing import Any
from uuid import UUID

from msgspec import Struct

from lateshift.api.asked import Asked
from lateshift.api.bounds import PAGE
from lateshift.api.problem import Refused
from lateshift.api.route import Reach
from lateshift.api.routes import tokens
from lateshift.dashboard.page import Action, Context, Form, Page
from lateshift.dashboard.typed import UNITS, seconds_in, words_in
from lateshift.documents.tokens import TokenDocument, token_document
from lateshift.model.access import Scope

ABOUT = {
    Scope.ENQUEUE: "start jobs", Scope.READ: "look at everything", Scope.OPERATE: "look, pause, cancel, resubmit",
    Scope.ADMIN: "all of that, and tokens",
}  # fmt: skip


class TokenLine(Struct, frozen=True, kw_only=True):
    """`mine`: this browser's."""

    token: TokenDocument
    mine: bool


def tokens_page(asked: Asked) -> Context:
    """A page of tokens, those that are good first, and the first browsers that signed in apart; or a page of these. By `tokens.list`."""
    query: tokens.TokenQuery = asked.query
    found, own = tokens.list_tokens(asked), None if asked.token is None else asked.token.id
    now, first = asked.store.clock.now(), query.cursor is None and not query.sign_ins
    browsers = asked.store.tokens.list(PAGE + 1, sign_ins=True) if first else []
    sign_ins = [token_document(token, now) for token in browsers[:PAGE]]
    return {
        "lines": _lines([] if query.sign_ins else found.tokens, own),
        "sign_ins": _lines(found.tokens if query.sign_ins else sign_ins, own), "more_sign_ins": len(browsers) > PAGE,
        "next": found.next, "query": query, "scopes": ABOUT, "units": list(UNITS),
    }  # fmt: skip


def _lines(documents: list[TokenDocument], own: UUID | None) -> list[TokenLine]:
    return [TokenLine(token=each, mine=each.id == own) for each in documents]


def _new(form: Form) -> Any:
    """Raises Refused: of boxes none of which is ticked a browser says nothing."""
    if not words_in(form, "scopes"):
        raise Refused(422, "nothing-chosen", "Choose what it may do, at least one of these.", field="scopes")
    return {
        "name": form.get("name", "").strip(), "scopes": words_in(form, "scopes"), "queues": words_in(form, "queues") or None,
        "expires": seconds_in(form, "expires"),
    }  # fmt: skip


def audit_page(asked: Asked) -> Context:
    """What was done, the newest first. By `audit.list`: a page of an index, and of several filters the others are looked for among
    the newest 10,000 lines of the first."""
    return {"found": tokens.list_audit(asked), "query": asked.query}


PAGES = (
    Page(path="/tokens", title="Tokens", section="Tokens", template="tokens.html", handler=tokens_page, scope=Scope.ADMIN,
         reach=Reach.ALL, asks=tokens.TokenQuery,
         actions={
             "create": Action(tokens.create_token, body=_new, shows="token_made.html", place="create"),
             "{id}/revoke": Action(tokens.revoke_token),
         }),
    Page(path="/audit", title="Audit", section="Audit", template="audit.html", handler=audit_page, dear=True, scope=Scope.ADMIN,
         reach=Reach.ALL, asks=tokens.AuditQuery),
)  # fmt: skip
