"""Circuit breakers: which are open, what they have parked, and opening and closing them by hand."""

from lateshift.api.route import Asked, Reach
from lateshift.api.routes import queues
from lateshift.dashboard.page import Action, Context, Page
from lateshift.documents.breakers import breaker_document
from lateshift.model.access import Scope
from lateshift.operating.names import require_breaker

BREAKERS_SHOWN = 200  # those that are open first


def breakers_page(asked: Asked) -> Context:
    """Reads breakers.list: as many as code declares, what each has parked counted up to a limit."""
    found = sorted(
        map(breaker_document, asked.store.breakers.list()), key=lambda it: (it.state == "closed", it.name)
    )
    return {"breakers": found[:BREAKERS_SHOWN], "left_out": max(0, len(found) - BREAKERS_SHOWN)}


def breaker_page(asked: Asked) -> Context:
    """Reads breakers.list."""
    require_breaker(asked.store, asked.name)
    found = map(breaker_document, asked.store.breakers.list())
    return {"it": next(it for it in found if it.name == asked.name)}


PAGES = (
    Page(path="/breakers", title="Breakers", section="Breakers", template="breakers.html", handler=breakers_page,
         scope=Scope.READ, reach=Reach.ALL),
    Page(path="/breakers/{name:path}", title="Breaker", section="Breakers", template="breaker.html", handler=breaker_page,
         scope=Scope.READ, reach=Reach.ALL, actions={
             "open": Action(queues.open_breaker), "close": Action(queues.close_breaker),
         }),
)  # fmt: skip
