"""What a worker and a child process say to each other, and how it goes over their socket: the length in four bytes,
then the message as msgpack. Nothing is pickled: a message holds data, never code or the name of something to import."""

import asyncio
import socket
from typing import TypeAlias

import msgspec
from msgspec import Struct

from lateshift.model.attempt_log import LogLine
from lateshift.model.job import Lease, Progress

LENGTH = 4


class Run(Struct, frozen=True, tag="run"):
    """Run this job now. `time_left` are the seconds to its complete-by. Its lease has the context of the attempt, not of the job. `sealed`:
    what it logs is not to be seen."""

    lease: Lease
    time_left: float | None
    sealed: bool = False


class Told(Struct, frozen=True, tag="told"):
    """What the body is to know, all of it as it stands now."""

    cancelled_by: str | None = None
    lost: bool = False
    stopping: bool = False


class Saved(Struct, frozen=True, tag="saved"):
    """The answer to a checkpoint: kept, or refused because the lease is lost; or the store's own trouble."""

    kept: bool
    trouble: str | None = None


class Ready(Struct, frozen=True, tag="ready"):
    """The program is imported."""


class Unable(Struct, frozen=True, tag="unable"):
    """The program could not be imported; the child ends."""

    why: str


class Said(Struct, frozen=True, tag="said"):
    """How far the body says it is."""

    progress: Progress


class Logged(Struct, frozen=True, tag="logged"):
    """What the body has logged since the last time, and how many lines of it were too many."""

    lines: list[LogLine]
    dropped: int


class Save(Struct, frozen=True, tag="save"):
    """Keep this checkpoint, and answer with Saved."""

    state: bytes


class Returned(Struct, frozen=True, tag="returned"):
    """The body returned this, as JSON, and wants its session to keep that. `ran`: for how many seconds it ran."""

    result: bytes | None
    session_state: bytes | None = None
    ran: float = 0.0


class Raised(Struct, frozen=True, tag="raised"):
    """The body raised. The first two are the body's wishes, as Snooze and Cancel carry them; see also RemoteError."""

    snooze: float | None
    cancel: bool
    lease_lost: bool
    over_memory: bool
    name: str
    message: str
    lineage: tuple[str, ...]
    trace: str
    retry_after: float | None
    ran: float = 0.0


Order: TypeAlias = Run | Told | Saved
Answer: TypeAlias = Ready | Unable | Said | Logged | Save | Returned | Raised

_encoder = msgspec.msgpack.Encoder()
_orders: msgspec.msgpack.Decoder[Order] = msgspec.msgpack.Decoder(Order)
_answers: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)


def framed(message: Order | Answer) -> bytes:
    body = _encoder.encode(message)
    return len(body).to_bytes(LENGTH, "big") + body


async def read_answer(reader: asyncio.StreamReader) -> Answer | None:
    """In the worker; None when the child has closed its end."""
    try:
        length = int.from_bytes(await reader.readexactly(LENGTH), "big")
        return _answers.decode(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def read_order(connection: socket.socket) -> Order | None:
    """In the child; None when the worker is gone."""
    head = _read_exactly(connection, LENGTH)
    body = _read_exactly(connection, int.from_bytes(head, "big")) if head is not None else None
    return _orders.decode(body) if body is not None else None


def _read_exactly(connection: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        try:
            part = connection.recv(min(size - len(parts), 1 << 16))
        except ConnectionError:
            return None
        if not part:
            return None
        parts += part
    return bytes(parts)
