"""The place that a caller asks for: a session, a tenant, a limit's key. Checked where it is given."""

from collections.abc import Collection
from datetime import timedelta
from typing import Any, Literal, TypeAlias

from lateshift.errors import OptionInvalid
from lateshift.model import checks
from lateshift.model.job import Holds, Place

NAME_LIMIT = 200  # characters of a session, a tenant, a limit's key
SEQUENCES = range(1, 2**62)

Then: TypeAlias = Literal["go_on", "hold"]


def place(
    *,
    session: Any = None,
    sequence: Any = None,
    gap_after: Any = None,
    on_gap: Any = "go_on",
    on_dead: Any = "go_on",
    tenant: Any = None,
    limit_key: Any = None,
    kinds: Collection[str] = (),
) -> Place | None:
    """None where nothing is asked for. `kinds` are the limits that the app has declared."""
    holds = Holds.ON_DEAD if then("on_dead", on_dead) == "hold" else Holds.NOTHING
    holds |= Holds.ON_GAP if then("on_gap", on_gap) == "hold" else Holds.NOTHING
    if session is not None:
        checks.text("session", session, NAME_LIMIT)
    elif sequence is not None or gap_after is not None or holds:
        raise OptionInvalid(
            "sequence, gap_after, on_gap and on_dead speak of a session: give session= too.", "session"
        )
    if sequence is not None and (
        not isinstance(sequence, int) or isinstance(sequence, bool) or sequence not in SEQUENCES
    ):
        raise OptionInvalid(f"sequence must be a whole number from 1 up, not {sequence!r}.", "sequence")
    if sequence is None and (gap_after is not None or holds & Holds.ON_GAP):
        raise OptionInvalid("gap_after and on_gap speak of missing numbers: give sequence= too.", "sequence")
    if gap_after is not None and checks.duration("gap_after", gap_after) <= timedelta(0):
        raise OptionInvalid("gap_after must be longer than nothing.", "gap_after")
    if tenant is not None:
        checks.text("tenant", tenant, NAME_LIMIT)
    if limit_key is not None:
        _limit_key(limit_key, kinds)
    if session is None and tenant is None and limit_key is None:
        return None
    return Place(session, sequence, gap_after, holds, tenant or "", limit_key)


def then(name: str, value: Any) -> Then:
    if value == "go_on":
        return "go_on"
    if value == "hold":
        return "hold"
    raise OptionInvalid(f'{name} is "go_on" or "hold", not {value!r}.', name)


def _limit_key(key: Any, kinds: Collection[str]) -> None:
    kind, colon, name = checks.text("limit_key", key, NAME_LIMIT).partition(":")
    if colon and not name.strip():
        raise OptionInvalid(
            f"limit_key {key!r} names nobody: all such jobs would share one limit. Say {kind}:NAME, or {kind}.",
            "limit_key",
        )
    if kind not in kinds:
        known = ", ".join(sorted(kinds)) or "none"
        raise OptionInvalid(
            f"limit_key {key!r}: the app has no limit {kind!r} (it has: {known}). Declare it first: "
            f'app.limit("{kind}", Limit(concurrency=5)).',
            "limit_key",
        )
