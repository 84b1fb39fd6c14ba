"""A request with an Idempotency-Key is done once: the same again is answered as the first was. By token, route and key.

What was begun goes on when its deadline has passed, and keeps its answer. Where nobody can know any more whether it was done, who
asks is told so, and it is not done again: also not by who was to do it, and was held up; see store/holding.py.

What was asked is kept as a digest that is made with the token's secret, which no store has: of a plain one, whoever reads the table finds out
by trying what arguments somebody has changed. The same token makes the same digest, on every server.

For a job to start and a signal the key is the job's and the signal's own. Of what shows a secret, or writes nothing, no answer is kept."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import blake2b
from secrets import randbits

import msgspec
from starlette.responses import Response

from lateshift.api.asked import Asked
from lateshift.api.problem import ALWAYS, PROBLEM, RETRY_AFTER, Refused, refused_by
from lateshift.api.route import Route
from lateshift.app.app import Lateshift
from lateshift.errors import BegunLate, LateshiftError, SealKeyMissing, StoreError
from lateshift.model.access import Token
from lateshift.runtime.aside import aside
from lateshift.runtime.log import log
from lateshift.store.answer_contract import ANSWER_LIMIT, ANSWER_WITHIN, Answered, Begun
from lateshift.store.crashpoints import crashpoint
from lateshift.store.holding import Hold, begun_late, under

REPLAYED = "Idempotency-Replayed"
SENT_AGAIN = ("location", "retry-after", "content-type")  # of the headers; the others every answer has
HELD_EVERY = ANSWER_WITHIN.total_seconds() / 4  # while it is under way

Begin = Callable[[], AbstractContextManager[None]]
Do = Callable[[Begin], Awaitable[Response]]
Still = Callable[[], Awaitable[None]]

_TOO_LARGE = Refused(
    409, "answer-too-large", "This was done before. Its answer was too large to be kept: look at what it was about.",
    field="Idempotency-Key",
)  # fmt: skip

_IN_PART = Refused(
    409, "request-unknown", "A part of it was done, and then its time was over. Look, then ask with another key for the rest.",
    field="Idempotency-Key",
)  # fmt: skip


class Repeating:
    def __init__(self, app: Lateshift) -> None:
        self._app = app
        self._under_way: set[asyncio.Task[Response]] = set()

    async def once(
        self, route: Route, token: Token, secret: bytes, asked: Asked, do: Do, still: Still
    ) -> Response:
        """What `do` gives, or gave before; it enters what it is given right before it begins, and does what it does inside of it, on that
        thread. `secret`: the token's. `still`: refuses to tell what was given before to whoever is let in no more. Raises Refused."""
        work = asyncio.create_task(
            self._once(_id(route, token, asked.key), _request(asked, secret), do, still)
        )
        self._under_way.add(work)
        work.add_done_callback(self._under_way.discard)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:  # it is late: it goes on, and who asks again hears of it
            work.add_done_callback(_tell)
            raise

    async def _once(self, id: bytes, request: bytes, do: Do, still: Still) -> Response:
        answers, turn = self._app.store.answers, randbits(62)
        crashpoint("answer.before_begin")
        begun: Begun = await aside(lambda: answers.begin(id, request, turn=turn))
        if begun.answer is not None:
            await still()
            kept = begun.answer
            return Response(kept.body, kept.status, {**ALWAYS, **kept.headers, REPLAYED: "true"})
        _refuse(begun)
        return await self._done(id, turn, do)

    async def _done(self, id: bytes, turn: int, do: Do) -> Response:
        answers, begun, hold = self._app.store.answers, False, Hold(id, turn)

        @contextmanager
        def begin() -> Iterator[None]:
            nonlocal begun
            if not answers.hold(id, turn=turn):
                raise begun_late()
            begun = True
            with under(hold):
                yield

        holding = asyncio.create_task(self._hold(id, turn))
        try:
            response = await do(begin)
        except (Refused, LateshiftError) as error:
            if not begun or (not hold.deeds and _nothing_was_done(error)):
                with suppress(StoreError):
                    await aside(lambda: answers.give_up(id, turn=turn))
            elif isinstance(error, BegunLate):
                raise _IN_PART from error
            raise
        finally:
            holding.cancel()
        answer = _kept(response)
        with suppress(StoreError):  # it was done, and that is the answer
            await aside(lambda: answers.keep(id, answer, turn=turn))
        crashpoint("answer.after_keep")
        return response

    async def _hold(self, id: bytes, turn: int) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(HELD_EVERY)
            with suppress(StoreError):
                await aside(lambda: self._app.store.answers.hold(id, turn=turn))


def _tell(work: asyncio.Task[Response]) -> None:
    """The log, of a fault that no answer tells of any more."""
    error = None if work.cancelled() else work.exception()
    if error is not None and not isinstance(error, Refused | LateshiftError):
        log.error("fault in a request whose deadline has passed", exc_info=error)


def _kept(response: Response) -> Answered:
    if len(response.body) > ANSWER_LIMIT:
        told = msgspec.json.encode(_TOO_LARGE.problem)
        return Answered(status=_TOO_LARGE.problem.status, headers={"content-type": PROBLEM}, body=told)
    headers = {name: value for name, value in response.headers.items() if name in SENT_AGAIN}
    return Answered(status=response.status_code, headers=headers, body=bytes(response.body))


def _refuse(begun: Begun) -> None:
    if begun.another:
        raise Refused(
            409, "key-conflict", "This key was used for another request. Another request has another key.",
            field="Idempotency-Key",
        )  # fmt: skip
    if begun.under_way:
        raise Refused(
            409, "request-under-way", "A request with this key is under way. Ask again for its answer.",
            field="Idempotency-Key", headers={"Retry-After": str(RETRY_AFTER)},
        )  # fmt: skip
    if begun.unknown:
        raise Refused(
            409, "request-unknown",
            "The request with this key ended without an answer: it may have been done. Look, then ask with another key if it was not.",
            field="Idempotency-Key",
        )  # fmt: skip


def _nothing_was_done(error: Refused | LateshiftError) -> bool:
    if isinstance(error, BegunLate | SealKeyMissing):
        return True
    refused = error if isinstance(error, Refused) else refused_by(error)
    return refused is not None and refused.problem.status < 500


def _id(route: Route, token: Token, key: str | None) -> bytes:
    return _digest([str(token.id), route.method, route.path, key])


def _request(asked: Asked, secret: bytes) -> bytes:
    """By the secret: whoever reads the table cannot try out what was asked."""
    return _digest([asked.path, asked.query, asked.body], secret)


def _digest(parts: list[object], secret: bytes = b"") -> bytes:
    return blake2b(msgspec.json.encode(parts), digest_size=32, key=secret).digest()
