"""The overview: what needs somebody, how it goes, what it costs."""

from lateshift.api.route import Asked, Reach
from lateshift.api.routes.overview import HistoryQuery, OverviewQuery, look, show_history
from lateshift.dashboard.chart import charts
from lateshift.dashboard.choosing import own_queues
from lateshift.dashboard.page import Context, Page
from lateshift.documents.figures import history_document
from lateshift.model.access import Scope
from lateshift.model.figures import Over


def overview_page(asked: Asked) -> Context:
    """Reads queues.list (counts stop at a limit), the members, figures of 60 to 288 periods, and the bounded looks of
    operating.attention."""
    query: OverviewQuery = asked.query
    over = Over[query.over.upper()]
    seen = look(asked, over)
    whole = asked.sees_all
    return {
        "seen": seen, "pace": seen.pace, "over": query.over, "charts": charts(seen.samples, over, workers=whole),
    }  # fmt: skip


def table_page(asked: Asked) -> Context:
    """Figures of 60 to 288 periods, of one queue or of all; for a token that is for some queues, of those together."""
    if not own_queues(asked):
        return {"history": show_history(asked), "some": False}
    over = Over[asked.query.over.upper()]
    return {"history": history_document(None, over, look(asked, over).samples), "some": True}


PAGES = (
    Page(path="/", title="Overview", section="Overview", template="overview.html", handler=overview_page, dear=True, scope=Scope.READ,
         reach=Reach.OWN, asks=OverviewQuery),
    Page(path="/overview/table", title="Figures", section="Overview", template="figures_table.html", handler=table_page,
         dear=True, scope=Scope.READ, reach=Reach.ONE, asks=HistoryQuery),
)  # fmt: skip
