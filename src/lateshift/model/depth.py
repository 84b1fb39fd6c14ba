"""How deep JSON may go: what comes from outside is looked at before a decoder follows it down, and what is kept before it is kept, as
whoever reads it may stand deeper in a stack than whoever wrote it."""

import re
from itertools import accumulate
from typing import Any

import msgspec

from lateshift.errors import PayloadTooLarge

JSON_DEPTH = 64  # objects and lists inside one another
# Of arguments by name: what a job gave, in the event that tells of it, is another job's argument.
PAYLOAD_DEPTH = JSON_DEPTH + 2
# Texts, also one without an end: each byte is looked at once, whatever is sent.
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_SQUARE = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STEP = [1 if byte == ord("[") else -1 for byte in range(256)]


def depth_of(raw: bytes, most: int = JSON_DEPTH) -> int:
    """How deep objects and lists stand in one another, if that is over `most`. Right for JSON; for anything else the decoder says what is
    wrong."""
    if raw.count(b"[") + raw.count(b"{") <= most:
        return 0  # not deep, whatever it is
    left = _STRINGS.sub(b"", raw).translate(_SQUARE, _NO_BRACKETS)
    if b"[" * (most + 1) in left:
        return most + 1  # deeper than allowed: how deep need not be known
    return max(accumulate(map(_STEP.__getitem__, left)), default=0)


def refuse_deep(kept: bytes, what: str, most: int = JSON_DEPTH) -> None:
    """Raises PayloadTooLarge."""
    if depth_of(kept, most) > most:
        raise too_deep(what, most)


def shown(kept: bytes) -> Any:
    """What is kept, to be shown. What is deeper than anything may be today, as an older release or somebody's own SQL may have kept it, is the
    text that it is: no decoder comes to the end of it everywhere, nor an encoder."""
    if depth_of(kept, PAYLOAD_DEPTH) > PAYLOAD_DEPTH:
        return kept.decode(errors="replace")
    return msgspec.json.decode(kept)


def passed_on(kept: bytes) -> Any:
    """The same for what only goes out again as JSON: it is not taken apart, as `[[],[],[]…` would be twenty times as large then."""
    return shown(kept) if depth_of(kept, PAYLOAD_DEPTH) > PAYLOAD_DEPTH else msgspec.Raw(kept)


def too_deep(what: str, most: int = JSON_DEPTH) -> PayloadTooLarge:
    """Also of what no encoder comes to the end of."""
    return PayloadTooLarge(
        f"{what} more than {most} lists and objects inside one another, or holds itself. Write it flat, such as a list of rows that name "
        "their parents, or put it in a file, a table or a bucket, and hand over its name."
    )
