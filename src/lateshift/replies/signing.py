"""Signatures of webhooks, as Standard Webhooks has them. A secret is used here and shown nowhere."""

import hmac
from base64 import b64decode, b64encode
from collections.abc import Sequence
from hashlib import sha256

from lateshift.errors import OptionInvalid

PREFIX = "whsec_"
SECRET_LEAST, SECRET_MOST = 24, 64  # bytes
SECRETS_MOST = 5  # at once, while one takes another's place


class Secrets:
    """`whsec_` and 24 to 64 bytes in base64. Several while one takes another's place: each signs, and the receiver knows one of them."""

    def __init__(self, given: str | Sequence[str]) -> None:
        texts = [given] if isinstance(given, str) else list(given)
        if not 1 <= len(texts) <= SECRETS_MOST:
            raise OptionInvalid(f"secret= is one secret, or up to {SECRETS_MOST} of them, not {len(texts)}.")
        self._keys = [_key(text) for text in texts]

    def __repr__(self) -> str:
        return "<Secrets>"

    def signatures(self, id: str, timestamp: int, body: bytes) -> str:
        """The header webhook-signature."""
        signed = f"{id}.{timestamp}.".encode() + body
        return " ".join(f"v1,{b64encode(hmac.digest(key, signed, sha256)).decode()}" for key in self._keys)


def _key(text: object) -> bytes:
    """Whatever is wrong is said without what was given."""
    if isinstance(text, str) and text.startswith(PREFIX):
        try:
            key = b64decode(text.removeprefix(PREFIX), validate=True)
        except ValueError:
            key = b""
        if SECRET_LEAST <= len(key) <= SECRET_MOST:
            return key
    raise OptionInvalid(
        f"The secret of a webhook is {PREFIX} and {SECRET_LEAST} to {SECRET_MOST} bytes in base64: "
        f'"{PREFIX}" + base64.b64encode(os.urandom(32)).decode() makes one.'
    ) from None
