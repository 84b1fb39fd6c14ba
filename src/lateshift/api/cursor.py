"""Where the next page of a listing begins, as a text that is opaque and checked.

It is sealed with the servers' secret and what is kept of the caller's token: it is good for the same listing, the same filters and the same
token, over all processes and restarts, and for nothing else. It gives no right: every page is looked at as if it were the first. And it cannot
be read: a page ends behind what was looked at, which may be of a queue that the token is not for."""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256, shake_256
from typing import Any, TypeVar

import msgspec

from lateshift.api.problem import Refused

SEAL = 16  # bytes

T = TypeVar("T")


class Cursors:
    """Those of one listing."""

    def __init__(self, key: bytes, path: str, filters: Mapping[str, Any]) -> None:
        """`key`: no caller knows it."""
        self._key = key
        self._about = msgspec.json.encode([path, filters])

    def write(self, position: Any) -> str | None:
        """None stays None: there is no more."""
        if position is None:
            return None
        said = msgspec.json.encode(position)
        seal = self._seal(said)
        return _text(seal + self._hidden(seal, said))

    def read(self, text: str | None, kind: type[T]) -> T | None:
        """Raises Refused if it was not written here."""
        if text is None:
            return None
        try:
            held = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        except ValueError:
            raise _tampered() from None
        seal = held[:SEAL]
        said = self._hidden(seal, held[SEAL:])
        # The decoder overlooks what it does not know, such as more `=` behind it: it must be the very text that was given.
        if not hmac.compare_digest(seal, self._seal(said)) or _text(held) != text:
            raise _tampered()
        return msgspec.json.decode(said, type=kind)

    def _seal(self, said: bytes) -> bytes:
        return hmac.new(self._key, self._about + b"\n" + said, sha256).digest()[:SEAL]

    def _hidden(self, seal: bytes, said: bytes) -> bytes:
        """Hides, and shows again what was hidden: by a stream that is this seal's alone, as the seal is this place's."""
        stream = shake_256(self._key + b"\nhidden\n" + seal).digest(len(said))
        return bytes(one ^ other for one, other in zip(said, stream, strict=True))


def _text(held: bytes) -> str:
    return urlsafe_b64encode(held).decode().rstrip("=")


def _tampered() -> Refused:
    return Refused(
        400, "cursor-invalid", field="cursor",
        detail="This cursor is of another listing, of other filters or of another token, or was changed. Begin without one.",
    )  # fmt: skip
