"""Arrays whose element type is said, not guessed from their values: that also costs less by far. psycopg sends a list of small numbers as smallint[];
cast to bigint[] in a kept plan, the whole array is converted again for every row that looks into it."""

import struct
from abc import abstractmethod
from collections.abc import Iterable
from itertools import chain, repeat
from typing import Any
from uuid import UUID

from psycopg import BaseConnection
from psycopg.adapt import Dumper
from psycopg.postgres import types
from psycopg.pq import Format

# Dimensions, whether there are NULLs, the element's type, length, first index.
_HEAD = struct.Struct("!iiIii")
_EMPTY = struct.Struct("!iiI")
_FROM_2000 = 946_684_800_000_000  # PostgreSQL counts instants from then
_NUMBER = struct.Struct("!iq")
_NULL = b"\xff\xff\xff\xff"


class Uuids(list[UUID]):
    """Sent as uuid[]."""


class Ids(list[bytes]):
    """Sent as uuid[]; of ids as stores keep them, 16 bytes each."""


class BigInts(list[int]):
    """Sent as bigint[]."""


class Instants(list[int | None]):
    """Sent as timestamptz[]; of microseconds since 1970."""


class Places(list[bytes]):
    """Sent as tid[]; of places as a binary answer has them. They hold while the rows are locked."""


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
        return _fixed(16, [each.bytes for each in obj])


class _IdsDumper(_ArrayDumper):
    element = "uuid"

    def parts(self, obj: list[bytes]) -> Iterable[bytes]:
        return _fixed(16, obj)


class _BigIntsDumper(_ArrayDumper):
    element = "int8"

    def parts(self, obj: list[int]) -> Iterable[bytes]:
        return _numbers(obj)


class _InstantsDumper(_ArrayDumper):
    element = "timestamptz"
    nullable = True

    def parts(self, obj: list[int | None]) -> Iterable[bytes]:
        if None not in obj:
            return _numbers([each - _FROM_2000 for each in obj])  # type: ignore[operator]
        return [_NULL if each is None else _NUMBER.pack(8, each - _FROM_2000) for each in obj]


class _PlacesDumper(_ArrayDumper):
    element = "tid"

    def parts(self, obj: list[bytes]) -> Iterable[bytes]:
        return _fixed(6, obj)


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


def _fixed(length: int, parts: list[bytes]) -> Iterable[bytes]:
    """Elements of one length."""
    head = length.to_bytes(4, "big")
    return head, head.join(parts)


def _numbers(numbers: list[int]) -> Iterable[bytes]:
    return [
        struct.pack("!" + "iq" * len(numbers), *chain.from_iterable(zip(repeat(8), numbers, strict=False)))
    ]


def teach(connection: BaseConnection[Any]) -> None:
    """Let a connection send these arrays."""
    connection.adapters.register_dumper(Uuids, _UuidsDumper)
    connection.adapters.register_dumper(Ids, _IdsDumper)
    connection.adapters.register_dumper(BigInts, _BigIntsDumper)
    connection.adapters.register_dumper(Instants, _InstantsDumper)
    connection.adapters.register_dumper(Places, _PlacesDumper)
    connection.adapters.register_dumper(Blobs, _BlobsDumper)
    connection.adapters.register_dumper(Texts, _TextsDumper)
