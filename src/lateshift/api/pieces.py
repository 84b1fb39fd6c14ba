"""Answers that are large go out in pieces, each when the client has read the one before: what it does not read is held once, and counted
until it is gone. Small ones, which are nearly all, go out as they are."""

import asyncio
from uuid import UUID

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lateshift.api.bounds import LARGE_ANSWER
from lateshift.api.budget import Budget, Share

PIECE = 64 * 1024  # bytes


class InPieces(Response):
    """An answer, and what it has of the budget, which is given back when it was sent or nobody is there to read it any more."""

    def __init__(self, answer: Response, share: Share) -> None:
        self.status_code = answer.status_code
        self.background = answer.background
        self.body = answer.body
        self.raw_headers = answer.raw_headers
        self._share = share

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            for begin in range(0, len(self.body), PIECE):
                piece = bytes(self.body[begin : begin + PIECE])
                more = begin + PIECE < len(self.body)
                await send({"type": "http.response.body", "body": piece, "more_body": more})
                await asyncio.sleep(
                    0
                )  # others have their turn, among them whoever tells that the client is gone
        finally:
            self._share.end()


def in_pieces(answer: Response, budget: Budget, whose: UUID, *, done: bool = False) -> Response:
    """The same, if it is small. `whose`: the token's that asked, or that its browser signed in with. Its share is taken here, where it can
    be refused still, so nothing may be waited for between this and its sending. `done`: it tells what was done, and is counted, and told
    however large it is. Raises Refused."""
    if len(answer.body) <= LARGE_ANSWER:
        return answer
    share = budget.share(whose)
    (share.count if done else share.take)(len(answer.body))
    return InPieces(answer, share)
