"""How far the runs of one name are, counted, in PostgreSQL. Each statement looks at so many rows and no more, whatever the history."""

from lateshift.model.job import State
from lateshift.model.pipeline.progress import Tally
from lateshift.model.workflow.run import Phase
from lateshift.store.contract import COUNT_LIMIT
from lateshift.store.postgres.database import Connection
from lateshift.store.tallies import pipelines_kept, tallied
from lateshift.store.workflow_contract import STEPS_LOOKED_AT, Kept

_NEWEST = "SELECT id, phase FROM lateshift.run WHERE name = %(name)s ORDER BY id DESC LIMIT %(limit)s"
# One row of another table by its primary key: with a limit inside, each is looked up for itself, whatever the statistics say.
_ONE = "LATERAL (SELECT {} FROM lateshift.{} WHERE id = {} LIMIT 1)"
# The newest, by what became of the job that each is. run_name; primary keys.
COUNT_RUNS = f"""SELECT n.phase, coalesce(j.state, s.state), count(*) FROM ({_NEWEST}) n
 LEFT JOIN {_ONE.format("state", "job", "n.id")} j ON true LEFT JOIN {_ONE.format("state", "settled", "n.id")} s ON true GROUP BY 1, 2"""
# All that are held, however old, of whatever name. run_phase; primary key.
_HELD_SO = (
    "(SELECT id, name FROM lateshift.run WHERE phase = {} AND phase > 0 ORDER BY id DESC LIMIT %(limit)s)"
)
_HELD = f"""SELECT id, name FROM (SELECT id, name FROM {_HELD_SO.format(int(Phase.HELD))} AS forward
  UNION ALL SELECT id, name FROM {_HELD_SO.format(int(Phase.UNDO_HELD))} AS undone) AS either LIMIT %(limit)s"""
COUNT_HELD_RUNS = f"""SELECT count(*) FROM ({_HELD}) h CROSS JOIN {_ONE.format("1", "job", "h.id")} j WHERE h.name = %(name)s"""
# Those that have not begun. job_ready, job_held_up, job_scheduled.
_NOT_BEGUN = "b WHERE task = %(name)s AND fence = 0"
COUNT_NOT_BEGUN = f"""SELECT
 (SELECT count(*) FROM (SELECT task, fence FROM lateshift.job WHERE state = 1 AND queue = %(queue)s LIMIT %(limit)s) {_NOT_BEGUN})
 + (SELECT count(*) FROM (SELECT task, fence FROM lateshift.job WHERE state = 3 AND queue = %(queue)s LIMIT %(limit)s) {_NOT_BEGUN})
 + (SELECT count(*) FROM (SELECT task, fence FROM lateshift.job WHERE state = 0 ORDER BY due_at LIMIT %(limit)s) {_NOT_BEGUN})"""
# Their steps that are jobs, by the states of these. step_job; primary key.
COUNT_IN_FLIGHT = f"""SELECT s.name, j.state, count(*) FROM (SELECT s.name, s.job FROM ({_NEWEST}) n CROSS JOIN LATERAL
  (SELECT name, job FROM lateshift.step WHERE run = n.id AND job IS NOT NULL AND state = 1 LIMIT %(limit)s) s LIMIT %(limit)s) s
 CROSS JOIN {_ONE.format("state", "job", "s.job")} j GROUP BY 1, 2"""
# Steps that hold a run, and those that made one a dead letter; of a pipeline also where no filter has failed. Primary keys.
_AT = """SELECT name, count(*) FROM (SELECT s.name, s.kind, s.state FROM {} CROSS JOIN LATERAL
  (SELECT name, kind, state FROM lateshift.step WHERE run = r.id LIMIT %(steps)s) s LIMIT %(steps)s) a
 WHERE kind IN (1, 2, 8, 9) AND state = {} GROUP BY 1"""
COUNT_HELD_STEPS = _AT.format(f"(SELECT id FROM ({_HELD}) h WHERE name = %(name)s) r", 4)
COUNT_FAILED_STEPS = _AT.format(
    f"""(SELECT n.id FROM ({_NEWEST}) n CROSS JOIN {_ONE.format("state", "settled", "n.id")} d WHERE d.state = {int(State.DEAD)}) r""",
    3,
)

# From one name of runs to the next. run_name.
NEXT_NAME = "SELECT name FROM lateshift.run WHERE name > %s ORDER BY name LIMIT 1"
# What the newest run of a name keeps of its shape, and the queue that it is in. run_name; primary keys.
KEPT = f"""SELECT coalesce(j.queue, d.queue), s.result
 FROM (SELECT id FROM lateshift.run WHERE name = %(name)s ORDER BY id DESC LIMIT 1) r
 CROSS JOIN LATERAL (SELECT kind, result FROM lateshift.step WHERE run = r.id AND path = '00001' LIMIT 1) s
 LEFT JOIN {_ONE.format("queue", "job", "r.id")} j ON true LEFT JOIN {_ONE.format("queue", "settled", "r.id")} d ON true
 WHERE s.kind = 9"""


def tally(connection: Connection, name: str, queue: str, limit: int | None) -> Tally:
    most = COUNT_LIMIT if limit is None else limit
    asked = {"name": name, "queue": queue, "limit": most, "steps": STEPS_LOOKED_AT * most // COUNT_LIMIT}
    with connection.pipeline():
        cursors = [
            connection.execute(sql, asked)
            for sql in (
                COUNT_RUNS, COUNT_IN_FLIGHT, COUNT_HELD_STEPS, COUNT_FAILED_STEPS, COUNT_HELD_RUNS, COUNT_NOT_BEGUN,
            )
        ]  # fmt: skip
    runs, in_flight, held_steps, failed_steps, [(held,)], [(not_begun,)] = [
        cursor.fetchall() for cursor in cursors
    ]
    return tallied(
        runs=runs, held=held, not_begun=not_begun, in_flight=in_flight, held_steps=held_steps, failed_steps=failed_steps
    )  # fmt: skip


def kept(connection: Connection, name: str | None, limit: int, after: str) -> list[Kept]:
    return pipelines_kept(
        name,
        limit,
        after,
        following=lambda at: connection.execute(NEXT_NAME, (at,)).fetchall(),
        shapes=lambda at: connection.execute(KEPT, {"name": at}).fetchall(),
    )
