"""Tokens in SQLite: who they are, what they are good for, and that they are revoked."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any
from uuid import UUID

from lateshift.model.access import Token, TokenState
from lateshift.model.instants import MICROSECOND, to_instant, to_number
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
from lateshift.store.sqlite import deeds
from lateshift.store.sqlite.database import Connection, Database
from lateshift.store.taking import TOKEN_KEPT

_COLUMNS = "id, name, scopes, queues, digest, created_at, created_by, expires_at, revoked_at, revoked_by, last_used_at, parent"
# Primary key, and token_name: nothing if either is there.
CREATE = f"INSERT INTO token ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING 1"
# Primary key.
FIND = f"SELECT {_COLUMNS} FROM token WHERE id = ?"
_REVOKE = (
    "UPDATE token SET revoked_at = ?1, revoked_by = ?2 WHERE {} = ?3 AND revoked_at IS NULL RETURNING name"
)
REVOKE = _REVOKE.format("id")
REVOKE_CHILDREN = _REVOKE.format("parent")  # token_parent
# Primary key.
LIVES = "SELECT 1 FROM token WHERE id = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)"
STALE = "SELECT 1 FROM token WHERE id = ? AND (last_used_at IS NULL OR last_used_at <= ?)"
USED = "UPDATE token SET last_used_at = ?2 WHERE id = ?1 AND (last_used_at IS NULL OR last_used_at <= ?3)"
# token_name
NAMED = f"SELECT {_COLUMNS} FROM token WHERE name = ? AND revoked_at IS NULL"
# One row.
SECRET = "SELECT value FROM secret"
# A part of a listing each. token_lasting, token_ending, token_gone.
_LISTED = f"SELECT {_COLUMNS} FROM token WHERE {SIGN_IN} = ?1 AND revoked_at"
LISTED = {
    TokenGroup.LASTING: f"{_LISTED} IS NULL AND expires_at IS NULL AND id < ?4 ORDER BY id DESC LIMIT ?5",
    TokenGroup.ENDING: f"""{_LISTED} IS NULL AND expires_at > ?2 AND (expires_at, id) < (?3, ?4)
 ORDER BY expires_at DESC, id DESC LIMIT ?5""",
    TokenGroup.REVOKED: f"""{_LISTED} > ?2 AND (revoked_at, id) < (?3, ?4) ORDER BY revoked_at DESC, id DESC LIMIT ?5""",
}
# Those that are good for nothing since TOKEN_KEPT. token_revoked, token_expires.
PURGE_REVOKED = """DELETE FROM token WHERE id IN (SELECT id FROM token
 WHERE revoked_at IS NOT NULL AND revoked_at <= ? LIMIT ?) RETURNING 1"""
PURGE_EXPIRED = """DELETE FROM token WHERE id IN (SELECT id FROM token
 WHERE expires_at IS NOT NULL AND expires_at <= ? LIMIT ?) RETURNING 1"""

_FIRST, _LAST, _HIGHEST = -(2**63), 2**63 - 1, b"\xff" * 17  # no id is as high


async def _nowhere(ids: Sequence[UUID]) -> None:
    """A file may keep whoever reads it waiting, and a loop must not wait."""


class SqliteTokens:
    """See access_contract.Tokens."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._clock = database.clock
        self._secret = b""

    def create(self, token: Token, *, maker: UUID | None = None) -> None:
        row = (
            token.id.bytes, token.name, ",".join(token.scopes), ",".join(token.queues), token.digest, to_number(token.created_at),
            token.created_by, _number(token.expires_at), _number(token.revoked_at), token.revoked_by, _number(token.last_used_at),
            None if token.parent is None else token.parent.bytes,
        )  # fmt: skip
        with self._database.write() as connection:
            now = self._clock.microseconds()
            for id in makers(token, maker):
                if not connection.execute(LIVES, (id.bytes, now)).fetchall():
                    raise orphan(token.name)
            if connection.execute(CREATE, row).fetchall():
                deeds.write(connection, now, "create", [subject_of(token.name)], token.created_by)
            elif not connection.execute(FIND, (token.id.bytes,)).fetchall():
                raise taken(token.name)

    def find(self, ids: Sequence[UUID]) -> list[Token]:
        with self._database.read() as connection:
            rows = [row for id in ids for row in connection.execute(FIND, (id.bytes,)).fetchall()]
        return [_token(row) for row in rows]

    def finding_here(self) -> AbstractAsyncContextManager[FindHere]:
        return nullcontext(_nowhere)

    def named(self, name: str) -> Token | None:
        with self._database.read() as connection:
            rows = connection.execute(NAMED, (name,)).fetchall()
        return _token(rows[0]) if rows else None

    def secret(self) -> bytes:
        if not self._secret:
            with self._database.read() as connection:
                [(self._secret,)] = connection.execute(SECRET).fetchall()
        return self._secret

    def list(
        self, limit: int, *, state: TokenState | None = None, sign_ins: bool = False, after: TokenPlace | None = None
    ) -> list[Token]:  # fmt: skip
        tokens_limit(limit)
        rows: list[tuple[Any, ...]] = []
        with self._database.snapshot() as connection:
            for span in spans(state, after, self._clock.now()):
                above = _FIRST if span.above is None else to_number(span.above)
                at = _LAST if span.at is None else to_number(span.at)
                behind = _HIGHEST if span.id is None else span.id.bytes
                told = (int(sign_ins), above, at, behind, limit - len(rows))
                rows += connection.execute(LISTED[span.group], told).fetchall()
        return [_token(row) for row in rows]

    def revoke(self, id: UUID, *, by: str) -> bool:
        with self._database.write() as connection:
            now = self._clock.microseconds()
            told = (now, by, id.bytes)
            itself = connection.execute(REVOKE, told).fetchall()
            revoked = itself + connection.execute(REVOKE_CHILDREN, told).fetchall()
            deeds.write(connection, now, "revoke", [subject_of(name) for (name,) in revoked], by)
        return bool(itself)

    def used(self, ids: Sequence[UUID]) -> None:
        now = self._clock.microseconds()
        before = now - USED_EVERY // MICROSECOND
        with self._database.read() as connection:  # a commit costs far more than a look
            stale = [id for id in set(ids) if connection.execute(STALE, (id.bytes, before)).fetchall()]
        if stale:
            with self._database.write() as connection:
                connection.executemany(USED, [(id.bytes, now, before) for id in stale])


def purge(connection: Connection, now: int, limit: int) -> int:
    before = now - TOKEN_KEPT // MICROSECOND
    return sum(
        len(connection.execute(sql, (before, limit)).fetchall()) for sql in (PURGE_REVOKED, PURGE_EXPIRED)
    )


def _number(instant: Any) -> int | None:
    return None if instant is None else to_number(instant)


def _token(row: tuple[Any, ...]) -> Token:
    (
        id, name, scopes, queues, digest, created_at, created_by, expires_at, revoked_at, revoked_by, used_at, parent,
    ) = row  # fmt: skip
    return Token(
        id=UUID(bytes=id), name=name, scopes=scopes_of(scopes), queues=queues_of(queues), digest=digest,
        created_at=to_instant(created_at), created_by=created_by, revoked_by=revoked_by,
        expires_at=None if expires_at is None else to_instant(expires_at),
        revoked_at=None if revoked_at is None else to_instant(revoked_at),
        last_used_at=None if used_at is None else to_instant(used_at),
        parent=None if parent is None else UUID(bytes=parent),
    )  # fmt: skip
