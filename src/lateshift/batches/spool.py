"""Calls on their way into a batch. All of them are looked at before the first is written to the store: so that a wrong one,
wherever it stands, leaves nothing behind. Few are in memory at a time; what does not fit waits in a temporary file."""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from tempfile import SpooledTemporaryFile
from typing import IO, Any
from uuid import UUID

import msgspec
from msgspec import Struct, structs

from lateshift.errors import OptionInvalid, TaskUnknown
from lateshift.model.batch import JOBS_LIMIT, BatchId, job_id_at
from lateshift.model.job import NewJob, Spec
from lateshift.model.sealed import is_sealed
from lateshift.sealing.jobs import sealed
from lateshift.sealing.ring import Ring
from lateshift.task import Call, Task

IN_MEMORY = 4 * 1024 * 1024  # bytes of calls that are not worth a file
SPECS_KEPT = 1000  # kinds of call that are written down once
CHUNK = 1000  # jobs in one durable commit
CHUNK_BYTES = 8 * 1024 * 1024  # of their payloads, about


class _Kept(Struct, array_like=True):
    """A call: the number of its spec and its payload, or the whole of it."""

    spec: int
    payload: bytes
    whole: NewJob | None = None


class Spool:
    """`put` each call, then take the jobs out in chunks. Close it in the end."""

    def __init__(self, tasks: Mapping[str, Task[..., Any]], *, digest: bool) -> None:
        self.total = 0
        self._tasks = tasks
        self._ring: Ring | None = None  # once a call of a sensitive queue is among them
        self._digest = blake2b(digest_size=16) if digest else None
        self._specs: dict[Spec, int] = {}
        self._file: IO[bytes] = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed by close()
        self._encoder = msgspec.msgpack.Encoder()

    @property
    def digest(self) -> bytes | None:
        """The same for the same calls in the same order. If some are sensitive, the same only to those who have the ring."""
        if self._digest is None:
            return None
        return self._digest.digest() if self._ring is None else self._ring.digest(self._digest.digest())

    def put(self, call: Call[Any]) -> None:
        if not isinstance(call, Call):
            raise OptionInvalid(f"A batch takes calls, such as task.call(1, 2), not {call!r}.")
        refuse_unfit(call, self._tasks, "A batch's call")
        if self.total >= JOBS_LIMIT:
            raise OptionInvalid(f"A batch has at most {JOBS_LIMIT:,} jobs. Make several of these calls.")
        job = call.job
        number = self._specs.get(job.spec, -1)
        if number < 0 and len(self._specs) < SPECS_KEPT:
            number = self._specs[job.spec] = len(self._specs)
        if call.is_sensitive:
            self._ring = call.task.sender.ring()
        plain = (
            not call.is_sensitive
            and number >= 0
            and job == NewJob(job.id, job.spec, job.payload, None, job.first)
        )
        whole = _spooled(call) if call.is_sensitive else job
        kept = self._encoder.encode(_Kept(number, job.payload) if plain else _Kept(-1, b"", whole))
        self._file.write(len(kept).to_bytes(4, "big") + kept)
        if self._digest is not None:
            self._digest.update(call.task.arguments.digest(job.payload) + job.spec.task.encode() + b"\0")
        self.total += 1

    def chunks(self, batch: BatchId, start: int) -> Iterator[tuple[int, list[NewJob]]]:
        """The jobs from this place on, with the place of the first of each chunk."""
        specs = [structs.replace(spec, batch=batch) for spec in self._specs]
        decoder = msgspec.msgpack.Decoder(_Kept)
        self._file.seek(0)
        chunk: list[NewJob] = []
        size = 0
        for place in range(self.total):
            encoded = self._file.read(int.from_bytes(self._file.read(4), "big"))
            if place < start:
                continue
            chunk.append(self._job(decoder.decode(encoded), specs, job_id_at(batch, place)))
            size += len(encoded)
            if len(chunk) >= CHUNK or size >= CHUNK_BYTES:
                yield place + 1 - len(chunk), chunk
                chunk, size = [], 0
        if chunk:
            yield self.total - len(chunk), chunk

    def _job(self, kept: _Kept, specs: list[Spec], id: UUID) -> NewJob:
        whole = kept.whole
        if whole is None:
            return NewJob(id, specs[kept.spec], kept.payload, None, True)
        spec = structs.replace(whole.spec, batch=specs[0].batch)
        job = structs.replace(whole, id=id, spec=spec, first=True)
        if not is_sealed(job.payload):
            return job
        ring = self._tasks[spec.task].sender.ring()
        return sealed(structs.replace(job, payload=ring.of_spool().open("payload", job.payload)), ring)

    def close(self) -> None:
        self._file.close()


def refuse_unfit(call: Call[Any], tasks: Mapping[str, Task[..., Any]], what: str) -> None:
    if tasks.get(call.task.name) is not call.task:
        known = ", ".join(sorted(tasks)) or "none"
        raise TaskUnknown(
            f"{what} is of the task {call.task.name!r}, which this app has not registered; nothing was written. Its tasks: "
            f"{known}."
        )
    if call.job.key is not None:
        raise OptionInvalid(
            f"{what} of {call.task.name} has a key of its own, so that its job could be another's; nothing was written. Give "
            "the key to the batch: app.batch(…, key=…)."
        )
    if call.job.unique is not None:
        raise OptionInvalid(
            f"{what} of {call.task.name} is unique, so that its job could be another's; nothing was written. A batch makes all of "
            "its jobs: say options(unique=False)."
        )


def _spooled(call: Call[Any]) -> NewJob:
    """What waits in the file is sealed there, too."""
    seal = call.task.sender.ring().of_spool()
    return structs.replace(call.job, payload=seal.close("payload", call.job.payload))
