"""Text in a picture: how wide it will be, where it is broken, and what of it can be shown."""

import unicodedata
from collections.abc import Iterator

WIDEST = 34  # characters in a line
LINES_MOST = 3  # of what is too long for one
_NARROW = set("ijl.,:;'|!()[]{}/\\ ftr-`\"I1*")
_WIDE = set("mwMW@%_<>=+~QOGDHNU…—")


def printable(text: str) -> str:
    """In one line, without what no file could hold or no reader see."""
    return "".join(
        each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in " ".join(text.split())
    )


def width_of(text: str, size: float) -> float:
    """About as wide as in a common font; rather too wide than too narrow."""
    return sum(_share(each) for each in text) * size


def wrapped(text: str) -> list[str]:
    """Broken between words if possible; the rest of what is too long is left out."""
    lines = list(_broken(printable(text)))
    if len(lines) <= LINES_MOST:
        return lines or [""]
    return [*lines[: LINES_MOST - 1], f"{lines[LINES_MOST - 1][: WIDEST - 1]}…"]


def _broken(text: str) -> Iterator[str]:
    while len(text) > WIDEST:
        cut = text.rfind(" ", WIDEST // 2, WIDEST + 1)
        yield text[: cut if cut > 0 else WIDEST].rstrip()
        text = text[cut + 1 if cut > 0 else WIDEST :]
    if text:
        yield text


def _share(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    if character in _NARROW:
        return 0.36
    if character in _WIDE or character.isupper():
        return 0.84 if character in _WIDE else 0.7
    return 0.58
