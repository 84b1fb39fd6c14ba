"""Jobs, batches and refused events named on the command line: by the whole id, or by its first or last digits, as tables show
them."""

from difflib import get_close_matches
from uuid import UUID

import click

from lateshift.cli.output import job_in_words
from lateshift.errors import BatchUnknown, JobUnknown, OptionInvalid, TriggerUnknown, no_job
from lateshift.model.batch import BatchId
from lateshift.model.ids import JobId
from lateshift.model.job import JobFilter, State
from lateshift.operating.written import LEAST_DIGITS, WHOLE, digits_in
from lateshift.store.contract import ENDINGS_LOOKED_AT, Store

NAMED = 5  # jobs that a message names at most
RECENT = 100  # jobs, and dead letters, among which a misspelt ending is looked for

_LISTINGS = {
    "job": "jobs list", "batch": "batches list", "run": "workflows list", "refused event": "triggers refused",
}  # fmt: skip


def digits(text: str) -> str:
    """The type of an argument that names a job."""
    return _read(text, "job")


def batch_digits(text: str) -> str:
    """The type of an argument that names a batch."""
    return _read(text, "batch")


def run_digits(text: str) -> str:
    """The type of an argument that names a run of a workflow, which is a job."""
    return _read(text, "run")


def refused_digits(text: str) -> str:
    """The type of an argument that names an event that was refused."""
    return _read(text, "refused event")


def _read(text: str, kind: str) -> str:
    found = digits_in(text)
    if found is None:
        listing = _LISTINGS[kind]
        raise click.BadParameter(
            f"{text!r} is no {kind} id. `lateshift {listing}` shows them; the last {LEAST_DIGITS} or more digits will do."
        )
    return found


def one(store: Store, named: str) -> JobId:
    """The job so named. Raises JobUnknown if there is none, OptionInvalid if there are several."""
    found = meant(store, named)
    if found is None:
        raise JobUnknown(unknown(store, named))
    return found


def meant(store: Store, named: str) -> JobId | None:
    """The job so named, None if there is none of those digits. A whole id is taken as it is."""
    if len(named) == WHOLE:
        return UUID(named)
    found = store.reports.find(named, NAMED + 1)
    if len(found) > 1:
        more = ", and others" if len(found) > NAMED else ""
        raise OptionInvalid(
            f"{named} could be any of these: {_listed(store, found[:NAMED])}{more}. Give more digits; nothing was done."
        )
    return found[0] if found else None


def one_batch(store: Store, named: str) -> BatchId:
    """The batch so named. Raises BatchUnknown if there is none, OptionInvalid if there are several."""
    found = store.batches.find(named, NAMED + 1)
    if len(found) > 1:
        more = ", and others" if len(found) > NAMED else ""
        raise OptionInvalid(
            f"{named} could be any of these: {', '.join(map(str, found[:NAMED]))}{more}. Give more digits; nothing was done."
        )
    if not found:
        whole = str(UUID(named)) if len(named) == WHOLE else f"…{named}"
        raise BatchUnknown(
            f"There is no batch {whole} in the store; it may have passed its retention. `lateshift batches list` shows "
            "those there are."
        )
    return found[0]


def one_refused(store: Store, named: str) -> UUID:
    """The refused event so named. Raises TriggerUnknown if there is none, OptionInvalid if there are several."""
    found = [UUID(named)] if len(named) == WHOLE else store.triggers.refused_ids(named, NAMED + 1)
    if len(found) > 1:
        more = ", and others" if len(found) > NAMED else ""
        raise OptionInvalid(
            f"{named} could be any of these: {', '.join(map(str, found[:NAMED]))}{more}. Give more digits; nothing was done."
        )
    if not found:
        raise TriggerUnknown(nothing_refused(f"…{named}"))
    return found[0]


def nothing_refused(named: object) -> str:
    return f"Nothing that was refused has the id {named}. `lateshift triggers refused` lists it."


def unknown(store: Store, named: str) -> str:
    """That there is no such job, and which one may have been meant."""
    if len(named) == WHOLE:
        said = str(no_job(UUID(named)))
    else:
        said = (
            f"There is no job …{named} in the store; it may have passed its retention, or be older than the newest "
            f"{ENDINGS_LOOKED_AT:,}: then give the whole id."
        )
    close = _close(store, named)
    return said + (f" Did you mean {_listed(store, close)}?" if close else "")


def _close(store: Store, named: str) -> list[JobId]:
    """One digit wrong leaves the beginning or the ending right, of a whole id; a piece is compared with recent jobs."""
    if len(named) == WHOLE:
        near = {*store.reports.find(named[:16], RECENT), *store.reports.find(named[-8:], RECENT)}
        pieces = {id.hex: id for id in near}
    else:
        recent = [
            filter
            for state in (None, State.DEAD)
            for filter in store.reports.jobs(JobFilter(state=state), RECENT)
        ]
        pieces = {view.id.hex[: len(named)]: view.id for view in recent}
        pieces |= {view.id.hex[-len(named) :]: view.id for view in recent}
    return list(dict.fromkeys(pieces[match] for match in get_close_matches(named, pieces, 3, cutoff=0.8)))


def _listed(store: Store, ids: list[JobId]) -> str:
    views = {id: store.reports.job(id) for id in ids}
    return ", ".join(str(id) + (f" ({job_in_words(view)})" if view else "") for id, view in views.items())
