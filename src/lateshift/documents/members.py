"""A live process."""

from datetime import datetime
from typing import Any
from uuid import UUID

from msgspec import Struct

from lateshift.model.member import MemberView, Serves


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
    return MemberDocument(**{name: getattr(view, name) for name in MemberDocument.__struct_fields__})
