"""What is wrong in a body, more exactly than its decoder says: the names of keys, which it leaves out, and what is no text."""

import re

import msgspec
from msgspec import Raw

UNSAID = "[...]"  # in a path: a value of an object, without its key
# Of the two escapes that stand for one character the first alone. What the decoder says of others is good enough.
_HALF = re.compile(rb"(?<!\\)(?:\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])")
_PART = re.compile(r"\[(?:\.\.\.|[0-9]+)\]|[^.\[]+")


def has_half(raw: bytes) -> bool:
    """Whether a character is written by half, which the decoder takes for an end that comes too early."""
    return _HALF.search(raw) is not None


def pinpointed(raw: bytes, where: str) -> str:
    """The same place with the keys: what stands there is no number that can be kept. As it was, if it is something else."""
    if UNSAID not in where:
        return where
    found, here = "", raw
    try:
        for part in _PART.findall(where):
            if part.startswith("[") and part != UNSAID:
                found, here = found + part, bytes(msgspec.json.decode(here, type=list[Raw])[int(part[1:-1])])
                continue
            values = msgspec.json.decode(here, type=dict[str, Raw])
            name = (
                part if part != UNSAID else next(name for name, value in values.items() if not _reads(value))
            )
            found, here = f"{found}.{name}" if found else name, bytes(values[name])
    except (msgspec.DecodeError, KeyError, IndexError, StopIteration):
        return where
    return found


def _reads(value: Raw) -> bool:
    try:
        msgspec.json.decode(value)
    except msgspec.DecodeError:
        return False
    return True
