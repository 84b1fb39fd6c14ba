"""Triggers: how far each has read, and what keeps it; and one, with what it refused."""

from functools import partial
from uuid import UUID

from msgspec import Struct, structs

from lateshift.api.bounds import PAGE, Cursor
from lateshift.api.paging import within_bytes
from lateshift.api.route import Asked, Reach
from lateshift.api.routes import triggers as routes
from lateshift.dashboard.page import Action, Context, Page
from lateshift.documents.hiding import shown_refused
from lateshift.documents.trigger_words import (
    is_stuck,
    is_uncounted,
    position_in_words,
    refused_in_words,
    state_in_words,
)
from lateshift.documents.triggers import RefusedDocument, TriggerDocument, refused_document, trigger_document
from lateshift.model.access import Scope
from lateshift.model.triggering.trigger import RefusedView, TriggerView
from lateshift.model.words import counted
from lateshift.operating.names import trigger
from lateshift.operating.refused import Retried

RAW_SHOWN = 2_000  # bytes of an event that was refused


class TriggerPageQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`cursor`: after which refused event."""

    cursor: Cursor | None = None


class TriggerLine(Struct, frozen=True, kw_only=True):
    """A trigger in words. `counted`: somebody counts its jobs."""

    trigger: TriggerDocument
    stuck: bool
    words: str
    position: str
    refused: str
    counted: bool


class RefusedLine(Struct, frozen=True, kw_only=True):
    """`raw`: the beginning of it, as text. `cut`: how many bytes are left out."""

    event: RefusedDocument
    raw: str
    cut: int


def list_page(asked: Asked) -> Context:
    """Triggers, those first that are stuck. By `triggers.all`: there are as many as the code of all apps declares."""
    lines = [_line(asked, view) for view in asked.store.triggers.all()]
    return {"lines": sorted(lines, key=lambda line: not line.stuck)}


def trigger_page(asked: Asked) -> Context:
    """One trigger, and what it refused, the oldest first. By `triggers.get`, a primary key, and `triggers.refused`, a page of an
    index."""
    view = trigger(asked.store, asked.name)
    after = asked.cursors.read(asked.query.cursor, UUID)
    hidden = asked.store.queues.concealed()
    read = partial(asked.store.triggers.refused, view.name)
    found, more = within_bytes(read, after, PAGE, lambda each: each.id, routes.REFUSED)
    return {
        "line": _line(asked, view), "refused": [_refused(shown_refused(each, hidden)) for each in found],
        "next": asked.cursors.write(found[-1].id if more else None), "query": asked.query,
    }  # fmt: skip


def _refused(view: RefusedView) -> RefusedLine:
    """Of what came only what is shown."""
    cut = structs.replace(view, raw=view.raw[:RAW_SHOWN])
    return RefusedLine(
        event=refused_document(cut, ()), raw=cut.raw.decode(errors="replace"), cut=len(view.raw) - len(cut.raw)
    )  # fmt: skip


def _line(asked: Asked, view: TriggerView) -> TriggerLine:
    now = asked.store.clock.now()
    return TriggerLine(
        trigger=trigger_document(view), stuck=is_stuck(view, now), words=state_in_words(view, now),
        position=position_in_words(view), refused=refused_in_words(view), counted=not is_uncounted(view),
    )  # fmt: skip


def _retried(done: Retried) -> str:
    """Why the first of those that are refused still is."""
    made = f"{counted(len(done.jobs), 'job')} made."
    if not done.refused:
        return made
    return f"{made} {counted(len(done.refused), 'event')} refused still: {next(iter(done.refused.values()))}"


PAGES = (
    Page(path="/triggers", title="Triggers", section="Triggers", template="triggers.html", handler=list_page, scope=Scope.READ,
         reach=Reach.ALL),
    Page(path="/triggers/{name:path}", title="Trigger", section="Triggers", template="trigger.html", handler=trigger_page, dear=True,
         scope=Scope.READ, reach=Reach.ALL, asks=TriggerPageQuery,
         actions={
             "pause": Action(routes.pause_a_trigger), "resume": Action(routes.resume_a_trigger),
             "refused/{id}/retry": Action(routes.retry_refused, says=_retried),
             "refused/{id}/discard": Action(routes.discard_refused),
             "retry": Action(routes.retry_all_refused, says=_retried),
         }),
)  # fmt: skip
