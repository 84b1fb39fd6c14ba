"""How deep JSON may go: what comes from outside is looked at before a decoder follows it down."""

import re
from itertools import accumulate

JSON_DEPTH = 64  # objects and lists inside one another
# Texts, also one without an end: each byte is looked at once, whatever is sent.
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_SQUARE = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STEP = [1 if byte == ord("[") else -1 for byte in range(256)]


def depth_of(raw: bytes) -> int:
    """How deep objects and lists stand in one another. Right for JSON; for anything else the decoder says what is wrong."""
    if raw.count(b"[") + raw.count(b"{") <= JSON_DEPTH:
        return 0  # not deep, whatever it is
    left = _STRINGS.sub(b"", raw).translate(_SQUARE, _NO_BRACKETS)
    if b"[" * (JSON_DEPTH + 1) in left:
        return JSON_DEPTH + 1  # deeper than allowed: how deep need not be known
    return max(accumulate(map(_STEP.__getitem__, left)), default=0)
