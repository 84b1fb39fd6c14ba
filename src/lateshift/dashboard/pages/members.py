"""Members: the processes that are there, what each does, and those that were lost."""

from lateshift.api.asked import Asked
from lateshift.api.route import Reach
from lateshift.dashboard.page import Context, Page
from lateshift.documents.members import member_document
from lateshift.model.access import Scope
from lateshift.model.explaining.serving import PLACES

MEMBERS_SHOWN = 200


def members_page(asked: Asked) -> Context:
    """Reads reports.members: as many as there are processes. The lost first, then those that are longest there."""
    found = sorted(
        map(member_document, asked.store.reports.members()), key=lambda it: (not it.dead, it.started_at)
    )
    return {
        "members": found[:MEMBERS_SHOWN], "left_out": max(0, len(found) - MEMBERS_SHOWN), "places": PLACES,
    }  # fmt: skip


PAGES = (
    Page(path="/members", title="Members", section="Members", template="members.html", handler=members_page, scope=Scope.READ,
         reach=Reach.ALL),
)  # fmt: skip
