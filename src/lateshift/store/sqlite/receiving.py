"""Events that are brought to us, in SQLite: each is taken once, and its receipt says what became of it."""

from collections.abc import Sequence

from lateshift.model.job import NewJob
from lateshift.model.triggering.trigger import Arrival
from lateshift.store import triggering
from lateshift.store.sqlite import enqueue
from lateshift.store.sqlite.database import Connection
from lateshift.store.trigger_contract import Received

# Whether it takes anything now. Primary key.
OPEN = "SELECT 1 FROM trigger WHERE name = ? AND removed_at IS NULL AND paused_at IS NULL"
# What became of it, if it has arrived before and that is to be known still. Primary key of the receipts.
KNOWN = "SELECT mark FROM receipt WHERE trigger = ? AND event = ? AND expires_at > ?"
RECEIPT = """INSERT INTO receipt (trigger, event, mark, expires_at) VALUES (?, ?, ?, ?)
 ON CONFLICT (trigger, event) DO UPDATE SET mark = excluded.mark, expires_at = excluded.expires_at"""


def is_open(connection: Connection, name: str) -> bool:
    return bool(connection.execute(OPEN, (name,)).fetchall())


def receive(
    connection: Connection, name: str, arrivals: Sequence[Arrival], now: int, expires: int
) -> tuple[list[Received], list[Arrival], list[NewJob]]:
    """What became of each, those that are new, and their jobs, which are written."""
    answers: list[Received] = []
    new: list[Arrival] = []
    jobs: list[NewJob] = []
    for arrival in arrivals:
        known = connection.execute(KNOWN, (name, arrival.event, now)).fetchall()
        if known:
            answers.append(triggering.received(known[0][0], new=False))
            continue
        job = None
        if arrival.job is not None:
            [made] = enqueue.run(connection, enqueue.statements([arrival.job], now))
            job = made.id
            jobs.append(arrival.job)
        mark = triggering.mark_of(arrival, job)
        connection.execute(RECEIPT, (name, arrival.event, mark, expires))
        new.append(arrival)
        answers.append(triggering.received(mark, new=True))
    return answers, new, jobs
