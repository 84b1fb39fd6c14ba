"""The key ring: which keys a process holds, and sealing with them: AES-256-GCM, bound to whose value it is and which.

Each job has a key of its own, derived from the ring's, so that no number of jobs wears a key out."""

import hmac
import os
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lateshift.config import Settings
from lateshift.errors import SealBroken, SealKeyMissing, SealKeysInvalid
from lateshift.model.ids import JobId
from lateshift.model.sealed import HEAD, KEY_ID, START, TOKEN, is_sealed, key_of

KEY_BYTES = 32
NONCE_BYTES = 12
DIGEST_BYTES = 16
DIGEST = "digest"  # the id of the key that nothing is sealed with: digests of keys and arguments are made with it, and stay the same
OTHERS_MAY = 0o007


class Seal:
    """Seals and opens the values of one job, or of one session."""

    __slots__ = ("_ciphers", "_context", "_ring")

    def __init__(self, ring: "Ring", context: bytes) -> None:
        self._ring = ring
        self._context = context
        self._ciphers: dict[str, Any] = {}

    def close(self, field: str, plain: bytes) -> bytes:
        """Raises SealKeyMissing if the ring is empty."""
        return b'"' + self._token(field, plain) + b'"'

    def open(self, field: str, kept: bytes) -> bytes:
        """Raises SealKeyMissing if its key is not in the ring, SealBroken if it is not what was sealed here."""
        return self._opened(field, kept[1:-1] if is_sealed(kept) and kept.endswith(b'"') else b"")

    def close_text(self, field: str, plain: str) -> str:
        return self._token(field, plain.encode()).decode()

    def open_text(self, field: str, kept: str) -> str:
        return self._opened(field, kept.encode()).decode()

    def renew(self, kept: bytes) -> bytes:
        """The same with everything in it that another key has sealed, sealed with the first one."""
        current = (self._ring.current or "").encode()

        def again(found: Any) -> bytes:
            if found[1] == current:
                return bytes(found[0])
            return self._token(found[2].decode(), self._opened(found[2].decode(), found[0]))

        return TOKEN.sub(again, kept)

    def _token(self, field: str, plain: bytes) -> bytes:
        id = self._ring.current
        if id is None:
            raise self._ring.missing()
        nonce = os.urandom(NONCE_BYTES)
        sealed = nonce + self._cipher(id).encrypt(nonce, plain, self._bound_to(field))
        return f"{START}{id}:{field}:".encode() + b64encode(sealed)

    def _opened(self, field: str, token: bytes) -> bytes:
        head, _, digits = token.rpartition(b":")
        found = HEAD.fullmatch(head)
        if found is None or found[2] != field.encode():
            raise SealBroken(f"The {field} is not sealed, or not whole. Somebody else has written it.")
        cipher = self._cipher(found[1].decode())
        try:
            sealed = b64decode(digits)
            if b64encode(sealed) != digits:  # written as we do not write it
                raise ValueError
            plain: bytes = cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], self._bound_to(field))
        except (NotBase64, ValueError, _invalid_tag()) as error:
            raise SealBroken(
                f"The {field} cannot be opened: it was changed after it was sealed, or belongs elsewhere, or the key {found[1].decode()} of this "
                "program is another than the one of that id that sealed it."
            ) from error
        return plain

    def _cipher(self, id: str) -> Any:
        if id not in self._ciphers:
            derived = hmac.digest(self._ring.key(id), b"lateshift seal 1\0" + self._context, sha256)
            self._ciphers[id] = _aead().AESGCM(derived)
        return self._ciphers[id]

    def _bound_to(self, field: str) -> bytes:
        return self._context + b"\0" + field.encode()


