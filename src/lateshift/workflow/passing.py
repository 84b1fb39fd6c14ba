"""One item on its way through the filters of a pipeline. What a filter returned goes to the next as the JSON that is stored: nothing is read
on the way, so a changed class between two filters does not stop an item that is under way."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import Raw, Struct, structs

from lateshift.errors import PayloadTooLarge, PipelineInvalid
from lateshift.model.depth import JSON_DEPTH, PAYLOAD_DEPTH, depth_of, refuse_deep, too_deep
from lateshift.model.ids import new_job_id
from lateshift.model.job import PAYLOAD_LIMIT, RESULT_LIMIT, NewJob
from lateshift.model.outcome import clip
from lateshift.model.pipeline.building import ITEMS, parameter_of
from lateshift.model.pipeline.chain import Chain, Filter
from lateshift.model.pipeline.shape import FAN_OUT, RESULT, SHAPE, Place, read, shape_of, written
from lateshift.model.queue import PLAIN
from lateshift.model.workflow.policy import Policy
from lateshift.model.workflow.run import STATUS_LIMIT, Phase
from lateshift.model.workflow.step import Kind, StepRow, StepState
from lateshift.task import Bound, Task
from lateshift.workflow import steps
from lateshift.workflow.asked import refuse_sensitive
from lateshift.workflow.control import Diverged
from lateshift.workflow.flow import Flow
from lateshift.workflow.run import Run
from lateshift.workflow.turns import Turns, give_all

FAN_OUT_MOST = 1_000  # elements of all fan_outs of one item together
FAN_OUT_AT_ONCE = 100  # of one fan_out of an item, unless it says otherwise

_elements = msgspec.json.Decoder(list[Raw])
_by_name = msgspec.json.Decoder(dict[str, Raw])


class Station(Struct, frozen=True):
    """A part of the item's shape, with the task that is there for it now; None if this code has none."""

    place: Place
    work: Any
    inner: "Sequence[Station]" = ()


def stations(shape: Sequence[Place], chain: Chain[..., Any], tasks: Mapping[str, Any]) -> list[Station]:
    """What is there for each part: the chain's filter of that name, the first for the first and so on; else the app's task."""
    there: dict[str, list[Any]] = {}
    for filter in chain.filters():
        there.setdefault(filter.name, []).append(filter.work)

    def found(place: Place) -> Station:
        if place.inner:
            return Station(place, None, [found(each) for each in place.inner])
        works = there.get(place.task) or [tasks.get(place.task)]
        return Station(place, works.pop(0) if len(works) > 1 else works[0])

    return [found(place) for place in shape]


