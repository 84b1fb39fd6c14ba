"""Tokens in PostgreSQL: who they are, what they are good for, and that they are revoked."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

from lateshift.model.access import Token, TokenState
from lateshift.store.access_contract import USED_EVERY, FindHere, TokenGroup, TokenPlace
from lateshift.store.granting import (
    SIGN_IN,
    makers,
    orphan,
    queues_of,
    scopes_of,
    spans,
    subject_of,
    taken,
    tokens_limit,
)
from lateshift.store.postgres.arrays import Uuids
from lateshift.store.postgres.database import Connection, Database
from lateshift.store.postgres.deeds import Lines, do
from lateshift.store.postgres.on_loop import OnLoop
from lateshift.store.taking import TOKEN_KEPT

_NOW = "(SELECT clock_timestamp() + %(skew)s::interval)"
_COLUMNS = "id, name, scopes, queues, digest, created_at, created_by, expires_at, revoked_at, revoked_by, last_used_at, parent"
# Primary key, and token_name: nothing if either is there.
CREATE = f"""INSERT INTO lateshift.token ({_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
 ON CONFLICT DO NOTHING RETURNING 1"""
# Primary key.
FIND = f"SELECT {_COLUMNS} FROM lateshift.token WHERE id = ANY(%s)"
_REVOKE = f"""UPDATE lateshift.token SET revoked_at = {_NOW}, revoked_by = %(by)s
 WHERE {{}} = %(id)s AND revoked_at IS NULL RETURNING name"""
REVOKE = _REVOKE.format("id")
REVOKE_CHILDREN = _REVOKE.format("parent")  # token_parent
# It stays so until this transaction ends. Primary key.
LIVES = f"""SELECT 1 FROM lateshift.token WHERE id = %(id)s AND revoked_at IS NULL
 AND (expires_at IS NULL OR expires_at > {_NOW}) FOR SHARE"""
# Those that another writes at this moment need no second write. Primary key.
USED = f"""UPDATE lateshift.token SET last_used_at = {_NOW} WHERE id = ANY(ARRAY(SELECT id FROM lateshift.token
 WHERE id = ANY(%(ids)s) AND (last_used_at IS NULL OR last_used_at <= {_NOW} - %(every)s::interval)
 FOR NO KEY UPDATE SKIP LOCKED))"""
# token_name
NAMED = f"SELECT {_COLUMNS} FROM lateshift.token WHERE name = %s AND revoked_at IS NULL"
# One row.
SECRET = "SELECT value FROM lateshift.secret"
# A part of a listing each. token_lasting, token_ending, token_gone.
_LISTED = f"SELECT {_COLUMNS} FROM lateshift.token WHERE {SIGN_IN} = %(sign_in)s AND revoked_at"
_BEHIND = "(%(at)s::timestamptz, %(id)s::uuid)"
LISTED = {
    TokenGroup.LASTING: f"""{_LISTED} IS NULL AND expires_at IS NULL AND id < %(id)s::uuid ORDER BY id DESC LIMIT %(limit)s""",
    TokenGroup.ENDING: f"""{_LISTED} IS NULL AND expires_at > %(above)s::timestamptz AND (expires_at, id) < {_BEHIND}
 ORDER BY expires_at DESC, id DESC LIMIT %(limit)s""",
    TokenGroup.REVOKED: f"""{_LISTED} > %(above)s::timestamptz AND (revoked_at, id) < {_BEHIND}
 ORDER BY revoked_at DESC, id DESC LIMIT %(limit)s""",
}
# Those that are good for nothing since TOKEN_KEPT. token_revoked, token_expires.
_PURGE = f"""DELETE FROM lateshift.token WHERE id = ANY(ARRAY(SELECT id FROM lateshift.token
 WHERE {{0}} IS NOT NULL AND {{0}} <= {_NOW} - %(kept)s::interval ORDER BY {{0}} LIMIT %(limit)s FOR UPDATE SKIP LOCKED))"""
PURGE_REVOKED = _PURGE.format("revoked_at")
PURGE_EXPIRED = _PURGE.format("expires_at")

_HIGHEST = UUID(int=2**128 - 1)


class PostgresTokens:
    """See access_contract.Tokens."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._clock = database.clock
        self._secret = b""

    def create(self, token: Token, *, maker: UUID | None = None) -> None:
        row = (
            token.id, token.name, ",".join(token.scopes), ",".join(token.queues), token.digest, token.created_at,
            token.created_by, token.expires_at, token.revoked_at, token.revoked_by, token.last_used_at, token.parent,
        )  # fmt: skip

        def deed(connection: Connection, lines: Lines) -> None:
            for id in makers(token, maker):
                if not connection.execute(LIVES, {"id": id, "skew": self._clock.offset}).fetchall():
                    raise orphan(token.name)
            if connection.execute(CREATE, row).fetchall():
                lines.write("create", [subject_of(token.name)], token.created_by)
            elif not connection.execute(FIND, (Uuids([token.id]),)).fetchall():
                raise taken(token.name)

        do(self._database, deed)

    def find(self, ids: Sequence[UUID]) -> list[Token]:
        rows = self._database.run(
            lambda connection, again: connection.execute(FIND, (Uuids(ids),)).fetchall()
        )
        return [_token(row) for row in rows]

    @asynccontextmanager
    async def finding_here(self) -> AsyncIterator[FindHere]:
        async with OnLoop(self._database) as here:

            async def find(ids: Sequence[UUID]) -> list[Token] | None:
                rows = await here.read(FIND, (Uuids(ids),))
                return None if rows is None else [_token(row) for row in rows]

            yield find

    def named(self, name: str) -> Token | None:
        rows = self._database.run(lambda connection, again: connection.execute(NAMED, (name,)).fetchall())
        return _token(rows[0]) if rows else None

    def secret(self) -> bytes:
        if not self._secret:
            [(self._secret,)] = self._database.run(
                lambda connection, again: connection.execute(SECRET).fetchall()
            )
        return self._secret

    def list(
        self, limit: int, *, state: TokenState | None = None, sign_ins: bool = False, after: TokenPlace | None = None
    ) -> list[Token]:  # fmt: skip
        tokens_limit(limit)

        def look(connection: Connection) -> list[Token]:
            rows: list[tuple[Any, ...]] = []
            for span in spans(state, after, self._clock.now()):
                told = {
                    "sign_in": int(sign_ins), "above": span.above or "-infinity", "at": span.at or "infinity",
                    "id": span.id or _HIGHEST, "limit": limit - len(rows),
                }  # fmt: skip
                rows += connection.execute(LISTED[span.group], told).fetchall()
            return [_token(row) for row in rows]

        return self._database.snapshot(look)

    def revoke(self, id: UUID, *, by: str) -> bool:
        def deed(connection: Connection, lines: Lines) -> bool:
            told = {"id": id, "by": by, "skew": self._clock.offset}
            itself = connection.execute(REVOKE, told).fetchall()
            gone = itself + connection.execute(REVOKE_CHILDREN, told).fetchall()
            lines.write("revoke", [subject_of(name) for (name,) in gone], by)
            return bool(itself)

        return do(self._database, deed)

    def used(self, ids: Sequence[UUID]) -> None:
        told = {"ids": Uuids(ids), "skew": self._clock.offset, "every": USED_EVERY}
        self._database.run(lambda connection, again: connection.execute(USED, told).rowcount)


def purge(connection: Connection, skew: timedelta, limit: int) -> int:
    told = {"skew": skew, "kept": TOKEN_KEPT, "limit": limit}
    return sum(connection.execute(sql, told).rowcount for sql in (PURGE_REVOKED, PURGE_EXPIRED))


def _token(row: tuple[Any, ...]) -> Token:
    (
        id, name, scopes, queues, digest, created_at, created_by, expires_at, revoked_at, revoked_by, used_at, parent,
    ) = row  # fmt: skip
    return Token(
        id=id, name=name, scopes=scopes_of(scopes), queues=queues_of(queues), digest=digest, created_at=created_at,
        created_by=created_by, expires_at=expires_at, revoked_at=revoked_at, revoked_by=revoked_by, last_used_at=used_at,
        parent=parent,
    )  # fmt: skip
