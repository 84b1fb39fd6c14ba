"""What triggers refused, tried again with the code as it is now."""

from collections.abc import Iterable
from uuid import UUID

from msgspec import Struct

from lateshift.app.app import Lateshift
from lateshift.documents.hiding import shown_refused
from lateshift.errors import LateshiftError, StoreError
from lateshift.model.ids import JobId
from lateshift.model.sealed import MASK
from lateshift.store.contract import Store

READ_AT_ONCE = 1_000  # ids


class Retried(Struct, frozen=True, kw_only=True):
    """The jobs that were made, and why no job could be made of the others."""

    jobs: list[JobId]
    refused: dict[str, str]


def ids_of(store: Store, trigger: str, limit: int | None = None) -> list[UUID]:
    """What a trigger has refused, the oldest first."""
    found: list[UUID] = []
    while limit is None or len(found) < limit:
        wanted = READ_AT_ONCE if limit is None else min(READ_AT_ONCE, limit - len(found))
        few = store.triggers.which_refused(trigger, found[-1] if found else None, wanted)
        found += few
        if len(few) < wanted:
            break
    return found


def retry(app: Lateshift, ids: Iterable[UUID], *, by: str) -> Retried:
    jobs: list[JobId] = []
    again: dict[str, str] = {}
    for id in ids:
        try:
            job = app.retry_refused(id, by=by)
        except StoreError:
            raise
        except LateshiftError as error:
            again[str(id)] = _said(app, id, error, str(error))
        except Exception as error:  # of the program's own decode=
            again[str(id)] = _said(app, id, error, f"{type(error).__name__}: {error}")
        else:
            jobs += [] if job is None else [job]
    return Retried(jobs=jobs, refused=again)


def _said(app: Lateshift, id: UUID, error: Exception, text: str) -> str:
    """Without what the event holds, if it was for a sensitive queue."""
    kept = app.store.triggers.find_refused(id)
    hides = kept is not None and shown_refused(kept, app.store.queues.concealed()) != kept
    return f"{type(error).__name__}: {MASK}" if hides else text
