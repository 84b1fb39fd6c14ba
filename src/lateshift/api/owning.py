"""Whose the keys are that a token gives. Whoever repeats a key is told whether the rest is the same: of what only the sealed queue's workers may
see, that is told to nobody but the token that gave it first."""

from hashlib import blake2b
from typing import Any

from msgspec import structs

from lateshift.model.access import Token
from lateshift.task import Call

DIGEST_BYTES = 16


def owned(call: Call[Any], token: Token | None) -> Call[Any]:
    """A call of a sensitive queue with the key and the identity of this token: to another one both are others. Other calls as they are."""
    key, unique = call.job.key, call.job.unique
    if token is None or (key is None and unique is None) or not call.is_sensitive:
        return call
    if key is not None:  # kept as a digest; no key of a program has a NUL
        key = structs.replace(key, text=f"{token.root}\0{key.text}")
    if unique is not None:
        size = len(unique.digest)
        unique = structs.replace(
            unique, digest=blake2b(token.root.bytes + unique.digest, digest_size=size).digest()
        )
    call.job = structs.replace(call.job, key=key, unique=unique)
    return call


def owned_key(key: str | None, token: Token | None, *, sensitive: bool) -> str | None:
    """The key of a signal to a run likewise."""
    if key is None or token is None or not sensitive:
        return key
    return blake2b(token.root.bytes + key.encode(), digest_size=DIGEST_BYTES).hexdigest()
