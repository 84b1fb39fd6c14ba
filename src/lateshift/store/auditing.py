"""The audit as both stores list it: which filter an index serves, and what a row says."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from lateshift.store.access_contract import AuditRow
from lateshift.store.contract import Rows
from lateshift.store.granting import audit_limit

NEWEST = 2**63 - 1


class AuditLister(ABC):
    """See access_contract.AuditLog."""

    def list(
        self,
        *,
        before: int | None = None,
        limit: int,
        subject: str | None = None,
        actor: str | None = None,
        action: str | None = None,
    ) -> list[AuditRow]:
        filters = {"subject": subject, "actor": actor, "action": action}
        first = next((name for name, value in filters.items() if value is not None), None)
        rows = self._page(first, NEWEST if before is None else before, audit_limit(limit), filters)
        return [AuditRow(**dict(zip(AuditRow.__struct_fields__, row, strict=True))) for row in rows]

    @abstractmethod
    def _page(self, first: str | None, before: int, limit: int, filters: Mapping[str, str | None]) -> Rows:
        """Numbers, times, actions, subjects and actors. `first`: the filter by which rows are found; None if there is none."""
