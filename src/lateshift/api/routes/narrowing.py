"""Which jobs are meant: the filters of a listing and of a bulk action, as a request says them."""

from typing import Annotated, Literal, TypeAlias
from uuid import UUID

from msgspec import Meta, Struct

from lateshift.api.bounds import Text
from lateshift.api.problem import Refused
from lateshift.api.route import Asked
from lateshift.model.job import JobFilter, State
from lateshift.model.tags import TAG_LIMIT
from lateshift.operating.written import LEAST_DIGITS, WHOLE, digits_in, moment

Tag: TypeAlias = Annotated[str, Meta(min_length=1, max_length=TAG_LIMIT, pattern=r"^[^\x00]*$")]
StateName: TypeAlias = Literal["scheduled", "ready", "running", "blocked", "completed", "cancelled", "dead"]


class Narrowed(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is left out does not narrow. `since`, `until`: how long ago (`15m`, `2h`, `3d`), or when; without a zone in UTC.
    `argument` and `error` are looked for among the jobs that `since`, `tag`, `key`, `batch`, `session`, or the state running or dead
    leaves: one of these goes with them. `batch`: its id, or four or more of its first or last digits."""

    queue: Text | None = None
    task: Text | None = None
    state: StateName | None = None
    tag: Tag | None = None
    argument: Text | None = None
    error: Text | None = None
    since: Text | None = None
    until: Text | None = None
    key: Text | None = None
    session: Text | None = None
    tenant: Text | None = None
    batch: Text | None = None
    reason: Text | None = None


NARROWING = Narrowed.__struct_fields__
TEXTS = ("argument", "error")  # which no index knows
BOUNDS = ("since", "tag", "key", "batch", "session")  # which one does
FEW = ("running", "dead")  # states likewise


def too_wide(query: Narrowed) -> str | None:
    """The text that would be looked for in every job there is, if there is one."""
    bounded = query.state in FEW or any(getattr(query, name) is not None for name in BOUNDS)
    return None if bounded else next((name for name in TEXTS if getattr(query, name) is not None), None)


def filter_of(query: Narrowed, asked: Asked) -> JobFilter:
    """Raises OptionInvalid, Refused."""
    if (field := too_wide(query)) is not None:
        raise Refused(
            422, "filter-too-wide",
            f"{field} would be looked for in every job there is. Say since when, such as since=7d, or name a tag, key, batch or session, or the state dead or running.",
            field=field,
        )  # fmt: skip
    now = asked.store.clock.now()
    said = {name: getattr(query, name) for name in NARROWING}
    return JobFilter(
        **said
        | {
            "state": None if query.state is None else State[query.state.upper()],
            "since": moment("since", query.since, now),
            "until": moment("until", query.until, now),
            "batch": None if query.batch is None else _batch(query.batch, asked),
        }
    )


def _batch(named: str, asked: Asked) -> UUID:
    """None that is there: jobs of no batch are found, whosever it might have been. Raises Refused."""
    digits = digits_in(named)
    if digits is None:
        raise Refused(
            422, "query-invalid", f"{named!r} is no id of a batch: all of it, or its first or last {LEAST_DIGITS} digits or more, 0 to 9 and a to f.",
            field="batch",
        )  # fmt: skip
    found = [UUID(digits)] if len(digits) == WHOLE else asked.store.batches.find(digits, 2)
    if len(found) > 1:
        raise Refused(422, "query-invalid", f"Several batches have {digits} in their ids. Give more digits.", field="batch")  # fmt: skip
    return found[0] if found else _NONE


_NONE = UUID(int=0)
