"""Jobs: found by whatever they have, and many of them cancelled or run again at once, seen first."""

from typing import Any

from lateshift.api.route import Asked, Reach
from lateshift.api.routes import bulk, jobs
from lateshift.api.routes.bulk import BulkDone
from lateshift.api.routes.narrowing import NARROWING
from lateshift.dashboard.page import Action, Context, Form, Page
from lateshift.dashboard.telling import Row
from lateshift.model.access import Scope
from lateshift.model.search import LOOKED_AT, Found
from lateshift.model.words import counted

_ROUTES = {route.handler: route for route in bulk.ROUTES}
_DONE = {"cancel": "cancelled, or told to stop", "resubmit": "ready again"}


def list_page(asked: Asked) -> Context:
    """The newest jobs that fit a filter. One search, which looks at a bounded number of jobs."""
    own = own_queues(asked)
    page = Found([]) if own else jobs.searched(asked)
    given = {name: getattr(asked.query, name) for name in NARROWING}
    return {
        "rows": [Row.of(view) for view in page.jobs], "next": asked.cursors.write(page.before), "cut": page.cut, "query": asked.query,
        "given": {name: value for name, value in given.items() if value is not None}, "looked_at": LOOKED_AT, "own": own,
    }  # fmt: skip


def own_queues(asked: Asked) -> tuple[str, ...]:
    """Those that a token is for, if it is for some and has named none: it is asked which."""
    if asked.token is None or asked.query.queue is not None or not asked.token.queues:
        return ()
    asked.checked = True
    return tuple(asked.token.queues)


def chosen(form: Form) -> Any:
    """The rows that were ticked; if none was, all that fit the filters of the page."""
    ids = [id for id in form.get("ids", "").split(",") if id]
    if ids:
        return {"action": form.get("action", ""), "ids": ids}
    return {"action": form.get("action", "")} | {name: form[name] for name in NARROWING if form.get(name)}


def _says(done: BulkDone) -> str:
    others = f" {counted(done.others, 'job')} had changed, or was in no state for it." if done.others else ""
    return f"{counted(len(done.done), 'job')} {_DONE[done.action]}.{others}"


PAGES = (
    Page(path="/jobs", title="Jobs", section="Jobs", template="jobs.html", handler=list_page, scope=Scope.READ, reach=Reach.ONE,
         asks=jobs.JobQuery, actions={
             "preview": Action(route=_ROUTES[bulk.preview_bulk], body=chosen, shows="jobs_preview.html"),
             "bulk": Action(route=_ROUTES[bulk.do_bulk], body=chosen, says=_says),
         }),
)  # fmt: skip
