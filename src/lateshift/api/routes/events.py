"""What becomes of jobs, as it happens: streams of server-sent events."""

from collections.abc import AsyncIterator, Iterable
from fnmatch import fnmatchcase
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from lateshift.api.problem import Refused
from lateshift.api.route import EVENT_STREAM, Answer, Asked, Reach, Route, Stream
from lateshift.api.streaming import frame
from lateshift.errors import OptionInvalid, no_event
from lateshift.model import watching
from lateshift.model.access import Scope
from lateshift.model.events import JobEvent, hidden_event
from lateshift.model.ids import JobId
from lateshift.runtime.aside import aside
from lateshift.store.reply_contract import LeftOut, Published

NUMBER_DIGITS = 18  # of a Last-Event-ID of channels, at most


class Channel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`channel`: a name, or a pattern such as jobs.images.*"""

    channel: Annotated[str, Meta(min_length=1, max_length=256)]


async def stream_job(asked: Asked) -> Stream | Answer:
    """What becomes of a job, from the beginning until it has ended, as server-sent events.

    `Last-Event-ID` goes on after the last one that was received. The data of each is an event. Whoever has received the last of a job that has ended is
    answered 204, at which a browser asks no more."""
    view = await asked.ajob(whole=False)
    try:
        after = watching.BEGINNING if asked.last_event is None else watching.read(asked.last_event)
    except OptionInvalid as error:
        raise _unknown(str(error)) from error
    if after[0] > view.fence:
        raise _unknown(
            "This job has had no such event. Is the id of another job, or of a store that was restored from a backup since? Ask without "
            "Last-Event-ID, and you are told all."
        )
    if view.state.settled and not watching.news(None, after, view):
        return Answer(None, 204)
    return Stream(_of_job(asked, view.id, after), None)


async def _of_job(asked: Asked, id: JobId, after: watching.Position) -> AsyncIterator[Iterable[bytes]]:
    async for place, event in asked.app.client.watch_places(id, after):
        yield [frame(watching.written(place), msgspec.json.encode(event))]


async def stream_channels(asked: Asked) -> Stream:
    """What channels are told, from now on, as server-sent events without an end.

    `Last-Event-ID` goes on after the last one that was received, for as long as they are kept, which is an hour: where some may be gone, the
    stream says so in a message `event: left-out`, as a rule its first. The data of each other is an event."""
    pattern = asked.query.channel
    asked.app.check_channel(pattern)
    text = asked.last_event
    if text is None:
        after = await aside(asked.store.replies.newest)
    elif text.isascii() and text.isdigit() and len(text) <= NUMBER_DIGITS:
        return await _resumed(asked, pattern, int(text))
    else:
        raise _unknown("Last-Event-ID is the id of the last event that was received, a number.")
    return Stream(_of_channels(asked, pattern, after), str(after))


async def _resumed(asked: Asked, pattern: str, after: int) -> Stream:
    """Raises Refused for what no event has as its number. A browser stops at that, and would else listen to nothing for ever."""
    newest = await aside(asked.store.replies.newest)
    if after > newest:
        remedy = "ask without Last-Event-ID, and you are told what comes from now on."
        raise _unknown(str(no_event(after, newest, remedy)))
    kept = await aside(asked.store.replies.published, after - 1, 1)
    first = kept[0].number if kept else newest + 1
    if first <= after + 1:
        return Stream(_of_channels(asked, pattern, after), str(after))
    said = _left_out(LeftOut(after=after, before=first))
    return Stream(_of_channels(asked, pattern, first - 1, said), None)


async def _of_channels(
    asked: Asked, pattern: str, after: int, *begin: bytes
) -> AsyncIterator[Iterable[bytes]]:
    if begin:
        yield begin
    async for page in asked.app.client.listen(after):
        if isinstance(page, LeftOut):
            yield [_left_out(page)]
            continue
        wanted = [heard for heard in page if fnmatchcase(heard.channel, pattern) and asked.shows(heard.queue)]
        if wanted:
            # Also what another program has marked.
            hidden = await asked.app.client.aconcealed()
            yield (_frame(heard, heard.queue in hidden) for heard in wanted)


def _left_out(gap: LeftOut) -> bytes:
    return frame(str(gap.before - 1), msgspec.json.encode(gap), "left-out")


def _frame(heard: Published, hidden: bool) -> bytes:
    return frame(str(heard.number), _hidden(heard.told) if hidden else heard.told)


def _hidden(told: bytes) -> bytes:
    return msgspec.json.encode(hidden_event(msgspec.json.decode(told, type=JobEvent)))


def _unknown(detail: str) -> Refused:
    return Refused(400, "last-event-unknown", detail, field="Last-Event-ID")


ROUTES = (
    Route(method="GET", path="/v1/jobs/{id}/events", handler=stream_job, gives=JobEvent, scope=Scope.READ, reach=Reach.ONE,
          media=(EVENT_STREAM,), ends=True),
    Route(method="GET", path="/v1/events", handler=stream_channels, asks=Channel, gives=JobEvent, scope=Scope.READ,
          reach=Reach.OWN, media=(EVENT_STREAM,)),
)  # fmt: skip
