"""What stands beside a job in SQLite: its tags, and the job whose attempt asked for it. Most jobs have neither."""

from collections.abc import Generator, Iterable, Sequence
from typing import Any
from uuid import UUID

from lateshift.model.ids import JobId
from lateshift.model.job import NewJob
from lateshift.store.contract import Asked, Rows
from lateshift.store.marks import GENERATIONS, Kin, marked, of_parents
from lateshift.store.sqlite.database import Connection

# An upsert by primary key, both.
INSERT_TAG = "INSERT INTO job_tag (tag, job_id) VALUES (?, ?) ON CONFLICT DO NOTHING"
INSERT_PARENT = "INSERT INTO job_parent (child, parent) VALUES (?, ?) ON CONFLICT DO NOTHING"
# With the jobs that they are of. job_tag_job; primary key.
FORGET_TAGS = "DELETE FROM job_tag WHERE job_id = ?"
FORGET_PARENT = "DELETE FROM job_parent WHERE child = ?"
ANY_MARK = "SELECT 1 FROM job_tag UNION ALL SELECT 1 FROM job_parent LIMIT 1"
# Who asked for it, who asked for that, and so on, the nearest first. Primary key.
ANCESTORS = f"""WITH RECURSIVE up(id, depth) AS (SELECT parent, 1 FROM job_parent WHERE child = ?1
  UNION ALL SELECT p.parent, depth + 1 FROM up JOIN job_parent p ON p.child = up.id WHERE depth < {GENERATIONS})
 SELECT id FROM up ORDER BY depth"""
# What one has asked for, the oldest first. job_parent_parent.
CHILDREN = "SELECT child FROM job_parent WHERE parent = ? ORDER BY child LIMIT ?"


def statements(jobs: Sequence[NewJob]) -> Generator[Asked, Rows, None]:
    """For an enqueue, after the jobs themselves."""
    found = marked(jobs)
    if not found:
        return
    if tags := [(tag, job.id.bytes) for job in found for tag in job.tags]:
        yield INSERT_TAG, tags
    if parents := [(child.bytes, parent.bytes) for child, parent in of_parents(found)]:
        yield INSERT_PARENT, parents


def forget(connection: Connection, ids: Iterable[tuple[Any, ...]]) -> None:
    if connection.execute(ANY_MARK).fetchall():
        gone = list(ids)
        connection.executemany(FORGET_TAGS, gone)
        connection.executemany(FORGET_PARENT, gone)


def kin(connection: Connection, id: JobId, limit: int) -> Kin:
    ancestors = connection.execute(ANCESTORS, (id.bytes,)).fetchall()

    def children(parent: JobId, most: int) -> list[JobId]:
        rows = connection.execute(CHILDREN, (parent.bytes, most)).fetchall()
        return [UUID(bytes=child) for (child,) in rows]

    return Kin.of([UUID(bytes=each) for (each,) in ancestors], id, children, limit)
