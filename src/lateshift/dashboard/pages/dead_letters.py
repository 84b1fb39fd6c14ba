"""Dead letters: those that died of the same together, run again or discarded together, seen first."""

from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from lateshift.api.asked import Asked
from lateshift.api.problem import Refused
from lateshift.api.route import Reach
from lateshift.api.routes import dead_letters, discarding
from lateshift.api.routes.dead_letters import ResubmittedDocument
from lateshift.api.steps import sent_elsewhere
from lateshift.dashboard.choosing import known, own_queues
from lateshift.dashboard.page import Action, Context, Form, Page, back_to
from lateshift.dashboard.telling import Row
from lateshift.dashboard.typed import object_in, whole_in
from lateshift.dead_letters.dead_letters import DeadLetters
from lateshift.documents.dead_letters import DiscardedDocument
from lateshift.model.access import Scope
from lateshift.model.fingerprint import last_failure
from lateshift.model.groups import Groups
from lateshift.model.sealed import masked_view
from lateshift.model.search import LOOKED_AT
from lateshift.model.words import counted, duration

DEAD_ON_A_PAGE = 1_000  # newest dead letters that a page groups; the command line looks at more
LETTERS_SHOWN = 20  # of one group

_FILTERS = ("queue", "task", "reason", "like")
_LISTED = ("queue", "task", "reason")  # of these the groups that one came from


def groups_page(asked: Asked) -> Context:
    """The newest DEAD_ON_A_PAGE dead letters, read by the index of the dead, in groups; of runs that were undone, up to UNDONE_MOST besides, how many."""
    own, query = own_queues(asked), asked.query
    searched = False
    if own:
        groups = Groups()
    else:
        asked.allow(query.queue)
        letters = _letters(asked, queue=query.queue, task=query.task, reason=query.reason, like=query.like)
        letters.apart = query.reason is None
        groups = letters.groups()
        searched = letters.ended_at is not None
    return {
        "groups": groups.largest_first[: query.limit], "looked_at": groups.looked_at, "cut": groups.cut, "undone": groups.undone, "searched": LOOKED_AT if searched else None, "query": query, "own": own,
        "given": {name: value for name in _FILTERS if (value := getattr(query, name)) is not None}, "known": known(asked),
    }  # fmt: skip


def group_page(asked: Asked) -> Context:
    """One group: the newest of it among DEAD_ON_A_PAGE dead letters, read by the index of the dead."""
    own_queues(asked)
    asked.allow(asked.query.queue)
    letters = _letters(asked, queue=asked.query.queue, like=asked.name)
    views = list(letters)
    if not views:
        raise Refused(
            404,
            "group-unknown",
            f"None of the newest {DEAD_ON_A_PAGE:,} dead letters died of {asked.name}. They may run again.",
        )
    letters.leaves = partial(sent_elsewhere, asked)
    newest = masked_view(views[0])
    whole = masked_view(asked.store.reports.job(newest.id) or views[0])  # with its traceback
    can_run = next(letters.resubmittable(), None) is not None
    return {
        "fingerprint": asked.name, "rows": [Row.of(view) for view in islice(views, LETTERS_SHOWN)], "count": len(views),
        "cut": letters.cut, "newest": newest, "can_run": can_run, "over": not can_run and letters.are_over(views), "failure": last_failure(whole), "queue": asked.query.queue,
    }  # fmt: skip


def _letters(asked: Asked, **narrowed: str | None) -> DeadLetters:
    letters = DeadLetters(asked.store, asked.app.tasks, asked.store.clock, **narrowed)
    letters.most, letters.bounded, letters.whole = DEAD_ON_A_PAGE, True, False
    return letters


def chosen(form: Form) -> Any:
    """Which, how many of them at most, how fast, and the new values for some of their arguments."""
    body = which(form)
    if pace := form.get("rate", "").strip():
        body["rate"] = pace
    if (most := whole_in(form, "limit")) is not None:
        body["limit"] = most
    if form.get("change", "").strip():
        body["change"] = object_in(form, "change")
    return body


def _says(done: ResubmittedDocument) -> str:
    edited = f", {done.edited:,} of them with other arguments" if done.edited else ""
    left = f" {counted(len(done.skipped), 'job')} had changed meanwhile." if done.skipped else ""
    last = f", the last due in {duration(done.spread)}" if done.spread else ""
    return f"{counted(len(done.resubmitted), 'job')} ready again{edited}{last}.{left}"


def which(form: Form) -> dict[str, Any]:
    """Those that were seen, by their ids; before that, those of the filters."""
    ids = [id for id in form.get("ids", "").split(",") if id]
    return {"ids": ids} if ids else {name: form[name] for name in _FILTERS if form.get(name)}


def _says_gone(done: DiscardedDocument) -> str:
    left = "".join(f" {counted(each.count, 'job')} not: each {each.says}." for each in done.kept)
    return f"{counted(len(done.discarded), 'job')} discarded.{left}"


PREVIEW_DISCARD = Action(discarding.preview_discard, body=which, shows="discard_preview.html")
_DISCARD = Action(
    discarding.discard_dead_letters,
    body=which,
    says=_says_gone,
    leads=lambda done, form: back_to("/dead-letters", form, _LISTED),
)
_PREVIEW = Action(dead_letters.preview_dead_letters, body=chosen, shows="dead_letters_preview.html")
_PREVIEW_OF_GROUP = replace(_PREVIEW, place="again")
_RESUBMIT = Action(
    dead_letters.resubmit_dead_letters,
    body=chosen,
    says=_says,
    leads=lambda done, form: back_to("/dead-letters", form, _LISTED),
)

PAGES = (
    Page(path="/dead-letters", title="Dead letters", section="Dead letters", template="dead_letters.html", handler=groups_page,
         dear=True, scope=Scope.READ, reach=Reach.ONE, asks=dead_letters.GroupQuery, actions={
             "preview": _PREVIEW, "resubmit": _RESUBMIT, "discard-preview": PREVIEW_DISCARD, "discard": _DISCARD,
         }),
    Page(path="/dead-letters/{name}", title="Dead letters of one kind", section="Dead letters", template="dead_letters_group.html",
         handler=group_page, dear=True, scope=Scope.READ, reach=Reach.ONE, asks=dead_letters.OneGroup,
         actions={"preview": _PREVIEW_OF_GROUP, "discard-preview": PREVIEW_DISCARD}),
)  # fmt: skip
