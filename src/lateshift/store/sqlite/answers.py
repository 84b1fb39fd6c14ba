"""Answers to requests with a key, in SQLite."""

import msgspec

from lateshift.model.instants import MICROSECOND
from lateshift.store.answer_contract import ANSWER_KEPT, ANSWER_WITHIN, Answered, Begun
from lateshift.store.sqlite.database import Connection, Database

# Primary key, all of them.
FIND = "SELECT request, until, answer FROM answer WHERE id = ? AND expires_at > ?"
BEGIN = """INSERT INTO answer (id, request, turn, until, answer, expires_at) VALUES (?, ?, ?, ?, NULL, ?)
 ON CONFLICT (id) DO UPDATE SET request = excluded.request, turn = excluded.turn, until = excluded.until, answer = NULL,
 expires_at = excluded.expires_at"""
HOLD = (
    "UPDATE answer SET until = ?3 WHERE id = ?1 AND turn = ?2 AND answer IS NULL AND until > ?4 RETURNING 1"
)
# Who has been told that nobody knows is told so for good, whatever becomes of the clock.
UNKNOWN = "UPDATE answer SET until = 0 WHERE id = ?"
KEEP = "UPDATE answer SET answer = ?3 WHERE id = ?1 AND turn = ?2 RETURNING 1"
GIVE_UP = "DELETE FROM answer WHERE id = ? AND turn = ? RETURNING 1"
# answer_expires.
PURGE = "DELETE FROM answer WHERE id IN (SELECT id FROM answer WHERE expires_at <= ? LIMIT ?) RETURNING 1"

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Answered).decode


class SqliteAnswers:
    """See answer_contract.Answers."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._clock = database.clock

    def begin(self, id: bytes, request: bytes, *, turn: int) -> Begun:
        with self._database.write() as connection:
            now = self._clock.microseconds()
            for known, until, answer in connection.execute(FIND, (id, now)).fetchall():
                if known != request:
                    return Begun(another=True)
                if answer is not None:
                    return Begun(answer=_decode(answer))
                if until > now:
                    return Begun(under_way=True)
                connection.execute(UNKNOWN, (id,))
                return Begun(unknown=True)
            until, expires = now + ANSWER_WITHIN // MICROSECOND, now + ANSWER_KEPT // MICROSECOND
            connection.execute(BEGIN, (id, request, turn, until, expires))
        return Begun()

    def hold(self, id: bytes, *, turn: int) -> bool:
        with self._database.write() as connection:
            now = self._clock.microseconds()
            return bool(
                connection.execute(HOLD, (id, turn, now + ANSWER_WITHIN // MICROSECOND, now)).fetchall()
            )

    def keep(self, id: bytes, answer: Answered, *, turn: int) -> bool:
        with self._database.write() as connection:
            return bool(connection.execute(KEEP, (id, turn, _encode(answer))).fetchall())

    def give_up(self, id: bytes, *, turn: int) -> bool:
        with self._database.write() as connection:
            return bool(connection.execute(GIVE_UP, (id, turn)).fetchall())


def purge(connection: Connection, now: int, limit: int) -> int:
    return len(connection.execute(PURGE, (now, limit)).fetchall())
