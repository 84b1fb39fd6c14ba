"""What both stores say alike about guarded jobs: how much a lease looks at, what a row is to the decision, what an end
leaves to others."""

from collections.abc import Sequence
from typing import Any

from lateshift.model.guard import FIRST_NUMBER, Candidate, Guarded
from lateshift.model.job import Holds, Lease
from lateshift.model.outcome import Completed, DeadLettered, Settlement
from lateshift.store.contract import Gap, Rows

ROUNDS = 10  # of blocking, before a claim leaves the rest to the next
LOOK_AT = 100  # candidates at least: a few that wait for something must not make each step a small one
FEW_TENANTS = 100  # up to which a step takes more than one job of each

GUARDS = "id, task, session, sequence, limit_key, blocked_by, exclusive, tenant"
TENANT = 7  # its place in there
# Who has begun is first in its session, whatever comes into the line that was enqueued before.
BEGUN = "CASE WHEN session IS NOT NULL THEN 0 END"
# Who stands in the line of a session: all but those whose time has not come yet. Whoever runs, or waits for another try or
# a token, is in it: while it is the first, nobody else has the turn. As job_line has it, word for word.
IN_LINE = "session IS NOT NULL AND (state > 0 OR fence > 0 OR blocked_by IS NOT NULL)"
NOT_IN_LINE = "state = 0 AND fence = 0 AND blocked_by IS NULL"

# Whether anybody waits for a turn, or for a number, in any session: the two words stand side by side in job_blocked. And
# whether anybody waits for a place in any limit. If not, nobody need be looked for in each of them.
_WAITS = "EXISTS (SELECT 1 FROM {{}}job WHERE state = 3 AND blocked_by >= '{}' AND blocked_by < '{}' LIMIT 1)"
WAITS_FOR_A_TURN = _WAITS.format("sequence:", "session;")
WAITS_FOR_A_PLACE = _WAITS.format("limit:", "limit;")


def in_limits(schema: str = "") -> str:
    """Counts against the limit of its queue or its task, if there is one: the others cost no place in an index."""
    return f"""in_limits = CASE WHEN EXISTS (SELECT 1 FROM {schema}rule WHERE concurrency IS NOT NULL
 AND ((scope = 'queue' AND name = queue) OR (scope = 'task' AND name = task))) THEN true END"""


def candidate(queue: str, row: tuple[Any, ...]) -> Candidate:
    """Of a row that begins with GUARDS."""
    id, task, session, sequence, limit_key, blocked_by, exclusive, *_ = row
    promised = blocked_by is not None and blocked_by.startswith("rate:")
    return Candidate(id, queue, task, session, sequence, limit_key, promised, exclusive)


def promised_first(promised: Rows, rows: Rows) -> Rows:
    named = {row[0] for row in promised}
    return promised + [row for row in rows if row[0] not in named]


def leave(leases: Sequence[Lease]) -> list[Guarded]:
    """What these leave to others when they end."""
    return [Guarded(lease.queue, lease.task, lease.session, lease.limit_key) for lease in leases]


def leaves_word(settlement: Settlement) -> bool:
    """Whether its session is to keep something, or may be held by it."""
    if settlement.lease.session is None:
        return False
    outcome = settlement.outcome
    if isinstance(outcome, Completed):
        return outcome.session_state is not None
    return isinstance(outcome, DeadLettered)


def gap_of(queue: str, name: str, expected: int | None, waiting: Sequence[tuple[Any, ...]]) -> Gap | None:
    """The number that is missing, if one is: `waiting` is the first in the session's line, its number and what it holds."""
    missing = expected or FIRST_NUMBER
    if not waiting or waiting[0][0] is None or waiting[0][0] <= missing:
        return None
    [(number, holds)] = waiting
    return Gap(queue, name, missing, number, held=bool((holds or 0) & Holds.ON_GAP))
