"""Events that are brought to us, in PostgreSQL: each is taken once, and its receipt says what became of it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from lateshift.model.job import NewJob
from lateshift.model.triggering.trigger import Arrival
from lateshift.store import triggering
from lateshift.store.postgres import enqueue
from lateshift.store.postgres.database import Connection
from lateshift.store.trigger_contract import Received

_NOW = "clock_timestamp() + %(skew)s::interval"
# Whether it takes anything now. Primary key.
OPEN = "SELECT 1 FROM lateshift.trigger WHERE name = %s AND removed_at IS NULL AND paused_at IS NULL"
# Its receipt, unless there is one that is good still. Who comes at the same moment waits here for the other's commit.
# Primary key of the receipts.
RECEIPT = f"""INSERT INTO lateshift.receipt AS r (trigger, event, mark, expires_at)
 VALUES (%(name)s, %(event)s, %(mark)s, {_NOW} + %(keep)s::interval)
 ON CONFLICT (trigger, event) DO UPDATE SET mark = excluded.mark, expires_at = excluded.expires_at
 WHERE r.expires_at <= {_NOW} RETURNING 1"""
KNOWN = "SELECT mark FROM lateshift.receipt WHERE trigger = %(name)s AND event = %(event)s"
MARK = "UPDATE lateshift.receipt SET mark = %(mark)s WHERE trigger = %(name)s AND event = %(event)s"


def is_open(connection: Connection, name: str) -> bool:
    return bool(connection.execute(OPEN, (name,)).fetchall())


def receive(
    connection: Connection, name: str, arrivals: Sequence[Arrival], keep: timedelta, skew: timedelta, *, again: bool
) -> tuple[list[Received], list[Arrival], list[NewJob]]:  # fmt: skip
    """What became of each, those that are new, and their jobs, which are written. `again`: an earlier try may have committed."""
    answers: dict[int, Received] = {}
    new: list[Arrival] = []
    jobs: list[NewJob] = []
    # So that no two wait for each other.
    order = sorted(range(len(arrivals)), key=lambda place: arrivals[place].event)
    for place in order:
        arrival = arrivals[place]
        mark = triggering.mark_of(arrival, None if arrival.job is None else arrival.job.id)
        told: dict[str, Any] = {
            "name": name,
            "event": arrival.event,
            "mark": mark,
            "keep": keep,
            "skew": skew,
        }
        if not connection.execute(RECEIPT, told).fetchall():
            [(known,)] = connection.execute(KNOWN, told).fetchall()
            answers[place] = triggering.received(known, new=again and known == mark and mark != "")
            continue
        if arrival.job is not None:
            [made] = enqueue.run(connection, enqueue.statements([arrival.job], skew, again=again))
            jobs.append(arrival.job)
            if made.id != arrival.job.id:
                mark = triggering.mark_of(arrival, made.id)
                connection.execute(MARK, {**told, "mark": mark})
        new.append(arrival)
        answers[place] = triggering.received(mark, new=True)
    return [answers[place] for place in range(len(arrivals))], new, jobs
