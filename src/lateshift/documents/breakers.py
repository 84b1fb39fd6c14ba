"""A circuit breaker."""

from datetime import datetime
from uuid import UUID

from msgspec import Struct

from lateshift.model.breaker import CircuitView


class BreakerDocument(Struct, frozen=True, kw_only=True):
    """A breaker, one that counts by version for each version; how many jobs it has parked, up to 10,000."""

    name: str
    breaker: str
    version: str | None
    tasks: list[str]
    state: str
    failed: int
    passed: int
    opened_at: datetime | None
    opened_by: str | None
    reason: str | None
    next_probe_at: datetime | None
    probe: UUID | None
    parked: int


def breaker_document(view: CircuitView) -> BreakerDocument:
    return BreakerDocument(**{name: getattr(view, name) for name in BreakerDocument.__struct_fields__})
