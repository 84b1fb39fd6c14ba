"""Jobs: found by whatever they have, and many of them cancelled or run again at once, seen first."""

from typing import Any

from msgspec import structs

from lateshift.api.bounds import Text
from lateshift.api.problem import Refused
from lateshift.api.route import Asked, Reach
from lateshift.api.routes import bulk, jobs
from lateshift.api.routes.bulk import BulkDone
from lateshift.api.routes.jobs import JobQuery
from lateshift.api.routes.narrowing import NARROWING, too_wide
from lateshift.dashboard.choosing import known, own_queues
from lateshift.dashboard.page import Action, Context, Elsewhere, Form, Page, back_to
from lateshift.dashboard.telling import rows_of
from lateshift.model.access import Scope
from lateshift.model.search import LOOKED_AT, Found
from lateshift.model.words import counted
from lateshift.operating.written import LEAST_DIGITS, digits_in
from lateshift.store.contract import ENDINGS_LOOKED_AT

LOOKED_BACK = "7d"  # for a text that is looked for, where nobody said how far

_DONE = {"cancel": "cancelled, or told to stop", "resubmit": "ready again"}


class JobsPageQuery(JobQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`id`: the first or last digits of one, as tables show them, or all; looked for alone."""

    id: Text | None = None


def list_page(asked: Asked) -> Context | Elsewhere:
    """The newest jobs that fit a filter: one search, which looks at a bounded number of jobs. Or those whose ids begin or end so:
    reports.find, which looks at a bounded number too; if that is one, its page. Where the API would ask since when, it is LOOKED_BACK, and the form says so."""
    wide = too_wide(asked.query) is not None
    if wide:
        asked.query = structs.replace(asked.query, since=LOOKED_BACK)
    own = () if asked.query.id is not None else own_queues(asked)
    page = Found([]) if own else jobs.searched(asked) if asked.query.id is None else _named(asked)
    if asked.query.id is not None and len(page.jobs) == 1:
        return Elsewhere(f"/jobs/{page.jobs[0].id}")
    given = {name: getattr(asked.query, name) for name in NARROWING}
    return {
        "rows": rows_of(asked.store, page.jobs), "next": asked.cursors.write(page.before), "cut": page.cut, "query": asked.query,
        "given": {name: value for name, value in given.items() if value is not None}, "looked_at": LOOKED_AT, "own": own,
        "endings": ENDINGS_LOOKED_AT, "known": known(asked), "looked_back": LOOKED_BACK if wide else None,
    }  # fmt: skip


def _named(asked: Asked) -> Found:
    """Those of queues that the token is not for are left out. Raises Refused."""
    if any(getattr(asked.query, name) is not None for name in NARROWING):
        raise Refused(422, "query-invalid", "An id is looked for alone: clear the other fields.", field="id")
    digits = digits_in(asked.query.id)
    if digits is None:
        raise Refused(
            422, "query-invalid", f"{asked.query.id!r} is no id: its first or last {LEAST_DIGITS} digits or more, 0 to 9 and a to f.",
            field="id",
        )  # fmt: skip
    asked.checked = True  # each job that is found is looked at
    reports = asked.store.reports
    found = reports.named(reports.find(digits, asked.query.limit), whole=False)
    return Found([view for view in found if view is not None and asked.shows(view.queue)])


def chosen(form: Form) -> Any:
    """The rows that were ticked; if none was, all that fit the filters of the page. Raises Refused if that is all there are."""
    ids = [id for id in form.get("ids", "").split(",") if id]
    if ids:
        return {"action": form.get("action", ""), "ids": ids}
    narrowed = {name: form[name] for name in NARROWING if form.get(name)}
    if not narrowed:
        raise Refused(
            422,
            "nothing-chosen",
            "Tick some rows, or set a filter: then all that fit are meant.",
            field="ids",
        )
    return {"action": form.get("action", "")} | narrowed


def _says(done: BulkDone) -> str:
    others = f" {counted(done.others, 'job')} had changed, or was in no state for it." if done.others else ""
    return f"{counted(len(done.done), 'job')} {_DONE[done.action]}.{others}"


PAGES = (
    Page(path="/jobs", title="Jobs", section="Jobs", template="jobs.html", handler=list_page, dear=True, scope=Scope.READ, reach=Reach.ONE,
         asks=JobsPageQuery, actions={
             "preview": Action(bulk.preview_bulk, body=chosen, shows="jobs_preview.html"),
             "bulk": Action(bulk.do_bulk, body=chosen, says=_says, leads=lambda done, form: back_to("/jobs", form, NARROWING)),
         }),
)  # fmt: skip
