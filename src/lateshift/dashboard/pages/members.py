"""Members: the processes that are there, what each does, and those that were lost."""

from lateshift.api.route import Asked, Reach
from lateshift.api.routes.queues import list_members
from lateshift.dashboard.page import Context, Page
from lateshift.model.access import Scope

MEMBERS_SHOWN = 200


def members_page(asked: Asked) -> Context:
    """Reads reports.members: as many as there are processes. The lost first, then those that are longest there."""
    found = sorted(list_members(asked).members, key=lambda it: (not it.dead, it.started_at))
    return {"members": found[:MEMBERS_SHOWN], "left_out": max(0, len(found) - MEMBERS_SHOWN)}


PAGES = (
    Page(path="/members", title="Members", section="Members", template="members.html", handler=members_page, scope=Scope.READ,
         reach=Reach.ALL),
)  # fmt: skip
