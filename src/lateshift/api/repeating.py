"""A request with an Idempotency-Key is done once: the same again is answered as the first was. By token, route and key.

For a job to start and a signal the key is the job's and the signal's own. Of what shows a secret, or writes nothing, no answer is kept."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import blake2b
from secrets import randbits

import msgspec
from starlette.responses import Response

from lateshift.api.problem import ALWAYS, PROBLEM, RETRY_AFTER, Refused, refused_by
from lateshift.api.route import Asked, Route
from lateshift.app import Lateshift
from lateshift.errors import LateshiftError, StoreError
from lateshift.model.access import Token
from lateshift.runtime.aside import aside
from lateshift.store.answer_contract import ANSWER_LIMIT, Answered, Begun

REPLAYED = "Idempotency-Replayed"
SENT_AGAIN = ("location", "retry-after", "content-type")  # of the headers; the others every answer has

_TOO_LARGE = Refused(
    409, "answer-too-large", "This was done before. Its answer was too large to be kept: look at what it was about.",
    field="Idempotency-Key",
)  # fmt: skip


class Repeating:
    def __init__(self, app: Lateshift) -> None:
        self._app = app

    async def once(
        self, route: Route, token: Token, asked: Asked, key: str, do: Callable[[], Awaitable[Response]]
    ) -> Response:
        """What `do` gives, or gave before. Raises Refused."""
        id, request, turn = _id(route, token, key), _request(asked), randbits(62)
        answers = self._app.store.answers
        begun: Begun = await aside(lambda: answers.begin(id, request, turn=turn))
        if begun.answer is not None:
            kept = begun.answer
            return Response(kept.body, kept.status, {**ALWAYS, **kept.headers, REPLAYED: "true"})
        _refuse(begun)
        try:
            response = await do()
        except (Refused, LateshiftError) as error:
            if _nothing_was_done(error):
                with suppress(StoreError):
                    await aside(lambda: answers.give_up(id, turn=turn))
            raise
        answer = _kept(response)
        with suppress(StoreError):  # it was done, and that is the answer
            await aside(lambda: answers.keep(id, answer, turn=turn))
        return response


def _kept(response: Response) -> Answered:
    if len(response.body) > ANSWER_LIMIT:
        told = msgspec.json.encode(_TOO_LARGE.problem)
        return Answered(status=_TOO_LARGE.problem.status, headers={"content-type": PROBLEM}, body=told)
    headers = {name: value for name, value in response.headers.items() if name in SENT_AGAIN}
    return Answered(status=response.status_code, headers=headers, body=bytes(response.body))


def _refuse(begun: Begun) -> None:
    if begun.another:
        raise Refused(
            422, "key-conflict", "This key was used for another request. Another request has another key.",
            field="Idempotency-Key",
        )  # fmt: skip
    if begun.under_way:
        raise Refused(
            409, "request-under-way", "A request with this key is under way. Ask again for its answer.",
            field="Idempotency-Key", headers={"Retry-After": str(RETRY_AFTER)},
        )  # fmt: skip


def _nothing_was_done(error: Refused | LateshiftError) -> bool:
    refused = error if isinstance(error, Refused) else refused_by(error)
    return refused is not None and refused.problem.status < 500


def _id(route: Route, token: Token, key: str) -> bytes:
    return _digest([str(token.id), route.method, route.path, key])


def _request(asked: Asked) -> bytes:
    return _digest([asked.path, asked.query, asked.body])


def _digest(parts: list[object]) -> bytes:
    return blake2b(msgspec.json.encode(parts), digest_size=32).digest()
