"""What operators did, in SQLite: listed, and recorded where no other verb does."""

from collections.abc import Mapping

from lateshift.model.instants import to_instant
from lateshift.store.access_contract import AUDIT_LOOKED_AT
from lateshift.store.auditing import START, AuditLister
from lateshift.store.contract import Rows
from lateshift.store.granting import recorded
from lateshift.store.sqlite import deeds
from lateshift.store.sqlite.database import Database

# The newest first, from a number on. What fits the first filter is read in its order, up to AUDIT_LOOKED_AT; the others are
# looked for in it, and it is read no further than that there are enough. Primary key; audit_subject, audit_actor, audit_action,
# which are named, for what ANALYZE counts would have SQLite read the lines of everybody to find those of one.
_COLUMNS = "number, at, action, subject, actor"
LIST = f"SELECT {_COLUMNS} FROM audit NOT INDEXED WHERE number < ?1 ORDER BY number DESC LIMIT ?2"
# All but the jobs that were started. audit_deeds.
LIST_DEEDS = f"""SELECT {_COLUMNS} FROM audit INDEXED BY audit_deeds WHERE action <> '{START}' AND number < ?1
 ORDER BY number DESC LIMIT ?2"""
_LIST_OF = f"""SELECT {_COLUMNS} FROM (SELECT {_COLUMNS} FROM audit INDEXED BY audit_{{0}}
  WHERE {{0}} = {{1}} AND number < ?1 ORDER BY number DESC LIMIT {AUDIT_LOOKED_AT})
 WHERE (?3 IS NULL OR subject = ?3) AND (?4 IS NULL OR actor = ?4) AND (?5 IS NULL OR action = ?5)
 AND (?6 OR action <> '{START}')
 ORDER BY number DESC LIMIT ?2"""
LIST_OF_SUBJECT = _LIST_OF.format("subject", "?3")
LIST_OF_ACTOR = _LIST_OF.format("actor", "?4")
LIST_OF_ACTION = _LIST_OF.format("action", "?5")
_LISTS = {None: LIST, "subject": LIST_OF_SUBJECT, "actor": LIST_OF_ACTOR, "action": LIST_OF_ACTION}


class SqliteAudit(AuditLister):
    """See access_contract.AuditLog."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._clock = database.clock

    def _page(
        self, first: str | None, before: int, limit: int, filters: Mapping[str, str | None], starts: bool
    ) -> Rows:
        given = (before, limit) if first is None else (before, limit, *filters.values(), starts)
        statement = LIST_DEEDS if first is None and not starts else _LISTS[first]
        with self._database.read() as connection:
            rows = connection.execute(statement, given).fetchall()
        return [(number, to_instant(at), *said) for number, at, *said in rows]

    def record(self, action: str, subject: str, *, by: str) -> None:
        with self._database.write() as connection:
            now = self._clock.microseconds()
            deeds.write(connection, now, recorded(action), [recorded(subject)], recorded(by))
