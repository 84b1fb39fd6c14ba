"""Signatures of webhooks, as Standard Webhooks has them. A secret is used here and shown nowhere."""

import hmac
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Sequence
from hashlib import sha256

from lateshift.errors import OptionInvalid

PREFIX = "whsec_"
ENV = "env:"
SECRET_LEAST, SECRET_MOST = 24, 64  # bytes
SECRETS_MOST = 5  # at once, while one takes another's place

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def named(secret: object) -> str | None:
    """The variable of the environment that `env:NAME` means; None if it means none."""
    name = secret.removeprefix(ENV) if isinstance(secret, str) and secret.startswith(ENV) else ""
    return name if _NAME.fullmatch(name) else None


def looked_up(names: Sequence[str]) -> list[str]:
    """What these variables hold now, of those that are set: a rotation may have taken the old one away already."""
    return [value for name in names if (value := os.environ.get(name))]


class Secrets:
    """`whsec_` and 24 to 64 bytes in base64, or `env:NAME`, which is looked up when it is used. Several while one takes another's place:
    each signs, and the receiver knows one of them."""

    def __init__(self, given: str | Sequence[str]) -> None:
        texts = [given] if isinstance(given, str) else list(given)
        if not 1 <= len(texts) <= SECRETS_MOST:
            raise OptionInvalid(f"secret= is one secret, or up to {SECRETS_MOST} of them, not {len(texts)}.")
        self._names = [name for text in texts if (name := named(text)) is not None]
        self._keys = [_key(text) for text in texts if named(text) is None]

    def __repr__(self) -> str:
        return "<Secrets>"

    def signatures(self, id: str, timestamp: int, body: bytes) -> str:
        """The header webhook-signature. Raises OptionInvalid if what it is to be signed with is not there."""
        signed = f"{id}.{timestamp}.".encode() + body
        keys = [*self._keys, *(_key(value) for value in looked_up(self._names))]
        if not keys:
            raise OptionInvalid(
                f"No secret is set, so nothing can be signed: {' or '.join(self._names)} in the environment of the workers."
            )
        return " ".join(f"v1,{b64encode(hmac.digest(key, signed, sha256)).decode()}" for key in keys)


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
        f'"{PREFIX}" + base64.b64encode(os.urandom(32)).decode() makes one. "env:NAME" is that variable of the environment.'
    ) from None
