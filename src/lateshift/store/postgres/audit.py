"""What operators did, in PostgreSQL: listed, and recorded where no other verb does."""

from collections.abc import Mapping

from lateshift.store.access_contract import AUDIT_LOOKED_AT
from lateshift.store.auditing import START, AuditLister
from lateshift.store.contract import Rows
from lateshift.store.granting import recorded
from lateshift.store.postgres.database import Connection, Database
from lateshift.store.postgres.deeds import Lines, do

# The newest first, from a number on. What fits the first filter is read in its order, up to AUDIT_LOOKED_AT; the others are
# looked for in it, and it is read no further than that there are enough. The first filter is a range of its index and not an
# equation: then no other index has this order, and no plan can read the lines of everybody to find those of one.
# Primary key; audit_subject, audit_actor, audit_action.
_COLUMNS = "number, at, action, subject, actor"
_LIST = f"""SELECT {_COLUMNS} FROM (SELECT {_COLUMNS}, {{first}} AS first FROM lateshift.audit WHERE {{where}}
  ORDER BY first DESC, number DESC LIMIT {AUDIT_LOOKED_AT}) AS newest
 WHERE (%(subject)s::text IS NULL OR subject = %(subject)s::text) AND (%(actor)s::text IS NULL OR actor = %(actor)s::text)
 AND (%(action)s::text IS NULL OR action = %(action)s::text) AND (%(starts)s OR action <> '{START}')
 ORDER BY first DESC, number DESC LIMIT %(limit)s"""
_RANGE = """left({0}, 200) >= left(%({0})s::text, 200) AND (left({0}, 200), number) < (left(%({0})s::text, 200), %(before)s)
  AND {0} = %({0})s::text"""


def _list_of(column: str) -> str:
    return _LIST.format(first=f"left({column}, 200)", where=_RANGE.format(column))


LIST = (
    f"SELECT {_COLUMNS} FROM lateshift.audit WHERE number < %(before)s ORDER BY number DESC LIMIT %(limit)s"
)
# All but the jobs that were started: no other index has this order. audit_deeds.
LIST_DEEDS = f"""SELECT {_COLUMNS} FROM lateshift.audit WHERE left(action, 6) <> '{START}' AND number + 0 < %(before)s
 ORDER BY number + 0 DESC LIMIT %(limit)s"""
LIST_OF_SUBJECT = _list_of("subject")
LIST_OF_ACTOR = _list_of("actor")
LIST_OF_ACTION = _list_of("action")
_LISTS = {None: LIST, "subject": LIST_OF_SUBJECT, "actor": LIST_OF_ACTOR, "action": LIST_OF_ACTION}


def purging(now: str, kept: str, starts_kept: str, most: str) -> str:
    """What deletes lines past their time, as upkeep and the function of a role want it. Of jobs that were started the oldest are
    looked at, as their numbers say, which grow with the time. audit_at, audit_action."""
    return f"""DELETE FROM lateshift.audit WHERE ctid = ANY(
 ARRAY(SELECT ctid FROM lateshift.audit WHERE at <= (SELECT {now} - {kept}) LIMIT {most}) ||
 ARRAY(SELECT line FROM (SELECT ctid AS line, at FROM lateshift.audit WHERE left(action, 200) = '{START}'
  ORDER BY left(action, 200), number LIMIT {most}) AS oldest WHERE at <= (SELECT {now} - {starts_kept})))"""


class PostgresAudit(AuditLister):
    """See access_contract.AuditLog."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._clock = database.clock

    def _page(
        self, first: str | None, before: int, limit: int, filters: Mapping[str, str | None], starts: bool
    ) -> Rows:
        given = {"before": before, "limit": limit, "starts": starts, **filters}
        statement = LIST_DEEDS if first is None and not starts else _LISTS[first]
        return self._database.run(
            lambda connection, again: connection.execute(statement.encode(), given).fetchall()
        )

    def record(self, action: str, subject: str, *, by: str) -> None:
        def deed(connection: Connection, lines: Lines) -> None:
            lines.write(recorded(action), [recorded(subject)], recorded(by))

        do(self._database, deed)