class Ring:
    """The first key seals, all of them open. One that is called `digest` does neither. Never shown: its repr has the ids alone."""

    def __init__(self, lines: Iterable[str] = (), source: str = "the key ring") -> None:
        self._keys: dict[str, bytes] = {}
        for line in lines:
            id, colon, text = line.partition(":")
            if not colon or not KEY_ID.fullmatch(id):
                raise SealKeysInvalid(
                    f"{source}: each key is ID:BASE64, with an id of up to 40 letters, digits and _ . - first. `lateshift keys new` "
                    "prints one."
                )
            if id in self._keys:
                raise SealKeysInvalid(f"{source}: two keys have the id {id}. Give one another id.")
            self._keys[id] = _read(id, text, source)
        self._digest = self._keys.pop(DIGEST, None)

    def __repr__(self) -> str:
        return f"<Ring {', '.join(self._keys) or 'without keys'}>"

    @property
    def current(self) -> str | None:
        """The id of the key that seals."""
        return next(iter(self._keys), None)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._keys)

    @property
    def has_digest(self) -> bool:
        return self._digest is not None

    def missing(self, *, digest: bool = False) -> SealKeyMissing:
        """What is raised where something cannot be sealed."""
        return SealKeyMissing(self.lacks(digest=digest), DIGEST if self._keys else "to seal with")

    def lacks(self, *, digest: bool = False) -> str:
        """All that is missing here for sealing, and what mends it. `digest`: for a key or unique too."""
        keys = [] if self._keys else ["a key to seal with"]
        if digest and self._digest is None:
            keys.append(
                f"the key {DIGEST} (for key=, unique= and duplicates=, whose plain digest would tell what it is of)"
            )
        wants = [*keys] if _installed() else [*keys, "the package cryptography"]
        made = ["lateshift keys new"] * (not self._keys) + [f"lateshift keys new {DIGEST}"] * (
            self._digest is None
        )
        ring = ",".join(
            (["$LATESHIFT_KEYS"] if self._keys or self._digest else []) + [f"$({each})" for each in made]
        )
        mends = [] if _installed() else ["pip install 'lateshift[sensitive]'"]
        mends += [f"export LATESHIFT_KEYS={ring}"] if keys else []
        whose = (
            "; whoever enqueues and the workers have one ring, as LATESHIFT_KEYS or as the file of the setting keys_file. "
            "If there is one already, give it to this program instead of making another"
            if keys
            else ""
        )
        return (
            f"Nothing can be sealed here, which lacks {' and '.join(wants)}. Do: {' && '.join(mends)}{whose}."
        )

    def key(self, id: str) -> bytes:
        if id not in self._keys:
            raise SealKeyMissing(
                f"It is sealed with the key {id}, which is not in this program's ring. Add it to LATESHIFT_KEYS, or to the file of "
                "the setting keys_file.",
                id,
            )
        return self._keys[id]

    def opens(self, kept: bytes) -> bool:
        return key_of(kept) in self._keys

    def of_job(self, id: JobId) -> Seal:
        return Seal(self, b"job\0" + id.bytes)

    def of_session(self, queue: str, name: str) -> Seal:
        return Seal(self, f"session\0{queue}\0{name}".encode())

    def of_spool(self) -> Seal:
        """For calls that wait in a file of the program's own."""
        return Seal(self, b"spool")

    def digest(self, plain: bytes) -> bytes:
        """The same for the same, to those who have the ring; tells nothing to others."""
        if self._digest is None:
            raise self.missing(digest=True)
        return hmac.digest(self._digest, plain, sha256)[:DIGEST_BYTES]


NO_RING = Ring()


def ring_of(settings: Settings) -> Ring:
    """The ring that the settings name. Raises SealKeysInvalid."""
    if settings.keys and settings.keys_file:
        raise SealKeysInvalid("Both keys and keys_file are set. Give the key ring in one place.")
    if not settings.keys_file:
        return Ring(settings.keys, settings.sources.get("keys", "keys")) if settings.keys else NO_RING
    path = Path(settings.keys_file)
    try:
        mode, text = path.stat().st_mode, path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SealKeysInvalid(f"The key ring {path} cannot be read: {error}.") from error
    if mode & OTHERS_MAY:
        raise SealKeysInvalid(f"Everybody on this machine may read the key ring {path}: chmod 600 {path}.")
    lines = [line.strip() for line in text.splitlines()]
    return Ring([line for line in lines if line and not line.startswith("#")], str(path))


def new_key(id: str) -> str:
    """A line of a ring."""
    if not KEY_ID.fullmatch(id):
        raise SealKeysInvalid(f"{id!r} is no id for a key: up to 40 letters, digits and _ . -")
    return f"{id}:{b64encode(os.urandom(KEY_BYTES)).decode()}"


def _read(id: str, text: str, source: str) -> bytes:
    """What is wrong is said without the text: it is nearly a key."""
    try:
        key = b64decode(text.strip(), validate=True)
    except (NotBase64, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise SealKeysInvalid(
            f"{source}: the key {id} is not {KEY_BYTES} bytes in base64. `lateshift keys new` prints one."
        )
    return key


def _installed() -> bool:
    return find_spec("cryptography") is not None


def _aead() -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers import aead
    except ImportError as error:
        raise SealKeysInvalid(
            "Sensitive queues need the package cryptography: pip install 'lateshift[sensitive]'."
        ) from error
    return aead


def _invalid_tag() -> type[Exception]:
    from cryptography.exceptions import InvalidTag

    kind: type[Exception] = InvalidTag
    return kind
