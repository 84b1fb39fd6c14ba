"""How far the runs of one name are, counted, in SQLite. Each statement looks at so many rows and no more, whatever the history."""

from typing import Any

from lateshift.model.job import State
from lateshift.model.pipeline.progress import Tally
from lateshift.model.workflow.run import Phase
from lateshift.store.contract import COUNT_LIMIT
from lateshift.store.sqlite.database import Connection
from lateshift.store.tallies import pipelines_kept, tallied
from lateshift.store.workflow_contract import STEPS_LOOKED_AT, Kept

_NEWEST = "SELECT id, phase FROM run WHERE name = ?1 ORDER BY id DESC LIMIT ?2"
# The newest, by what became of the job that each is. run_name; primary keys.
COUNT_RUNS = f"""SELECT phase, coalesce((SELECT state FROM job WHERE id = n.id), (SELECT state FROM settled WHERE id = n.id)), count(*)
 FROM ({_NEWEST}) n GROUP BY 1, 2"""
# All that are held, however old, of whatever name. run_phase; primary key.
_HELD_SO = "(SELECT id, name FROM run WHERE phase = {} AND phase > 0 ORDER BY id DESC LIMIT ?2)"
_HELD = f"""SELECT id, name FROM (SELECT id, name FROM {_HELD_SO.format(int(Phase.HELD))} AS forward
  UNION ALL SELECT id, name FROM {_HELD_SO.format(int(Phase.UNDO_HELD))} AS undone) AS either LIMIT ?2"""
COUNT_HELD_RUNS = (
    f"SELECT count(*) FROM ({_HELD}) h WHERE name = ?1 AND EXISTS (SELECT 1 FROM job WHERE id = h.id)"
)
# Those that have not begun. job_ready, job_held_up, job_scheduled.
_NOT_BEGUN = "WHERE task = ?1 AND fence = 0"
COUNT_NOT_BEGUN = f"""SELECT (SELECT count(*) FROM (SELECT task, fence FROM job WHERE state = 1 AND queue = ?2 LIMIT ?3) {_NOT_BEGUN})
 + (SELECT count(*) FROM (SELECT task, fence FROM job WHERE state = 3 AND queue = ?2 LIMIT ?3) {_NOT_BEGUN})
 + (SELECT count(*) FROM (SELECT task, fence FROM job WHERE state = 0 ORDER BY due_at LIMIT ?3) {_NOT_BEGUN})"""
# Their steps that are jobs, by the states of these. step_job; primary key.
COUNT_IN_FLIGHT = f"""SELECT name, (SELECT state FROM job WHERE id = s.job), count(*) FROM (SELECT s.name, s.job FROM ({_NEWEST}) n
  CROSS JOIN step s INDEXED BY step_job WHERE s.run = n.id AND s.job IS NOT NULL AND s.state = 1 LIMIT ?2) s GROUP BY 1, 2"""
# Steps that hold a run, and those that made one a dead letter; of a pipeline also where no filter has failed. Primary keys.
_AT = "SELECT name, count(*) FROM (SELECT s.name, s.kind, s.state FROM {} CROSS JOIN step s ON s.run = r.id LIMIT ?3) WHERE kind IN (1, 2, 8, 9) AND state = {} GROUP BY 1"
COUNT_HELD_STEPS = _AT.format(f"(SELECT id FROM ({_HELD}) WHERE name = ?1) r", 4)
COUNT_FAILED_STEPS = _AT.format(
    f"(SELECT id FROM ({_NEWEST}) n WHERE EXISTS (SELECT 1 FROM settled WHERE id = n.id AND state = {int(State.DEAD)})) r",
    3,
)

# From one name of runs to the next. run_name.
NEXT_NAME = "SELECT name FROM run WHERE name > ? ORDER BY name LIMIT 1"
# What the newest run of a name keeps of its shape, and the queue that it is in. run_name; primary keys.
KEPT = """SELECT coalesce((SELECT queue FROM job WHERE id = n.id), (SELECT queue FROM settled WHERE id = n.id)), s.result
 FROM (SELECT id FROM run WHERE name = ?1 ORDER BY id DESC LIMIT 1) n CROSS JOIN step s ON s.run = n.id AND s.path = '00001'
 WHERE s.kind = 9"""


def tally(connection: Connection, name: str, queue: str, limit: int | None) -> Tally:
    most = COUNT_LIMIT if limit is None else limit
    steps = STEPS_LOOKED_AT * most // COUNT_LIMIT

    def rows(sql: str, *asked: Any) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = connection.execute(sql, asked).fetchall()
        return found

    return tallied(
        runs=rows(COUNT_RUNS, name, most), held=rows(COUNT_HELD_RUNS, name, most)[0][0],
        not_begun=rows(COUNT_NOT_BEGUN, name, queue, most)[0][0], in_flight=rows(COUNT_IN_FLIGHT, name, most),
        held_steps=rows(COUNT_HELD_STEPS, name, most, steps), failed_steps=rows(COUNT_FAILED_STEPS, name, most, steps),
    )  # fmt: skip


def kept(connection: Connection, name: str | None, limit: int, after: str) -> list[Kept]:
    return pipelines_kept(
        name,
        limit,
        after,
        following=lambda at: connection.execute(NEXT_NAME, (at,)).fetchall(),
        shapes=lambda at: connection.execute(KEPT, (at,)).fetchall(),
    )
