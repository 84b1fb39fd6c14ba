"""Calls become a batch: looked through, then enqueued chunk by chunk. A producer that dies in between leaves a batch that
is not sealed; whoever repeats it with its key goes on where it stood."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

from msgspec import structs

from lateshift.batches.spool import CHUNK, Spool, refuse_unfit
from lateshift.errors import KeyConflict, OptionInvalid, StoreError, UsageError
from lateshift.model import checks
from lateshift.model.batch import BATCH_NAME_LIMIT, BatchId, BatchView, NewBatch
from lateshift.model.ids import new_job_id
from lateshift.model.job import NewJob
from lateshift.model.queue import is_sensitive
from lateshift.model.sealed import is_sealed
from lateshift.runtime.aside import aside
from lateshift.sealing.jobs import sealed
from lateshift.store import batching
from lateshift.store.contract import Store
from lateshift.task import KEY_LIMIT, Call, Task
from lateshift.telemetry.tracing import with_context

Callback: TypeAlias = Call[Any] | Callable[[BatchId], Call[Any]] | None


class Making:
    """One call of `app.batch`. Its options are looked at now, its calls as they come."""

    def __init__(
        self, tasks: Mapping[str, Task[..., Any]], then: Callback, on_failure: Callback, name: str | None, key: str | None
    ) -> None:  # fmt: skip
        if name is not None:
            checks.text("name", name, BATCH_NAME_LIMIT)
        if key is not None:
            checks.text("key", key, KEY_LIMIT)
        id = new_job_id()
        self._tasks = tasks
        self._callbacks = {"then": then, "on_failure": on_failure}
        self._new = NewBatch(
            id=id, total=0, name=name, key=key, then=self._callback("then", then, id),
            on_failure=self._callback("on_failure", on_failure, id),
        )  # fmt: skip

    def send(
        self, store: Callable[[], Store], calls: Iterable[Call[Any]], trace: str | None = None
    ) -> BatchId:
        """`trace`: the context of all its jobs."""
        with self._spool() as spool:
            for call in calls:
                spool.put(call)
            return self._write(store(), spool, trace)

    async def asend(
        self, store: Callable[[], Store], calls: Iterable[Call[Any]], trace: str | None = None
    ) -> BatchId:
        with self._spool() as spool:
            for call in calls:
                spool.put(call)
                if spool.total % CHUNK == 0:
                    await asyncio.sleep(0)
            return await aside(lambda: self._write(store(), spool, trace))

    @contextmanager
    def _spool(self) -> Iterator[Spool]:
        spool = Spool(self._tasks, digest=self._new.key is not None)
        try:
            yield spool
        finally:
            spool.close()

    def _write(self, store: Store, spool: Spool, trace: str | None) -> BatchId:
        then, on_failure = [
            None if job is None else self._sealed(with_context(job, trace))
            for job in (self._new.then, self._new.on_failure)
        ]
        opened = store.batches.open(
            structs.replace(
                self._new, total=spool.total, digest=spool.digest, then=then, on_failure=on_failure
            )
        )
        self._refuse_other_callbacks(opened)
        try:
            if opened.total < spool.total:  # somebody sealed it when so many were in
                raise batching.closed(opened.id, opened.added, opened.total, opened.cancelled_by)
            if not opened.sealed and opened.added >= opened.total:
                store.batches.add(opened.id, opened.added, [])
            for place, jobs in spool.chunks(opened.id, opened.added):
                store.batches.add(
                    opened.id, place, [with_context(job, trace) for job in jobs] if trace else jobs
                )
        except Exception as error:
            if not (isinstance(error, UsageError) and self._discarded(store, opened.id)):
                error.add_note(_left(opened))
            raise
        return opened.id

    def _refuse_other_callbacks(self, opened: BatchView) -> None:
        """One that was there before us keeps its callbacks: ours must be the same, made of its id."""
        if opened.id == self._new.id:
            return
        for what, kept in (("then", opened.then_call), ("on_failure", opened.on_failure_call)):
            ours = self._callback(what, self._callbacks[what], opened.id)
            if not self._same(ours, kept):
                raise KeyConflict(
                    f"The key {opened.key!r} was used for a batch that {_has(what, ours, kept)}, and is still in the store. Repeat it "
                    "with the same callbacks, or use another key for another batch."
                )

    def _same(self, ours: NewJob | None, kept: NewJob | None) -> bool:
        """The same task with the same arguments; the ids of the jobs differ."""
        if ours is None or kept is None:
            return ours is kept
        task = self._tasks[ours.spec.task]
        payload = kept.payload
        if is_sealed(payload):
            payload = task.sender.ring().of_job(kept.id).open("payload", payload)
        digest = task.arguments.digest
        return ours.spec.task == kept.spec.task and digest(ours.payload) == digest(payload)

    def _sealed(self, callback: NewJob | None) -> NewJob | None:
        """As the store keeps it, if its queue is sensitive."""
        if callback is None:
            return None
        sender = self._tasks[callback.spec.task].sender
        sensitive = is_sensitive(sender.queues, callback.spec.queue)
        return sealed(callback, sender.ring()) if sensitive else callback

    def _discarded(self, store: Store, id: BatchId) -> bool:
        """Nothing of ours came into it: then there is no batch. One that was there before us is somebody's."""
        with suppress(StoreError):
            return id == self._new.id and store.batches.discard(id)
        return False

    def _callback(self, what: str, given: Callback, id: BatchId) -> NewJob | None:
        if given is None:
            return None
        # A task is callable too: called, it would run here and now.
        call = given(id) if callable(given) and not isinstance(given, Task) else given
        if not isinstance(call, Call):
            raise OptionInvalid(
                f"{what} is a call, such as {what}=report.call(1, 2), or a function that makes one of the batch's id, not "
                f"{call!r}."
            )
        refuse_unfit(call, self._tasks, f"{what}=")
        if call.job.place is not None and call.job.place.sequence is not None:
            raise OptionInvalid(
                f"{what}= has a number in a session, which others could use before it is enqueued. Leave sequence= out."
            )
        return structs.replace(call.job, id=new_job_id())


def _has(what: str, ours: NewJob | None, kept: NewJob | None) -> str:
    """How its callback differs from ours."""
    if kept is None:
        return f"has no {what}="
    same = ours is not None and ours.spec.task == kept.spec.task
    return f"has {what}={kept.spec.task}.call(…)" + (" with other arguments" if same else "")


def _left(batch: BatchView) -> str:
    """What to do about a batch that is there in part."""
    again = (
        f"Repeating the same calls with key={batch.key!r} goes on where it stands."
        if batch.key is not None
        else "With a key=, repeating the same calls would go on where it stands."
    )
    return (
        f"The batch {batch.id} is in the store, with the jobs that were enqueued before this. {again} `lateshift batches seal` "
        "leaves it as it is, `lateshift batches cancel` ends it."
    )
