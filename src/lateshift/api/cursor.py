"""Where the next page of a listing begins, as an opaque text that is checked.

It is sealed with what is kept of the caller's token: it is good for the same listing, the same filters and the same token, over
all processes and restarts, and for nothing else. It gives no right: every page is looked at as if it were the first."""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, TypeVar

import msgspec

from lateshift.api.problem import Refused

SEAL = 16  # bytes

T = TypeVar("T")


class Cursors:
    """Those of one listing."""

    def __init__(self, key: bytes, path: str, filters: Mapping[str, Any]) -> None:
        self._key = key
        self._about = msgspec.json.encode([path, filters])

    def write(self, position: Any) -> str | None:
        """None stays None: there is no more."""
        if position is None:
            return None
        said = msgspec.json.encode(position)
        return _text(self._seal(said) + said)

    def read(self, text: str | None, kind: type[T]) -> T | None:
        """Raises Refused if it was not written here."""
        if text is None:
            return None
        try:
            held = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        except ValueError:
            raise _tampered() from None
        seal, said = held[:SEAL], held[SEAL:]
        # The decoder overlooks what it does not know, such as more `=` behind it: it must be the very text that was given.
        if not hmac.compare_digest(seal, self._seal(said)) or _text(held) != text:
            raise _tampered()
        return msgspec.json.decode(said, type=kind)

    def _seal(self, said: bytes) -> bytes:
        return hmac.new(self._key, self._about + b"\n" + said, sha256).digest()[:SEAL]


def _text(held: bytes) -> str:
    return urlsafe_b64encode(held).decode().rstrip("=")


def _tampered() -> Refused:
    return Refused(
        400, "cursor-invalid", field="cursor",
        detail="This cursor is of another listing, of other filters or of another token, or was changed. Begin without one.",
    )  # fmt: skip
