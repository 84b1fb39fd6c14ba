"""Answers to requests with a key, in PostgreSQL."""

from datetime import timedelta
from typing import Any

import msgspec

from lateshift.store.answer_contract import ANSWER_KEPT, ANSWER_WITHIN, Answered, Begun
from lateshift.store.postgres.database import Connection, Database

_NOW = "clock_timestamp() + %(skew)s::interval"
# The key, if it is free. Who comes at the same moment waits here for the other's commit. Primary key, all
# of them.
BEGIN = f"""INSERT INTO lateshift.answer AS a (id, request, turn, until, expires_at)
 VALUES (%(id)s, %(request)s, %(turn)s, {_NOW} + %(within)s::interval, {_NOW} + %(kept)s::interval)
 ON CONFLICT (id) DO UPDATE SET request = excluded.request, turn = excluded.turn, until = excluded.until, answer = NULL,
 expires_at = excluded.expires_at
 WHERE a.expires_at <= {_NOW} RETURNING 1"""
FIND = f"SELECT request, turn, answer, until > {_NOW} FROM lateshift.answer WHERE id = %(id)s"
HOLD = f"""UPDATE lateshift.answer SET until = {_NOW} + %(within)s::interval
 WHERE id = %(id)s AND turn = %(turn)s AND answer IS NULL AND until > {_NOW}"""
# Who has been told that nobody knows is told so for good, whatever becomes of the clock.
UNKNOWN = "UPDATE lateshift.answer SET until = '-infinity' WHERE id = %(id)s"
KEEP = "UPDATE lateshift.answer SET answer = %(answer)s WHERE id = %(id)s AND turn = %(turn)s"
GIVE_UP = "DELETE FROM lateshift.answer WHERE id = %(id)s AND turn = %(turn)s"
# answer_expires.
PURGE = f"""DELETE FROM lateshift.answer WHERE id IN
 (SELECT id FROM lateshift.answer WHERE expires_at <= {_NOW} LIMIT %(limit)s)"""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Answered).decode


class PostgresAnswers:
    """See answer_contract.Answers."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._clock = database.clock

    def begin(self, id: bytes, request: bytes, *, turn: int) -> Begun:
        told = {
            "id": id, "request": request, "turn": turn, "skew": self._clock.offset, "within": ANSWER_WITHIN,
            "kept": ANSWER_KEPT,
        }  # fmt: skip

        def work(connection: Connection, again: bool) -> Begun:
            with connection.transaction():
                if connection.execute(BEGIN, told).fetchall():
                    return Begun()
                for known, whose, answer, held in connection.execute(FIND, told).fetchall():
                    if bytes(known) != request:
                        return Begun(another=True)
                    if answer is not None:
                        return Begun(answer=_decode(answer))
                    if whose == turn:
                        return Begun()
                    if held:
                        return Begun(under_way=True)
                    connection.execute(UNKNOWN, told)
                    return Begun(unknown=True)
            return Begun(under_way=True)  # given up at this moment: the next try has it

        return self._database.run(work)

    def hold(self, id: bytes, *, turn: int) -> bool:
        return self._change(
            HOLD, {"id": id, "turn": turn, "skew": self._clock.offset, "within": ANSWER_WITHIN}
        )

    def keep(self, id: bytes, answer: Answered, *, turn: int) -> bool:
        return self._change(KEEP, {"id": id, "turn": turn, "answer": _encode(answer)})

    def give_up(self, id: bytes, *, turn: int) -> bool:
        return self._change(GIVE_UP, {"id": id, "turn": turn})

    def _change(self, sql: str, told: dict[str, Any]) -> bool:
        return self._database.run(lambda connection, again: connection.execute(sql, told).rowcount == 1)


def purge(connection: Connection, skew: timedelta, limit: int) -> int:
    return connection.execute(PURGE, {"skew": skew, "limit": limit}).rowcount