class Passing(Flow):
    """The flow of one item. It goes by the shape that the chain had when the item began."""

    def __init__(
        self, run: Run, *, now: Callable[[], datetime], policy: Policy, is_ours: Callable[[Task[..., Any]], bool],
        chain: Chain[..., Any], tasks: Mapping[str, Any],
    ) -> None:  # fmt: skip
        super().__init__(run, now=now, policy=policy, is_ours=is_ours)
        self._chain = chain
        self._tasks = tasks
        self._elements = 0
        self._turns: dict[int, Turns] = {}
        run.next_turns = lambda: give_all(self._turns.values(), (row.path for row in run.in_flight()))
        self._by = self._rules(None, None, None, None)

    async def whole(self) -> Raw | None:
        """Through all filters. What the last one returned."""
        present = written(shape_of(self._chain))
        kept = steps.fixed(self._run, self._next(Kind.FIXED, SHAPE), SHAPE, present)
        line = stations(read(kept), self._chain, self._tasks)
        value = b""
        for number, station in enumerate(line, 1):
            at = clip(f"{number} of {len(line)}: {station.place}", STATUS_LIMIT)
            value = await self._through(station, value, first=number == 1, at=at)
        if len(value) > RESULT_LIMIT:
            await self._refuse(Kind.FIXED, RESULT, _too_large("the result", value, RESULT_LIMIT))
        if depth_of(value) > JSON_DEPTH:
            await self._refuse(Kind.FIXED, RESULT, too_deep("the result has"))
        return None if value == b"null" else Raw(value)

    async def _line(self, line: Sequence[Station], value: bytes) -> bytes:
        for station in line:
            value = await self._through(station, value)
        return value

    async def _through(self, station: Station, value: bytes, *, first: bool = False, at: str = "") -> bytes:
        if station.inner:
            return await self._fan_out(station, self._given(ITEMS) if first else value, at)
        return await self._filter(station, None if first else value, at)

    async def _filter(self, station: Station, value: bytes | None, at: str) -> bytes:
        """A filter that an item has passed need not be there any more. `value`: None for what the item was put in with."""
        place = station.place
        kind = Kind.CHILD if place.child else Kind.JOB
        path = self._next(kind, place.task)
        row = self._run.record.steps.get(path)
        if row is not None and row.state is StepState.COMPLETED:
            return _raw(row.result)
        if station.work is None:
            raise Diverged(
                f"the item began with the filter {place.task}, and this code has no task of that name"
            )
        self._say(row, at)

        def make(mended: bytes | None, wait: timedelta) -> NewJob:
            payload = self._payload(station.work, value) if mended is None else mended
            return steps.of_run(_job(station.work, payload), self.id, None, wait)

        passed: bytes = await steps.job(self._run, path, kind, place.task, make, _raw, self._by)
        return passed

    async def _fan_out(self, station: Station, value: bytes, at: str) -> bytes:
        elements = await self._listed(value)
        self._say(None, "" if self._next_is(Kind.GATHER, str(len(elements))) else at)
        turns = self._turns.setdefault(id(station), Turns(_at_once(station)))
        results = await self.gather(*(self._element(station, turns, bytes(each)) for each in elements))
        return b"[" + b",".join(results) + b"]"

    async def _element(self, station: Station, turns: Turns, value: bytes) -> bytes:
        """It begins when it is its turn; one that has begun goes on."""
        branch = self._branch()
        try:
            if not self._has_begun():
                turns.wait(branch)
            while branch in turns.waiting and not self._run.stops:
                await self._run.rest(branch, "its turn")
            turns.begin(branch)
            return await self._line(station.inner, value)
        finally:
            turns.leave(branch)

    def _has_begun(self) -> bool:
        """Whether anything is recorded of the branch that asks."""
        return self._next_is(Kind.GATHER, "") is not None

    async def _listed(self, value: bytes) -> list[Raw]:
        """The elements. What is no list, or too long a one, holds the item in a step of its own, before that of the gather, until an
        operator gives another list; that is looked at as the first was."""
        record = self._run.record
        path = self._next(Kind.GATHER, FAN_OUT) if self._next_is(Kind.GATHER, FAN_OUT) else None
        while True:
            found = _read_list(value if path is None else record.mended.get(path, value))
            row = None if path is None else record.steps.get(path)
            if isinstance(found, list):
                total = self._elements + len(found)
                passed = row is not None and row.state is StepState.COMPLETED
                if passed or total <= FAN_OUT_MOST or self._next_is(Kind.GATHER, str(len(found))):
                    break
                found = _too_many(total)
            path = path or self._next(Kind.GATHER, FAN_OUT)
            await steps.refuse(self._run, path, Kind.GATHER, FAN_OUT, self._by, found)
        self._elements = total
        if row is not None and not passed:
            self._run.begin()
            record.complete(row, None)
        return found

    async def _refuse(self, kind: Kind, name: str, error: Exception) -> Any:
        """Nothing goes on from here until the item is undone, or goes on with other code."""
        path = self._next(kind, name)
        while True:
            await steps.refuse(self._run, path, kind, name, self._by, error)

    def _say(self, row: StepRow | None, at: str) -> None:
        """How far the item is; and that it is held still, if another of its filters was mended."""
        record = self._run.record
        if row is None and at:
            self.status(at)
        held = row is not None and row.state is StepState.HELD
        if held and row is not None and record.phase is Phase.FORWARD and not self._run.stops:
            record.say(phase=Phase.HELD, why=steps.why_held(row))

    def _given(self, name: str) -> bytes:
        return bytes(_by_name.decode(self._run.record.lease.payload)[name])

    def _payload(self, work: Any, value: bytes | None) -> bytes:
        """Raises PayloadTooLarge, or PipelineInvalid if the task does not take one value any more."""
        if value is None:
            return self._run.record.lease.payload
        task = work.task if isinstance(work, Bound) else work
        payload = b"{" + msgspec.json.encode(parameter_of(task)) + b":" + value + b"}"
        if len(payload) > PAYLOAD_LIMIT:
            raise _too_large(f"what {task.name} would get", payload, PAYLOAD_LIMIT)
        refuse_deep(payload, f"what {task.name} would get has", PAYLOAD_DEPTH)
        return payload


def _at_once(station: Station) -> int:
    """How many elements may be under way: as many as it says, or as the queue of its first filter may hold."""
    if station.place.at_once is not None:
        return station.place.at_once
    while station.inner:
        station = station.inner[0]
    if station.work is None:
        return FAN_OUT_AT_ONCE
    first = Filter(station.work)
    most = first.task.sender.queues.get(first.queue, PLAIN).max_ready
    return FAN_OUT_AT_ONCE if most is None else min(FAN_OUT_AT_ONCE, most)


def _job(work: Any, payload: bytes) -> NewJob:
    """It is leased with a look at the queue behind it, if that is bounded."""
    refuse_sensitive(work)
    task = work.task if isinstance(work, Bound) else work
    spec, place = work.spec, work.place if isinstance(work, Bound) else None
    if any(room.stands_before(spec.queue) for room in task.sender.rooms(task.name)):
        spec = structs.replace(spec, lane=spec.lane.guarded)
    return NewJob(new_job_id(), spec, payload, None, True, place, tags=work.tags)


def _raw(result: bytes | None) -> bytes:
    return b"null" if result is None else bytes(result)


def _read_list(value: bytes) -> list[Raw] | PipelineInvalid:
    try:
        return _elements.decode(value)
    except msgspec.DecodeError:
        return PipelineInvalid(
            f"fan_out takes a list, and got {_kind_of(value)}: the result of the step before it"
        )


def _kind_of(value: bytes) -> str:
    """What it is, and not what is in it: it is of a filter that may stand in another queue, and this is the run's."""
    return {b"{": "an object", b'"': "a text", b"n": "null", b"t": "true", b"f": "false"}.get(
        value[:1], "a number"
    )


def _too_large(what: str, value: bytes, limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"{what} is {len(value):,} bytes, over the limit of {limit:,}. Put the data in a file, a table or a bucket, and pass its name."
    )


def _too_many(elements: int) -> PipelineInvalid:
    return PipelineInvalid(
        f"the item fans out to {elements:,} elements, over the limit of {FAN_OUT_MOST:,}. Make items of them: enqueue_many of another pipeline."
    )
