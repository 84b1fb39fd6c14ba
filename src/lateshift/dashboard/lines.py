"""JSON and tracebacks: a line that is too long goes on below where it began, and its first word does not leave its indentation."""

import re
from itertools import groupby

from markupsafe import Markup, escape

SHORT = 30  # characters that fit wherever such text stands
DEEPEST = 8  # steps of indentation that the style sheet knows, of two blanks each

_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_LINE = re.compile(r"( *)(\S?)(.*)", re.DOTALL)


def hanging(text: str) -> Markup:
    """The same text, to be read and to be copied. What is indented and the first sign after it are kept on one line: browsers would
    break between them where a word is longer than a line. Short lines are left alone, so that a page is not much larger than its text."""
    parts = groupby(_LINES.findall(text), key=lambda line: len(line) > SHORT)
    return Markup("").join(
        Markup("").join(map(_long, lines)) if long else escape("".join(lines)) for long, lines in parts
    )


def _long(line: str) -> Markup:
    found = _LINE.match(line)
    assert found is not None, "it fits any text"
    blanks, first, rest = found.groups()
    depth = min(len(blanks) // 2, DEEPEST)
    return Markup('<span class="line at-{}"><span class="kept">{}{}</span>{}</span>').format(
        depth, blanks, first, rest
    )
