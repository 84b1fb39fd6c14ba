"""Why a job is not running."""

from datetime import datetime
from uuid import UUID

from msgspec import Struct

from lateshift.model.explaining.reason import Explanation, Reason


class ExplanationDocument(Struct, frozen=True, kw_only=True):
    """Every reason why a job is not running, and when each clears."""

    id: UUID
    task: str
    queue: str
    state: str
    at: datetime
    clears_at: datetime | None
    not_before: datetime | None
    estimated: bool
    reasons: list[Reason]


def explanation_document(explanation: Explanation) -> ExplanationDocument:
    return ExplanationDocument(
        **explanation.document() | {"id": explanation.id, "reasons": explanation.reasons}
    )
