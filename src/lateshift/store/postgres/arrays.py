"""Arrays whose element type is said, not guessed from their values: that also costs less by far. psycopg sends a list of small numbers as smallint[];
cast to bigint[] in a kept plan, the whole array is converted again for every row that looks into it."""

import struct
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.adapt import Dumper
from psycopg.postgres import types
from psycopg.pq import Format

_HEAD = struct.Struct(
    "!iiIii"
)  # dimensions, whether there are NULLs, the element's type, length, first index
_EMPTY = struct.Struct("!iiI")
_NULL = b"\xff\xff\xff\xff"


class Uuids(list[UUID]):
    """Sent as uuid[]."""


class BigInts(list[int]):
    """Sent as bigint[]."""


class Blobs(list[bytes | None]):
    """Sent as bytea[]."""


class Texts(list[str]):
    """Sent as text[]."""


class _ArrayDumper(Dumper):
    """Writes PostgreSQL's binary form of an array of one dimension."""

    format = Format.BINARY
    element: str
    nullable = False

    def __init_subclass__(cls) -> None:
        cls.oid = types[cls.element].array_oid

    def dump(self, obj: list[Any]) -> bytes:
        element = types[self.element].oid
        if not obj:
            return _EMPTY.pack(0, 0, element)
        return _HEAD.pack(1, int(self.nullable), element, len(obj), 1) + b"".join(self.parts(obj))

    @abstractmethod
    def parts(self, obj: list[Any]) -> Iterable[bytes]:
        """Each element with its length before it."""


class _UuidsDumper(_ArrayDumper):
    element = "uuid"

    def parts(self, obj: list[UUID]) -> Iterable[bytes]:
        return [b"\0\0\0\x10" + each.bytes for each in obj]


class _BigIntsDumper(_ArrayDumper):
    element = "int8"

    def parts(self, obj: list[int]) -> Iterable[bytes]:
        return [b"\0\0\0\x08" + each.to_bytes(8, "big", signed=True) for each in obj]


class _BlobsDumper(_ArrayDumper):
    element = "bytea"
    nullable = True

    def parts(self, obj: list[bytes | None]) -> Iterable[bytes]:
        return [_NULL if each is None else len(each).to_bytes(4, "big") + each for each in obj]


class _TextsDumper(_ArrayDumper):
    element = "text"

    def parts(self, obj: list[str]) -> Iterable[bytes]:
        encoded = [each.encode() for each in obj]
        return [len(each).to_bytes(4, "big") + each for each in encoded]


def teach(connection: Connection[Any]) -> None:
    """Let a connection send these arrays."""
    connection.adapters.register_dumper(Uuids, _UuidsDumper)
    connection.adapters.register_dumper(BigInts, _BigIntsDumper)
    connection.adapters.register_dumper(Blobs, _BlobsDumper)
    connection.adapters.register_dumper(Texts, _TextsDumper)
