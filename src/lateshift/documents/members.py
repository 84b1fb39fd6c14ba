"""A live process."""

from datetime import datetime
from typing import Any
from uuid import UUID

from msgspec import Struct

from lateshift.model.member import MemberView, Serves
from lateshift.telemetry.of_members import ages_told

TIMES = frozenset({"lease", "settle"})  # histograms, for metrics


class MemberDocument(Struct, frozen=True, kw_only=True):
    """A process that works on the store, or that has died of late."""

    id: UUID
    name: str
    kind: str
    host: str
    pid: int
    started_at: datetime
    expires_at: datetime
    dead: bool
    stats: dict[str, Any]
    serves: Serves | None


def member_document(view: MemberView) -> MemberDocument:
    """Whoever beats for a member may know better than it does which of its loops do not turn: one that is blocked cannot tell."""
    late = {it.loop: round(it.age) for it in ages_told(view) if it.is_late}
    stats = {name: told for name, told in view.stats.items() if name not in TIMES}
    if late:
        stats["late_loops"] = late | stats.get("late_loops", {})
    return MemberDocument(
        **{name: getattr(view, name) for name in MemberDocument.__struct_fields__ if name != "stats"},
        stats=stats,
    )
