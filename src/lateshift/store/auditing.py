"""The audit as both stores have it: which filter an index serves, what a row says, and what it tells of jobs that are started."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from uuid import UUID

from lateshift.model.job import NewJob
from lateshift.store.access_contract import AuditRow
from lateshift.store.contract import Rows
from lateshift.store.granting import audit_limit, recorded

NEWEST = 2**63 - 1
START = "start"  # a job: by far the most frequent line, so it has a time of its own, and listings can leave it out


def started(jobs: Sequence[NewJob]) -> list[tuple[str, str]]:
    """What the audit tells of them: each with who started it."""
    return [(str(id), by) for id, by in starters(jobs)]


def starters(jobs: Sequence[NewJob]) -> list[tuple[UUID, str]]:
    return [(job.id, recorded(job.by)) for job in jobs if job.by is not None]


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
        starts: bool = True,
    ) -> list[AuditRow]:
        filters = {"subject": subject, "actor": actor, "action": action}
        first = next((name for name, value in filters.items() if value is not None), None)
        rows = self._page(first, NEWEST if before is None else before, audit_limit(limit), filters, starts)
        return [AuditRow(**dict(zip(AuditRow.__struct_fields__, row, strict=True))) for row in rows]

    @abstractmethod
    def _page(
        self, first: str | None, before: int, limit: int, filters: Mapping[str, str | None], starts: bool
    ) -> Rows:
        """Numbers, times, actions, subjects and actors. `first`: the filter by which rows are found; None if there is none."""
