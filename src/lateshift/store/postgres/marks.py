"""What stands beside a job in PostgreSQL: its tags, and the job whose attempt asked for it. Most jobs have neither."""

from collections.abc import Generator, Sequence

from lateshift.model.ids import JobId
from lateshift.model.job import NewJob
from lateshift.store.contract import Asked, Rows
from lateshift.store.marks import GENERATIONS, Kin, marked, of_parents
from lateshift.store.postgres.database import Connection

# An upsert by primary key, both.
INSERT_TAGS = """INSERT INTO lateshift.job_tag (tag, job_id) SELECT tag, id FROM unnest(%s::text[], %b::uuid[]) AS new (tag, id)
 ON CONFLICT DO NOTHING"""
INSERT_PARENTS = """INSERT INTO lateshift.job_parent (child, parent)
 SELECT child, parent FROM unnest(%b::uuid[], %b::uuid[]) AS new (child, parent) ON CONFLICT DO NOTHING"""
# With the jobs that they are of. job_tag_job; primary key.
FORGET_TAGS = "DELETE FROM lateshift.job_tag WHERE job_id = ANY(%s)"
FORGET_PARENTS = "DELETE FROM lateshift.job_parent WHERE child = ANY(%s)"
ANY_MARK = "(SELECT 1 FROM lateshift.job_tag LIMIT 1) UNION ALL (SELECT 1 FROM lateshift.job_parent LIMIT 1)"
# Who asked for it, who asked for that, and so on, the nearest first. Primary key.
ANCESTORS = f"""WITH RECURSIVE up AS (SELECT parent AS id, 1 AS depth FROM lateshift.job_parent WHERE child = %s
  UNION ALL SELECT next.parent, depth + 1 FROM up, LATERAL (SELECT parent FROM lateshift.job_parent WHERE child = up.id OFFSET 0) next
  WHERE depth < {GENERATIONS})
 SELECT id FROM up ORDER BY depth"""
# What one has asked for, the oldest first. job_parent_parent.
CHILDREN = "SELECT child FROM lateshift.job_parent WHERE parent = %s ORDER BY parent, child LIMIT %s"


def statements(jobs: Sequence[NewJob]) -> Generator[Asked, Rows, None]:
    """For an enqueue, after the jobs themselves."""
    found = marked(jobs)
    if not found:
        return
    if tags := [(tag, job.id) for job in found for tag in job.tags]:
        yield INSERT_TAGS, [([tag for tag, _ in tags], [id for _, id in tags])]
    if parents := of_parents(found):
        yield INSERT_PARENTS, [([child for child, _ in parents], [parent for _, parent in parents])]


def forget(connection: Connection, ids: Sequence[JobId]) -> None:
    if connection.execute(ANY_MARK).fetchall():
        connection.execute(FORGET_TAGS, (list(ids),))
        connection.execute(FORGET_PARENTS, (list(ids),))


def kin(connection: Connection, id: JobId, limit: int) -> Kin:
    ancestors = connection.execute(ANCESTORS, (id,)).fetchall()

    def children(parent: JobId, most: int) -> list[JobId]:
        return [child for (child,) in connection.execute(CHILDREN, (parent, most)).fetchall()]

    return Kin.of([each for (each,) in ancestors], id, children, limit)
