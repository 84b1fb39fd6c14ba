"""A job in a listing, and with all that is known of it. The fields are promised in docs/cli.md."""

from datetime import datetime
from typing import Any
from uuid import UUID

from msgspec import Struct

from lateshift.documents.reading import readable
from lateshift.model.fingerprint import last_failure
from lateshift.model.job import AttemptRecord, JobView, Progress, State
from lateshift.model.sealed import masked_view


class JobBrief(Struct, frozen=True, kw_only=True):
    """A job in a listing."""

    id: UUID
    task: str
    queue: str
    state: str
    reason: str | None
    priority: int
    attempt: int
    attempts: int
    created_at: datetime
    due_at: datetime
    started_at: datetime | None
    complete_by: datetime | None
    settled_at: datetime | None
    cancel_requested: bool
    progress: Progress | None
    tags: list[str]


class JobSeen(JobBrief, frozen=True, kw_only=True):
    """A job to which something would be done: also its arguments, and the first line of what it failed of."""

    arguments: Any
    error: str | None


class AttemptDocument(Struct, frozen=True, kw_only=True):
    """One attempt that did not complete, every field present; or that the job was resubmitted with other arguments."""

    attempt: int
    fence: int
    at: datetime
    reason: str
    ran_for: float | None
    error: str | None
    message: str | None
    traceback: str | None
    member: str | None
    was: dict[str, Any] | None


class JobDocument(JobBrief, frozen=True, kw_only=True):
    """A job with all that is known of it."""

    fence: int
    losses: int
    holder: UUID | None
    exclusive: str | None
    session: str | None
    sequence: int | None
    tenant: str | None
    limit_key: str | None
    batch: UUID | None
    workflow: UUID | None
    parent: UUID | None
    arguments: Any
    result: Any
    checkpoint: Any
    history: list[AttemptDocument]


def job_brief(view: JobView) -> JobBrief:
    return JobBrief(**_brief(masked_view(view)))


def job_seen(view: JobView) -> JobSeen:
    view = masked_view(view)
    return JobSeen(**_brief(view), arguments=readable(view.payload), error=error_line(view))


def error_line(view: JobView) -> str | None:
    """Of a view that is masked. Of one that may still do well there is none."""
    last = last_failure(view) if view.state is State.DEAD else None
    if last is None or not (last.error or last.message):
        return None
    said = (last.message or "").strip().partition("\n")[0]
    return ": ".join(part for part in (last.error, said) if part)


def job_whole(view: JobView, *, of_run: bool = False) -> JobDocument:
    """`of_run`: what it belongs to is the run of a workflow, and no batch."""
    view = masked_view(view)
    return JobDocument(
        **_brief(view), fence=view.fence, losses=view.losses, holder=view.holder, exclusive=view.exclusive, session=view.session,
        sequence=view.sequence, tenant=view.tenant, limit_key=view.limit_key, batch=None if of_run else view.batch,
        workflow=view.batch if of_run else None, parent=view.parent, arguments=readable(view.payload), result=readable(view.result),
        checkpoint=readable(view.checkpoint), history=[attempt_document(record) for record in view.history],
    )  # fmt: skip


def attempt_document(record: AttemptRecord) -> AttemptDocument:
    return AttemptDocument(**{name: getattr(record, name) for name in AttemptDocument.__struct_fields__})


def _brief(view: JobView) -> dict[str, Any]:
    named = {name: getattr(view, name) for name in JobBrief.__struct_fields__}
    return named | {"state": view.state.label, "tags": list(view.tags)}
